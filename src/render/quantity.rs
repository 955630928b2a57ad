//! Kubernetes quantities: just enough to compare two of them, and to write one as the API server will.
//!
//! The API server stores every quantity in its canonical form (`1024Gi` becomes `1Ti`, `0.5` becomes `500m`), and
//! those of resources in whole thousandths. A rendering in another form would differ from its own object for ever.

/// Suffixes of powers of 1000, from 10⁻⁹ up.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// The same written with an exponent.
const EXPONENT: [&str; 10] = ["e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18"];
/// Suffixes of powers of 1024.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Billionths of one, the precision of reading.
const ONE: u128 = 1_000_000_000;
/// What the API server cuts larger ones to.
const MOST: u128 = (1 << 63) - 1;

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Exponent,
    Binary,
}

/// A quantity of zero or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    billionths: u128,
    form: Form,
}

impl Amount {
    /// Reads a quantity. `None` for what is none and for a negative one. What is smaller than a thousandth is
    /// rounded up and what is too large is cut, as the API server does.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('+').unwrap_or(text);
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(split);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (multiplier, divisor, form) = scale(suffix)?;
        let exact = billionths(whole, fraction).and_then(|number| number.checked_mul(multiplier));
        let billionths = exact.map_or(u128::MAX, |number| number.div_ceil(divisor)).min(MOST * ONE);
        let billionths = billionths.div_ceil(ONE / 1000) * (ONE / 1000);
        Some(Self { billionths, form })
    }

    /// Whether it is nothing.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.billionths == 0
    }

    /// The smaller of two.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if other.billionths < self.billionths { other } else { self }
    }

    /// As the API server writes it.
    #[must_use]
    pub fn canonical(self) -> String {
        match self.form {
            _ if self.is_zero() => "0".to_owned(),
            Form::Binary if self.billionths >= 1024 * ONE => shortened(self.billionths.div_ceil(ONE), 1024, &BINARY),
            Form::Exponent => shortened(self.billionths, 1000, &EXPONENT),
            Form::Binary | Form::Decimal => shortened(self.billionths, 1000, &DECIMAL),
        }
    }
}

/// `None` when it is too large to be counted.
fn billionths(whole: &str, fraction: &str) -> Option<u128> {
    let (kept, rest) = fraction.split_at(fraction.len().min(9));
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let kept: u128 = format!("{kept:0<9}").parse().ok()?;
    let more = u128::from(rest.bytes().any(|digit| digit != b'0'));
    whole.checked_mul(ONE)?.checked_add(kept)?.checked_add(more)
}

/// What a suffix multiplies by and divides by.
fn scale(suffix: &str) -> Option<(u128, u128, Form)> {
    if let Some(power) = BINARY.iter().skip(1).position(|known| *known == suffix) {
        return Some((1 << (10 * (power + 1)), 1, Form::Binary));
    }
    if let Some(power) = DECIMAL.iter().position(|known| *known == suffix) {
        return Some((1000_u128.pow(u32::try_from(power).ok()?), ONE, Form::Decimal));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10_u128.checked_pow(exponent.unsigned_abs()).unwrap_or(u128::MAX);
    Some(if exponent < 0 { (1, power, Form::Exponent) } else { (power, 1, Form::Exponent) })
}

fn shortened(mut number: u128, base: u128, suffixes: &[&str]) -> String {
    let mut power = 0;
    while number.is_multiple_of(base) && power + 1 < suffixes.len() {
        number /= base;
        power += 1;
    }
    format!("{number}{}", suffixes[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_as_the_api_server_does() {
        for (text, canonical) in [
            ("1", "1"),
            ("+1", "1"),
            ("0", "0"),
            ("0.0Gi", "0"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("5.", "5"),
            ("2000", "2k"),
            ("0.0001", "1m"),
            ("1.0000000001", "1001m"),
            ("1000k", "1M"),
            ("1E", "1E"),
            ("1e3", "1e3"),
            ("1E4", "10e3"),
            ("2e-1", "200e-3"),
            ("1024Mi", "1Gi"),
            ("1024Gi", "1Ti"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1Ki", "1Ki"),
            ("10737418240", "10737418240"),
            ("9G", "9G"),
            ("500Gi", "500Gi"),
            ("341E", "9223372036854775807"),
            ("99999999999999999999999999999999999999999999Gi", "9223372036854775807"),
            ("1e99", "9223372036854775807"),
            ("1e-99", "1e-3"),
            ("1n", "1m"),
        ] {
            assert_eq!(Amount::parse(text).unwrap().canonical(), canonical, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "Gi", "1 Gi", "e3", "1e", "1e2.5", "-1", "1.2.3", "much", "1gi", "."] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_smaller_is_found_by_value() {
        for (a, b, smaller) in [("10Gi", "5Gi", "5Gi"), ("10Gi", "10737418240", "10Gi"), ("1", "500m", "500m")] {
            assert_eq!(Amount::parse(a).unwrap().min(Amount::parse(b).unwrap()).canonical(), smaller);
        }
    }
}

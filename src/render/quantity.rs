//! Kubernetes quantities: just enough to compare two of them, and to write one as the API server will.
//!
//! The API server stores every quantity in its canonical form (`1024Gi` becomes `1Ti`, `0.5` becomes `500m`). A
//! rendering in another form would differ from its own object for ever.

/// Suffixes of powers of 1000, from 10⁻⁹ up.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// Suffixes of powers of 1024.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Billionths of one.
const ONE: u128 = 1_000_000_000;

/// A positive quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    billionths: u128,
    binary: bool,
}

impl Amount {
    /// Reads a quantity. `None` for what is none; signs and exponents (`1e3`) are refused too, nobody needs them here.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(split);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || whole.len() > 20 || fraction.len() > 9 || fraction.contains('.')
        {
            return None;
        }
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let fraction: u128 = format!("{fraction:0<9}").parse().ok()?;
        let number = whole.checked_mul(ONE)?.checked_add(fraction)?;
        if let Some(power) = BINARY.iter().skip(1).position(|known| *known == suffix) {
            return Some(Self { billionths: number.checked_mul(1 << (10 * (power + 1)))?, binary: true });
        }
        let power = u32::try_from(DECIMAL.iter().position(|known| *known == suffix)?).ok()?;
        Some(Self { billionths: number.checked_mul(1000_u128.pow(power))? / ONE, binary: false })
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
        if self.binary && self.billionths >= 1024 * ONE {
            return shortened(self.billionths.div_ceil(ONE), 1024, &BINARY);
        }
        if self.is_zero() { "0".to_owned() } else { shortened(self.billionths, 1000, &DECIMAL) }
    }
}

fn shortened(mut number: u128, base: u128, suffixes: &[&str]) -> String {
    let mut power = 0;
    while number % base == 0 && power + 1 < suffixes.len() {
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
            ("0", "0"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("2000", "2k"),
            ("0.0001", "100u"),
            ("1000k", "1M"),
            ("1024Mi", "1Gi"),
            ("1024Gi", "1Ti"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1Ki", "1Ki"),
            ("10737418240", "10737418240"),
            ("9G", "9G"),
            ("500Gi", "500Gi"),
        ] {
            assert_eq!(Amount::parse(text).unwrap().canonical(), canonical, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in [
            "",
            "Gi",
            "1 Gi",
            "1e3",
            "-1",
            "+1",
            "1.2.3",
            "much",
            "1gi",
            "999999999999999999999Gi",
            "99999999999999999999Ei",
        ] {
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

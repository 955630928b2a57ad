//! Kubernetes quantities: just enough arithmetic to compare two of them.

/// Value of a quantity in thousandths, rounded down. `None` for what is not a quantity.
#[must_use]
pub fn thousandths(quantity: &str) -> Option<u128> {
    let split = quantity.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(quantity.len());
    let (number, suffix) = quantity.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || whole.len() > 15 || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Nine digits are more than any quantity that a cluster accepts makes use of.
    let fraction: u128 = format!("{fraction:0<9.9}").parse().ok()?;
    let billionths = whole * 1_000_000_000 + fraction;
    let scale: u128 = match suffix {
        "m" => return Some(billionths / 1_000_000_000),
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "P" => 1_000_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        _ => return None,
    };
    Some(billionths * scale / 1_000_000)
}

/// The smaller of two quantities, as it was written. The first when the second is not a quantity.
#[must_use]
pub fn smaller<'a>(first: &'a str, second: &'a str) -> &'a str {
    match (thousandths(first), thousandths(second)) {
        (Some(a), Some(b)) if b < a => second,
        (None, Some(_)) => second,
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_compare_by_value() {
        for (text, value) in [
            ("1", 1000),
            ("1500m", 1500),
            ("0.5", 500),
            (".5", 500),
            ("1Ki", 1_024_000),
            ("1.5Gi", 1_610_612_736_000),
            ("2G", 2_000_000_000_000),
        ] {
            assert_eq!(thousandths(text), Some(value), "{text}");
        }
        for text in ["", "Gi", "1 Gi", "1e3x", "-1", "1.2.3", "12345678901234567890Gi"] {
            assert_eq!(thousandths(text), None, "{text}");
        }
        assert_eq!(smaller("10Gi", "5Gi"), "5Gi");
        assert_eq!(smaller("10Gi", "10737418240"), "10Gi");
        assert_eq!(smaller("10Gi", "nonsense"), "10Gi");
    }
}

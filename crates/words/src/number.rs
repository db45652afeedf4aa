//! Formats numbers for people.

/// Formats a number with `decimals` decimals and commas between thousands. A negative zero loses
/// its sign.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) => digits.to_owned(),
        _ => grouped(&text),
    }
}

/// Inserts commas between thousands.
pub fn grouped(text: &str) -> String {
    let Some(first) = text.find(|c: char| c.is_ascii_digit()) else {
        return text.to_owned();
    };
    let end = text.find('.').unwrap_or(text.len());
    let mut out = text[..first].to_owned();
    for (at, digit) in text[first..end].char_indices() {
        if at > 0 && (end - first - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + &text[end..]
}

/// Writes a size on a disk in MB or GB.
pub fn size_text(bytes: u64) -> String {
    let gigabytes = bytes as f64 / 1e9;
    // The limits are those of rounded sizes.
    if gigabytes < 0.9995 {
        format!("{:.0} MB", gigabytes * 1e3)
    } else {
        // A decimal of an estimate says nothing beside three digits.
        let decimals = usize::from(gigabytes < 99.95);
        format!("{} GB", fixed(gigabytes, decimals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators_and_no_negative_zero() {
        for (value, decimals, text) in [
            (1_234_567.8, 0, "1,234,568"),
            (1234.5, 1, "1,234.5"),
            (-1234.0, 0, "-1,234"),
            (123.0, 0, "123"),
            (-0.0001, 3, "0.000"),
            (-1.5, 1, "-1.5"),
            (f64::NEG_INFINITY, 2, "-inf"),
        ] {
            assert_eq!(fixed(value, decimals), text);
        }
    }

    #[test]
    fn a_large_size_has_no_decimal() {
        for (bytes, text) in [
            (213_400_000, "213 MB"),
            (999_700_000, "1.0 GB"),
            (2_700_000_000, "2.7 GB"),
            (99_900_000_000, "99.9 GB"),
            (99_960_000_000, "100 GB"),
            (900_000_000_000, "900 GB"),
            (1_659_000_000_000, "1,659 GB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }
}

//! How numbers, shares and times are printed.

use words::Decimals;

/// A rate by itself, as tables show it: `22293`, `3.41`, `0.0294`.
pub fn rate_text(per_second: f64) -> String {
    fixed(per_second, Decimals::Rate.of([per_second]))
}

/// A number with so many decimals and without separators; a negative zero loses its sign.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_string(),
        _ => text,
    }
}

/// A share in percent, as the field prints it: nothing for none, and never 0.000 for some.
pub(crate) fn share(count: u64, total: u64) -> String {
    if count == 0 || total == 0 {
        return String::new();
    }
    let text = fixed(count as f64 / total as f64 * 100.0, 3);
    if text == "0.000" {
        "nonzero".to_string()
    } else {
        text
    }
}

/// A length of time for people: `12.3 s`, `4 min 5 s`, `2 h 3 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{} s", fixed(seconds, 1)),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A moment for people: `2026-11-21 19:02:11 UTC`.
pub(crate) fn moment(unix_ns: u64) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(unix_ns)) {
        Ok(timestamp) => timestamp.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{unix_ns} ns after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_not_zero_never_looks_like_zero() {
        assert_eq!(share(0, 1_000_000), "");
        assert_eq!(share(1, 1_000_000), "nonzero");
        assert_eq!(share(5, 1_000_000), "0.001");
        assert_eq!(share(7, 7), "100.000");
        assert_eq!(share(0, 0), "");
    }

    #[test]
    fn a_small_rate_gets_decimals() {
        assert_eq!(rate_text(12_345.6), "12346");
        assert_eq!(rate_text(9.876), "9.88");
        assert_eq!(rate_text(1.0), "1.00");
        assert_eq!(rate_text(1.0 / 34.0), "0.0294");
        assert_eq!(rate_text(0.0), "0");
    }

    #[test]
    fn numbers_have_no_separators_and_no_negative_zero() {
        assert_eq!(fixed(1_234_567.8, 0), "1234568");
        assert_eq!(fixed(-0.0001, 3), "0.000");
        assert_eq!(fixed(-1.5, 1), "-1.5");
    }

    #[test]
    fn times_are_in_the_largest_units_that_say_enough() {
        assert_eq!(duration(12.34), "12.3 s");
        assert_eq!(duration(59.96), "1 min 0 s");
        assert_eq!(duration(245.0), "4 min 5 s");
        assert_eq!(duration(7380.0), "2 h 3 min");
        assert_eq!(moment(1_795_287_731_000_000_000), "2026-11-21 19:02:11 UTC");
    }
}

//! Formats numbers, shares and times.

use std::time::Duration;

use words::{Decimals, grouped};
pub(crate) use words::{fixed, listed};

/// Formats a single rate as tables do: `22,293`, `3.41`, `0.0294`.
pub fn rate_text(per_second: f64) -> String {
    fixed(per_second, Decimals::Rate.of([per_second]))
}

/// Formats a count.
pub(crate) fn whole(count: u64) -> String {
    grouped(&count.to_string())
}

/// Formats a ratio without an interval: with three digits, and at most three decimals.
pub(crate) fn ratio_text(ratio: f64) -> String {
    match ratio {
        ratio if ratio > 0.0 && ratio < 0.001 => "<0.001".to_string(),
        ratio if ratio > 0.0 && ratio < 0.1 => fixed(ratio, 3),
        ratio if ratio < 10.0 => fixed(ratio, 2),
        ratio if ratio < 100.0 => fixed(ratio, 1),
        ratio => fixed(ratio, 0),
    }
}

/// Replaces arrows and microseconds by their Unicode signs: `41.2 -> 48.9 us`.
pub(crate) fn typeset(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let arrows = words.into_iter().map(|word| if word == "->" { "\u{2192}" } else { word });
    with_microseconds(&arrows.collect::<Vec<_>>().join(" "))
}

/// Writes microseconds with their sign: `48.9 µs`.
pub(crate) fn with_microseconds(text: &str) -> String {
    let mut is_after_number = false;
    let mut words = Vec::new();

    for word in text.split(' ') {
        words.push(match word.strip_prefix("us") {
            // Only after a number: `us` may begin a name.
            Some(rest) if is_after_number && !rest.starts_with(char::is_alphanumeric) => {
                format!("\u{b5}s{rest}")
            }
            _ => word.to_string(),
        });
        is_after_number = word.ends_with(|last: char| last.is_ascii_digit());
    }
    words.join(" ")
}

/// Joins names: `a, b and c`.
pub(crate) fn enumerated(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        names => names.concat(),
    }
}

/// Formats a share in percent: empty for zero, and never 0.000 for a share above zero.
pub(crate) fn share(count: u64, total: u64) -> String {
    if count == 0 || total == 0 {
        return String::new();
    }
    let text = fixed(count as f64 / total as f64 * 100.0, 3);
    if text == "0.000" { "nonzero".to_string() } else { text }
}

/// Formats a share in percent, without needless decimals.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = usize::from((percent - percent.round()).abs() > 0.005);
    format!("{}%", fixed(percent, decimals))
}

/// Formats a size in binary units, with three digits: `23.5 GiB`, `512 B`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }

    let power = (count.ilog2() / 10).min(UNITS.len() as u32);
    let value = count as f64 / 1024_f64.powi(power as i32);
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };

    let text = fixed(value, decimals);
    let short =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} {}", UNITS[power as usize - 1])
}

/// Formats a duration: `12.3 s`, `4 min 5 s`, `2 h 3 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{} s", fixed(seconds, 1)),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats an age in one unit: `45 s`, `10 min`, `3 h`, `3 days`.
pub fn age_text(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Formats a time: `2026-11-21 19:02:11 UTC`.
pub(crate) fn moment(unix_ns: u64) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(unix_ns)) {
        Ok(timestamp) => timestamp.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{unix_ns} ns after 1970"),
    }
}

/// Formats a time in seconds since 1970 UTC: `2026-11-21 19:02:11 UTC`.
pub fn moment_of_seconds(unix_s: i64) -> String {
    match jiff::Timestamp::from_second(unix_s) {
        Ok(timestamp) => timestamp.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{unix_s} s after 1970"),
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
        assert_eq!(rate_text(12_345.6), "12,346");
        assert_eq!(rate_text(9.876), "9.88");
        assert_eq!(rate_text(1.0), "1.00");
        assert_eq!(rate_text(1.0 / 34.0), "0.0294");
        assert_eq!(rate_text(0.0), "0");
    }

    #[test]
    fn ratios_have_three_digits_and_none_is_nothing() {
        let texts = [0.0, 0.000_4, 0.003_21, 0.123_4, 1.573_1, 11.57, 311.5].map(ratio_text);
        let expected = ["0.00", "<0.001", "0.003", "0.12", "1.57", "11.6", "312"];
        assert_eq!(texts, expected);
    }

    #[test]
    fn arrows_and_microseconds_get_their_signs_and_names_stay() {
        let text = "us.a: 41.2 -> 48.9 us, 1.19x; in us-east 3 us/op; a->b";
        let expected = "us.a: 41.2 \u{2192} 48.9 \u{b5}s, 1.19x; in us-east 3 \u{b5}s/op; a->b";
        assert_eq!(typeset(text), expected);
    }

    #[test]
    fn sizes_have_binary_units_and_three_digits() {
        let texts = [0, 512, 2048, 4 << 20, 25_276_502_016, 1023 << 40].map(bytes);
        assert_eq!(texts, ["0 B", "512 B", "2 KiB", "4 MiB", "23.5 GiB", "1,023 TiB"]);
    }

    #[test]
    fn an_age_has_one_unit() {
        let texts = [119, 600, 3 * 3600, 3 * 86_400].map(|s| age_text(Duration::from_secs(s)));
        assert_eq!(texts, ["119 s", "10 min", "3 h", "3 days"]);
    }

    #[test]
    fn times_are_in_the_largest_units_that_say_enough() {
        assert_eq!(duration(12.34), "12.3 s");
        assert_eq!(duration(59.96), "1 min 0 s");
        assert_eq!(duration(245.0), "4 min 5 s");
        assert_eq!(duration(7380.0), "2 h 3 min");
        assert_eq!(moment(1_795_287_731_000_000_000), "2026-11-21 19:02:11 UTC");
        assert_eq!(moment_of_seconds(1_795_287_731), "2026-11-21 19:02:11 UTC");
        assert_eq!(moment_of_seconds(i64::MAX), format!("{} s after 1970", i64::MAX));
    }
}

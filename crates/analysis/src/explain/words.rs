//! Numbers and lists in sentences.

pub(super) use ::words::counted;

use super::thresholds::NAMED;

/// Formats a number with three significant digits, whole from 100 on, without zeros at its end: `41.2`, `0.02`, `12,345`.
pub(super) fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.1 => 3,
        size if size >= 0.01 => 4,
        size if size >= 0.001 => 5,
        _ => 6,
    };
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text.as_str(),
    };
    match text {
        "-0" | "" => "0".to_owned(),
        text => grouped(text),
    }
}

/// Separates thousands by commas, from 10,000 on.
fn grouped(text: &str) -> String {
    let first = text.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let end = text.find('.').unwrap_or(text.len());
    if end - first < 5 {
        return text.to_owned();
    }
    let mut out = text[..first].to_owned();
    for (at, digit) in text[first..end].char_indices() {
        if at > 0 && (end - first - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + &text[end..]
}

/// Formats a ratio: `1.19x`, `11.6x`, `200x`.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 100.0 => format!("{}x", figure(ratio)),
        ratio if ratio >= 10.0 => format!("{ratio:.1}x"),
        ratio if ratio >= 0.0995 => format!("{ratio:.2}x"),
        ratio if ratio >= 0.00995 => format!("{ratio:.3}x"),
        ratio => format!("{}x", figure(ratio)),
    }
}

/// Says how much more or less of something there is: `20% more CPU`, `83% less CPU`, `3.40x as much CPU`.
pub(super) fn more(ratio: f64, what: &str) -> String {
    let much = match ratio {
        ratio if ratio >= 1.995 => format!("{} as much", times(ratio)),
        ratio if ratio >= 1.0 => format!("{:.0}% more", (ratio - 1.0) * 100.0),
        ratio => format!("{:.0}% less", (1.0 - ratio) * 100.0),
    };
    format!("{much} {what}")
}

/// Says how fast something is: `17% slower`, `3.4x faster`.
pub(super) fn pace(ratio: f64) -> String {
    let factor = |factor: f64| match factor {
        factor if factor >= 99.5 => figure(factor),
        factor => format!("{factor:.1}"),
    };
    match ratio {
        ratio if ratio >= 1.995 => format!("{}x faster", factor(ratio)),
        ratio if ratio >= 1.0 => format!("{:.0}% faster", (ratio - 1.0) * 100.0),
        ratio if ratio > 0.501 => format!("{:.0}% slower", (1.0 - ratio) * 100.0),
        ratio => format!("{}x slower", factor(1.0 / ratio)),
    }
}

/// Formats two values with their unit and, where both are above zero, their ratio: `41.2 -> 48.9 us, 1.19x`.
pub(super) fn change(base: f64, value: f64, unit: &str) -> String {
    let ratio = match base > 0.0 && value > 0.0 {
        true => format!(", {}", times(value / base)),
        false => String::new(),
    };
    let unit = match unit {
        "" => String::new(),
        unit if unit.starts_with(['%', '/']) => unit.to_owned(),
        unit => format!(" {unit}"),
    };
    format!("{} -> {}{unit}{ratio}", figure(base), figure(value))
}

/// Says how a number of microseconds changed: `rose from 95 to 115 us`.
pub(super) fn rose_us(base: f64, value: f64) -> String {
    let (unit, size) = match base.max(value) {
        us if us >= 1e7 => ("s", 1e6),
        us if us >= 1e5 => ("ms", 1e3),
        _ => ("us", 1.0),
    };
    let verb = if value > base { "rose" } else { "fell" };
    format!(
        "{verb} from {} to {} {unit}",
        figure(base / size),
        figure(value / size)
    )
}

/// Formats a difference with its sign: `+120`.
pub(super) fn signed(difference: f64) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", figure(difference.abs()))
}

/// Begins a text with a capital letter.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// Formats an interval of ratios: `0.82x to 0.86x`, with a third decimal where two would hide it.
pub(super) fn range(low: f64, high: f64) -> String {
    match (times(low), times(high)) {
        (low_text, high_text) if low_text == high_text => format!("{low:.3}x to {high:.3}x"),
        (low, high) => format!("{low} to {high}"),
    }
}

/// `a, b and c`; of many the first are named and the rest counted.
pub(super) fn list(items: &[String]) -> String {
    let named = if items.len() > NAMED + 1 {
        NAMED
    } else {
        items.len()
    };
    let (shown, rest) = items.split_at(named);
    let mut shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let more = format!("{} more", rest.len());
    if !rest.is_empty() {
        shown.push(&more);
    }
    match shown.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
    }
}

/// Each once, in the order in which they come.
pub(super) fn distinct<'a>(items: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for item in items {
        if seen.iter().all(|other| other != item) {
            seen.push(item.to_owned());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_no_zeros_at_their_end() {
        for (value, text) in [
            (1_234_567.8, "1,234,568"),
            (12_345.6, "12,346"),
            (-12_345.6, "-12,346"),
            (1234.0, "1234"),
            (194.0, "194"),
            (48.94, "48.9"),
            (99.96, "100"),
            (4.8, "4.8"),
            (0.02, "0.02"),
            (0.552, "0.552"),
            (0.000_31, "0.00031"),
            (0.0, "0"),
            (100.0, "100"),
            (-0.000_000_1, "0"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn a_change_has_both_values_the_unit_and_the_ratio() {
        assert_eq!(change(41.2, 48.9, "us"), "41.2 -> 48.9 us, 1.19x");
        assert_eq!(change(0.0, 4.8, "reads"), "0 -> 4.8 reads");
        assert_eq!(change(9.0, 25.9, "%"), "9 -> 25.9%, 2.88x");
        assert_eq!(rose_us(45_900.0, 55_200.0), "rose from 45,900 to 55,200 us");
        assert_eq!(rose_us(552_000.0, 459_000.0), "fell from 552 to 459 ms");
        assert_eq!(signed(-34.2), "-34.2");
    }

    #[test]
    fn slower_and_faster_are_of_the_base() {
        assert_eq!(pace(0.83), "17% slower");
        assert_eq!(pace(0.29), "3.4x slower");
        assert_eq!(pace(0.5), "2.0x slower");
        assert_eq!(pace(0.003_21), "312x slower");
        assert_eq!(pace(1.2), "20% faster");
        assert_eq!(pace(5.88), "5.9x faster");
        assert_eq!(more(0.85, "CPU"), "15% less CPU");
        assert_eq!(more(0.04, "CPU"), "96% less CPU");
        assert_eq!(more(12.3, "CPU"), "12.3x as much CPU");
        assert_eq!(range(0.82, 0.864), "0.82x to 0.86x");
        assert_eq!(range(0.2161, 0.2183), "0.216x to 0.218x");
    }

    #[test]
    fn long_lists_are_counted() {
        let names =
            |count: usize| -> Vec<String> { (1..=count).map(|n| format!("t{n}")).collect() };
        assert_eq!(list(&names(0)), "");
        assert_eq!(list(&names(1)), "t1");
        assert_eq!(list(&names(3)), "t1, t2 and t3");
        assert_eq!(list(&names(5)), "t1, t2, t3, t4 and t5");
        assert_eq!(list(&names(6)), "t1, t2, t3, t4 and 2 more");
    }
}

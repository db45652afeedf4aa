//! Numbers and lists in sentences.

use record::StepKind;

use super::thresholds::NAMED;
use crate::Row;

/// A number with three significant digits, more where it is large, and without zeros at its end: `41.2`, `0.02`,
/// `12345`.
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
        text => text.to_owned(),
    }
}

/// A ratio: `1.19x`, `11.6x`, `200x`.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 100.0 => format!("{ratio:.0}x"),
        ratio if ratio >= 10.0 => format!("{ratio:.1}x"),
        ratio if ratio >= 0.0995 => format!("{ratio:.2}x"),
        ratio if ratio >= 0.00995 => format!("{ratio:.3}x"),
        ratio => format!("{}x", figure(ratio)),
    }
}

/// How much more or less of something there is: `20% more CPU`, `3.40x as much CPU`.
pub(super) fn more(ratio: f64, what: &str) -> String {
    let much = match ratio {
        ratio if ratio >= 1.995 => format!("{} as much", times(ratio)),
        ratio if ratio >= 1.0 => format!("{:.0}% more", (ratio - 1.0) * 100.0),
        ratio if ratio > 0.5 => format!("{:.0}% less", (1.0 - ratio) * 100.0),
        ratio => format!("{} as much", times(ratio)),
    };
    format!("{much} {what}").trim_end().to_owned()
}

/// How fast something is: `17% slower`, `3.40x as fast`.
pub(super) fn pace(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1.995 => format!("{} as fast", times(ratio)),
        ratio if ratio >= 1.0 => format!("{:.0}% faster", (ratio - 1.0) * 100.0),
        ratio if ratio > 0.5 => format!("{:.0}% slower", (1.0 - ratio) * 100.0),
        ratio => format!("{} as fast", times(ratio)),
    }
}

/// Both values with their unit and, where it means something, their ratio: `41.2 -> 48.9 us, 1.19x`.
pub(super) fn change(base: f64, value: f64, unit: &str) -> String {
    let ratio = match base > 0.0 && value > 0.0 {
        true => format!(", {}", times(value / base)),
        false => String::new(),
    };
    let unit = match unit {
        "" => String::new(),
        unit if unit.starts_with('%') => unit.to_owned(),
        unit => format!(" {unit}"),
    };
    format!("{} -> {}{unit}{ratio}", figure(base), figure(value))
}

/// The same of microseconds, in the unit that suits the larger.
pub(super) fn change_us(base: f64, value: f64) -> String {
    let (unit, size) = unit_of_us(base.max(value));
    change(base / size, value / size, unit)
}

/// The same, and what it is of: `1.46 -> 2051 us of a client's time, 1405x`.
pub(super) fn change_us_of(base: f64, value: f64, what: &str) -> String {
    let (unit, size) = unit_of_us(base.max(value));
    change(base / size, value / size, &format!("{unit} {what}"))
}

/// A time that was gained or lost: `+120 us`.
pub(super) fn signed_us(us: f64) -> String {
    let (unit, size) = unit_of_us(us.abs());
    let sign = if us < 0.0 { "-" } else { "+" };
    format!("{sign}{} {unit}", figure(us.abs() / size))
}

fn unit_of_us(us: f64) -> (&'static str, f64) {
    match us {
        us if us >= 1e7 => ("s", 1e6),
        us if us >= 1e5 => ("ms", 1e3),
        _ => ("us", 1.0),
    }
}

/// A number of things: `1 step`, `3 steps`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
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

/// What one operation of a step is, as it stands after `per`.
pub(super) fn noun(row: &Row) -> &str {
    match (row.kind, row.main_op.as_deref()) {
        (StepKind::Settle, _) => "step",
        (StepKind::Index, _) => "row",
        (StepKind::Load, Some("insert") | None) => "row",
        (StepKind::Query, None | Some("event")) => "query",
        (_, Some(kind)) => kind,
    }
}

/// The unit of a step's throughput.
pub(super) fn rate(row: &Row) -> String {
    match noun(row) {
        "query" => "queries/s".to_owned(),
        noun => format!("{noun}s/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_no_zeros_at_their_end() {
        for (value, text) in [
            (12_345.6, "12346"),
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
        assert_eq!(change_us(45_900.0, 55_200.0), "45900 -> 55200 us, 1.20x");
        assert_eq!(change_us(459_000.0, 552_000.0), "459 -> 552 ms, 1.20x");
    }

    #[test]
    fn slower_and_faster_are_of_the_base() {
        assert_eq!(pace(0.83), "17% slower");
        assert_eq!(pace(0.29), "0.29x as fast");
        assert_eq!(pace(1.2), "20% faster");
        assert_eq!(pace(3.4), "3.40x as fast");
        assert_eq!(more(0.85, "CPU"), "15% less CPU");
        assert_eq!(more(0.04, ""), "0.040x as much");
        assert_eq!(more(12.3, "CPU"), "12.3x as much CPU");
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

//! Numbers and lists in sentences.

use words::grouped;

use analysis::compare::Interval;
use analysis::explain::statement::Pair;

use super::amount::AmountChange;

/// The number of names in one sentence; the others are counted.
pub(crate) const NAMED: usize = 4;

/// Formats a number with three significant digits, whole from 100 on, without zeros at its end:
/// `41.2`, `0.02`, `12,345`.
pub(crate) fn figure(value: f64) -> String {
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

    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text.as_str()
    };

    match text {
        "-0" | "" => "0".to_owned(),
        text => grouped(text),
    }
}

/// Formats a ratio: `1.19x`, `11.6x`, `200x`.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 100.0 => format!("{}x", figure(ratio)),
        ratio if ratio >= 10.0 => format!("{ratio:.1}x"),
        ratio => format!("{ratio:.2}x"),
    }
}

/// Formats the larger of two figures as a multiple of the smaller, by their ratio: `1.57x`,
/// whichever of the two it is.
pub(crate) fn factor(ratio: f64) -> String {
    match ratio.max(1.0 / ratio) {
        factor if factor < 1.005 => format!("{factor:.3}x"),
        factor if factor > 1000.0 => ">1000x".to_owned(),
        factor => times(factor),
    }
}

/// A factor below this is so close to 1 that two decimals hide its size: 1.006 and 1.014 are `1.01x`.
const NEAR_ONE: f64 = 1.02;

/// Formats a factor as `factor` does, with fewer digits where its interval does not allow as
/// many. A factor near 1 has as many as its interval allows.
pub(crate) fn factor_within(ratio: f64, interval: Option<Interval>) -> String {
    let usual = factor(ratio);
    let Some(interval) = interval else {
        return usual;
    };

    let within = if ratio < 1.0 {
        inverse(interval).digits_of(1.0 / ratio)
    } else {
        interval.digits_of(ratio)
    } + "x";

    let is_near_one = ratio.max(1.0 / ratio) < NEAR_ONE;
    if is_near_one || within.len() < usual.len() { within } else { usual }
}

/// Returns the change of a speed: `1.20x slower`, `3.4x faster`.
pub(crate) fn pace(ratio: f64, interval: Option<Interval>) -> String {
    let faster = if ratio < 1.0 { "slower" } else { "faster" };
    format!("{} {faster}", factor_within(ratio, interval))
}

/// Returns the interval of the inverse ratio.
fn inverse(interval: Interval) -> Interval {
    Interval { low: 1.0 / interval.high, high: 1.0 / interval.low, ..interval }
}

/// Formats both figures with a unit and, where both are above zero, the change: `41.2 -> 48.9 us,
/// 19% more`. Figures in percent have none: `20 -> 25%, 25% more` would confuse.
pub(crate) fn both(pair: Pair, unit: &str) -> String {
    let (base, value) = (figure(pair.base), figure(pair.value));
    let is_share = unit.starts_with('%');
    let ratio = pair.ratio().filter(|_| base != value && !is_share);
    let change = ratio.map(|ratio| format!(", {}", AmountChange::new(ratio, None).short()));

    let unit = match unit {
        "" => String::new(),
        unit if is_share || unit.starts_with('/') => unit.to_owned(),
        unit => format!(" {unit}"),
    };

    format!("{base} -> {value}{unit}{}", change.unwrap_or_default())
}

/// Formats a share: `75%`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// Formats the interval of a change that is shown, which does not hold 1, as factors in the
/// direction of the change: `1.16x to 1.22x`.
pub(crate) fn range(interval: Interval) -> String {
    let factors = if interval.high < 1.0 { inverse(interval) } else { interval };
    let [low, high] = [factors.low, factors.high].map(|bound| factors.digits_of(bound));
    format!("{low}x to {high}x")
}

/// Joins names: `a, b and c`; the first of many are named and the others counted.
pub(crate) fn list(items: &[impl AsRef<str>]) -> String {
    list_up_to(items, NAMED)
}

/// Joins names as [`list`] does. Names the first `most` if there are more than `most + 1`.
pub(crate) fn list_up_to(items: &[impl AsRef<str>], most: usize) -> String {
    let named = match items.len() {
        count if count > most + 1 => most,
        count => count,
    };
    let (shown, rest) = items.split_at(named);

    let mut shown: Vec<&str> = shown.iter().map(AsRef::as_ref).collect();
    let more = format!("{} more", rest.len());
    if !rest.is_empty() {
        shown.push(&more);
    }

    match shown.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => shown.concat(),
    }
}

/// Joins names as [`list`] does; `None` without any.
pub(crate) fn list_any(items: impl IntoIterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.into_iter().collect();
    if items.is_empty() { None } else { Some(list(&items)) }
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
            (1234.0, "1,234"),
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
    fn a_change_has_both_values_the_unit_and_its_size() {
        let text = |base, value, unit| both(Pair { base, value }, unit);
        assert_eq!(text(41.2, 48.9, "us"), "41.2 -> 48.9 us, 19% more");
        assert_eq!(text(48.9, 12.1, "us"), "48.9 -> 12.1 us, 75% less");
        assert_eq!(text(12.1, 48.9, "us"), "12.1 -> 48.9 us, 4.04x");
        assert_eq!(text(0.0, 4.8, "reads"), "0 -> 4.8 reads");
        assert_eq!(text(9.0, 25.9, "%"), "9 -> 25.9%");
    }

    #[test]
    fn slower_and_faster_are_of_the_base() {
        assert_eq!(pace(0.83, None), "1.20x slower");
        assert_eq!(pace(0.5, None), "2.00x slower");
        assert_eq!(pace(0.003_21, None), "312x slower");
        assert_eq!(pace(1.2, None), "1.20x faster");
        assert_eq!(pace(58.8, None), "58.8x faster");
        assert_eq!(pace(1.003, None), "1.003x faster");
        assert_eq!(pace(1e-9, None), ">1000x slower");
        let within = |ratio, low, high| pace(ratio, Some(Interval { low, high, confidence: 0.95 }));
        assert_eq!(within(0.994, 0.989, 0.998), "1.006x slower");
        assert_eq!(within(1.014, 0.96, 1.07), "1.01x faster");
        assert_eq!(within(1.234, 1.233, 1.235), "1.23x faster");
        let range = |low, high| range(Interval { low, high, confidence: 0.95 });
        assert_eq!(range(0.82, 0.864), "1.16x to 1.22x");
        assert_eq!(range(1.2161, 1.2183), "1.216x to 1.218x");
        assert_eq!(range(0.0, 0.5), "2.0x to >1000x");
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

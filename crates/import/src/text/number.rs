//! Reads numbers, which in files from strangers may be anything.

use super::Refusal;

/// The largest number that is believed: more than any counter has in a benchmark.
const NUMBER_MAX: f64 = 1e18;

/// The longest time of a step in seconds: 60 days.
const SECONDS_MAX: f64 = 60.0 * 86_400.0;

/// The largest count that is believed. The sum of one in each file of a campaign has 64 bits.
const COUNT_MAX: u64 = 50_000_000_000_000;

/// Returns a whole number that is not negative.
pub(crate) fn count(text: &str, what: &str, line: u64) -> Result<u64, Refusal> {
    let plain = text.trim().replace(',', "");
    let count = plain.parse::<u64>().ok().filter(|count| *count < COUNT_MAX);
    count.ok_or_else(|| Refusal::at(line, format!("{what} is `{}`, not a count", short(text))))
}

/// Returns a number that is neither negative nor infinite.
pub(crate) fn measure(text: &str, what: &str, line: u64) -> Result<f64, Refusal> {
    let number = text.trim().parse::<f64>().ok();
    let number = number.filter(|number| (0.0..NUMBER_MAX).contains(number));
    number.ok_or_else(|| Refusal::at(line, format!("{what} is `{}`, not a number", short(text))))
}

/// Returns a share of 100%, which rounding may exceed a little.
pub(crate) fn share(text: &str, what: &str, line: u64) -> Result<f64, Refusal> {
    measure(text, what, line)
}

/// Returns a time of a step in nanoseconds.
pub(crate) fn seconds_to_ns(seconds: f64, what: &str, line: u64) -> Result<u64, Refusal> {
    if !(0.0..SECONDS_MAX).contains(&seconds) {
        return Err(Refusal::at(
            line,
            format!("{what} is {seconds} s, which is not a time of a step"),
        ));
    }
    Ok((seconds * 1e9).round() as u64)
}

/// Splits a number from the unit behind it: `330.0083s`, `12.5ms`, `1950 MB`.
pub(crate) fn with_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number = number.parse::<f64>().ok().filter(|number| *number < NUMBER_MAX)?;
    Some((number, unit.trim()))
}

/// Returns what the first part with this unit has before it, of a line whose parts commas separate:
/// `28.0` for `secs` in `28.0 secs, 2000000 rows`.
pub(crate) fn before_unit<'a>(line: &'a str, unit: &str) -> Option<&'a str> {
    line.split(',').find_map(|part| part.trim().strip_suffix(unit).map(str::trim))
}

/// Returns the positions of columns in a header; `None` if it lacks one.
pub(crate) fn header_columns<const COUNT: usize>(
    header: &[&str],
    names: [&str; COUNT],
) -> Option<[usize; COUNT]> {
    let mut places = [0; COUNT];
    for (place, name) in places.iter_mut().zip(names) {
        *place = header.iter().position(|column| *column == name)?;
    }
    Some(places)
}

fn short(text: &str) -> String {
    text.trim().chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_nothing_can_measure_are_refused() {
        assert_eq!(count("1,234", "rows", 1).unwrap(), 1234);
        for text in ["-1", "1e400", "NaN", "inf", "", "99999999999999999999"] {
            assert!(count(text, "rows", 1).is_err(), "{text}");
        }
        for text in ["-0.5", "1e400", "NaN", "inf", ""] {
            assert!(measure(text, "rate", 1).is_err(), "{text}");
        }
        assert!(seconds_to_ns(1e12, "time", 1).is_err());
    }

    #[test]
    fn a_number_is_split_from_its_unit() {
        assert_eq!(with_unit("330.0083s"), Some((330.0083, "s")));
        assert_eq!(with_unit("1950 MB"), Some((1950.0, "MB")));
        assert_eq!(with_unit("s"), None);
    }
}

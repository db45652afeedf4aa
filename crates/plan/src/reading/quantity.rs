//! Numbers with units: how a plan writes them, and their ranges.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::reading::context::{Context, ValueKind};
use crate::text::tree::{Node, Value};
use crate::text::wording::{code, quoted};

/// A kind of quantity, with its units.
pub(crate) struct Dimension {
    name: &'static str,
    /// Units with their factors, the smallest unit first. With the unit "" a number needs no unit.
    /// Of units with the same factor the last one is written.
    units: &'static [(&'static str, u64)],
    unit_of_zero: &'static str,
    /// The unit that is suggested where one is missing.
    suggested_unit: &'static str,
    help: &'static str,
}

pub(crate) static COUNT: Dimension = Dimension {
    name: "count",
    units: &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)],
    unit_of_zero: "",
    suggested_unit: "",
    help: "a count is a whole number: `1500`, or with `k`, `M` or `G` in a string: `\"20M\"`",
};

/// A time, in nanoseconds.
pub(crate) static TIME: Dimension = Dimension {
    name: "duration",
    units: &[
        ("\u{3bc}s", 1_000),
        ("\u{b5}s", 1_000),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    unit_of_zero: "s",
    suggested_unit: "s",
    help: "a duration is a string with one number and one unit, `us`, `ms`, `s`, `m` or `h`: `\"500ms\"`, `\"1.5h\"`",
};

static SIZE: Dimension = Dimension {
    name: "size",
    units: &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)],
    unit_of_zero: "B",
    suggested_unit: "GiB",
    help: "a size is a string with a number and a unit, `B`, `KiB`, `MiB`, `GiB` or `TiB`: `\"1.5GiB\"`",
};

static BYTE_RATE: Dimension = Dimension {
    name: "write rate",
    units: &[("B/s", 1), ("KiB/s", 1 << 10), ("MiB/s", 1 << 20), ("GiB/s", 1 << 30)],
    unit_of_zero: "B/s",
    suggested_unit: "MiB/s",
    help: "a write rate is a string with a number and a unit, `B/s`, `KiB/s`, `MiB/s` or `GiB/s`: `\"2MiB/s\"`",
};

static RATE: Dimension = Dimension {
    name: "rate",
    units: &[
        ("/s", 1),
        ("k/s", 1_000),
        ("M/s", 1_000_000),
        ("G/s", 1_000_000_000),
        ("", 1),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ],
    unit_of_zero: "",
    suggested_unit: "",
    help: "a rate is a number per second: `100`, `0.5`, or with `k`, `M` or `G` in a string: `\"20k/s\"`",
};

static SHARE: Dimension = Dimension {
    name: "share",
    units: &[("", 1)],
    unit_of_zero: "",
    suggested_unit: "",
    help: "a share is a number from 0 to 1: `0.5`",
};

static FACTOR: Dimension = Dimension {
    name: "factor",
    units: &[("", 1)],
    unit_of_zero: "",
    suggested_unit: "",
    help: "a factor is a number: `0.1` is a tenth, `2` is twice as much",
};

static PROCESSORS: Dimension = Dimension {
    name: "number of processors",
    units: &[("", 1)],
    unit_of_zero: "",
    suggested_unit: "",
    help: "a number of processors may be a fraction: `0.5`",
};

/// The reason why text is not a quantity.
#[derive(Debug, PartialEq, Eq)]
enum QuantityError {
    NotANumber,
    NotWhole,
    OutOfRange,
    NoUnit,
    /// A unit that does not exist, and a similar one that does.
    Unit(String, Option<&'static str>),
}

/// A type that quantities are read into: a number of the dimension's smallest units.
pub(crate) trait Number: Copy + PartialOrd {
    /// Converts a whole number, if the type can hold it.
    fn from_whole(number: u64) -> Option<Self>;

    /// Converts a fraction, if the type can hold it.
    fn from_fraction(_: f64) -> Option<Self> {
        None
    }

    /// Formats the quantity as plans write it.
    fn format(self, dimension: &Dimension) -> String;
}

impl Number for u64 {
    fn from_whole(number: u64) -> Option<Self> {
        Some(number)
    }

    fn format(self, dimension: &Dimension) -> String {
        dimension.format(self)
    }
}

impl Number for u32 {
    fn from_whole(number: u64) -> Option<Self> {
        Self::try_from(number).ok()
    }

    fn format(self, dimension: &Dimension) -> String {
        dimension.format(self.into())
    }
}

impl Number for Duration {
    fn from_whole(number: u64) -> Option<Self> {
        Some(Self::from_nanos(number))
    }

    fn format(self, dimension: &Dimension) -> String {
        dimension.format(self.as_nanos() as u64)
    }
}

impl Number for f64 {
    fn from_whole(number: u64) -> Option<Self> {
        Some(number as Self)
    }

    fn from_fraction(number: f64) -> Option<Self> {
        Some(number)
    }

    fn format(self, dimension: &Dimension) -> String {
        if self.fract() == 0.0 { dimension.format(self as u64) } else { self.to_string() }
    }
}

impl Dimension {
    /// Parses `20M`, `1.5h` or `300`.
    fn parse<T: Number>(&self, text: &str) -> Result<T, QuantityError> {
        // Types that can hold fractions accept any plain number, also one with an exponent. For the
        // other types, `from_fraction` returns `None`.
        if let Some(number) = text.parse().ok().and_then(T::from_fraction) {
            return Ok(number);
        }

        let unit_at = text.find(|c| !is_part_of_number(c)).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            let after_minus = text.strip_prefix('-');
            let is_negative = after_minus.is_some_and(|rest| rest.starts_with(is_part_of_number));
            return Err(if is_negative {
                QuantityError::OutOfRange
            } else {
                QuantityError::NotANumber
            });
        }

        let factor = self.factor_of(unit)?;

        // In integers, so that large numbers stay exact.
        let fraction = fraction.trim_end_matches('0');
        let digits: u64 = format!("{whole}{fraction}")
            .replace('_', "")
            .parse()
            .map_err(|_| QuantityError::OutOfRange)?;

        let product = u128::from(digits) * u128::from(factor);
        let divisor = 10_u128.checked_pow(fraction.len() as u32).ok_or(QuantityError::NotWhole)?;
        if product.is_multiple_of(divisor) {
            let number = u64::try_from(product / divisor).ok();
            number.and_then(T::from_whole).ok_or(QuantityError::OutOfRange)
        } else {
            T::from_fraction(product as f64 / divisor as f64).ok_or(QuantityError::NotWhole)
        }
    }

    fn factor_of(&self, unit: &str) -> Result<u64, QuantityError> {
        let known = self.units.iter().find(|(name, _)| *name == unit);
        match known {
            Some((_, factor)) => Ok(*factor),
            None if unit.is_empty() => Err(QuantityError::NoUnit),
            None => Err(QuantityError::Unit(unit.to_owned(), self.unit_like(unit))),
        }
    }

    /// Returns the unit that `unit` is most likely meant to be: `GB` and `G` usually mean `GiB`.
    fn unit_like(&self, unit: &str) -> Option<&'static str> {
        let wanted = without_bytes(unit);
        let mut names = self.units.iter().map(|(name, _)| *name);
        names.find(|name| !name.is_empty() && without_bytes(name) == wanted)
    }

    /// Writes a number of smallest units so that [`Dimension::parse`] reads it, with the largest
    /// unit that keeps it whole.
    pub(crate) fn format(&self, number: u64) -> String {
        if number == 0 {
            return format!("0{}", self.unit_of_zero);
        }

        let exact_units = self.units.iter().filter(|(_, factor)| number.is_multiple_of(*factor));
        if let Some((unit, factor)) = exact_units.max_by_key(|(_, factor)| *factor) {
            return format!("{}{unit}", number / factor);
        }

        let smallest = &self.units[0];
        let written = self.units.iter().rfind(|(_, factor)| *factor == smallest.1);
        let (unit, factor) = written.unwrap_or(smallest);
        format!("{}{unit}", number as f64 / *factor as f64)
    }
}

fn is_part_of_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '.' | '_')
}

/// Returns what is left of a unit without its case, the `B` or `iB` of bytes, and `/s`.
fn without_bytes(unit: &str) -> String {
    let lower = unit.trim().trim_end_matches("/s").to_lowercase();
    lower.trim_end_matches('b').trim_end_matches('i').to_owned()
}

/// Parses a duration as plans have it: `20ms`, `1.5s`.
///
/// # Errors
/// The text is no duration above 0: what was expected instead.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let parsed = TIME.parse(text).ok();
    let positive = parsed.filter(|time| *time > Duration::ZERO);
    positive.ok_or_else(|| "expected a duration such as `500us`, `20ms` or `1s`".to_owned())
}

/// Parses a size as plans have it, in bytes: `4KiB`, `1.5GiB`.
///
/// # Errors
/// The text is no size above 0: what was expected instead.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let parsed = SIZE.parse(text).ok();
    let positive = parsed.filter(|size| *size > 0);
    positive.ok_or_else(|| "expected a size such as `4KiB` or `1GiB`".to_owned())
}

/// Parses things per second as plans have them: `100`, `20k`, `20k/s`.
///
/// # Errors
/// The text is no rate above 0: what was expected instead.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let parsed = RATE.parse(text).ok();
    let in_range = parsed.filter(|rate| *rate > 0.0 && *rate <= RATE_MAX);
    in_range.ok_or_else(|| "expected a rate such as `100` or `20k`".to_owned())
}

/// A number of a dimension within a range.
pub(crate) struct Quantity<T> {
    dimension: &'static Dimension,
    range: RangeInclusive<T>,
}

/// The largest rate that a plan may ask for, per second.
pub(crate) const RATE_MAX: f64 = 1e9;

impl<T> Quantity<T> {
    const fn new(dimension: &'static Dimension, range: RangeInclusive<T>) -> Self {
        Self { dimension, range }
    }

    /// Returns a number of things, `20M`.
    pub(crate) const fn count(range: RangeInclusive<T>) -> Self {
        Self::new(&COUNT, range)
    }
}

impl Quantity<Duration> {
    /// Returns a duration, `"10m"`.
    pub(crate) const fn time(range: RangeInclusive<Duration>) -> Self {
        Self::new(&TIME, range)
    }
}

impl Quantity<u64> {
    /// Returns bytes of memory, `"2GiB"`.
    pub(crate) const fn size(range: RangeInclusive<u64>) -> Self {
        Self::new(&SIZE, range)
    }

    /// Returns bytes per second, `"2MiB/s"`.
    pub(crate) const fn byte_rate() -> Self {
        Self::new(&BYTE_RATE, 1..=u64::MAX)
    }
}

impl Quantity<f64> {
    /// Returns things per second, `100`, `"20k"` or `"20k/s"`.
    pub(crate) const fn rate() -> Self {
        Self::new(&RATE, 1e-6..=RATE_MAX)
    }

    /// Returns processors, `0.5`, from the kernel's minimum on.
    pub(crate) const fn processors() -> Self {
        Self::new(&PROCESSORS, 0.01..=1e4)
    }

    /// Returns factors that shrink or stretch something, such as `0.1`.
    pub(crate) const fn factor() -> Self {
        Self::new(&FACTOR, 1e-6..=1e6)
    }

    /// Returns shares of a whole, such as `0.5`.
    pub(crate) const fn share() -> Self {
        Self::new(&SHARE, 0.0..=1.0)
    }

    /// Returns shares of a whole that are not zero.
    pub(crate) const fn share_above_zero() -> Self {
        Self::new(&SHARE, 0.001..=1.0)
    }
}

impl<T: Number> Quantity<T> {
    /// Reports a number below the range if `is_low`, otherwise one above it.
    fn report_out_of_range(
        &self,
        cx: &mut Context<'_>,
        name: &str,
        node: &Node,
        text: &str,
        is_low: bool,
    ) {
        let min = self.range.start().format(self.dimension);
        let max = self.range.end().format(self.dimension);

        // The largest number of the type says nothing about the plan.
        let has_maximum = max != self.dimension.format(u64::MAX);
        let allowed = if has_maximum || !is_low {
            format!("allowed: {min} to {max}")
        } else {
            format!("allowed: {min} or more")
        };

        let message = format!("{} is out of range: {}", code(name), code(text));
        cx.error("plan::out-of-range", node.place, message).label(allowed);
    }

    /// Reports text that is not a quantity, with what was probably meant.
    fn report(
        &self,
        cx: &mut Context<'_>,
        name: &str,
        node: &Node,
        text: &str,
        error: QuantityError,
    ) {
        let Dimension { name: quantity, help, suggested_unit, .. } = self.dimension;
        let (key, shown) = (code(name), code(text));

        let mut suggestion = None;
        let (kind, message, label) = match error {
            QuantityError::NoUnit => {
                suggestion = Some(format!("{text}{suggested_unit}"));
                let message = format!("{key} has no unit: {shown}");
                ("plan::bad-unit", message, "expected a unit".to_owned())
            }
            QuantityError::Unit(unit, similar) => {
                let number = text.strip_suffix(&unit).unwrap_or_default();
                suggestion = similar.map(|similar| format!("{number}{similar}"));
                let message = format!("{key} has an unknown unit: {} in {shown}", code(&unit));
                ("plan::bad-unit", message, format!("not a unit of a {quantity}"))
            }
            not_a_number => {
                let expected = match not_a_number {
                    QuantityError::NotWhole => "expected a whole number",
                    _ => "expected a number",
                };
                let message = format!("{key} is not a {quantity}: {shown}");
                ("plan::bad-number", message, expected.to_owned())
            }
        };

        let did_you_mean = suggestion.map_or(String::new(), |text| match node.value {
            // A `--set` argument needs no quotes.
            Value::Bare(_) => format!("did you mean {}?", code(&text)),
            _ => format!("did you mean {}?", code(&quoted(&text))),
        });
        cx.error(kind, node.place, message).label(label).help(did_you_mean).help(*help);
    }
}

impl<T: Number> ValueKind for Quantity<T> {
    type Value = T;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<T> {
        let Dimension { name: quantity, help, .. } = self.dimension;
        let text = match &node.value {
            Value::String(text) | Value::Bare(text) | Value::Integer(text) | Value::Float(text) => {
                text
            }
            _ => {
                cx.wrong_type(name, node, &format!("a {quantity}")).help(*help);
                return None;
            }
        };

        match self.dimension.parse(text) {
            Ok(number) if self.range.contains(&number) => return Some(number),
            Ok(number) => {
                let is_low = number < *self.range.start();
                self.report_out_of_range(cx, name, node, text, is_low);
            }
            Err(QuantityError::OutOfRange) => {
                self.report_out_of_range(cx, name, node, text, text.starts_with('-'));
            }
            Err(error) => self.report(cx, name, node, text, error),
        }
        None
    }

    fn show(&self, value: &T) -> String {
        let text = value.format(self.dimension);
        match text.parse::<f64>() {
            Ok(_) => text,
            Err(_) => quoted(&text),
        }
    }

    fn schema(&self) -> Json {
        let units: Vec<&str> = self.dimension.units.iter().map(|(unit, _)| *unit).collect();
        let pattern = format!("^[0-9][0-9._]*(e[0-9]+)?({})$", units.join("|"));
        let text = json!({ "type": "string", "pattern": pattern });
        if units.contains(&"") { json!({ "anyOf": [{ "type": "number" }, text] }) } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Result<u64, QuantityError> {
        COUNT.parse(text)
    }

    fn unit(unit: &str, similar: &'static str) -> QuantityError {
        QuantityError::Unit(unit.to_owned(), Some(similar).filter(|unit| !unit.is_empty()))
    }

    #[test]
    fn units_of_a_size_are_powers_of_two() {
        let size = |text: &str| SIZE.parse::<u64>(text);
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("1.5MiB"), Ok(3 << 19));
        assert_eq!(size("2"), Err(QuantityError::NoUnit));
        for name in ["GB", "G", "gib", "g"] {
            assert_eq!(size(&format!("2{name}")), Err(unit(name, "GiB")));
        }
        assert_eq!(SIZE.format(3 << 19), "1536KiB");
        assert_eq!(BYTE_RATE.parse::<u64>("2MB"), Err(unit("MB", "MiB/s")));
    }

    #[test]
    fn units_of_a_count_are_powers_of_ten() {
        assert_eq!(count("300"), Ok(300));
        assert_eq!(count("1_000"), Ok(1_000));
        assert_eq!(count("40k"), Ok(40_000));
        assert_eq!(count("20M"), Ok(20_000_000));
        assert_eq!(count("2G"), Ok(2_000_000_000));
        assert_eq!(count("1.5k"), Ok(1_500));
        assert_eq!(count("0"), Ok(0));
        assert_eq!(count("20m"), Err(unit("m", "M")));
        assert_eq!(count("20 K"), Err(unit(" K", "k")));
    }

    #[test]
    fn a_duration_has_one_unit() {
        let duration = |text: &str| TIME.parse::<Duration>(text);
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for micro in ["us", "\u{b5}s", "\u{3bc}s"] {
            assert_eq!(duration(&format!("500{micro}")), Ok(Duration::from_micros(500)));
        }
        assert_eq!(duration("3600s"), Ok(Duration::from_secs(3600)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("10"), Err(QuantityError::NoUnit));
        assert_eq!(duration("1h30m"), Err(unit("h30m", "")));
        assert_eq!(duration("10S"), Err(unit("S", "s")));
        assert_eq!(duration(&format!("0.{}1s", "0".repeat(60))), Err(QuantityError::NotWhole));
    }

    #[test]
    fn a_rate_may_be_a_fraction() {
        for (text, rate) in [("0.5", 0.5), ("1e3", 1e3), ("20k/s", 2e4), ("0.5/s", 0.5)] {
            assert_eq!(RATE.parse(text), Ok(rate));
        }
        assert_eq!(Quantity::rate().show(&2e4), "\"20k\"");
        assert_eq!(Quantity::rate().show(&0.5), "0.5");
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for text in ["", "k", "+5", ".5", "5.", "1.2.3", "ten", "-"] {
            assert_eq!(count(text), Err(QuantityError::NotANumber), "{text}");
        }
        assert_eq!(count("0.5"), Err(QuantityError::NotWhole));
        assert_eq!(count("1.0005k"), Err(QuantityError::NotWhole));
        for text in ["-5", "20000000000G", "99999999999999999999"] {
            assert_eq!(count(text), Err(QuantityError::OutOfRange), "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_as_the_same() {
        for number in [0, 1, 999, 1_000, 1_500, 20_000_000, 3_000_000_000, u64::MAX] {
            assert_eq!(count(&COUNT.format(number)), Ok(number));
        }
        for nanos in
            [0, 1, 1_500_000, 1_000_000_000, 90_000_000_000, 3_600_000_000_000, 7_000_000_001]
        {
            let text = TIME.format(nanos);
            assert_eq!(TIME.parse(&text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        assert_eq!(COUNT.format(20_000_000), "20M");
        assert_eq!(TIME.format(500_000), "500us");
        assert_eq!(TIME.format(1), "0.001us");
        assert_eq!(TIME.format(1_200_000_000_000), "20m");
    }
}

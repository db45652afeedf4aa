//! Numbers with units, as a plan writes them: counts and durations.

use std::time::Duration;

/// Units of a count: powers of ten.
const COUNT_UNITS: [(&str, u64); 3] = [("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

/// Units of memory: powers of two, and the bytes themselves.
const SIZE_UNITS: [(&str, u64); 5] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Units of a duration, in nanoseconds.
const TIME_UNITS: [(&str, u64); 4] = [
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Why text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It does not begin with a number.
    NoNumber,
    /// A duration or a size without a unit.
    NoUnit,
    /// A unit that does not exist, and the one that was perhaps meant.
    Unit {
        unit: String,
        meant: Option<&'static str>,
    },
    /// A fraction of the smallest unit.
    Fraction,
    /// More than 64 bits hold.
    TooLarge,
}

/// Reads `20M`, `1.5k` or `300`.
pub(crate) fn count(text: &str) -> Result<u64, Wrong> {
    let (number, unit) = split(text)?;
    let factor = if unit.is_empty() {
        1
    } else {
        factor(unit, &COUNT_UNITS)?
    };
    number.times(factor)
}

/// Reads `2GiB` or `512MiB`, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, Wrong> {
    let (number, unit) = split(text)?;
    if unit.is_empty() {
        return Err(Wrong::NoUnit);
    }
    number.times(factor(unit, &SIZE_UNITS)?)
}

/// Reads `10m`, `500ms` or `1.5h`.
pub(crate) fn duration(text: &str) -> Result<Duration, Wrong> {
    let (number, unit) = split(text)?;
    if unit.is_empty() {
        return Err(Wrong::NoUnit);
    }
    number
        .times(factor(unit, &TIME_UNITS)?)
        .map(Duration::from_nanos)
}

/// Writes a count as [`count`] reads it, with the largest unit that leaves it whole.
pub(crate) fn show_count(count: u64) -> String {
    show(count, &COUNT_UNITS)
}

/// Writes a number of bytes as [`size`] reads it, with the largest unit that leaves it whole.
pub(crate) fn show_size(bytes: u64) -> String {
    show(bytes, &SIZE_UNITS)
}

fn show(number: u64, units: &[(&str, u64)]) -> String {
    match units
        .iter()
        .rev()
        .find(|(_, factor)| number != 0 && number.is_multiple_of(*factor))
    {
        Some((unit, factor)) => format!("{}{unit}", number / factor),
        None => number.to_string(),
    }
}

/// Writes a duration as [`duration`] reads it, with the largest unit that leaves it whole.
pub(crate) fn show_duration(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if nanos == 0 {
        return "0s".to_owned();
    }
    match TIME_UNITS
        .iter()
        .rev()
        .find(|(_, factor)| nanos.is_multiple_of(*factor))
    {
        Some((unit, factor)) => format!("{}{unit}", nanos / factor),
        None => {
            let text = format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
            format!("{}ms", text.trim_end_matches('0'))
        }
    }
}

/// A decimal number: `digits` divided by ten to the power of `places`.
struct Decimal {
    digits: u64,
    places: u32,
}

impl Decimal {
    fn times(&self, factor: u64) -> Result<u64, Wrong> {
        let product = u128::from(self.digits) * u128::from(factor);
        let divisor = 10u128.checked_pow(self.places).ok_or(Wrong::Fraction)?;
        if !product.is_multiple_of(divisor) {
            return Err(Wrong::Fraction);
        }
        u64::try_from(product / divisor).map_err(|_| Wrong::TooLarge)
    }
}

/// Parts a number from the unit that follows it.
fn split(text: &str) -> Result<(Decimal, &str), Wrong> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && !fraction.contains('.') => {
            (whole, fraction)
        }
        Some(_) => return Err(Wrong::NoNumber),
        None => (number, ""),
    };
    if whole.is_empty() {
        return Err(Wrong::NoNumber);
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}")
        .parse()
        .map_err(|_| Wrong::TooLarge)?;
    let places = u32::try_from(fraction.len()).map_err(|_| Wrong::TooLarge)?;
    Ok((Decimal { digits, places }, unit))
}

fn factor(unit: &str, units: &[(&'static str, u64)]) -> Result<u64, Wrong> {
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => Ok(*factor),
        None => {
            // `2GB` and `2G` mean `2GiB` more often than not.
            let like = |name: &str| {
                let unit = unit.trim();
                name.eq_ignore_ascii_case(unit)
                    || name.len() == 3
                        && (name.replace('i', "").eq_ignore_ascii_case(unit)
                            || name[..1].eq_ignore_ascii_case(unit))
            };
            let meant = units.iter().find(|(name, _)| like(name));
            Err(Wrong::Unit {
                unit: unit.to_owned(),
                meant: meant.map(|(name, _)| *name),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_a_size_are_powers_of_two() {
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("1.5MiB"), Ok(3 << 19));
        assert_eq!(size("2"), Err(Wrong::NoUnit));
        let meant = Some("GiB");
        for unit in ["GB", "G", "gib", "g"] {
            let wrong = Wrong::Unit {
                unit: unit.into(),
                meant,
            };
            assert_eq!(size(&format!("2{unit}")), Err(wrong));
        }
        assert_eq!(show_size(3 << 19), "1536KiB");
    }

    #[test]
    fn units_of_a_count_are_powers_of_ten() {
        assert_eq!(count("300"), Ok(300));
        assert_eq!(count("40k"), Ok(40_000));
        assert_eq!(count("20M"), Ok(20_000_000));
        assert_eq!(count("2G"), Ok(2_000_000_000));
        assert_eq!(count("1.5k"), Ok(1_500));
        assert_eq!(count("0"), Ok(0));
    }

    #[test]
    fn a_duration_has_one_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("3600s"), Ok(Duration::from_secs(3600)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("10"), Err(Wrong::NoUnit));
        assert_eq!(
            duration("1h30m"),
            Err(Wrong::Unit {
                unit: "h30m".to_owned(),
                meant: None
            })
        );
    }

    #[test]
    fn a_unit_in_the_wrong_case_is_recognised() {
        assert_eq!(
            count("20m"),
            Err(Wrong::Unit {
                unit: "m".to_owned(),
                meant: Some("M")
            })
        );
        assert_eq!(
            count("20 K"),
            Err(Wrong::Unit {
                unit: " K".to_owned(),
                meant: Some("k")
            })
        );
        assert_eq!(
            duration("10S"),
            Err(Wrong::Unit {
                unit: "S".to_owned(),
                meant: Some("s")
            })
        );
    }

    #[test]
    fn what_is_no_number_is_said_to_be_none() {
        for text in ["", "k", "-5", "+5", ".5", "5.", "1.2.3", "ten"] {
            assert_eq!(count(text), Err(Wrong::NoNumber), "{text}");
        }
        assert_eq!(count("0.5"), Err(Wrong::Fraction));
        assert_eq!(count("1.0005k"), Err(Wrong::Fraction));
        assert_eq!(count("20000000000G"), Err(Wrong::TooLarge));
        assert_eq!(count("99999999999999999999"), Err(Wrong::TooLarge));
        assert_eq!(
            duration(&format!("0.{}1s", "0".repeat(60))),
            Err(Wrong::Fraction)
        );
    }

    #[test]
    fn what_is_written_reads_as_the_same() {
        for number in [0, 1, 999, 1_000, 1_500, 20_000_000, 3_000_000_000, u64::MAX] {
            assert_eq!(count(&show_count(number)), Ok(number));
        }
        for nanos in [
            0,
            1,
            1_500_000,
            1_000_000_000,
            90_000_000_000,
            3_600_000_000_000,
            7_000_000_001,
        ] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(
                super::duration(&show_duration(duration)),
                Ok(duration),
                "{}",
                show_duration(duration)
            );
        }
        assert_eq!(show_count(20_000_000), "20M");
        assert_eq!(show_duration(Duration::from_secs(1200)), "20m");
    }
}

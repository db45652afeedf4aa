//! Curves as text that a page can hold thousands of: two or three letters for a point.
//!
//! A curve is written as `[line, points, scale, low, high, "letters"]`, and with the name of its part if it is one. A point
//! is a number of `width` digits of base 64. The largest number is a gap. On the even scale 0 to the largest but one stand for `low`
//! to `high`; on the logarithmic one 0 is zero, and 1 to the largest but one go from `low` to `high` by equal factors.
//! Letters for one point alone stand for all points.

use std::fmt::Write;

use crate::html::curve::Curve;

/// The digits of base 64. None of them ends a script, a string or an address.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Beyond this factor between the largest and the smallest value the even scale would lose the small ones.
const EVEN_MAX: f64 = 20.0;

/// How finely curves are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fineness {
    /// Seconds in a bucket.
    pub bucket: usize,
    /// Letters for a point, 2 or 3.
    pub width: usize,
}

/// What a curve takes, in bytes.
pub(crate) fn size(curve: &Curve, fineness: Fineness) -> usize {
    // Brackets, the line, two numbers.
    const HEAD: usize = 32;
    if curve.is_constant() {
        HEAD + fineness.width
    } else {
        HEAD + curve.point_count(fineness.bucket) * fineness.width
    }
}

/// Writes a curve of a line; `part` names it if it is a part of the line.
pub(crate) fn curve(
    out: &mut String,
    line: usize,
    part: Option<&str>,
    curve: &Curve,
    fineness: Fineness,
) {
    let points = if curve.is_constant() {
        curve.points.clone()
    } else {
        curve.points_in(fineness.bucket)
    };
    let scale = Scale::of(&points, fineness.width);
    let (number, low, high) = match scale {
        Scale::Even { low, high, .. } => (0, low, high),
        Scale::Log { low, high, .. } => (1, low, high),
    };
    let count = curve.point_count(fineness.bucket);
    let _ = write!(
        out,
        "[{line},{count},{number},{},{},\"",
        short(low),
        short(high)
    );
    for point in points {
        let level = scale.level(f64::from(point), fineness.width);
        for digit in (0..fineness.width).rev() {
            let digit = (level >> (6 * digit)) & 63;
            out.push(char::from(DIGITS[digit as usize]));
        }
    }
    out.push('"');
    if let Some(part) = part {
        out.push(',');
        out.push_str(&text(part));
    }
    out.push(']');
}

/// A text as JSON that can stand in a script element: no `<` is left in it.
pub(crate) fn text(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('<', "\\u003c")
}

/// A number with up to seven significant digits.
pub(crate) fn short(value: f64) -> String {
    let rounded = format!("{value:.6e}").parse().unwrap_or(value);
    // `Display` of a number never has an exponent, so a very small one is given with it.
    if rounded != 0.0 && f64::abs(rounded) < 1e-4 {
        return format!("{rounded:e}");
    }
    format!("{rounded}")
}

#[derive(Clone, Copy, Debug)]
enum Scale {
    Even { low: f64, high: f64 },
    Log { low: f64, high: f64 },
}

/// The number that means a gap; the one below it is the largest level.
fn gap(width: usize) -> u32 {
    (1 << (6 * width)) - 1
}

impl Scale {
    fn of(points: &[f32], width: usize) -> Self {
        let known = || {
            points
                .iter()
                .copied()
                .map(f64::from)
                .filter(|point| !point.is_nan())
        };
        let low = known().reduce(f64::min).unwrap_or(0.0);
        let high = known().reduce(f64::max).unwrap_or(0.0);
        let levels = f64::from(gap(width) - 1);
        // Small whole numbers stay what they are.
        if high - low <= levels && known().all(|point| point.fract() == 0.0) {
            return Self::Even {
                low,
                high: low + levels,
            };
        }
        let least = known().filter(|point| *point > 0.0).reduce(f64::min);
        match least {
            Some(least) if low >= 0.0 && high > EVEN_MAX * least => Self::Log { low: least, high },
            _ => Self::Even { low, high },
        }
    }

    fn level(self, point: f64, width: usize) -> u32 {
        let largest = f64::from(gap(width) - 1);
        let level = match self {
            _ if point.is_nan() => return gap(width),
            Self::Even { low, high } if high > low => (point - low) / (high - low) * largest,
            Self::Even { .. } => 0.0,
            Self::Log { .. } if point <= 0.0 => 0.0,
            Self::Log { low, high } => {
                1.0 + (point / low).ln() / (high / low).ln() * (largest - 1.0)
            }
        };
        level.round().clamp(0.0, largest) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the page makes of it.
    fn decoded(text: &str, width: usize) -> Vec<Option<f64>> {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let number = |at: usize| value[at].as_f64().unwrap();
        let (low, high) = (number(3), number(4));
        let digit = |letter: &u8| DIGITS.iter().position(|digit| digit == letter).unwrap() as u32;
        let letters = value[5].as_str().unwrap().as_bytes();
        let points: Vec<Option<f64>> = letters
            .chunks(width)
            .map(|letters| {
                let level = letters
                    .iter()
                    .fold(0, |sum, letter| sum * 64 + digit(letter));
                let share = f64::from(level) / f64::from(gap(width) - 1);
                match (number(2), level) {
                    _ if level == gap(width) => None,
                    (0.0, _) => Some(low + (high - low) * share),
                    (_, 0) => Some(0.0),
                    _ => {
                        let share = f64::from(level - 1) / f64::from(gap(width) - 2);
                        Some(low * (high / low).powf(share))
                    }
                }
            })
            .collect();
        let count = number(1) as usize;
        if points.len() == 1 {
            vec![points[0]; count]
        } else {
            assert_eq!(points.len(), count);
            points
        }
    }

    fn back(values: &[Option<f64>], width: usize) -> Vec<Option<f64>> {
        let mut out = String::new();
        let fineness = Fineness { bucket: 1, width };
        let made = Curve::new(values);
        curve(&mut out, 3, None, &made, fineness);
        assert!(out.len() <= size(&made, fineness) + 16, "{out}");
        decoded(&out, width)
    }

    #[test]
    fn zero_stays_zero_a_gap_stays_a_gap_and_small_whole_numbers_are_exact() {
        let values = [Some(0.0), None, Some(1.0), Some(7.0), Some(4000.0)];
        assert_eq!(back(&values, 2), values);
        let values = [Some(0.0), Some(0.5), Some(1e9), None];
        let read = back(&values, 2);
        assert_eq!((read[0], read[3]), (Some(0.0), None));
    }

    #[test]
    fn values_far_apart_keep_their_first_digits() {
        let values: Vec<_> = [0.25, 3.0, 47.5, 1234.5, 98_765.0, 2.5e6]
            .map(Some)
            .to_vec();
        for (width, error_max) in [(2, 0.003), (3, 0.000_05)] {
            for (value, read) in values.iter().zip(back(&values, width)) {
                let error = (read.unwrap() / value.unwrap() - 1.0).abs();
                assert!(error < error_max, "{value:?} {read:?}");
            }
        }
    }

    #[test]
    fn values_close_together_keep_their_differences() {
        let values: Vec<_> = [5000.0, 5001.5, 5000.5].map(Some).to_vec();
        for (value, read) in values.iter().zip(back(&values, 2)) {
            assert!((read.unwrap() - value.unwrap()).abs() < 0.001);
        }
        let below: Vec<_> = [-3.5, 2.0].map(Some).to_vec();
        assert_eq!(back(&below, 2), below);
    }

    #[test]
    fn a_curve_that_never_changes_is_one_point() {
        let mut out = String::new();
        let fineness = Fineness {
            bucket: 1,
            width: 2,
        };
        curve(&mut out, 3, None, &Curve::new(&[Some(9.0); 100]), fineness);
        assert_eq!(out, r#"[3,100,0,9,4103,"AA"]"#);
        assert_eq!(decoded(&out, 2), vec![Some(9.0); 100]);
    }

    #[test]
    fn a_part_can_not_end_the_script_element() {
        let mut out = String::new();
        let fineness = Fineness {
            bucket: 1,
            width: 3,
        };
        let made = Curve::new(&[Some(1.0), Some(2.5)]);
        curve(&mut out, 0, Some("</script><script>"), &made, fineness);
        assert!(!out.contains('<'));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&out).unwrap()[6],
            "</script><script>"
        );
    }

    #[test]
    fn numbers_are_short_and_can_be_read_back() {
        for value in [0.0, 1.5, 123_456.789, 1e-9, 7.25e12, -0.5] {
            let read: f64 = short(value).parse().unwrap();
            assert!((read - value).abs() <= value.abs() * 1e-6, "{value}");
            assert!(short(value).len() < 20);
        }
    }
}

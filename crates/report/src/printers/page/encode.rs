//! Encodes curves as compact JSON, with as many digits as a chart can show.

use std::fmt::Write;

use crate::printers::page::curve::Curve;

/// Significant digits of a point. A chart is a few hundred pixels high.
const DIGITS: i32 = 4;

/// The approximate size of a point in bytes: [`DIGITS`], a decimal point and a comma, and more if
/// large values differ by little.
const POINT_BYTES: usize = 7;

/// Estimates the size of a curve in bytes, in buckets of this many seconds.
pub(crate) fn size(curve: &Curve, bucket: usize) -> usize {
    size_of_points(if curve.is_constant() { 1 } else { curve.point_count(bucket) })
}

/// Estimates the size of a curve of this many points in bytes.
pub(crate) fn size_of_points(count: usize) -> usize {
    // Brackets, the line, the number of points.
    const HEAD: usize = 20;
    HEAD + count * POINT_BYTES
}

/// Writes `[line, number of points, [point, …], part]`. A gap is `null`; a single point represents
/// a constant curve. `part` is the name of a part of the line, and `bucket` the seconds of a
/// bucket.
pub(crate) fn curve(
    out: &mut String,
    line: usize,
    part: Option<&str>,
    curve: &Curve,
    bucket: usize,
) {
    let points = if curve.is_constant() { curve.points.clone() } else { curve.points_in(bucket) };
    let known = || points.iter().copied().filter(|point| !point.is_nan());
    let low = known().fold(f32::INFINITY, f32::min);
    let high = known().fold(f32::NEG_INFINITY, f32::max);
    let span = f64::from(high - low);

    let _ = write!(out, "[{line},{},[", curve.point_count(bucket));
    for (at, point) in points.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        if point.is_nan() {
            out.push_str("null");
        } else {
            write_point(out, f64::from(*point), span);
        }
    }
    out.push(']');

    if let Some(part) = part {
        out.push(',');
        out.push_str(&json(part));
    }
    out.push(']');
}

/// Writes a point with [`DIGITS`] digits of itself, or of the curve's span if that is smaller. So
/// small values and small differences between large values are kept.
fn write_point(out: &mut String, point: f64, span: f64) {
    let sizes = [point.abs(), span].into_iter().filter(|size| *size > 0.0);
    let smaller = sizes.fold(f64::INFINITY, f64::min);

    // Zero, or a constant curve of zeros.
    if point == 0.0 || !smaller.is_finite() {
        out.push('0');
        return;
    }

    let decimals = DIGITS - 1 - smaller.log10().floor() as i32;
    if decimals > 12 {
        let _ = write!(out, "{point:e}");
    } else if decimals > 0 {
        let text = format!("{point:.*}", decimals as usize);
        out.push_str(text.trim_end_matches('0').trim_end_matches('.'));
    } else {
        let unit = 10_f64.powi(-decimals);
        let _ = write!(out, "{}", (point / unit).round() * unit);
    }
}

/// Returns JSON that is safe in a script element, since it contains no `<`.
pub(crate) fn json(texts: impl Into<serde_json::Value>) -> String {
    texts.into().to_string().replace('<', "\\u003c")
}

/// Formats a number with up to four significant digits, more than a chart shows.
pub(crate) fn short(value: f64) -> String {
    let rounded = format!("{value:.3e}").parse().unwrap_or(value);
    // `Display` never writes an exponent, so very small numbers are formatted with it.
    if rounded != 0.0 && f64::abs(rounded) < 1e-4 {
        return format!("{rounded:e}");
    }
    format!("{rounded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[Option<f64>]) -> serde_json::Value {
        let mut out = String::new();
        curve(&mut out, 3, None, &Curve::new(values), 1);
        serde_json::from_str(&out).unwrap()
    }

    fn read_back(values: &[Option<f64>]) -> Vec<Option<f64>> {
        let points = written(values)[2].clone();
        serde_json::from_value(points).unwrap()
    }

    #[test]
    fn zero_stays_zero_a_gap_stays_a_gap_and_small_whole_numbers_are_exact() {
        let values = [Some(0.0), None, Some(1.0), Some(7.0), Some(4000.0)];
        assert_eq!(read_back(&values), values);
    }

    #[test]
    fn values_far_apart_keep_their_first_digits() {
        let values: Vec<_> = [1e-9, 0.25, 3.0, 47.5, 1234.5, 98_765.0, 2.5e12].map(Some).to_vec();
        for (value, read) in values.iter().zip(read_back(&values)) {
            let error = (read.unwrap() / value.unwrap() - 1.0).abs();
            assert!(error < 1e-3, "{value:?} {read:?}");
        }
    }

    #[test]
    fn values_close_together_keep_their_differences() {
        let values: Vec<_> = [5000.0, 5001.5, 5000.5].map(Some).to_vec();
        assert_eq!(read_back(&values), values);
        let below: Vec<_> = [-3.5, 2.0].map(Some).to_vec();
        assert_eq!(read_back(&below), below);
    }

    #[test]
    fn a_curve_that_never_changes_is_one_point() {
        assert_eq!(written(&[Some(9.0); 100]), serde_json::json!([3, 100, [9]]));
        assert_eq!(written(&[Some(0.0); 5]), serde_json::json!([3, 5, [0]]));
    }

    #[test]
    fn a_part_can_not_end_the_script_element() {
        let mut out = String::new();
        let made = Curve::new(&[Some(1.0), Some(2.5)]);
        curve(&mut out, 0, Some("</script><script>"), &made, 1);
        assert!(!out.contains('<'));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&out).unwrap()[3],
            "</script><script>"
        );
    }

    #[test]
    fn numbers_are_short_and_can_be_read_back() {
        for value in [0.0, 1.5, 123_456.789, 1e-9, 7.25e12, -0.5] {
            let read: f64 = short(value).parse().unwrap();
            assert!((read - value).abs() <= value.abs() * 1e-3, "{value}");
            assert!(short(value).len() < 20);
        }
    }
}

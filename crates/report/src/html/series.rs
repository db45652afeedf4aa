//! The seconds of a step as the data of a chart: thinned where there are too many, as compact JSON.

use std::fmt::Write;

/// One line of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// What the legend calls it.
    pub label: String,
    /// Which colour and dash it has: the same in all charts of a report.
    pub colour: usize,
    /// One value for each second; `None`: there is none.
    pub values: Vec<Option<f64>>,
}

/// One chart.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// What it shows, with the unit.
    pub title: String,
    /// A line for each target.
    pub curves: Vec<Curve>,
    /// The same taken apart, for instance a line for each client of each target; empty where that is the same or not
    /// known.
    pub parts: Vec<Curve>,
    /// What the parts are: `each client`.
    pub parts_are: &'static str,
}

impl Chart {
    /// A chart of what can't be taken apart.
    pub(crate) fn whole(title: impl Into<String>, curves: Vec<Curve>) -> Self {
        Self {
            title: title.into(),
            curves,
            parts: Vec::new(),
            parts_are: "",
        }
    }

    /// Whether there is nothing to draw: one second makes no line, and its figure is in the tables.
    pub(crate) fn is_empty(&self) -> bool {
        let none = |curve: &Curve| curve.values.iter().all(Option::is_none);
        self.curves.iter().all(|curve| curve.values.len() < 2) || self.curves.iter().all(none)
    }
}

/// How many seconds become one bucket, so that no curve has more than `points_max` points: a bucket is two points,
/// its smallest and its largest value.
pub(crate) fn bucket_seconds(curves: &[Curve], points_max: usize) -> usize {
    let longest = curves
        .iter()
        .map(|curve| curve.values.len())
        .max()
        .unwrap_or(0);
    if longest <= points_max {
        1
    } else {
        (2 * longest).div_ceil(points_max)
    }
}

/// The smallest and the largest value of each bucket, in the order in which they occurred.
fn thinned(values: &[Option<f64>], bucket: usize) -> Vec<Option<f64>> {
    if bucket == 1 {
        return values.to_vec();
    }
    let mut points = Vec::with_capacity(2 * values.len().div_ceil(bucket));
    for seconds in values.chunks(bucket) {
        let known = || {
            seconds
                .iter()
                .enumerate()
                .filter_map(|(at, value)| Some((at, (*value)?)))
        };
        let least = known().min_by(|a, b| a.1.total_cmp(&b.1));
        let most = known().max_by(|a, b| a.1.total_cmp(&b.1));
        match (least, most) {
            (Some(least), Some(most)) if least.0 <= most.0 => {
                points.extend([Some(least.1), Some(most.1)])
            }
            (Some(least), Some(most)) => points.extend([Some(most.1), Some(least.1)]),
            _ => points.extend([None, None]),
        }
    }
    points
}

/// `{"k":1,"s":[["label",0,[1,2,null]]]}`: `k` seconds in a bucket; label, colour and values of each curve. It can
/// stand in a script element: no `<` is left in it.
pub(crate) fn json(curves: &[Curve], points_max: usize) -> String {
    let bucket = bucket_seconds(curves, points_max);
    let mut out = format!("{{\"k\":{bucket},\"s\":[");
    for (index, curve) in curves.iter().enumerate() {
        let label = serde_json::Value::from(curve.label.as_str())
            .to_string()
            .replace('<', "\\u003c");
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(out, "{comma}[{label},{},[", curve.colour);
        for (at, value) in thinned(&curve.values, bucket).into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            number(&mut out, value);
        }
        out.push_str("]]");
    }
    out.push_str("]}");
    out
}

/// Four significant digits, which is more than a chart shows.
fn number(out: &mut String, value: Option<f64>) {
    let Some(value) = value.filter(|value| value.is_finite()) else {
        return out.push_str("null");
    };
    if value == 0.0 {
        return out.push('0');
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    out.push_str(if matches!(text, "-0" | "") { "0" } else { text });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: impl IntoIterator<Item = f64>) -> Curve {
        Curve {
            label: "a".into(),
            colour: 0,
            values: values.into_iter().map(Some).collect(),
        }
    }

    #[test]
    fn thinning_keeps_the_worst_and_the_best_second() {
        let mut values = vec![50.0; 3600];
        values[1234] = 0.0;
        values[2345] = 9000.0;
        let curves = [curve(values)];
        let bucket = bucket_seconds(&curves, 2000);
        let points = thinned(&curves[0].values, bucket);
        assert!(points.len() <= 2000, "{}", points.len());
        assert!(points.contains(&Some(0.0)) && points.contains(&Some(9000.0)));
        let at = points.iter().position(|point| *point == Some(0.0)).unwrap();
        assert_eq!(at / 2, 1234 / bucket);
    }

    #[test]
    fn a_short_step_is_drawn_second_by_second() {
        assert_eq!(
            json(&[curve([0.0, 12.0, 0.123_456])], 2000),
            r#"{"k":1,"s":[["a",0,[0,12,0.1235]]]}"#
        );
    }

    #[test]
    fn a_bucket_without_a_value_stays_a_gap() {
        let values = [None, None, Some(3.0), Some(1.0)];
        assert_eq!(thinned(&values, 2), [None, None, Some(3.0), Some(1.0)]);
    }

    #[test]
    fn numbers_are_short() {
        let text = |value| {
            let mut out = String::new();
            number(&mut out, value);
            out
        };
        assert_eq!(text(Some(123_456.7)), "123457");
        assert_eq!(text(Some(12.345_6)), "12.35");
        assert_eq!(text(Some(1.5)), "1.5");
        assert_eq!(text(Some(100.0)), "100");
        assert_eq!(text(Some(1e-9)), "0");
        assert_eq!(text(Some(f64::NAN)), "null");
        assert_eq!(text(None), "null");
    }

    #[test]
    fn a_label_cannot_end_the_script_element() {
        let curves = [Curve {
            label: "</script><script>".into(),
            colour: 0,
            values: vec![],
        }];
        assert!(!json(&curves, 10).contains('<'));
    }
}

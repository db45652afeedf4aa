//! A chart of the versions that a search measured.

use super::chart::{Chart, Curve, Point};
use super::over::ends_of_ratios;
use super::scale::Scale;
use super::{Drawing, Plot};

/// The level of a version relative to the oldest one.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionLevel {
    /// The version.
    pub name: String,
    /// The ratio to the oldest version.
    pub ratio: f64,
    /// The interval of the ratio; `None` for the oldest version.
    pub interval: Option<[f64; 2]>,
}

/// A chart of versions.
#[derive(Clone, Copy, Debug)]
pub struct VersionChart<'a> {
    /// The step.
    pub step: &'a str,
    /// The metric.
    pub metric: &'a str,
    /// The smallest change that the search looked for: 0.03 is 3%.
    pub threshold: f64,
    /// The versions that were measured, from the oldest to the newest.
    pub levels: &'a [VersionLevel],
}

impl VersionChart<'_> {
    /// Draws the chart as an SVG file.
    pub fn file(self) -> String {
        let mut points = Vec::new();
        for (at, level) in self.levels.iter().enumerate() {
            points.push(Point {
                x: at as f64,
                y: level.ratio,
                range: level.interval,
                ..Point::default()
            });
        }

        let curves = vec![Curve {
            number: 0,
            name: self.metric.to_owned(),
            is_faint: false,
            is_joined: true,
            points,
        }];
        let (low, high) = ends_of_ratios(&curves, self.threshold);

        let oldest = self.levels.first().map_or("the oldest", |level| level.name.as_str());

        let chart = Chart {
            title: self.step.to_owned(),
            of: format!("{} relative to {oldest}", self.metric),
            x: Scale::names(self.levels.iter().map(|level| level.name.clone())),
            y: Scale::linear(low, high),
            effect: Some(self.threshold),
            ideal: Vec::new(),
            curves,
            remark: None,
        };

        let plot = Plot {
            id: "versions",
            title: "the versions that were measured".to_owned(),
            note: "A vertical line through a point is its interval. The band is a change that the search does not look for."
                .to_owned(),
            drawing: Drawing::Charts(vec![chart]),
        };
        plot.file_within(self.step, WIDTH)
    }
}

/// The width of the file in pixels.
const WIDTH: f64 = 800.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str, ratio: f64, interval: Option<[f64; 2]>) -> VersionLevel {
        VersionLevel { name: name.to_owned(), ratio, interval }
    }

    #[test]
    fn each_measured_version_has_a_place_and_a_text() {
        let levels = [
            level("10.5.1", 1.0, None),
            level("10.6.2", 0.71, Some([0.70, 0.72])),
            level("10.10.1", 0.84, Some([0.83, 0.85])),
        ];
        let chart = VersionChart {
            step: "fillseq",
            metric: "throughput",
            threshold: 0.03,
            levels: &levels,
        };
        let file = chart.file();
        assert!(file.starts_with("<svg"), "{file}");
        for text in ["10.6.2", "throughput relative to 10.5.1", "10.10.1"] {
            assert!(file.contains(text), "no `{text}` in {file}");
        }
        assert_eq!(file.matches("class=\"interval own\"").count(), 2, "{file}");
    }
}

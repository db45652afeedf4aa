//! The candidates of a bisection as a table with a chart, and as a drawing.

use analysis::bisect::CandidateLevel;

use super::columns::columns;
use crate::model::text::terminal_text;
use crate::plot::{VersionChart, VersionLevel};
use crate::prose::bisections::BisectView;

/// The width of the chart in characters.
const CHART_WIDTH: usize = 40;
/// The least range of the chart, so that noise does not fill it: 2%.
const CHART_RANGE_MIN: f64 = 0.02;

impl BisectView {
    /// Returns the table of all candidates, with a chart of their levels.
    pub fn table(&self) -> String {
        // All lines have the same scale, so it is chosen first.
        let levels = self.search.levels();
        let chart = Chart::new(&levels);
        let metric = format!("{} of the oldest", self.metric);
        let mut lines =
            vec![["candidate".to_owned(), metric, "interval".to_owned(), chart.scale()]];
        for (index, title) in self.titles.iter().enumerate() {
            let level = levels[index];
            let ratio = match (level, self.unusable.get(&index)) {
                (Some(level), _) => format!("{:.3}", level.ratio),
                (None, Some(_)) => "skipped".to_owned(),
                (None, None) => "not measured".to_owned(),
            };

            let interval = match level.and_then(|level| level.interval) {
                Some([low, high]) => format!("{low:.3} to {high:.3}"),
                None => String::new(),
            };
            let drawn = level.map(|level| chart.line(level)).unwrap_or_default();
            lines.push([terminal_text(title), ratio, interval, drawn]);
        }
        columns(&lines)
    }

    /// Returns the chart of the candidates that were measured, as an SVG file.
    pub fn drawing(&self, threshold: f64) -> String {
        let mut measured = Vec::new();
        for (title, level) in self.titles.iter().zip(self.search.levels()) {
            if let Some(CandidateLevel { ratio, interval }) = level {
                measured.push(VersionLevel { name: terminal_text(title), ratio, interval });
            }
        }

        let Self { step, metric, .. } = self;
        VersionChart { step, metric, threshold, levels: &measured }.file()
    }
}

/// A chart of levels on a logarithmic scale.
struct Chart {
    low: f64,
    high: f64,
}

impl Chart {
    fn new(levels: &[Option<CandidateLevel>]) -> Self {
        let (mut low, mut high) = (1.0 - CHART_RANGE_MIN, 1.0 + CHART_RANGE_MIN);
        for level in levels.iter().flatten() {
            let [least, most] = level.interval.unwrap_or([level.ratio; 2]);
            low = least.min(low);
            high = most.max(high);
        }

        // An interval may be unbounded.
        Self { low: low.max(0.01), high: high.min(100.0) }
    }

    fn scale(&self) -> String {
        let (low, high) = (format!("{:.2}", self.low), format!("{:.2}", self.high));
        let width = CHART_WIDTH.saturating_sub(low.len());
        format!("{low}{high:>width$}")
    }

    /// Draws a level with its interval: `   ├──●──┤   `.
    fn line(&self, level: CandidateLevel) -> String {
        let mut line = vec![' '; CHART_WIDTH];
        if let Some([low, high]) = level.interval {
            let (from, to) = (self.column(low), self.column(high));
            for place in &mut line[from..=to] {
                *place = '─';
            }
            line[from] = '├';
            line[to] = '┤';
        }

        line[self.column(level.ratio)] = '●';
        line.into_iter().collect::<String>().trim_end().to_owned()
    }

    fn column(&self, value: f64) -> usize {
        let place = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        let last = (CHART_WIDTH - 1) as f64;
        (place.clamp(0.0, 1.0) * last).round() as usize
    }
}

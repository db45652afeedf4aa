//! Estimates the duration of the remaining cells, from those that were measured.

use std::time::Duration;

use plan::Cell;

/// The durations of the measured cells.
#[derive(Default)]
pub struct Pace {
    measured: Vec<MeasuredCell>,
}

struct MeasuredCell {
    cell: Cell,
    took: Duration,
    estimate: Duration,
}

impl Pace {
    /// Adds a measured cell and its estimate.
    pub fn observe(&mut self, cell: Cell, took: Duration, estimate: Duration) {
        self.measured.push(MeasuredCell { cell, took, estimate });
    }

    /// Returns the expected duration of a cell: its estimate, corrected by the error of the
    /// estimates of similar cells, or of all. Similar cells have the same variant and number of
    /// clients, and the same target if there are any.
    pub fn expect(&self, cell: Cell, estimate: Duration) -> Duration {
        let is_similar = |other: &&MeasuredCell| {
            (other.cell.variant, other.cell.clients) == (cell.variant, cell.clients)
        };
        let has_same_target = |other: &&MeasuredCell| other.cell.target == cell.target;

        let all = || self.measured.iter();
        // The most similar cells that there are say most about this one.
        corrected(estimate, all().filter(is_similar).filter(has_same_target))
            .or_else(|| corrected(estimate, all().filter(is_similar)))
            .or_else(|| corrected(estimate, all()))
            .unwrap_or(estimate)
    }
}

/// Returns an estimate, corrected by the error of the estimates of measured cells; `None` if there
/// are none.
fn corrected<'m>(
    estimate: Duration,
    measured: impl Iterator<Item = &'m MeasuredCell>,
) -> Option<Duration> {
    let (mut took, mut expected) = (Duration::ZERO, Duration::ZERO);
    for one in measured {
        took += one.took;
        expected += one.estimate;
    }

    // Without any, this divides by zero.
    let error = took.as_secs_f64() / expected.as_secs_f64();
    error.is_finite().then(|| estimate.mul_f64(error))
}

/// Returns a rounded time as text: `about 2 h 10 min`.
pub fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    let minutes = (seconds + 30) / 60;
    let hours = (minutes + 30) / 60;

    if seconds < 100 {
        format!("about {seconds} s")
    } else if minutes < 100 {
        format!("about {minutes} min")
    } else if hours < 48 {
        format!("about {} h {} min", minutes / 60, minutes % 60)
    } else {
        format!("about {} days {} h", hours / 24, hours % 24)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(target: usize, variant: usize, clients: u32) -> Cell {
        Cell { target, variant, clients, repeat: 1, kind: words::CellKind::Measured }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_cell_takes_as_long_as_its_estimate() {
        assert_eq!(Pace::default().expect(cell(0, 0, 1), seconds(7)), seconds(7));
    }

    #[test]
    fn the_most_similar_cells_predict_the_time() {
        let mut pace = Pace::default();
        pace.observe(cell(0, 0, 1), seconds(10), seconds(5));
        pace.observe(cell(1, 0, 1), seconds(30), seconds(5));
        pace.observe(cell(1, 1, 1), seconds(80), seconds(20));
        assert_eq!(pace.expect(cell(0, 0, 1), seconds(5)), seconds(10), "its own target");
        assert_eq!(pace.expect(cell(2, 0, 1), seconds(5)), seconds(20), "other targets");
        assert_eq!(
            pace.expect(cell(0, 0, 8), seconds(10)),
            seconds(40),
            "estimates were 4 times too short"
        );
    }

    #[test]
    fn times_are_rounded() {
        for (time, text) in [
            (0, "about 0 s"),
            (99, "about 99 s"),
            (100, "about 2 min"),
            (5_000, "about 83 min"),
            (7_800, "about 2 h 10 min"),
            (86_400 * 3 + 7_200, "about 3 days 2 h"),
        ] {
            assert_eq!(about(seconds(time)), text);
        }
    }
}

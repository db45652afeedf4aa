//! A target's share of the host: what the host's counters grew by in the target's own turns.
//!
//! ```text
//! target a   ──turn──┤            ├──turn──┤
//!            ▲       ▲            ▲        ▲   the counters are read at both ends of a turn
//! target b           ├────turn────┤
//! ```
//!
//! Nobody else's load runs in a target's turns, so that what grows in them is the target's, as it
//! is for a target that is measured alone. What the kernel does for a target later, such as writing
//! dirty pages back, falls into a turn of another one.

use std::sync::{Arc, Mutex};

use probe::{HostCounters, Sample};
use words::CounterKind;

use super::lock;

/// The share of one target. Copies are of the same share.
#[derive(Clone)]
pub struct HostShare {
    /// Other targets are measured in this process.
    shares_process: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Reads the host; `None` until the target runs.
    counters: Option<HostCounters>,
    /// The growth in the turns of the step that have ended, in the order of the columns. A growth
    /// that is not known for some turn is not known for the step.
    grown: Vec<Option<i64>>,
    /// The counters at the begin of the turn; `None` between turns.
    at_begin: Option<Sample>,
}

impl HostShare {
    /// Returns the share of a target, which may share this process with others.
    pub fn new(shares_process: bool) -> Self {
        Self { shares_process, state: Arc::default() }
    }

    /// Reads the host with these counters from now on.
    pub fn set_counters(&self, counters: HostCounters) {
        lock(&self.state).counters = Some(counters);
    }

    /// Forgets the turns of the step before.
    pub fn begin_step(&self) {
        let mut state = lock(&self.state);
        state.grown = vec![Some(0); Sample::COLUMNS.len()];
        state.at_begin = None;
    }

    /// Reads the host at the begin of a turn.
    pub fn begin_turn(&self) {
        let mut state = lock(&self.state);
        let reading = state.read();
        state.begin_turn(reading);
    }

    /// Reads the host at the end of a turn.
    pub fn end_turn(&self) {
        let mut state = lock(&self.state);
        let reading = state.read();
        state.end_turn(reading.as_ref());
    }

    /// Leaves in a sample what is of this target: its own figures, the growth of the host's counters
    /// in its turns, and the state of the host in them. What targets share is removed.
    pub fn keep_own(&self, sample: &mut Sample) {
        let state = lock(&self.state);
        let is_in_turn = state.at_begin.is_some();

        for (index, column) in Sample::COLUMNS.iter().enumerate() {
            let own = match self.owner(column.name) {
                Owner::Target => continue,
                Owner::Turns if column.kind == CounterKind::Cumulative => {
                    state.grown_until(index, Some(&*sample))
                }
                Owner::Turns if is_in_turn => continue,
                Owner::Turns | Owner::All => None,
            };
            sample.values[index].1 = own;
        }
    }

    fn owner(&self, column: &str) -> Owner {
        let is_of_process = column.starts_with("assay_");
        let is_of_target = column.starts_with("server_")
            || ["data_bytes", "log_bytes"].contains(&column)
            || (is_of_process && !self.shares_process);

        if is_of_target {
            Owner::Target
        } else if column.starts_with("memory_") || column == "swap_used_bytes" {
            // All targets are up at the same time.
            Owner::All
        } else {
            Owner::Turns
        }
    }
}

/// The work that a column of a sample covers.
enum Owner {
    /// That of the target, at any time.
    Target,
    /// That of the target whose turn it is.
    Turns,
    /// That of all targets.
    All,
}

impl State {
    fn read(&mut self) -> Option<Sample> {
        self.counters.as_mut()?.read().ok()
    }

    fn begin_turn(&mut self, reading: Option<Sample>) {
        if reading.is_none() {
            self.grown.fill(None);
        }
        self.at_begin = reading;
    }

    fn end_turn(&mut self, reading: Option<&Sample>) {
        for column in 0..self.grown.len() {
            self.grown[column] = self.grown_until(column, reading);
        }
        self.at_begin = None;
    }

    /// Returns the growth of a column until a sample. A sample that was taken before the turn began,
    /// or after it has ended, adds nothing.
    fn grown_until(&self, column: usize, sample: Option<&Sample>) -> Option<i64> {
        let before = self.grown.get(column).copied().flatten()?;
        let Some(at_begin) = &self.at_begin else {
            return Some(before);
        };

        let in_turn = sample?.values[column].1? - at_begin.values[column].1?;
        Some(before + in_turn.max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCHES: &str = "context_switch_count";

    /// Returns a sample in which some columns have values.
    fn sample(values: &[(&str, i64)]) -> Sample {
        let mut sample =
            Sample { values: Sample::COLUMNS.iter().map(|column| (column.name, None)).collect() };
        for (name, value) in &mut sample.values {
            *value = values.iter().find(|(set, _)| set == name).map(|(_, value)| *value);
        }
        sample
    }

    fn own(share: &HostShare, values: &[(&str, i64)], column: &str) -> Option<i64> {
        let mut sample = sample(values);
        share.keep_own(&mut sample);
        sample.get(column)
    }

    /// Begins a turn at this count of context switches.
    fn begin_at(share: &HostShare, switches: i64) {
        lock(&share.state).begin_turn(Some(sample(&[(SWITCHES, switches)])));
    }

    /// Ends it at this one.
    fn end_at(share: &HostShare, switches: i64) {
        lock(&share.state).end_turn(Some(&sample(&[(SWITCHES, switches)])));
    }

    #[test]
    fn only_what_grew_in_the_target_s_own_turns_is_its_own() {
        let share = HostShare::new(true);
        share.begin_step();
        let switches = |now: i64| own(&share, &[(SWITCHES, now)], SWITCHES);
        assert_eq!(switches(500), Some(0), "before the first turn");

        begin_at(&share, 1000);
        assert_eq!(switches(1030), Some(30));
        end_at(&share, 1100);
        assert_eq!(switches(1500), Some(100), "others have their turns");

        begin_at(&share, 2000);
        assert_eq!(switches(1999), Some(100), "a sample of the time before the turn");
        assert_eq!(switches(2007), Some(107));
        end_at(&share, 2010);
        assert_eq!(switches(9000), Some(110));
    }

    #[test]
    fn a_counter_that_one_turn_lacks_is_not_known() {
        let share = HostShare::new(true);
        share.begin_step();
        begin_at(&share, 1000);
        end_at(&share, 1100);
        assert_eq!(own(&share, &[(SWITCHES, 0)], "disk_read_count"), None);
        // Without counters, a turn cannot be read.
        share.begin_turn();
        share.end_turn();
        assert_eq!(own(&share, &[(SWITCHES, 2000)], SWITCHES), None);
    }

    #[test]
    fn figures_of_the_target_stay_and_those_of_all_targets_go() {
        let values = [("server_rss_bytes", 7), ("memory_free_bytes", 8), ("runnable_count", 2)];
        let share = HostShare::new(true);
        share.begin_step();
        assert_eq!(own(&share, &values, "runnable_count"), None, "it is no turn of the target");
        begin_at(&share, 1000);
        assert_eq!(own(&share, &values, "server_rss_bytes"), Some(7));
        assert_eq!(own(&share, &values, "memory_free_bytes"), None);
        assert_eq!(own(&share, &values, "runnable_count"), Some(2));
    }

    #[test]
    fn a_process_is_of_the_target_alone_unless_others_share_it() {
        let cpu = [("assay_cpu_ns", 5)];
        let [shared, alone] = [true, false].map(|shares_process| {
            let share = HostShare::new(shares_process);
            share.begin_step();
            own(&share, &cpu, "assay_cpu_ns")
        });
        assert_eq!((shared, alone), (Some(0), Some(5)));
    }
}

//! The measured part of a step, in its order: warm-up, load, what the load did, and what the engine
//! says afterward.

use std::sync::Arc;
use std::time::Duration;

use analysis::counted;
use load::{StepEnd, StepOutcome};
use plan::StepRun;
use probe::{ExporterSource, Sampler, StateCounts, Targets, ThreadStates};
use record::{Connection, Failure, Status, Step, StepWriter, Warning};

use super::StepRunner;
use super::profiling::Profiler;
use super::remarks::add_rank_remarks;
use super::sampling::note_held_up;
use super::sink::{Followers, Instruments, SinkEnd, StepSink, both_sides, seen_states};
use crate::ground::events::LoadBegin;
use crate::steps::exact::CountedStep;
use crate::turns::Placing;

/// A load that has ended, in whichever way.
struct EndedLoad {
    outcome: anyhow::Result<StepOutcome>,
    /// The time by the clock at which it ended.
    ended_ns: u64,
    /// The time by the clock at which it began; `None` if it did not.
    started_ns: Option<u64>,
    /// The states of the connections' threads.
    states: Option<ThreadStates>,
    /// The reason why a sample could not be taken or written.
    sampling_error: Option<String>,
    /// The error of a lost replica, which ended the load.
    lost: Option<anyhow::Error>,
    profiler: Option<Profiler>,
    counted: Option<CountedStep>,
}

impl<'a> StepRunner<'a> {
    /// Measures a step.
    pub(super) fn measure(
        &mut self,
        number: usize,
        planned: &StepRun<'_>,
        record: &mut Step,
        writer: &mut StepWriter,
    ) -> anyhow::Result<()> {
        self.runner.describe(number, record);
        self.note_lag_before(record);

        // An exact cell counts its warm-up by operations, and so its end.
        let is_timed = self.counting.is_none();
        let has_warm_up = is_timed && !planned.warmup.is_zero();
        if has_warm_up && !self.warm_up(number, planned.warmup, record)? {
            return Ok(());
        }

        let time = planned.time.filter(|_| is_timed);
        record.time_given_ns = time.map(|time| time.as_nanos() as u64);
        record.counters_before = self.counters()?;
        let load = self.load(number, planned, time, record, writer)?;

        // Lag and samples are recorded even if the load failed.
        let elapsed_ns = load.outcome.as_ref().map(|outcome| outcome.elapsed_ns).ok();
        self.record_lag(load.started_ns, elapsed_ns, writer)?;
        if let Some(counted) = load.counted {
            writer.work(&counted.graphs)?;
            record.work = Some(counted.work);
        }

        if let Some(profiler) = load.profiler {
            record.profile = Some(profiler.finish(writer, &self.session.stop)?);
        }

        let mut outcome = match load.outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                // Only a complete outcome knows when the last operation ended.
                let started_ns = load.started_ns.unwrap_or(load.ended_ns);
                record.elapsed_ns = load.ended_ns.saturating_sub(started_ns);
                return Err(error);
            }
        };

        self.record_outcome(record, &outcome, load.states.as_ref());
        if let Some(reason) = load.sampling_error {
            outcome.end = StepEnd::Failed(vec![reason]);
        }

        if !is_complete(record, &outcome.end) {
            return load.lost.map_or(Ok(()), Err);
        }

        self.read_afterward(number, &outcome, record, writer)
    }

    /// Runs the warm-up; returns `false` if it did not complete, which ends the step.
    fn warm_up(
        &mut self,
        number: usize,
        time: Duration,
        record: &mut Step,
    ) -> anyhow::Result<bool> {
        let limits = self.limits(Some(time));
        let load = self.prepare(number, true, limits)?;

        let placing = Arc::clone(&self.placing);
        let mut followers = self.followers(&placing);
        // The warm-up's own record is not kept: only its totals are, in that of the step.
        let outcome = self.run_load(load, limits, &mut followers, &mut Step::default())?;
        if let Some(lost) = followers.lost {
            return Err(lost);
        }

        record.warm_up_ops.clone_from(&outcome.totals);
        self.apply(number, &outcome)?;

        Ok(is_complete(record, &outcome.end))
    }

    fn followers<'f>(&self, placing: &'f Placing) -> Followers<'f>
    where
        'a: 'f,
    {
        Followers { replication: self.engine.replication(), lost: None, placing }
    }

    /// Runs the load of a step, with all instruments.
    fn load(
        &mut self,
        number: usize,
        planned: &StepRun<'_>,
        time: Option<Duration>,
        record: &mut Step,
        writer: &mut StepWriter,
    ) -> anyhow::Result<EndedLoad> {
        let session = self.session;
        let limits = self.limits(time);
        let load = self.prepare(number, false, limits)?;

        let instruments = self.instruments()?;
        let rows = self.runner.planned_rows(number);
        session.events.load_begins(&LoadBegin { step: record, rows, roles: load.roles() });

        let mut profiler = self
            .profiling
            .map(|settings| Profiler::start(settings, self.engine.engine(), &session.data_root));

        // Nothing but the load runs between the two calls of the profiler.
        let placing = Arc::clone(&self.placing);
        let followers = self.followers(&placing);
        let clock = self.clock();
        let mut sink =
            StepSink::new(writer, session.events, clock.clone(), self.seat, instruments, followers);

        profiler.iter_mut().for_each(Profiler::enable);
        let (outcome, counted) = match &self.counting {
            Some(counting) => {
                let step = self.step_to_count(planned, record);
                match self.run_counted(load, limits, &mut sink, counting, &step) {
                    Ok(load) => (Ok(load.outcome), Some(load.counted)),
                    Err(error) => (Err(error), None),
                }
            }
            None => (self.run_load(load, limits, &mut sink, record), None),
        };
        // Instruments that sample continue until the sink ends, so the profiler stops before them.
        let ended_ns = clock.now();
        profiler.iter_mut().for_each(Profiler::disable);

        let SinkEnd { sampled, error, started_ns, lost } = sink.end(record);
        // The next step samples with the same ones.
        (self.sampler, self.second_observer) = (sampled.sampler, sampled.observer);
        self.note_missed_samples(record);
        self.record_turns(started_ns, record, writer)?;

        Ok(EndedLoad {
            outcome,
            ended_ns,
            started_ns,
            states: sampled.states,
            sampling_error: error,
            lost,
            profiler,
            counted,
        })
    }

    /// Records the turns of a load that began at `started_ns` by its clock: their number, and the
    /// time of the first, before which the target waited for the others.
    fn record_turns(
        &self,
        started_ns: Option<u64>,
        record: &mut Step,
        writer: &mut StepWriter,
    ) -> anyhow::Result<()> {
        let Some(seat) = self.seat else {
            return Ok(());
        };

        let mut turns = seat.take_turns();
        for turn in &mut turns {
            turn.began_ns = turn.began_ns.saturating_sub(started_ns.unwrap_or(0));
        }

        writer.turns(&turns)?;
        record.turns = Some(turns.len() as u32);
        if let Some(first_turn_unix_ns) = seat.first_turn_unix_ns() {
            record.started_unix_ns = first_turn_unix_ns;
        }
        Ok(())
    }

    /// Returns the instruments of the step before, or new ones.
    fn instruments(&mut self) -> anyhow::Result<Instruments> {
        let sampler = match self.sampler.take() {
            Some(sampler) => sampler,
            None => self.new_sampler(),
        };
        let mut observer = match self.second_observer.take() {
            // Its snapshots keep old versions of rows, for longer or shorter by chance.
            _ if self.counting.is_some() => None,
            Some(observer) => Some(observer),
            None => Some(self.engine.observer(self.runner.tables())?),
        };

        Ok(Instruments {
            sampler,
            samples_states: self.counting.is_none(),
            is_embedded: self.engine.engine().capabilities().embedded,
            own_thread: observer.as_mut().and_then(|observer| observer.server_thread()),
            system_calls: self.system_calls.clone(),
            observer,
        })
    }

    /// Warns about samples of the server's host that its exporter did not give.
    fn note_missed_samples(&mut self, record: &mut Step) {
        let failures = self.sampler.as_mut().and_then(Sampler::take_failures);
        if let Some(failures) = failures {
            let count = counted(failures.count as usize, "sample");
            let text = format!(
                "{count} of the server's host could not be read from `host-metrics`: {}",
                failures.last
            );
            record.warnings.push(Warning::new("host::exporter", text));
        }
    }

    fn new_sampler(&mut self) -> Sampler {
        let metrics = self.host_metrics.clone();
        if let Some(metrics) = metrics.filter(|_| self.engine.engine().is_on_other_host()) {
            let mut sampler = Sampler::of_other_host(ExporterSource {
                address: metrics.address,
                path: metrics.path,
                disks: metrics.disks,
            });
            // The name of the host is looked up here, which may take long.
            let _ = sampler.sample();
            return sampler;
        }

        let storage = self.engine.engine().storage();
        let mut sampler = Sampler::new(Targets {
            server_pid: self.engine.engine().process_id(),
            data: storage.data,
            logs: storage.logs,
        });

        let notes = sampler.notes().iter().map(|note| Warning::new("host::disk", note));
        self.notes.warnings.extend(notes);

        if let Some(seat) = self.seat {
            seat.host_share().set_counters(sampler.host_counters());
        }

        // The first sample opens the files of the server's processes: that is not the step's time.
        let _ = sampler.sample();
        sampler
    }

    /// Records what the connections did, and what the step's behavior says about its figures.
    fn record_outcome(
        &self,
        record: &mut Step,
        outcome: &StepOutcome,
        states: Option<&ThreadStates>,
    ) {
        record.elapsed_ns = outcome.elapsed_ns;
        add_rank_remarks(record);
        if self.counting.is_none() {
            note_held_up(record);
        }

        record.ops.clone_from(&outcome.totals);

        let counts: &[StateCounts] = states.map_or(&[], ThreadStates::counts);
        for (index, connection) in outcome.connections.iter().enumerate() {
            record.cpu.client_user_ns += connection.cpu_user_ns;
            record.cpu.client_system_ns += connection.cpu_system_ns;

            let sampled = counts.get(index).map(seen_states).unwrap_or_default();
            // A load rank samples its side itself, and this process the server's.
            let states = if record.ranks.is_empty() {
                sampled
            } else {
                both_sides(&connection.states, &sampled)
            };
            record.connections.push(Connection { states, ..connection.clone() });
        }

        self.add_remarks(record, outcome);
    }

    /// Reads what the engine and its replicas say after a complete load, and checks the data.
    fn read_afterward(
        &mut self,
        number: usize,
        outcome: &StepOutcome,
        record: &mut Step,
        writer: &mut StepWriter,
    ) -> anyhow::Result<()> {
        let checks = self.apply(number, outcome)?;
        if self.checks_data() {
            record.checks = checks;
        }

        record.catch_up_ns = self.catch_up(record)?;
        if record.status != Status::Complete {
            return Ok(());
        }

        // Reading counters disturbs them least, and checks read all of the data.
        record.counters_after = self.counters()?;
        record.storage = self.storage();
        record.data_bytes = Some(self.runner.data_bytes());
        self.keep_engine_status(record, writer)?;
        self.explain(number, record);
        self.check(record)
    }
}

/// Records how the load ended; returns whether it did all of its work.
fn is_complete(record: &mut Step, end: &StepEnd) -> bool {
    record.status = match end {
        StepEnd::Complete => Status::Complete,
        StepEnd::Interrupted => Status::Interrupted,
        StepEnd::Failed(causes) => {
            record.failure = Some(Failure { causes: causes.clone(), ..Failure::default() });
            Status::Failed
        }
    };

    record.status == Status::Complete
}

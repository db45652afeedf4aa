//! Samples the load on separate threads, so that an engine that does not answer cannot delay the
//! samples of the host: the host's and the engine's counters once a second, connection states 100
//! times a second, and those of the engine's threads 10 times a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use engine::{Counter, Observer};
use load::own_cpu_wait_ns;
use probe::{Sample, Sampler, ThreadStates};
use record::{LoadPause, Step, Warning};
use words::{Random, WaitView};

use super::session_states::SessionStates;
use crate::ground::threads::{NoThread, spawn};
use crate::turns::{HostShare, StepClock};

/// A reading and its time.
pub enum StepReading {
    /// The host, so many nanoseconds into the step, or why it could not be read.
    Host(u64, Result<Sample, String>),
    /// The engine.
    Engine(u64, Vec<Counter>),
    /// The process was stalled.
    LoadPause(LoadPause),
}

/// The time between checks for a stall of the process by the thread that samples the host.
const STALL_CHECK_NS: u64 = 100_000_000;
/// The delay of its wake-up, beyond its wait for a processor, that counts as a stall of the
/// process. On two processors with up to sixteen busy loops beside it a thread was late by up to
/// 340 ms, all but 0.5 ms of which was that wait.
const HELD_UP_NS_MIN: u64 = 250_000_000;
/// The longest total stall of a valid step,
const HELD_UP_NS_MAX: u64 = 1_000_000_000;
/// and its largest share of the step.
const HELD_UP_SHARE_MAX: f64 = 0.05;

/// Reports stalls of the process: as a reason why the step is invalid, or as a warning.
pub fn note_held_up(step: &mut Step) {
    let held_ns: u64 = step.held_up.iter().map(|held| held.to_ns - held.from_ns).sum();
    if held_ns == 0 {
        return;
    }

    let began: Vec<String> =
        step.held_up.iter().map(|held| (held.from_ns / SECOND_NS).to_string()).collect();
    let text = format!(
        "assay itself was stalled for {:.1} s, at second {}: its process was stopped or frozen, or the machine was paused",
        held_ns as f64 / 1e9,
        began.join(", ")
    );

    let share = held_ns as f64 / step.elapsed_ns.max(1) as f64;
    if held_ns > HELD_UP_NS_MAX || share > HELD_UP_SHARE_MAX {
        step.reasons.push(text);
    } else {
        step.warnings.push(Warning::new("assay::held-up", text));
    }
}

const SECOND_NS: u64 = 1_000_000_000;
/// The time between looks for the step's end while the target waits for its turn.
const STOPPED_CHECK: Duration = Duration::from_millis(200);
/// The time to wait for an observer after the step; then the next step gets a new one.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The mean interval between samples of connection states; intervals vary between half and three
/// halves of it.
const STATES_EVERY_NS: u64 = 10_000_000;
/// The mean interval between queries for the states of sessions.
const LOOK_EVERY_NS: u64 = 100_000_000;

/// The process IDs of the engine, from the thread that samples the host to the one that samples
/// threads.
type Processes = Arc<Mutex<Option<Vec<u32>>>>;

/// Samples the host.
pub struct HostSampler {
    pub sampler: Sampler,
    /// The target's share of the host, if it takes turns.
    pub share: Option<HostShare>,
}

impl HostSampler {
    fn sample(&mut self) -> Result<Sample, String> {
        let mut sample = self.sampler.sample().map_err(|error| error.to_string())?;
        // At once, since a sample belongs to the turn in which it was taken.
        if let Some(share) = &self.share {
            share.keep_own(&mut sample);
        }
        Ok(sample)
    }
}

/// The sampling threads.
pub struct Sampling {
    done: Arc<AtomicBool>,
    readings: Receiver<StepReading>,
    host: JoinHandle<Sampler>,
    engine: Option<JoinHandle<Box<dyn Observer>>>,
    states: Option<JoinHandle<ThreadStates>>,
}

/// The last readings, and what the next step reuses.
#[derive(Default)]
pub struct SamplingResult {
    /// Readings that were not drained before the end.
    pub readings: Vec<StepReading>,
    pub sampler: Option<Sampler>,
    /// `None` if the engine did not answer.
    pub observer: Option<Box<dyn Observer>>,
    pub states: Option<ThreadStates>,
}

impl Sampling {
    /// Starts sampling a step that starts at `start_at` by `clock`. A load rank samples only its
    /// host.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn begin(
        clock: &StepClock,
        start_at: u64,
        host: HostSampler,
        observer: Option<Box<dyn Observer>>,
        states: Option<ThreadStates>,
    ) -> Result<Self, NoThread> {
        let done = Arc::new(AtomicBool::new(false));
        let (sender, readings) = channel();
        let processes = Processes::new(Mutex::new(None));
        let seconds = SecondTimer {
            clock: clock.clone(),
            start_at,
            done: Arc::clone(&done),
            next: 0,
            watch: None,
        };

        // Only the thread that samples the host also looks for stalls: one of them is enough.
        let host = {
            let (mut seconds, sender) = (seconds.clone(), sender.clone());
            let processes = Arc::clone(&processes);
            seconds.watch = Some(StallDetector { found: sender.clone(), run_delay_ns: 0 });
            spawn("host", move || read_host(seconds, host, &processes, &sender))?
        };

        let states = states.map(|states| {
            let (seconds, sender) = (seconds.clone(), sender.clone());
            spawn("states", move || sample_states(seconds, states, &processes, &sender))
        });

        let engine = observer
            .map(|observer| spawn("observer", move || read_engine(seconds, observer, &sender)));

        match (states.transpose(), engine.transpose()) {
            (Ok(states), Ok(engine)) => Ok(Self { done, readings, host, engine, states }),
            (Err(error), _) | (_, Err(error)) => {
                // Ends the threads that were created.
                done.store(true, Ordering::Release);
                Err(error)
            }
        }
    }

    /// Returns the readings since the last call.
    pub fn drain(&self) -> impl Iterator<Item = StepReading> {
        self.readings.try_iter()
    }

    /// Takes the last readings and ends all threads. An engine that does not answer keeps
    /// its observer.
    pub fn end(self) -> SamplingResult {
        self.done.store(true, Ordering::Release);
        let engine = self.engine.as_ref().map(JoinHandle::thread);
        let of_states = self.states.as_ref().map(JoinHandle::thread);
        let threads = [Some(self.host.thread()), engine, of_states];
        // The threads sleep until their next second, unless they are woken up.
        threads.into_iter().flatten().for_each(Thread::unpark);

        let sampler = self.host.join().ok();
        let states = self.states.and_then(|states| states.join().ok());
        let engine = self.engine.filter(ends_in_time);

        SamplingResult {
            sampler,
            observer: engine.and_then(|engine| engine.join().ok()),
            readings: self.readings.try_iter().collect(),
            states,
        }
    }
}

/// Wakes a thread at the start of each second of a step.
#[derive(Clone)]
struct SecondTimer {
    clock: StepClock,
    start_at: u64,
    done: Arc<AtomicBool>,
    next: u64,
    watch: Option<StallDetector>,
}

/// Detects stalls of the process by how late one of its threads wakes up.
#[derive(Clone)]
struct StallDetector {
    found: Sender<StepReading>,
    /// The time that the thread had waited for processors at the last check.
    run_delay_ns: u64,
}

impl StallDetector {
    /// Checks a thread that slept from the first time, should have woken up at the second, and did
    /// so at the third. `run_delay_ns` returns the time that it has waited for processors.
    fn woke(&self, [from_ns, until_ns, now_ns]: [u64; 3], run_delay_ns: impl FnOnce() -> u64) {
        let late_ns = now_ns.saturating_sub(until_ns);
        if late_ns < HELD_UP_NS_MIN {
            return;
        }

        // On a busy machine the thread was ready but others ran, as with any thread of the engine.
        let waited_ns = run_delay_ns().saturating_sub(self.run_delay_ns);
        if late_ns.saturating_sub(waited_ns) >= HELD_UP_NS_MIN {
            let held_up = LoadPause { from_ns, to_ns: now_ns };
            let _ = self.found.send(StepReading::LoadPause(held_up));
        }
    }
}

impl SecondTimer {
    /// Returns the time of the next second.
    fn next_at(&self) -> u64 {
        self.start_at + self.next * SECOND_NS
    }

    /// Waits for the next second; returns `false` at the step's end.
    fn wait(&mut self) -> bool {
        let at = self.next_at();
        self.next += 1;

        let is_due = self.wait_until(at);
        if is_due {
            // Seconds that were missed in a stall stay missing.
            let now = self.clock.now();
            self.next = self.next.max((now - self.start_at) / SECOND_NS + 1);
        }

        is_due
    }

    /// Waits until `at` by the clock; returns `false` at the step's end.
    fn wait_until(&mut self, at: u64) -> bool {
        while !self.done.load(Ordering::Acquire) {
            // The threads of a target that waits for its turn must not take time from the others.
            self.clock.wait_while_stopped(STOPPED_CHECK);
            let now = self.clock.now();
            if now >= at {
                return true;
            }

            let nap_ns = match &mut self.watch {
                Some(watch) => {
                    watch.run_delay_ns = own_cpu_wait_ns();
                    STALL_CHECK_NS.min(at - now)
                }
                None => at - now,
            };
            std::thread::park_timeout(Duration::from_nanos(nap_ns));

            let since_start = |at: u64| at.saturating_sub(self.start_at);
            let slept = [now, now + nap_ns, self.clock.now()].map(since_start);

            if let Some(watch) = &self.watch {
                watch.woke(slept, own_cpu_wait_ns);
            }
        }
        false
    }

    fn elapsed_ns(&self) -> u64 {
        self.clock.now().saturating_sub(self.start_at)
    }
}

/// Waits for a moment until the thread of an engine's observer has ended. Returns whether it has:
/// an engine that does not answer keeps its observer.
fn ends_in_time<T>(thread: &JoinHandle<T>) -> bool {
    let mut waited = Duration::ZERO;
    while !thread.is_finished() && waited < TIMEOUT {
        std::thread::sleep(Duration::from_millis(5));
        waited += Duration::from_millis(5);
    }

    thread.is_finished()
}

fn read_host(
    mut seconds: SecondTimer,
    mut host: HostSampler,
    processes: &Mutex<Option<Vec<u32>>>,
    readings: &Sender<StepReading>,
) -> Sampler {
    // One more reading comes at the step's end, however long its last second was.
    loop {
        let goes_on = seconds.wait();
        let mut at_ns = seconds.elapsed_ns();
        let sample = host.sample();
        if host.sampler.is_of_other_host() {
            // The other host took its counters between the request and the answer.
            at_ns = at_ns.midpoint(seconds.elapsed_ns());
        }
        let _ = readings.send(StepReading::Host(at_ns, sample));

        // The thread that samples states gets the processes from here: finding them takes time.
        *processes.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(host.sampler.server_processes());

        if !goes_on {
            return host.sampler;
        }
    }
}

fn sample_states(
    mut seconds: SecondTimer,
    mut states: ThreadStates,
    processes: &Mutex<Option<Vec<u32>>>,
    readings: &Sender<StepReading>,
) -> ThreadStates {
    // Any seed will do: the times must only be independent of the load's rhythm.
    let mut random = Random::stream(seconds.start_at, &[]);
    let mut at = seconds.start_at;
    let mut seen = SessionStates::default();
    let mut second = 0;

    loop {
        at += STATES_EVERY_NS / 2 + random.below(STATES_EVERY_NS);
        let goes_on = seconds.wait_until(at);
        let at_ns = at - seconds.start_at;
        if !goes_on || at_ns / SECOND_NS > second {
            second = at_ns / SECOND_NS;
            send_states(&mut seen, readings);
        }
        if !goes_on {
            return states;
        }

        let new = processes.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(new) = new {
            states.set_processes(new);
        }
        states.sample();
        for (view, samples) in states.take_state_samples() {
            seen.add(at_ns, view, samples.samples, samples.states);
        }
        // Samples that a late thread missed are not made up for.
        at = at.max(seconds.clock.now());
    }
}

fn send_states(states: &mut SessionStates, readings: &Sender<StepReading>) {
    if let Some((at_ns, counters)) = states.take() {
        let _ = readings.send(StepReading::Engine(at_ns, counters));
    }
}

fn read_engine(
    mut seconds: SecondTimer,
    mut observer: Box<dyn Observer>,
    readings: &Sender<StepReading>,
) -> Box<dyn Observer> {
    // As above, any seed will do.
    let mut random = Random::stream(seconds.start_at, &[1]);
    let mut interval_ns = move || LOOK_EVERY_NS / 2 + random.below(LOOK_EVERY_NS);
    let mut look_at = Some(seconds.start_at + interval_ns());
    let mut states = SessionStates::default();

    loop {
        if let Some(at) = look_at.filter(|at| *at < seconds.next_at()) {
            if !seconds.wait_until(at) {
                break;
            }
            // An engine that does not say, or fails, is not asked again in this step.
            look_at = match observer.session_states() {
                Ok(Some(sessions)) => {
                    states.add(at - seconds.start_at, WaitView::Engine, 1.0, sessions);
                    // Looks that a late thread missed are not made up for.
                    Some(at.max(seconds.clock.now()) + interval_ns())
                }
                Ok(None) | Err(_) => None,
            };
            continue;
        }

        if !seconds.wait() {
            break;
        }
        let at_ns = seconds.elapsed_ns();
        // A server that fails here also fails the load, which reports why.
        let Ok(counters) = observer.sample() else {
            break;
        };
        if counters.is_empty() {
            break;
        }

        send_states(&mut states, readings);
        let _ = readings.send(StepReading::Engine(at_ns, counters));
    }

    send_states(&mut states, readings);
    observer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remarks(held_ms: &[u64], seconds: u64) -> (usize, usize) {
        let held = |&ms: &u64| LoadPause { from_ns: SECOND_NS, to_ns: SECOND_NS + ms * 1_000_000 };
        let mut step = Step {
            elapsed_ns: seconds * SECOND_NS,
            held_up: held_ms.iter().map(held).collect(),
            ..Step::default()
        };
        note_held_up(&mut step);
        (step.warnings.len(), step.reasons.len())
    }

    #[test]
    fn a_process_that_was_held_up_is_warned_of_and_beyond_a_share_invalid() {
        assert_eq!(remarks(&[], 10), (0, 0));
        assert_eq!(remarks(&[400], 10), (1, 0));
        assert_eq!(remarks(&[400], 3), (0, 1));
        assert_eq!(remarks(&[900], 1000), (1, 0));
        assert_eq!(remarks(&[900, 900], 1000), (0, 1));
    }

    #[test]
    fn a_wait_for_a_processor_is_not_a_stall() {
        let (found, readings) = channel();
        let woke = |late_ms: u64, waited_ms: u64| {
            let watch = StallDetector { found: found.clone(), run_delay_ns: SECOND_NS };
            let [until_ns, waited_ns] = [STALL_CHECK_NS, waited_ms * 1_000_000];
            let slept = [0, until_ns, until_ns + late_ms * 1_000_000];
            watch.woke(slept, || SECOND_NS + waited_ns);
            match readings.try_recv() {
                Ok(StepReading::LoadPause(held)) => Some((held.from_ns, held.to_ns)),
                _ => None,
            }
        };
        assert_eq!(woke(100, 0), None);
        assert_eq!(woke(400, 0), Some((0, STALL_CHECK_NS + 400_000_000)));
        assert_eq!(woke(400, 390), None);
        assert_eq!(woke(2_000, 390), Some((0, STALL_CHECK_NS + 2_000_000_000)));
    }
}

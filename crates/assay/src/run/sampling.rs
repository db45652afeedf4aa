//! Reads the host's and the engine's counters once a second beside the load, and the connections' states a hundred times
//! a second, each on a thread of its own: an engine that doesn't answer must not keep the host from being seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use engine::{Counter, Observer};
use load::{Clock, SystemClock};
use probe::{Sample, Sampler, ThreadStates};
use workload::Random;

/// What was read, and when.
pub enum Reading {
    /// The host, so many nanoseconds into the step, or why it could not be read.
    Host(u64, Result<Sample, String>),
    /// The engine.
    Engine(u64, Vec<Counter>),
}

const SECOND_NS: u64 = 1_000_000_000;
/// An observer that has not answered for so long after the step is given up; the next step gets a new one.
const PATIENCE: Duration = Duration::from_secs(2);

/// States of connections are sampled so often on average, at intervals between half and three halves of it.
const STATES_EVERY_NS: u64 = 10_000_000;

/// All three threads.
pub struct Sampling {
    done: Arc<AtomicBool>,
    readings: Receiver<Reading>,
    host: Option<JoinHandle<Sampler>>,
    engine: Option<JoinHandle<Box<dyn Observer>>>,
    states: Option<JoinHandle<ThreadStates>>,
}

/// The last readings, and what a further step goes on with.
pub struct Sampled {
    /// Those that nobody has drained, up to the moment of the end.
    pub readings: Vec<Reading>,
    pub sampler: Option<Sampler>,
    /// `None` where the engine did not answer.
    pub observer: Option<Box<dyn Observer>>,
    pub states: Option<ThreadStates>,
}

impl Sampling {
    /// Begins a step that starts at `start_at` by `clock`.
    pub fn begin(
        clock: &SystemClock,
        start_at: u64,
        sampler: Sampler,
        observer: Option<Box<dyn Observer>>,
        states: ThreadStates,
    ) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (sender, readings) = channel();
        let seconds = Seconds {
            clock: clock.clone(),
            start_at,
            done: Arc::clone(&done),
            next: 0,
        };
        let host = {
            let (seconds, sender) = (seconds.clone(), sender.clone());
            std::thread::spawn(move || read_host(seconds, sampler, &sender))
        };
        let states = {
            let seconds = seconds.clone();
            std::thread::spawn(move || sample_states(seconds, states))
        };
        let engine = observer
            .map(|observer| std::thread::spawn(move || read_engine(seconds, observer, &sender)));
        Self {
            done,
            readings,
            host: Some(host),
            engine,
            states: Some(states),
        }
    }

    /// What has been read since the last call.
    pub fn drain(&self) -> impl Iterator<Item = Reading> {
        self.readings.try_iter()
    }

    /// Takes the last readings, of the moment of the call, and ends all threads. An engine that doesn't answer keeps
    /// its observer.
    pub fn end(mut self) -> Sampled {
        self.done.store(true, Ordering::Release);
        let host = self.host.as_ref().map(JoinHandle::thread);
        let engine = self.engine.as_ref().map(JoinHandle::thread);
        let states = self.states.as_ref().map(JoinHandle::thread);
        let all = host.into_iter().chain(engine).chain(states);
        all.for_each(Thread::unpark);
        let sampler = self.host.take().and_then(|host| host.join().ok());
        let observer = self.engine.take().and_then(|engine| {
            let mut waited = Duration::ZERO;
            while !engine.is_finished() && waited < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
                waited += Duration::from_millis(5);
            }
            if engine.is_finished() {
                engine.join().ok()
            } else {
                None
            }
        });
        Sampled {
            readings: self.readings.try_iter().collect(),
            sampler,
            observer,
            states: self.states.take().and_then(|states| states.join().ok()),
        }
    }
}

/// The beginnings of the seconds of a step.
#[derive(Clone)]
struct Seconds {
    clock: SystemClock,
    start_at: u64,
    done: Arc<AtomicBool>,
    next: u64,
}

impl Seconds {
    /// Waits for the next second or the step's end; `false` at the end.
    fn wait(&mut self) -> bool {
        let at = self.start_at + self.next * SECOND_NS;
        self.next += 1;
        let is_due = self.wait_until(at);
        if is_due {
            // After a stall of this thread the seconds that were missed stay missing.
            let now = self.clock.now();
            self.next = self.next.max((now - self.start_at) / SECOND_NS + 1);
        }
        is_due
    }

    /// Waits until `at` by the clock, or for the step's end; `false` at the end.
    fn wait_until(&self, at: u64) -> bool {
        while !self.done.load(Ordering::Acquire) {
            let now = self.clock.now();
            if now >= at {
                return true;
            }
            std::thread::park_timeout(Duration::from_nanos(at - now));
        }
        false
    }

    fn elapsed_ns(&self) -> u64 {
        self.clock.now().saturating_sub(self.start_at)
    }
}

fn read_host(mut seconds: Seconds, mut sampler: Sampler, readings: &Sender<Reading>) -> Sampler {
    loop {
        let goes_on = seconds.wait();
        let at_ns = seconds.elapsed_ns();
        let _ = readings.send(Reading::Host(
            at_ns,
            sampler.sample().map_err(|error| error.to_string()),
        ));
        if !goes_on {
            return sampler;
        }
    }
}

fn sample_states(seconds: Seconds, mut states: ThreadStates) -> ThreadStates {
    // Any seed will do: what matters is that moments don't follow the rhythm of the load.
    let mut random = Random::stream(seconds.start_at, &[]);
    let mut at = seconds.start_at;
    loop {
        at += STATES_EVERY_NS / 2 + random.below(STATES_EVERY_NS);
        if !seconds.wait_until(at) {
            return states;
        }
        states.sample();
        // Samples that were missed by a late thread are not made up for.
        at = at.max(seconds.clock.now());
    }
}

fn read_engine(
    mut seconds: Seconds,
    mut observer: Box<dyn Observer>,
    readings: &Sender<Reading>,
) -> Box<dyn Observer> {
    while seconds.wait() {
        let at_ns = seconds.elapsed_ns();
        // A server that fails here fails the load too, which says why.
        let Ok(counters) = observer.sample() else {
            break;
        };
        if counters.is_empty() {
            break;
        }
        let _ = readings.send(Reading::Engine(at_ns, counters));
    }
    observer
}

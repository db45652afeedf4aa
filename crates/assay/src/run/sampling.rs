//! Reads the host's and the engine's counters once a second beside the load, each on a thread of its own: an engine
//! that doesn't answer must not keep the host from being seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use engine::{Counter, Observer};
use load::{Clock, SystemClock};
use probe::{Sample, Sampler};

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

/// Both threads.
pub struct Sampling {
    done: Arc<AtomicBool>,
    readings: Receiver<Reading>,
    host: Option<JoinHandle<Sampler>>,
    engine: Option<JoinHandle<Box<dyn Observer>>>,
}

impl Sampling {
    /// Begins a step that starts at `start_at` by `clock`.
    pub fn begin(
        clock: &SystemClock,
        start_at: u64,
        sampler: Sampler,
        observer: Option<Box<dyn Observer>>,
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
        let engine = observer
            .map(|observer| std::thread::spawn(move || read_engine(seconds, observer, &sender)));
        Self {
            done,
            readings,
            host: Some(host),
            engine,
        }
    }

    /// What has been read since the last call.
    pub fn drain(&self) -> impl Iterator<Item = Reading> {
        self.readings.try_iter()
    }

    /// Takes the last readings, of the moment of the call, and ends both threads. An engine that doesn't answer keeps
    /// its observer.
    pub fn end(mut self) -> (Vec<Reading>, Option<Sampler>, Option<Box<dyn Observer>>) {
        self.done.store(true, Ordering::Release);
        let host = self.host.as_ref().map(JoinHandle::thread);
        let engine = self.engine.as_ref().map(JoinHandle::thread);
        host.into_iter().chain(engine).for_each(Thread::unpark);
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
        (self.readings.try_iter().collect(), sampler, observer)
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
        while !self.done.load(Ordering::Acquire) {
            let now = self.clock.now();
            if now >= at {
                // After a stall of this thread the seconds that were missed stay missing.
                self.next = self.next.max((now - self.start_at) / SECOND_NS + 1);
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

//! Throughputs of which it is known whether they have a period, and what keeps step with it.

pub use crate::random::Random;
use analysis::figures::swing::{Candidate, Source, Surroundings, Swing, find};

/// The mean rate, per second.
const RATE: f64 = 10_000.0;

/// The standard deviation of the noise of a rate, as a share of the mean.
const NOISE: f64 = 0.1;

/// A throughput without a period: its deviation from the mean in each second, in standard
/// deviations of its noise.
pub struct Noise {
    pub name: &'static str,
    deviations: fn(&mut Random, usize) -> Vec<f64>,
}

/// Throughputs of which nothing may be said.
pub const NOISES: [Noise; 11] = [
    Noise { name: "white noise", deviations: |random, seconds| correlated(random, seconds, 0.0) },
    Noise { name: "AR(1), 0.5", deviations: |random, seconds| correlated(random, seconds, 0.5) },
    Noise { name: "AR(1), 0.8", deviations: |random, seconds| correlated(random, seconds, 0.8) },
    Noise { name: "AR(1), 0.95", deviations: |random, seconds| correlated(random, seconds, 0.95) },
    Noise {
        name: "AR(1), 0.95, and white noise",
        deviations: |random, seconds| {
            let slow = correlated(random, seconds, 0.95);
            sum(&slow, &correlated(random, seconds, 0.0))
        },
    },
    Noise {
        name: "a random walk",
        deviations: |random, seconds| {
            let mut level = 0.0;
            let steps = (0..seconds).map(|_| {
                level += random.normal();
                level
            });
            steps.collect()
        },
    },
    Noise {
        name: "drift by half of the mean",
        deviations: |random, seconds| {
            let line: Vec<f64> = (0..seconds).map(|at| 5.0 * at as f64 / seconds as f64).collect();
            sum(&line, &correlated(random, seconds, 0.3))
        },
    },
    Noise {
        name: "a new level",
        deviations: |random, seconds| {
            let at = seconds as f64 * random.uniform();
            let levels = (0..seconds).map(|second| if second as f64 >= at { 4.0 } else { 0.0 });
            sum(&levels.collect::<Vec<_>>(), &correlated(random, seconds, 0.3))
        },
    },
    Noise { name: "a single stall", deviations: |random, seconds| stalls(random, seconds, 1) },
    Noise { name: "three stalls", deviations: |random, seconds| stalls(random, seconds, 3) },
    Noise {
        name: "a stall every 15 s on average, at random",
        deviations: |random, seconds| stalls(random, seconds, seconds / 15),
    },
];

impl Noise {
    /// Returns the swing that is found, which is none in truth.
    pub fn swing(&self, random: &mut Random, seconds: usize) -> Option<Swing> {
        find(&rates(&(self.deviations)(random, seconds)), &Surroundings::default())
    }
}

/// The course of a cycle, from 0 to 1, without a unit.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "only the table has all of them")]
pub enum Shape {
    Sine,
    Sawtooth,
    /// Low in a share of each cycle.
    Dips(f64),
}

impl Shape {
    #[allow(dead_code, reason = "only the table has names")]
    pub fn name(self) -> String {
        match self {
            Self::Sine => "sine".to_owned(),
            Self::Sawtooth => "sawtooth".to_owned(),
            Self::Dips(share) => format!("dips in {:.0}% of a cycle", 100.0 * share),
        }
    }

    fn height(self, phase: f64) -> f64 {
        match self {
            Self::Sine => (std::f64::consts::TAU * phase).sin(),
            Self::Sawtooth => phase,
            Self::Dips(share) => f64::from(phase >= share),
        }
    }
}

/// A rhythm whose cycles differ.
#[derive(Clone, Copy)]
pub struct Rhythm {
    pub period: f64,
    /// The standard deviation of the length of a cycle, and of its depth, as shares.
    pub jitter: f64,
    pub shape: Shape,
}

/// The work of something with a rhythm in each second, and what is left of the rate.
struct Course {
    /// Work in each second: high where the rate is low.
    work: Vec<f64>,
    /// The rate, with a mean of 0 and a standard deviation of 1.
    rate: Vec<f64>,
}

impl Rhythm {
    /// Returns the course over so many seconds. Each second is the mean of ten moments.
    fn course(&self, random: &mut Random, seconds: usize) -> Course {
        let mut begin = -self.period * random.uniform();
        let mut work = vec![0.0; seconds];
        while begin < seconds as f64 {
            let length = self.period * (1.0 + self.jitter * random.normal()).max(0.3);
            let depth = (1.0 + self.jitter * random.normal()).max(0.3);
            let moments = (10.0 * begin).max(0.0) as usize..;
            let moments = moments.take((10.0 * length) as usize + 2);
            for moment in moments.take_while(|moment| *moment < 10 * seconds) {
                let phase = ((moment as f64 + 0.5) / 10.0 - begin) / length;
                if (0.0..1.0).contains(&phase) {
                    work[moment / 10] -= depth * self.shape.height(phase) / 10.0;
                }
            }
            begin += length;
        }
        let rate = standardized(&work.iter().map(|work| -work).collect::<Vec<_>>());
        Course { work, rate }
    }
}

/// Returns a rate that swings, with noise on top: the rhythm has this share of the variance.
fn swinging(random: &mut Random, course: &Course, share: f64) -> Vec<f64> {
    let noise = correlated(random, course.rate.len(), 0.4);
    let sizes = ((share / (1.0 - share)).sqrt(), 1.0);
    let deviations = course.rate.iter().zip(&noise);
    rates(&deviations.map(|(rate, noise)| sizes.0 * rate + sizes.1 * noise).collect::<Vec<_>>())
}

/// The true cause of a simulated swing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// An event of the engine.
    Engine,
    /// Another program on the host. The engine's events have a rhythm of their own.
    Neighbor,
    /// Nothing that was recorded. The engine's events have the same period by chance.
    Coincidence,
}

/// A step whose throughput swings.
#[derive(Clone, Copy)]
pub struct SwingingStep {
    pub truth: Truth,
    pub rhythm: Rhythm,
    /// The share of the variance.
    pub share: f64,
}

/// The name of the event that drives a swing, or has its period.
pub const EVENT: &str = "vacuum";

impl SwingingStep {
    /// Returns the swing that is found, without what keeps step with it.
    #[allow(dead_code, reason = "only the table has it")]
    pub fn swing_alone(&self, random: &mut Random, seconds: usize) -> Option<Swing> {
        let course = self.rhythm.course(random, seconds);
        find(&swinging(random, &course, self.share), &Surroundings::default())
    }

    /// Returns the swing that is found. Beside the event there are 20 decoys: events with other
    /// periods, counters that follow the rate, and noise.
    pub fn swing(&self, random: &mut Random, seconds: usize) -> Option<Swing> {
        let course = self.rhythm.course(random, seconds);
        let rates = swinging(random, &course, self.share);

        // The engine and its clients use less CPU while the rate is low.
        let cpu: Vec<f64> = rates.iter().map(|rate| 1e9 * rate / RATE).collect();
        let noise = correlated(random, seconds, 0.5);
        let others = match self.truth {
            Truth::Neighbor => rates
                .iter()
                .zip(&noise)
                .map(|(rate, noise)| 1e9 * (1.0 - rate / RATE) + 2e7 * noise + 1e9)
                .collect(),
            Truth::Engine | Truth::Coincidence => noise.iter().map(|noise| 2e7 * noise).collect(),
        };
        let mut engine = decoys(random, self.rhythm.period, &rates);
        let event = match self.truth {
            Truth::Engine => course.work,
            Truth::Coincidence | Truth::Neighbor => self.rhythm.course(random, seconds).work,
        };
        engine.push(candidate(Source::Event, EVENT, event));

        let others = candidate(Source::Host, "other programs", others);
        find(&rates, &Surroundings { own_cpu: cpu, host: vec![others], engine })
    }
}

/// Returns candidates that have nothing to do with a swing.
fn decoys(random: &mut Random, period: f64, rates: &[f64]) -> Vec<Candidate> {
    let seconds = rates.len();
    let mut decoys = Vec::new();
    for (number, factor) in [0.31, 0.45, 0.7, 1.4, 2.3, 3.1].into_iter().enumerate() {
        let shape = if number % 2 == 0 { Shape::Dips(0.2) } else { Shape::Sawtooth };
        let rhythm = Rhythm { period: factor * period, jitter: 0.02, shape };
        let name = format!("decoy {number}");
        decoys.push(candidate(Source::Event, &name, rhythm.course(random, seconds).work));
    }
    for number in 0..7 {
        let noise = correlated(random, seconds, 0.1 * f64::from(number));
        decoys.push(candidate(Source::Thread, &format!("thread {number}"), noise));
    }
    for number in 0..7 {
        let noise = correlated(random, seconds, 0.3);
        let follows = rates.iter().zip(&noise);
        let follows = follows.map(|(rate, noise)| rate * (1.0 + 0.02 * noise)).collect();
        decoys.push(candidate(Source::Counter, &format!("counter {number}"), follows));
    }
    decoys
}

fn candidate(source: Source, name: &str, values: Vec<f64>) -> Candidate {
    Candidate { source, name: name.to_owned(), values }
}

/// Returns noise with a standard deviation of 1, whose successive seconds correlate.
fn correlated(random: &mut Random, seconds: usize, correlation: f64) -> Vec<f64> {
    let mut deviation = random.normal();
    let innovation = (1.0 - correlation * correlation).sqrt();
    let values = (0..seconds).map(|_| {
        let value = deviation;
        deviation = correlation * deviation + innovation * random.normal();
        value
    });
    values.collect()
}

/// Returns noise with so many stalls of 1 to 3 s at random moments.
fn stalls(random: &mut Random, seconds: usize, count: usize) -> Vec<f64> {
    let mut deviations = correlated(random, seconds, 0.3);
    for _ in 0..count {
        let first = (seconds as f64 * random.uniform()) as usize;
        let length = 1 + (3.0 * random.uniform()) as usize;
        for deviation in deviations.iter_mut().skip(first).take(length) {
            *deviation = -1.0 / NOISE;
        }
    }
    deviations
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// Returns values with a mean of 0 and a standard deviation of 1.
fn standardized(values: &[f64]) -> Vec<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (square / count).sqrt().max(f64::MIN_POSITIVE);
    values.iter().map(|value| (value - mean) / deviation).collect()
}

/// Returns rates that deviate from the mean by some multiples of the noise, as whole numbers.
fn rates(deviations: &[f64]) -> Vec<f64> {
    let rate = |deviation: &f64| (RATE * (1.0 + NOISE * deviation)).max(0.0).round();
    deviations.iter().map(rate).collect()
}

//! Series of which the truth is known: where their level changes, and what else is in them.

use super::machine::Random;

/// The variation of points around their level, in shares of the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Normal, 1%.
    Normal,
    /// Student's t with three degrees of freedom, times 1%.
    HeavyTailed,
    /// Normal, 1%, and one point of ten is 30% less.
    Outliers,
    /// 0.2%, and half of the points are 5% less.
    TwoModes,
    /// Half of a night's deviation stays the next night: an AR(1) process of 1%.
    Correlated,
    /// The same with 80%.
    StronglyCorrelated,
    /// Normal, 1%, around a level that walks 0.3% each night.
    Wandering,
}

pub const NOISES: [(&str, Noise); 7] = [
    ("normal, 1%", Noise::Normal),
    ("heavy tails: t with 3 degrees, x 1%", Noise::HeavyTailed),
    ("one point of ten is 30% less", Noise::Outliers),
    ("two modes, 5% apart", Noise::TwoModes),
    ("half of a deviation stays: AR(1), 0.5", Noise::Correlated),
    ("most of a deviation stays: AR(1), 0.8", Noise::StronglyCorrelated),
    ("a level that walks 0.3% each night", Noise::Wandering),
];

/// The shape of a series: the changes of its level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Nothing.
    Flat,
    /// It changes by a share of itself from this point on.
    Step { at: usize, size: f64 },
    /// It changes from this point on, and `length` points later it is back.
    Bump { at: usize, length: usize, size: f64 },
    /// It changes from this point on, and half of that is repaired `length` points later.
    Partly { at: usize, length: usize, size: f64 },
}

impl Shape {
    /// Returns the first points of new levels.
    pub fn changes(self) -> Vec<usize> {
        match self {
            Self::Flat => Vec::new(),
            Self::Step { at, .. } => vec![at],
            Self::Bump { at, length, .. } | Self::Partly { at, length, .. } => {
                vec![at, at + length]
            }
        }
    }

    fn level(self, point: usize) -> f64 {
        match self {
            Self::Step { at, size } if point >= at => size.ln_1p(),
            Self::Bump { at, length, size } if (at..at + length).contains(&point) => size.ln_1p(),
            Self::Partly { at, length, size } if point >= at + length => size.ln_1p() / 2.0,
            Self::Partly { at, size, .. } if point >= at => size.ln_1p(),
            _ => 0.0,
        }
    }
}

/// Returns the logarithms of a series' points.
pub fn series(count: usize, noise: Noise, shape: Shape, random: &mut Random) -> Vec<f64> {
    let mut kept = random.normal();
    let mut level = 0.0;
    let points = (0..count).map(|point| {
        let deviation = match noise {
            Noise::Normal => 0.01 * random.normal(),
            Noise::HeavyTailed => 0.01 * random.student3(),
            Noise::Outliers => {
                let outlier = if random.uniform() < 0.1 { 0.7_f64.ln() } else { 0.0 };
                outlier + 0.01 * random.normal()
            }
            Noise::TwoModes => {
                let mode = if random.uniform() < 0.5 { 0.95_f64.ln() } else { 0.0 };
                mode + 0.002 * random.normal()
            }
            Noise::Correlated | Noise::StronglyCorrelated => {
                let share: f64 = if noise == Noise::Correlated { 0.5 } else { 0.8 };
                kept = share * kept + (1.0 - share * share).sqrt() * random.normal();
                0.01 * kept
            }
            Noise::Wandering => {
                level += 0.003 * random.normal();
                level + 0.01 * random.normal()
            }
        };
        shape.level(point) + deviation
    });
    points.collect()
}

//! CPU profiles in pprof's format: a `Profile` message of `profile.proto`, compressed by gzip.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use analysis::compare::MergedProfile;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A kind of value of a sample.
#[derive(Clone, Copy)]
struct ValueType {
    name: &'static str,
    unit: &'static str,
}

const SAMPLES: ValueType = ValueType { name: "samples", unit: "count" };
const CPU: ValueType = ValueType { name: "cpu", unit: "nanoseconds" };
const COST: ValueType = ValueType { name: "cost_per_million_ops", unit: "nanoseconds" };

/// The fields of a `Profile`, by their numbers in `profile.proto`.
mod field {
    pub(super) const VALUE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const TEXT: u64 = 6;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
}

/// The operations of a cost. Values are whole numbers, and the cost of a sample is often less than
/// a nanosecond per operation.
const COST_OPS: f64 = 1e6;

/// Writes profiles into a sink. Samples have labels for the cell, the step and the thread.
pub(super) fn write<W: Write>(profiles: &[MergedProfile<'_>], sink: W) -> io::Result<W> {
    // pprof shows the last kind of value by default.
    let has_costs = profiles.iter().all(|profile| profile.totals.is_some());
    let values: &[ValueType] = if has_costs { &[SAMPLES, CPU, COST] } else { &[SAMPLES, CPU] };

    let mut encoder = Encoder::default();
    encoder.add_value_types(values);
    for profile in profiles {
        encoder.add_samples(profile, values.len());
    }
    encoder.add_mapping();
    encoder.add_period(profiles.first().map_or(0.0, period_ns));

    let mut compressed = GzEncoder::new(sink, Compression::default());
    compressed.write_all(&encoder.out.0)?;
    compressed.finish()
}

/// Returns the CPU time that a sample stands for.
fn period_ns(profile: &MergedProfile<'_>) -> f64 {
    1e9 / f64::from(profile.frequency_hz.max(1))
}

/// Returns the cost of [`COST_OPS`] operations that a sample stands for; zero if it is unknown.
fn cost_ns(profile: &MergedProfile<'_>) -> f64 {
    let cpu_us_per_op = profile.totals.as_ref().map_or(0.0, |totals| totals.cpu_us_per_op);
    cpu_us_per_op * 1e3 * COST_OPS / profile.stacks.total() as f64
}

/// A `Profile` that is being written. A text is added when it is first used, and so is a function.
#[derive(Default)]
struct Encoder {
    out: Message,
    texts: HashMap<String, u64>,
    functions: HashSet<u64>,
}

impl Encoder {
    fn add_value_types(&mut self, values: &[ValueType]) {
        // The format requires that the first text is empty.
        self.text("");
        for &value in values {
            let message = self.value_type(value);
            self.out.bytes(field::VALUE_TYPE, &message.0);
        }
    }

    /// Adds the samples of a profile, each with the first `value_count` values.
    fn add_samples(&mut self, profile: &MergedProfile<'_>, value_count: usize) {
        let values_of_one = [1.0, period_ns(profile), cost_ns(profile)];
        let clients = profile.cell.clients.to_string();

        for (mut frames, samples) in profile.stacks.iter() {
            // The outermost frame is the thread.
            let labels = [
                ("target", Some(profile.cell.target.as_str())),
                ("variant", profile.cell.variant.as_deref()),
                ("clients", Some(&clients)),
                ("step", Some(&profile.step)),
                ("thread", frames.next()),
            ];

            // The format begins with the function that ran.
            let mut locations: Vec<u64> = frames.map(|frame| self.location(frame)).collect();
            locations.reverse();
            let values: Vec<u64> = values_of_one[..value_count]
                .iter()
                .map(|value| (value * samples as f64).round() as u64)
                .collect();

            let mut sample = Message::default();
            sample.numbers(1, &locations).numbers(2, &values);
            for (key, text) in labels {
                if let Some(text) = text {
                    sample.bytes(3, &self.label(key, text).0);
                }
            }
            self.out.bytes(field::SAMPLE, &sample.0);
        }
    }

    fn label(&mut self, key: &str, text: &str) -> Message {
        let mut label = Message::default();
        label.number(1, self.text(key));
        label.number(2, self.text(text));
        label
    }

    /// Adds a program whose functions are known, so that pprof does not look for one.
    fn add_mapping(&mut self) {
        let mut mapping = Message::default();
        mapping.number(1, 1).number(7, 1);
        self.out.bytes(field::MAPPING, &mapping.0);
    }

    fn add_period(&mut self, period_ns: f64) {
        let period_type = self.value_type(CPU);
        self.out.bytes(field::PERIOD_TYPE, &period_type.0);
        self.out.number(field::PERIOD, period_ns.round() as u64);
    }

    /// Returns the index of a text.
    fn text(&mut self, text: &str) -> u64 {
        if let Some(index) = self.texts.get(text) {
            return *index;
        }
        let index = self.texts.len() as u64;
        self.texts.insert(text.to_owned(), index);
        self.out.bytes(field::TEXT, text.as_bytes());
        index
    }

    /// Returns the identity of a function and of its only location: the index of its name.
    fn location(&mut self, name: &str) -> u64 {
        let id = self.text(name);

        if self.functions.insert(id) {
            let [mut function, mut line, mut location] = [const { Message(Vec::new()) }; 3];
            function.number(1, id).number(2, id);
            line.number(1, id);
            location.number(1, id).bytes(4, &line.0);
            self.out.bytes(field::FUNCTION, &function.0).bytes(field::LOCATION, &location.0);
        }
        id
    }

    fn value_type(&mut self, value: ValueType) -> Message {
        let mut message = Message::default();
        message.number(1, self.text(value.name));
        message.number(2, self.text(value.unit));
        message
    }
}

/// The fields of a message of Protocol Buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds a number.
    fn number(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    /// Adds a text or a message.
    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Adds a list of numbers.
    fn numbers(&mut self, field: u64, values: &[u64]) -> &mut Self {
        let mut list = Self::default();
        values.iter().for_each(|value| list.varint(*value));
        self.bytes(field, &list.0)
    }
}

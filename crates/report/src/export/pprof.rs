//! CPU profiles in pprof's format: a `Profile` message of `profile.proto`, compressed by gzip.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use analysis::compare::MergedProfile;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The kinds of values of a sample, with their units. The last is the default of pprof.
const VALUES: [(&str, &str); 3] =
    [("samples", "count"), ("cpu", "nanoseconds"), ("cost_per_million_ops", "nanoseconds")];
/// The operations of a cost. Values are whole numbers, and the cost of a sample is often less than
/// a nanosecond per operation.
const COST_OPS: f64 = 1e6;

/// Writes profiles into a sink. Samples have labels for the cell, the step and the thread.
pub(super) fn write<W: Write>(profiles: &[MergedProfile<'_>], sink: W) -> io::Result<W> {
    let has_costs = profiles.iter().all(|it| it.totals.is_some());
    let values = &VALUES[..if has_costs { 3 } else { 2 }];
    let mut encoder = Encoder::default();
    // The format requires that the first text is empty.
    encoder.text("");
    for &value in values {
        let value = encoder.value_type(value);
        encoder.out.bytes(1, &value.0);
    }
    for profile in profiles {
        let period_ns = period_ns(profile);
        let cost_ns = profile.totals.as_ref().map_or(0.0, |it| it.cpu_us_per_op) * 1e3 * COST_OPS
            / profile.stacks.total() as f64;
        let clients = profile.cell.clients.to_string();
        for (mut frames, samples) in profile.stacks.iter() {
            let labels = [
                ("target", Some(profile.cell.target.as_str())),
                ("variant", profile.cell.variant.as_deref()),
                ("clients", Some(&clients)),
                ("step", Some(&profile.step)),
                ("thread", frames.next()),
            ];
            let mut locations: Vec<u64> = frames.map(|frame| encoder.location(frame)).collect();
            // The format begins with the function that ran.
            locations.reverse();
            let of_each = [1.0, period_ns, cost_ns];
            let values: Vec<u64> = of_each[..values.len()]
                .iter()
                .map(|value| (value * samples as f64).round() as u64)
                .collect();
            let mut sample = Message::default();
            sample.numbers(1, &locations).numbers(2, &values);
            for (key, text) in labels {
                let Some(text) = text else { continue };
                let mut label = Message::default();
                label.number(1, encoder.text(key));
                label.number(2, encoder.text(text));
                sample.bytes(3, &label.0);
            }
            encoder.out.bytes(2, &sample.0);
        }
    }
    // A program whose functions are known, so that pprof does not look for one.
    let mut mapping = Message::default();
    mapping.number(1, 1).number(7, 1);
    encoder.out.bytes(3, &mapping.0);
    let period_type = encoder.value_type(VALUES[1]);
    encoder.out.bytes(11, &period_type.0);
    let period = profiles.first().map_or(0.0, period_ns);
    encoder.out.number(12, period.round() as u64);
    let mut compressed = GzEncoder::new(sink, Compression::default());
    compressed.write_all(&encoder.out.0)?;
    compressed.finish()
}

/// Returns the CPU time that a sample stands for.
fn period_ns(profile: &MergedProfile<'_>) -> f64 {
    1e9 / f64::from(profile.frequency_hz.max(1))
}

/// A `Profile` that is being written. A text is added when it is first used, and so is a function.
#[derive(Default)]
struct Encoder {
    out: Message,
    texts: HashMap<String, u64>,
    functions: HashSet<u64>,
}

impl Encoder {
    /// Returns the index of a text.
    fn text(&mut self, text: &str) -> u64 {
        if let Some(index) = self.texts.get(text) {
            return *index;
        }
        let index = self.texts.len() as u64;
        self.texts.insert(text.to_owned(), index);
        self.out.bytes(6, text.as_bytes());
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
            self.out.bytes(5, &function.0).bytes(4, &location.0);
        }
        id
    }

    fn value_type(&mut self, (kind, unit): (&str, &str)) -> Message {
        let mut message = Message::default();
        message.number(1, self.text(kind));
        message.number(2, self.text(unit));
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

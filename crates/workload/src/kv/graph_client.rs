//! A client of `mixgraph`.

use std::sync::Arc;

use engine::{Direction, Error, KeyValueSession};

use super::data::{KeyChoices, KeyShape, ValueVersion};
use super::graph::{Graph, GraphOperation};
use super::programs::{ClientPart, GET, PUT, SCAN};
use super::verifier::{ReadVerifier, VerifiedScan};
use crate::summary::MixSummary;
use crate::{Executed, Next, OpKind, Program, Random, Summary};

/// The kinds of operation of a `mixgraph`: gets, puts and scans.
pub const GRAPH_KINDS: &[OpKind] = &[GET, PUT, SCAN];

/// Reads and writes in one connection.
pub(super) struct GraphClient<S> {
    session: S,
    graph: Arc<Graph>,
    random: Random,
    verifier: ReadVerifier,
    /// The keys to write.
    writes: KeyChoices,
    operation: GraphOperation,
    /// The number of the prepared operation's key.
    number: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    /// The version to write next.
    version: ValueVersion,
    /// The number of writes that succeeded.
    written: u64,
    /// The entries that a scan asks for.
    scan_length: u64,
    /// The entry of the operation that is compared.
    sampled: Option<u64>,
}

impl<S: KeyValueSession> GraphClient<S> {
    /// Returns a client of a step that has the distributions of `graph`.
    pub(super) fn new(session: S, part: ClientPart, graph: &Arc<Graph>) -> Self {
        let ClientPart { step, client, random, verifier } = part;
        let data = &verifier.data;
        Self {
            session,
            graph: Arc::clone(graph),
            random,
            writes: data.choices(step, client, KeyShape::Graph),
            operation: GraphOperation::Get,
            number: 0,
            key: data.key_buffer(),
            value: Vec::with_capacity(graph.value_size_max()),
            version: ValueVersion { step, writer: client, sequence: 0 },
            written: 0,
            scan_length: 0,
            sampled: None,
            verifier,
        }
    }
}

impl<S: KeyValueSession> Program for GraphClient<S> {
    fn kinds(&self) -> &'static [OpKind] {
        GRAPH_KINDS
    }

    fn shares(&self) -> Vec<f64> {
        self.graph.shares().into()
    }

    fn begin(&mut self) {
        self.session.enter_thread();
    }

    fn prepare(&mut self) -> Next {
        self.operation = self.graph.draw_operation(&mut self.random);
        match self.operation {
            GraphOperation::Get => self.number = self.graph.draw_key(&mut self.random),
            GraphOperation::Scan => {
                self.number = self.graph.draw_key(&mut self.random);
                self.scan_length = self.graph.draw_scan_length(&mut self.random);
            }
            GraphOperation::Put => {
                self.number = self.writes.get(self.version.sequence);
                self.verifier.data.set_sized_value(self.number, self.version, &mut self.value);
                self.version.sequence += 1;
            }
        }

        let is_sampled = self.verifier.begin(self.random.next_u64());
        self.sampled = is_sampled.then_some(0);
        self.verifier.data.set_key(self.number, &mut self.key);
        Next::Ready(self.operation as usize)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        let rows = match self.operation {
            GraphOperation::Get => {
                let value = self.session.get(&self.key)?;
                self.verifier.check_value(self.number, value, self.sampled.is_some()).into()
            }
            GraphOperation::Put => {
                self.session.put(&self.key, &self.value)?;
                self.written += 1;
                1
            }
            GraphOperation::Scan => {
                let scan = VerifiedScan {
                    number: self.number,
                    key: &self.key,
                    direction: Direction::Forward,
                    limit: self.scan_length,
                    sampled: self.sampled,
                };
                self.verifier.scan(&mut self.session, scan)?
            }
        };
        Ok(self.verifier.executed(rows))
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        Ok(Summary::KeyValueMix(MixSummary {
            read: self.verifier.summarize(),
            begun: self.version.sequence,
            written: self.written,
            end_key: 0,
        }))
    }
}

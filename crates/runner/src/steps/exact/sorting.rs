//! Sorts what callgrind counted into the parts of a step.

use std::collections::BTreeMap;
use std::path::Path;

use profile::callgrind::{Counted, split};
use words::{EngineHome, WorkFunction, WorkGraph, WorkPart, WorkRole};
use workload::Task;

/// The name of callgrind's event for an executed instruction.
const INSTRUCTIONS: &str = "Ir";

/// The name of the part with all threads of a server.
const ALL_THREADS: &str = "all threads";

/// A connection of a step.
pub struct Connection {
    role: &'static str,
    kinds: Vec<String>,
    /// The server's thread or process for it.
    server_thread: Option<u32>,
    /// The thread of this process that works for it.
    pub client_thread: Option<u32>,
}

impl Connection {
    /// Returns the connection of a task.
    pub fn of(task: &Task) -> Self {
        let kinds = task.program.kinds().iter().map(|kind| kind.name.to_owned());
        Self {
            role: task.role,
            kinds: kinds.collect(),
            server_thread: task.server_thread,
            client_thread: None,
        }
    }
}

/// Which functions of the processes are the engine's.
pub enum EngineCode {
    /// All: the processes are a server's.
    All,
    /// Those that are not in assay's program, whose name this is.
    Library(String),
    /// SQLite's, which is part of assay's program.
    Sqlite,
}

/// The side to which a function belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Engine,
    Client,
}

/// Libraries that both the engine and the client use: their functions belong to whoever calls them.
const SHARED: [&str; 8] =
    ["ld-linux", "libc.", "libc-", "libgcc_s", "libm.", "libpthread", "libstdc++", "linux-vdso"];

/// Functions by which the client only asks a library for its state, such as whether compaction still
/// runs. How often it asks depends on the machine, so the answers are no work of the engine.
const QUESTIONS: [&str; 2] = ["rocksdb_property_int", "rocksdb_property_value"];

impl EngineCode {
    /// Returns which functions are those of an engine that runs there. `executable` is assay's
    /// program.
    pub fn of(home: EngineHome, executable: &Path) -> Self {
        match home {
            EngineHome::Server => Self::All,
            EngineHome::Library => {
                let name = executable.file_name().unwrap_or_default();
                Self::Library(name.to_string_lossy().into_owned())
            }
            EngineHome::Bundled => Self::Sqlite,
        }
    }

    fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Returns whether a call leads from the client into the engine, to do work.
    fn is_entered(&self, caller: &WorkFunction, callee: &WorkFunction) -> bool {
        if QUESTIONS.contains(&callee.name.as_str()) {
            return false;
        }

        self.side(callee) == Some(Side::Engine) && self.side(caller) != Some(Side::Engine)
    }

    /// Returns whether a function of the client runs in a thread.
    fn has_client(&self, graph: &WorkGraph) -> bool {
        graph.functions.iter().any(|function| self.side(function) == Some(Side::Client))
    }

    /// Returns the side to which a function belongs; `None` if that depends on its callers.
    fn side(&self, function: &WorkFunction) -> Option<Side> {
        let is_shared = SHARED.iter().any(|prefix| function.object.starts_with(prefix));
        match self {
            Self::All => Some(Side::Engine),
            _ if is_shared => None,
            Self::Library(client) if function.object == *client => Some(Side::Client),
            Self::Library(_) => Some(Side::Engine),
            Self::Sqlite if function.name.starts_with("sqlite3") => Some(Side::Engine),
            // The functions of a program in Rust have paths. Those of the amalgamation have plain
            // names, and SQLite's are called by SQLite.
            Self::Sqlite if function.name.contains("::") => Some(Side::Client),
            Self::Sqlite => None,
        }
    }
}

/// Sorts what was counted into parts, and adds up the functions of each role.
pub fn sorted(
    counted: Vec<Counted>,
    connections: &[Connection],
    code: &EngineCode,
) -> (Vec<WorkPart>, BTreeMap<WorkRole, WorkGraph>) {
    let mut sorting = Sorting::default();
    let all = Connection::all(connections);
    let is_divided = !code.is_all() || connections.iter().all(|one| one.server_thread.is_some());

    for counted in counted {
        let served = if is_divided {
            connections.iter().find(|connection| connection.is_served_by(&counted))
        } else {
            // Not the background's: that of another server has no connections in it.
            Some(&all)
        };

        let role = if served.is_some() { WorkRole::Serving } else { WorkRole::Background };
        // Nobody calls into a thread of the engine itself, such as one that compacts.
        if !code.has_client(&counted.graph) {
            sorting.add(role, served, &counted.graph, &counted.events);
            continue;
        }

        let parts = split(&counted.graph, |caller, callee| code.is_entered(caller, callee));
        sorting.add(role, served, &parts.engine, &BTreeMap::new());
        sorting.add(WorkRole::Client, None, &parts.client, &BTreeMap::new());
    }

    (sorting.parts, sorting.graphs)
}

impl Connection {
    /// Returns what stands for all threads of a server that does not tell which of them serves a
    /// connection.
    fn all(connections: &[Self]) -> Self {
        let mut kinds: Vec<String> = Vec::new();
        for kind in connections.iter().flat_map(|connection| &connection.kinds) {
            if !kinds.contains(kind) {
                kinds.push(kind.clone());
            }
        }

        Self { role: ALL_THREADS, kinds, server_thread: None, client_thread: None }
    }

    /// Returns whether a thread or process works for this connection.
    fn is_served_by(&self, counted: &Counted) -> bool {
        let served = self.server_thread.or(self.client_thread);
        served.is_some() && (served == counted.thread || served == Some(counted.process))
    }
}

/// The parts so far.
#[derive(Default)]
struct Sorting {
    parts: Vec<WorkPart>,
    graphs: BTreeMap<WorkRole, WorkGraph>,
}

impl Sorting {
    /// Adds the work of a thread or process to that of others with the same part.
    fn add(
        &mut self,
        role: WorkRole,
        served: Option<&Connection>,
        graph: &WorkGraph,
        events: &BTreeMap<String, u64>,
    ) {
        let instructions = graph.total();
        if instructions == 0 {
            return;
        }

        self.graphs.entry(role).or_default().merge(graph);

        // Threads of one role are one part: how the engine divides its work is no difference.
        let name = served.map_or(role.name(), |connection| connection.role);
        let known = self.parts.iter_mut().find(|part| part.role == role && part.name == name);
        let part = match known {
            Some(part) => part,
            None => {
                self.parts.push(WorkPart {
                    role,
                    name: name.to_owned(),
                    operations: served.map_or(Vec::new(), |served| served.kinds.clone()),
                    instructions: 0,
                    events: BTreeMap::new(),
                });
                self.parts.last_mut().expect("one was pushed")
            }
        };

        part.instructions += instructions;
        for (event, count) in events.iter().filter(|(event, _)| *event != INSTRUCTIONS) {
            *part.events.entry(event.clone()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use words::WorkCalls;

    use super::*;

    fn function(name: &str, object: &str, own: u64) -> WorkFunction {
        WorkFunction { name: name.to_owned(), object: object.to_owned(), own }
    }

    fn calls(caller: usize, callee: usize, inclusive: u64) -> WorkCalls {
        WorkCalls { caller, callee, count: 1, inclusive }
    }

    /// Returns a thread of a server with this number and so many instructions.
    fn thread(number: u32, own: u64) -> Counted {
        let only = function(&format!("function{number}"), "server", own);
        Counted {
            process: 1,
            thread: Some(number),
            events: BTreeMap::new(),
            graph: WorkGraph { functions: vec![only], calls: Vec::new() },
        }
    }

    fn connection(server_thread: Option<u32>) -> Connection {
        let kinds = vec!["query".to_owned()];
        Connection { role: "reader", kinds, server_thread, client_thread: None }
    }

    /// Returns the role, the name and the instructions of each part.
    fn parts(connections: &[Connection]) -> Vec<(WorkRole, String, u64)> {
        let (parts, _) = sorted(vec![thread(2, 10), thread(3, 5)], connections, &EngineCode::All);
        parts.into_iter().map(|part| (part.role, part.name, part.instructions)).collect()
    }

    #[test]
    fn threads_of_a_server_that_does_not_tell_whom_they_serve_are_one_part() {
        let told = parts(&[connection(Some(2))]);
        let background = (WorkRole::Background, WorkRole::Background.name().to_owned(), 5);
        assert_eq!(told, [(WorkRole::Serving, "reader".to_owned(), 10), background]);

        let all = [(WorkRole::Serving, "all threads".to_owned(), 15)];
        assert_eq!(parts(&[connection(None)]), all);
        assert_eq!(parts(&[connection(Some(2)), connection(None)]), all);
    }

    #[test]
    fn answers_about_the_state_of_a_library_are_the_clients_work_and_a_flush_is_the_engines() {
        // A thread of assay waits for compaction.
        let graph = WorkGraph {
            functions: vec![
                function("engine::libraries::rocksdb::settle::Settling::run", "assay", 10),
                function("rocksdb_flush", "librocksdb.so", 200),
                function("rocksdb_property_int", "librocksdb.so", 30),
                function("rocksdb::DBImpl::GetIntProperty", "librocksdb.so", 60),
            ],
            calls: vec![calls(0, 1, 200), calls(0, 2, 90), calls(2, 3, 60)],
        };
        let counted = Counted { process: 1, thread: Some(4), events: BTreeMap::new(), graph };

        let (parts, _) = sorted(vec![counted], &[], &EngineCode::Library("assay".to_owned()));
        let instructions: Vec<(WorkRole, u64)> =
            parts.iter().map(|part| (part.role, part.instructions)).collect();
        assert_eq!(instructions, [(WorkRole::Background, 200), (WorkRole::Client, 100)]);
    }
}

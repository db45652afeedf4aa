//! A session that records what is sent, for tests of a runner without a server.

use super::*;

/// A statement that a session executed, with its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SentStatement {
    pub(super) sql: String,
    pub(super) parameters: Vec<String>,
}

#[derive(Default)]
pub(super) struct RecordingSession {
    pub(super) statements: Vec<(String, Vec<ParamType>)>,
    pub(super) started: SentStatement,
    pub(super) sent: Vec<SentStatement>,
    /// The next answers, in reverse order; afterward every statement has one row.
    pub(super) answers: Vec<Result<u64, ErrorClass>>,
    /// The statement that the session cannot prepare.
    pub(super) unprepared: Option<&'static str>,
}

impl RecordingSession {
    fn answer(&mut self) -> Result<u64, Error> {
        let answer = self.answers.pop().unwrap_or(Ok(1));
        answer.map_err(|class| Error::new(class, "as the test wants it"))
    }

    fn give(&mut self, kind: ParamType, value: String) {
        let number = self.started.parameters.len();
        let (sql, types) =
            self.statements.iter().find(|(sql, _)| *sql == self.started.sql).unwrap();
        assert_eq!(types[number], kind, "parameter {number} of {sql}");
        self.started.parameters.push(value);
    }

    pub(super) fn sql(&self) -> Vec<&str> {
        self.sent.iter().map(|sent| sent.sql.as_str()).collect()
    }
}

thread_local! {
    /// SQLite assigns the numbers of statements here, in order, because only an engine can create them.
    static NUMBERS: (tempfile::TempDir, Vec<Statement>) = {
        let (directory, engine) = sqlite();
        let mut session = engine.connect().unwrap();
        let numbers = (0..100).map(|_| session.prepare("select 1", &[]).unwrap()).collect();
        (directory, numbers)
    };
}

impl Session for RecordingSession {
    fn prepare(&mut self, sql: &str, types: &[ParamType]) -> Result<Statement, Error> {
        if self.unprepared == Some(sql) {
            return Err(Error::new(ErrorClass::Other, "not this one"));
        }
        self.statements.push((sql.into(), types.into()));
        Ok(NUMBERS.with(|(_, numbers)| numbers[self.statements.len() - 1]))
    }
    fn start(&mut self, statement: Statement) {
        let number =
            NUMBERS.with(|(_, numbers)| numbers.iter().position(|known| *known == statement));
        self.started = SentStatement {
            sql: self.statements[number.unwrap()].0.clone(),
            parameters: Vec::new(),
        };
    }
    fn start_text(&mut self, sql: &str) {
        self.started = SentStatement { sql: format!("text: {sql}"), parameters: Vec::new() };
    }
    fn int4(&mut self, value: i32) {
        self.give(ParamType::Int4, value.to_string());
    }
    fn int8(&mut self, value: i64) {
        self.give(ParamType::Int8, value.to_string());
    }
    fn timestamp(&mut self, _: i64) {
        unreachable!("sysbench has none")
    }
    fn text(&mut self, value: &str) {
        self.give(ParamType::Text, value.into());
    }
    fn execute(&mut self) -> Result<Outcome, Error> {
        self.sent.push(self.started.clone());
        let rows = self.answer()?;
        Ok(Outcome { rows, value: None })
    }
    fn query(&mut self, sql: &str) -> Result<engine::Rows, Error> {
        self.sent.push(SentStatement { sql: format!("text: {sql}"), parameters: Vec::new() });
        self.answer().map(|_| Vec::new())
    }
    fn last_key(&mut self, _: &Table) -> Result<Option<i64>, Error> {
        Ok(None)
    }
    fn interrupt(&self) -> Result<Interrupt, Error> {
        Ok(Box::new(|| {}))
    }
}

/// Returns a runner on two tables, with a session that records.
pub(super) fn connection(
    test: &Test,
    seed: u64,
    mut session: RecordingSession,
) -> Runner<RecordingSession> {
    let dialect = &PostgresDialect::default();
    let event = event(test);
    let of_table = |(number, name): (u32, &str)| RunnerTable {
        number,
        name: name.into(),
        statements: prepare(&mut session, &event, name, dialect).unwrap(),
    };
    let tables = [(0, "sbtest1"), (1, "sbtest2")].map(of_table).into();
    let mut control = |sql| TransactionStatement::new(&mut session, sql, event.is_plain()).unwrap();
    let transactions = test.transaction.then(|| Transactions {
        begin: control("begin"),
        begin_reading: event.writes_sometimes().then(|| control("begin reading")),
        commit: control("commit"),
        rollback: control("rollback"),
    });
    let streams = Streams { choices: Random::stream(seed, &[]), texts: Random::stream(seed, &[1]) };
    Runner::new(session, event, streams, tables, transactions)
}

pub(super) fn event(test: &Test) -> Event {
    let options = EventOptions {
        keys: Sampler::new(Distribution::Uniform, 1, 1501),
        thread: 1,
        dialect: &PostgresDialect::default(),
        may_miss: false,
        has_unique_ids: true,
        is_shared: false,
    };
    Event::new(test, &options)
}

/// Returns the statements of a number of events of a connection.
pub(super) fn events(test: &Test, seed: u64, count: usize) -> Vec<SentStatement> {
    let mut connection = connection(test, seed, RecordingSession::default());
    for _ in 0..count {
        assert_eq!(connection.prepare(), Next::Ready(0));
        connection.execute().unwrap();
    }
    connection.session.sent
}

//! A test prepared to run: the layout of an event's values, how they are drawn, and the order in
//! which they are sent.
//!
//! All integers of one event are in one vector, and all texts in another; both have their final
//! size from the start. The event's values come first, then those of each execution of each
//! statement.

use engine::{Dialect, ParamType, Session};
use plan::sysbench::{Block, Draw, Effect, Expression, Piece, Slot, Test, TestStatement};

use super::distribution::Sampler;
use super::text::{self, C_LENGTH, PAD_LENGTH};
use crate::Random;

/// The random streams of one connection.
#[derive(Debug)]
pub(super) struct Streams {
    /// Draws tables, statements and numbers.
    pub(super) choices: Random,
    /// Draws texts, on which nothing depends.
    pub(super) texts: Random,
}

#[derive(Clone, Debug)]
pub(super) struct EventValues {
    integers: Vec<i64>,
    /// A `pad` uses the beginning of one.
    texts: Vec<[u8; C_LENGTH]>,
    /// The index of the weighted statement that it runs, if there are any.
    chosen: usize,
}

/// The offset of a block's values.
#[derive(Clone, Copy, Debug, Default)]
struct ValueOffset {
    integers: usize,
    texts: usize,
}

/// The conditions that a test is prepared for.
#[derive(Clone, Copy)]
pub(super) struct EventOptions<'a> {
    pub(super) keys: Sampler,
    /// The number of the connection's client.
    pub(super) thread: u32,
    pub(super) dialect: &'a dyn Dialect,
    /// Loaded rows may be missing.
    pub(super) may_miss: bool,
    /// Ids are unique, since they are primary keys.
    pub(super) has_unique_ids: bool,
    /// Other connections run the same test.
    pub(super) is_shared: bool,
}

/// A test prepared for one connection.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) test: Test,
    keys: Sampler,
    /// Samplers of the event's parameters.
    samplers: Vec<Option<Sampler>>,
    statements: Vec<StatementLayout>,
    weights: u64,
    /// Fewer rows than usual are correct, except for inserts.
    allows_missing_rows: bool,
    /// More rows than usual are correct, except for inserts.
    allows_more_rows: bool,
    template: EventValues,
}

/// The facts of a statement that are known before the step.
#[derive(Clone, Debug)]
struct StatementLayout {
    /// The offset of the values of its first execution.
    base: ValueOffset,
    /// Samplers of its own parameters with fixed bounds.
    samplers: Vec<Option<Sampler>>,
    /// The text that is sent instead to an engine that stores no data.
    fixed: Option<String>,
}

/// Returns the samplers of a block's draws; `None` for those whose bounds are not known before the
/// step.
fn samplers(block: &Block, thread: u32) -> Vec<Option<Sampler>> {
    // The only value that a fixed bound may use.
    let values = [thread.into()];
    block
        .draws
        .iter()
        .map(|(_, draw)| match draw {
            Draw::Between(least, most, distribution) if least.is_fixed() && most.is_fixed() => {
                let [least, most] = [least, most].map(|bound| bound.value(&values, 0));
                Some(Sampler::new(*distribution, least, most))
            }
            _ => None,
        })
        .collect()
}

impl Event {
    /// Prepares a test.
    pub(super) fn new(test: &Test, options: &EventOptions<'_>) -> Self {
        let mut base = ValueOffset { integers: test.shared.integers, texts: test.shared.texts };
        let mut statements = Vec::new();
        for statement in &test.statements {
            let answered = statement.rows.as_ref().map_or(0, |rows| rows.answered);
            let fixed = options.dialect.statement(String::new(), answered);
            statements.push(StatementLayout {
                base,
                samplers: samplers(&statement.own, options.thread),
                fixed: Some(fixed).filter(|text| !text.is_empty() && !statement.prepared),
            });

            let times = (statement.repeat * statement.count) as usize;
            base.integers += statement.own.integers * times;
            base.texts += statement.own.texts * times;
        }

        let mut integers = vec![0; base.integers];
        // The first value of every event is the thread's number.
        integers[0] = options.thread.into();
        let weights = test.statements.iter().filter_map(|statement| statement.weight);
        let mut event = Self {
            keys: options.keys,
            samplers: samplers(&test.shared, options.thread),
            statements,
            weights: weights.map(u64::from).sum(),
            allows_missing_rows: false,
            // Without unique ids, connections that replace a row at once may both insert it, in
            // this step or an earlier one: PostgreSQL's delete does not find the row that the other
            // one has just inserted.
            allows_more_rows: options.is_shared && !options.has_unique_ids,
            template: EventValues { integers, texts: vec![[0; C_LENGTH]; base.texts], chosen: 0 },
            test: test.clone(),
        };

        // A row that another connection has just deleted is not found, even if it is reinserted at
        // once.
        let removes = event.with(Effect::Deletes).next().is_some();
        event.allows_missing_rows =
            options.may_miss || removes && (options.is_shared || !event.reinserts_deleted());
        event
    }

    /// Returns buffers for the values of one event.
    pub(super) fn template(&self) -> EventValues {
        self.template.clone()
    }

    /// Draws the statements that an event runs, and their values.
    #[inline]
    pub(super) fn draw(&self, streams: &mut Streams, values: &mut EventValues) {
        if self.weights > 0 {
            values.chosen = self.choose(&mut streams.choices);
        }

        // The event's values first, since those of its statements may depend on them.
        let base = ValueOffset::default();
        self.draw_block(&self.test.shared, &self.samplers, base, streams, values);

        let statements = self.test.statements.iter().zip(&self.statements);
        for (place, (statement, layout)) in statements.enumerate() {
            if statement.weight.is_some() && place != values.chosen {
                continue;
            }
            for time in 0..statement.repeat * statement.count {
                let base = layout.base(statement, time);
                self.draw_block(&statement.own, &layout.samplers, base, streams, values);
            }
        }
    }

    /// Returns the index of a weighted statement, drawn by weight.
    #[inline]
    fn choose(&self, random: &mut Random) -> usize {
        let mut left = random.below(self.weights);
        let mut statements = self.test.statements.iter();
        let chosen = statements.position(|statement| {
            let weight = statement.weight.map_or(0, u64::from);
            let is_chosen = left < weight;
            left = left.saturating_sub(weight);
            is_chosen
        });
        chosen.unwrap_or_default()
    }

    /// Draws the values of a block, in an event or in one execution of a statement, into their
    /// places from `base` on.
    #[inline]
    fn draw_block(
        &self,
        block: &Block,
        samplers: &[Option<Sampler>],
        base: ValueOffset,
        streams: &mut Streams,
        values: &mut EventValues,
    ) {
        let EventValues { integers, texts, .. } = values;
        let random = &mut streams.choices;

        for ((position, draw), sampler) in block.draws.iter().zip(samplers) {
            // Depending on the draw, the position is one among the integers or among the texts.
            let (integer_at, text_at) = (base.integers + position, base.texts + position);

            match draw {
                Draw::Keys(count) => {
                    for value in &mut integers[integer_at..][..*count] {
                        *value = self.keys.draw(random);
                    }
                }
                Draw::Consecutive(first, count) => {
                    let first_number = first.value(integers, base.integers);
                    let numbers = integers[integer_at..][..*count].iter_mut();
                    for (value, number) in numbers.zip(first_number..) {
                        *value = number;
                    }
                }
                Draw::Between(least, most, distribution) => {
                    let ready = match sampler {
                        Some(sampler) => *sampler,
                        None => {
                            let [least, most] =
                                [least, most].map(|bound| bound.value(integers, base.integers));
                            Sampler::new(*distribution, least, most)
                        }
                    };
                    integers[integer_at] = ready.draw(random);
                }
                Draw::Value(value) => integers[integer_at] = value.value(integers, base.integers),
                Draw::C => text::write_groups(&mut streams.texts, &mut texts[text_at]),
                Draw::Pad => {
                    text::write_groups(&mut streams.texts, &mut texts[text_at][..PAD_LENGTH]);
                }
            }
        }
    }

    /// Returns the index of the first statement from `from` on that the event runs, or the number
    /// of statements.
    #[inline]
    pub(super) fn next(&self, from: usize, values: &EventValues) -> usize {
        let mut place = from;
        while let Some(statement) = self.test.statements.get(place)
            && statement.weight.is_some()
            && place != values.chosen
        {
            place += 1;
        }
        place
    }

    /// Visits each piece of a statement's text, with the offset of its values.
    #[inline]
    fn each_piece(&self, place: usize, execution: u32, mut see: impl FnMut(&Piece, ValueOffset)) {
        let statement = &self.test.statements[place];
        let base = |row| self.statements[place].base(statement, execution * statement.count + row);
        for piece in &statement.text {
            let Piece::Rows(row_pieces) = piece else {
                see(piece, base(0));
                continue;
            };
            for row in 0..statement.count {
                // The first row omits the comma that its pieces begin with.
                for row_piece in row_pieces.iter().skip(usize::from(row == 0)) {
                    see(row_piece, base(row));
                }
            }
        }
    }

    /// Returns the text of a statement to prepare for one table, with the types of its parameters;
    /// `None` if the statement is not prepared, but sent as text.
    pub(super) fn sql(
        &self,
        place: usize,
        table: &str,
        dialect: &dyn Dialect,
    ) -> Option<(String, Vec<ParamType>)> {
        let statement = &self.test.statements[place];
        if !statement.prepared {
            return None;
        }

        let mut sql = String::new();
        let mut types = Vec::new();
        self.each_piece(place, 0, |piece, _| match piece {
            Piece::Text(text) => sql.push_str(text),
            Piece::Table => sql.push_str(table),
            Piece::Integers { count, is_wide, .. } => {
                let kind = if *is_wide { ParamType::Int8 } else { ParamType::Int4 };
                push_parameters(*count, kind, dialect, &mut sql, &mut types);
            }
            Piece::Drawn { .. } => {
                push_parameters(1, ParamType::Text, dialect, &mut sql, &mut types);
            }
            Piece::Rows(_) => {}
        });

        let answered = statement.rows.as_ref().map_or(0, |rows| rows.answered);
        Some((dialect.statement(sql, answered), types))
    }

    /// Writes the text of a statement for one table, including its parameters.
    #[inline]
    pub(super) fn write(
        &self,
        place: usize,
        table: &str,
        execution: u32,
        values: &EventValues,
        written: &mut String,
    ) {
        if let Some(fixed) = &self.statements[place].fixed {
            written.push_str(fixed);
            return;
        }

        self.each_piece(place, execution, |piece, base| match piece {
            Piece::Text(text) => written.push_str(text),
            Piece::Table => written.push_str(table),
            Piece::Integers { first, count, .. } => {
                for (number, &value) in values.integers(*first, *count, base).iter().enumerate() {
                    if number > 0 {
                        written.push_str(", ");
                    }
                    write_integer(value, written);
                }
            }
            Piece::Drawn { slot, is_pad } => {
                written.push('\'');
                written.push_str(values.text(*slot, *is_pad, base));
                written.push('\'');
            }
            Piece::Rows(_) => {}
        });
    }

    /// Passes a statement's parameters to a session that has started the statement.
    #[inline]
    pub(super) fn push<S: Session>(
        &self,
        place: usize,
        execution: u32,
        values: &EventValues,
        session: &mut S,
    ) {
        self.each_piece(place, execution, |piece, base| match piece {
            Piece::Integers { first, count, is_wide } => {
                let integers = values.integers(*first, *count, base).iter();
                if *is_wide {
                    integers.for_each(|&value| session.int8(value));
                } else {
                    // A narrow value fits: the bounds of its draw guarantee that.
                    integers.for_each(|&value| session.int4(value as i32));
                }
            }
            Piece::Drawn { slot, is_pad } => session.text(values.text(*slot, *is_pad, base)),
            Piece::Text(_) | Piece::Table | Piece::Rows(_) => {}
        });
    }

    /// Returns whether `rows` is a correct number of rows.
    #[inline]
    pub(super) fn is_right(
        &self,
        place: usize,
        rows: u64,
        execution: u32,
        values: &EventValues,
    ) -> bool {
        let statement = &self.test.statements[place];
        let Some(right) = &statement.rows else {
            return true;
        };
        let base = self.statements[place].base(statement, execution * statement.count);
        let bound = |end: &Expression| end.value(&values.integers, base.integers);
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        let inserts = statement.effect == Effect::Inserts;
        let is_enough = self.allows_missing_rows && !inserts || rows >= bound(&right.least);
        let is_too_much = rows > bound(&right.most) && (inserts || !self.allows_more_rows);
        is_enough && !is_too_much
    }

    /// Returns whether all statements are sent as text.
    pub(super) fn is_plain(&self) -> bool {
        self.test.statements.iter().all(|statement| !statement.prepared)
    }

    pub(super) fn writes(&self) -> bool {
        self.test.statements.iter().any(may_write)
    }

    /// Returns whether some events may write and others only read, depending on the weighted
    /// statement.
    pub(super) fn writes_sometimes(&self) -> bool {
        let (weighted, always): (Vec<_>, Vec<_>) =
            self.test.statements.iter().partition(|statement| statement.weight.is_some());
        self.writes() && !always.into_iter().any(may_write) && !weighted.into_iter().all(may_write)
    }

    /// Returns whether the weighted statement that the event runs may write.
    #[inline]
    pub(super) fn choice_writes(&self, values: &EventValues) -> bool {
        may_write(&self.test.statements[values.chosen])
    }

    /// Returns whether no statement inserts or deletes.
    pub(super) fn keeps_row_count(&self) -> bool {
        self.test
            .statements
            .iter()
            .all(|statement| matches!(statement.effect, Effect::Reads | Effect::Changes))
    }

    fn with(&self, effect: Effect) -> impl Iterator<Item = &TestStatement> {
        self.test.statements.iter().filter(move |statement| statement.effect == effect)
    }

    /// Returns whether the test reinserts each row that it deletes, in one transaction and in every
    /// event: both statements use the same value of the event.
    pub(super) fn reinserts_deleted(&self) -> bool {
        // A weighted statement runs in some events only.
        let mut replacing = self.with(Effect::Deletes).chain(self.with(Effect::Inserts));
        self.test.transaction
            && replacing.all(|statement| statement.weight.is_none())
            && self.with(Effect::Deletes).next().is_some()
            && self.with(Effect::Deletes).all(|delete| self.is_put_back(delete))
    }

    /// Returns whether an insert uses the value by which `delete` chooses its row.
    fn is_put_back(&self, delete: &TestStatement) -> bool {
        match value_pieces(delete)[..] {
            [value @ Piece::Integers { first: Slot::Event(_), count: 1, .. }] => {
                self.with(Effect::Inserts).any(|insert| value_pieces(insert).contains(&value))
            }
            _ => false,
        }
    }
}

/// Appends a list of parameters of one type to a statement.
fn push_parameters(
    count: usize,
    kind: ParamType,
    dialect: &dyn Dialect,
    sql: &mut String,
    types: &mut Vec<ParamType>,
) {
    for number in 0..count {
        types.push(kind);
        if number > 0 {
            sql.push_str(", ");
        }
        sql.push_str(&dialect.parameter(types.len()));
    }
}

#[inline]
fn may_write(statement: &TestStatement) -> bool {
    statement.effect != Effect::Reads
}

/// Returns the pieces of a statement's text that stand for values.
fn value_pieces(statement: &TestStatement) -> Vec<&Piece> {
    statement.text.iter().filter(|piece| !matches!(piece, Piece::Text(_) | Piece::Table)).collect()
}

impl StatementLayout {
    /// Returns the offset of the statement's values for execution `time`, from 0.
    #[inline]
    fn base(&self, statement: &TestStatement, time: u32) -> ValueOffset {
        ValueOffset {
            integers: self.base.integers + time as usize * statement.own.integers,
            texts: self.base.texts + time as usize * statement.own.texts,
        }
    }
}

impl EventValues {
    #[inline]
    fn integers(&self, first: Slot, count: usize, base: ValueOffset) -> &[i64] {
        &self.integers[first.index(base.integers)..][..count]
    }

    #[inline]
    fn text(&self, slot: Slot, is_pad: bool, base: ValueOffset) -> &str {
        let length = if is_pad { PAD_LENGTH } else { C_LENGTH };
        text::as_text(&self.texts[slot.index(base.texts)][..length])
    }
}

/// Writes a number as SQL; a negative one in parentheses, so that two dashes do not begin a
/// comment.
#[inline]
fn write_integer(value: i64, written: &mut String) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }

    let written_digits = text::as_text(&digits[at..]);
    if value < 0 {
        written.push_str("(-");
        written.push_str(written_digits);
        written.push(')');
    } else {
        written.push_str(written_digits);
    }
}

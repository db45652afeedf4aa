//! A test made ready to run: where the values of an event lie, how they are drawn, and in which order they are sent.
//!
//! All integers of one event lie in one vector, and all texts in another, which are as large as they have to be from the
//! beginning. Those of the event come first, then those of each execution of each statement.

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
    /// Draws texts, which decide nothing.
    pub(super) texts: Random,
}

/// The values of one event.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    integers: Vec<i64>,
    /// A `pad` takes the beginning of one.
    texts: Vec<[u8; C_LENGTH]>,
    /// The place of the statement with a weight that it runs, if there are any.
    chosen: usize,
}

/// Where the values of a block begin.
#[derive(Clone, Copy, Debug, Default)]
struct Base {
    integers: usize,
    texts: usize,
}

/// What a test is made ready for.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    /// How keys are drawn.
    pub(super) keys: Sampler,
    /// The number of the connection's client.
    pub(super) thread: u32,
    pub(super) dialect: &'a dyn Dialect,
    /// Rows that were loaded may be missing by now.
    pub(super) may_miss: bool,
    /// Other connections do the same at the same time.
    pub(super) is_shared: bool,
}

/// A test made ready for one connection.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) test: Test,
    keys: Sampler,
    /// Of the parameters of the event.
    samplers: Vec<Option<Sampler>>,
    statements: Vec<Ready>,
    /// The sum of all weights.
    weights: u64,
    /// Fewer rows than usual are right, but for those that it inserts.
    forgives: bool,
    room: Drawn,
}

/// What is known of a statement before the step.
#[derive(Clone, Debug)]
struct Ready {
    /// Where the values of its first execution begin.
    base: Base,
    /// Of its own parameters those that draw between known ends.
    samplers: Vec<Option<Sampler>>,
    /// The text that an engine without data is sent, whatever is asked.
    fixed: Option<String>,
}

/// Makes the samplers of draws whose ends are known before the step, the number of the thread with them.
fn samplers(block: &Block, thread: u32) -> Vec<Option<Sampler>> {
    let value = |end: &Expression| end.value(&[thread.into()], 0);
    let sampler = |(_, draw): &(usize, Draw)| match draw {
        Draw::Between(least, most, distribution) if least.is_fixed() && most.is_fixed() => {
            Some(Sampler::new(*distribution, value(least), value(most)))
        }
        _ => None,
    };
    block.draws.iter().map(sampler).collect()
}

impl Event {
    /// Makes a test ready.
    pub(super) fn new(test: &Test, target: &Target<'_>) -> Self {
        let mut base = Base {
            integers: test.shared.integers,
            texts: test.shared.texts,
        };
        let mut statements = Vec::new();
        for statement in &test.statements {
            let answered = statement.rows.as_ref().map_or(0, |rows| rows.answered);
            let fixed = target.dialect.statement(String::new(), answered);
            statements.push(Ready {
                base,
                samplers: samplers(&statement.own, target.thread),
                fixed: Some(fixed).filter(|text| !text.is_empty() && !statement.prepared),
            });
            let times = (statement.repeat * statement.count) as usize;
            base.integers += statement.own.integers * times;
            base.texts += statement.own.texts * times;
        }
        let mut integers = vec![0; base.integers];
        integers[0] = target.thread.into();
        let weights = test.statements.iter().filter_map(|it| it.weight);
        let mut event = Self {
            keys: target.keys,
            samplers: samplers(&test.shared, target.thread),
            statements,
            weights: weights.map(u64::from).sum(),
            forgives: false,
            room: Drawn {
                integers,
                texts: vec![[0; C_LENGTH]; base.texts],
                chosen: 0,
            },
            test: test.clone(),
        };
        // A row that another connection has just deleted is not found, even where it is put back at once.
        let removes = event.with(Effect::Deletes).next().is_some();
        event.forgives = target.may_miss || removes && (target.is_shared || !event.puts_back());
        event
    }

    /// Returns room for the values of one event.
    pub(super) fn room(&self) -> Drawn {
        self.room.clone()
    }

    /// Draws which statements an event runs, and their values.
    #[inline]
    pub(super) fn draw(&self, streams: &mut Streams, drawn: &mut Drawn) {
        if self.weights > 0 {
            drawn.chosen = self.choose(&mut streams.choices);
        }
        let (shared, base) = (&self.test.shared, Base::default());
        self.draw_block(shared, &self.samplers, base, streams, drawn);
        let statements = self.test.statements.iter().zip(&self.statements);
        for (place, (statement, ready)) in statements.enumerate() {
            if statement.weight.is_some() && place != drawn.chosen {
                continue;
            }
            for time in 0..statement.repeat * statement.count {
                let base = ready.base(statement, time);
                self.draw_block(&statement.own, &ready.samplers, base, streams, drawn);
            }
        }
    }

    /// Returns the place of a statement with a weight, each as often as its weight says.
    #[inline]
    fn choose(&self, random: &mut Random) -> usize {
        let mut left = random.below(self.weights);
        let mut statements = self.test.statements.iter();
        let chosen = statements.position(|statement| {
            let weight = statement.weight.map_or(0, u64::from);
            let is_it = left < weight;
            left = left.saturating_sub(weight);
            is_it
        });
        chosen.unwrap_or_default()
    }

    #[inline]
    fn draw_block(
        &self,
        block: &Block,
        samplers: &[Option<Sampler>],
        base: Base,
        streams: &mut Streams,
        drawn: &mut Drawn,
    ) {
        let Drawn {
            integers, texts, ..
        } = drawn;
        let random = &mut streams.choices;
        for ((at, draw), sampler) in block.draws.iter().zip(samplers) {
            let (at, text) = (base.integers + at, base.texts + at);
            match draw {
                Draw::Keys(count) => {
                    for value in &mut integers[at..][..*count] {
                        *value = self.keys.draw(random);
                    }
                }
                Draw::Consecutive(first, count) => {
                    let first = first.value(integers, base.integers);
                    for (value, number) in integers[at..][..*count].iter_mut().zip(first..) {
                        *value = number;
                    }
                }
                Draw::Between(least, most, distribution) => {
                    let new = || {
                        let [least, most] =
                            [least, most].map(|end| end.value(integers, base.integers));
                        Sampler::new(*distribution, least, most)
                    };
                    integers[at] = sampler.unwrap_or_else(new).draw(random);
                }
                Draw::Value(value) => integers[at] = value.value(integers, base.integers),
                Draw::C => text::write_groups(&mut streams.texts, &mut texts[text]),
                Draw::Pad => {
                    text::write_groups(&mut streams.texts, &mut texts[text][..PAD_LENGTH]);
                }
            }
        }
    }

    /// Returns the place of the first statement from `from` on that the event runs; how many there are, if there is none.
    #[inline]
    pub(super) fn next(&self, from: usize, drawn: &Drawn) -> usize {
        let mut place = from;
        while let Some(statement) = self.test.statements.get(place)
            && statement.weight.is_some()
            && place != drawn.chosen
        {
            place += 1;
        }
        place
    }

    /// Shows each piece of a statement's text in turn, with where its own values begin.
    #[inline]
    fn each_piece(&self, place: usize, execution: u32, mut see: impl FnMut(&Piece, Base)) {
        let (statement, ready) = (&self.test.statements[place], &self.statements[place]);
        let base = |row| ready.base(statement, execution * statement.count + row);
        for piece in &statement.text {
            let Piece::Rows(pieces) = piece else {
                see(piece, base(0));
                continue;
            };
            for row in 0..statement.count {
                for piece in pieces.iter().skip(usize::from(row == 0)) {
                    see(piece, base(row));
                }
            }
        }
    }

    /// Returns the text of a statement for one table, to be prepared, with the types of its parameters; `None` where it is
    /// sent as text.
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
        let (mut sql, mut types) = (String::new(), Vec::new());
        self.each_piece(place, 0, |piece, _| {
            let (kind, count) = match piece {
                Piece::Text(text) => return sql.push_str(text),
                Piece::Table => return sql.push_str(table),
                Piece::Integers {
                    count,
                    is_wide: true,
                    ..
                } => (ParamType::Int8, *count),
                Piece::Integers { count, .. } => (ParamType::Int4, *count),
                Piece::Drawn { .. } => (ParamType::Text, 1),
                Piece::Rows(_) => return,
            };
            for number in 0..count {
                types.push(kind);
                if number > 0 {
                    sql.push_str(", ");
                }
                sql.push_str(&dialect.parameter(types.len()));
            }
        });
        let answered = statement.rows.as_ref().map_or(0, |rows| rows.answered);
        Some((dialect.statement(sql, answered), types))
    }

    /// Writes the text of a statement for one table, with its parameters in it.
    #[inline]
    pub(super) fn write(
        &self,
        place: usize,
        table: &str,
        execution: u32,
        drawn: &Drawn,
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
                for (number, &value) in drawn.integers(*first, *count, base).iter().enumerate() {
                    if number > 0 {
                        written.push_str(", ");
                    }
                    write_integer(value, written);
                }
            }
            Piece::Drawn { slot, is_pad } => {
                written.push('\'');
                written.push_str(drawn.text(*slot, *is_pad, base));
                written.push('\'');
            }
            Piece::Rows(_) => {}
        });
    }

    /// Gives its parameters to a session that has started it.
    #[inline]
    pub(super) fn push<S: Session>(
        &self,
        place: usize,
        execution: u32,
        drawn: &Drawn,
        session: &mut S,
    ) {
        self.each_piece(place, execution, |piece, base| match piece {
            Piece::Integers {
                first,
                count,
                is_wide,
            } => {
                let values = drawn.integers(*first, *count, base);
                match is_wide {
                    true => values.iter().for_each(|&value| session.int8(value)),
                    // Its bounds say that it fits.
                    false => values.iter().for_each(|&value| session.int4(value as i32)),
                }
            }
            Piece::Drawn { slot, is_pad } => session.text(drawn.text(*slot, *is_pad, base)),
            Piece::Text(_) | Piece::Table | Piece::Rows(_) => {}
        });
    }

    /// Returns whether so many rows are right.
    #[inline]
    pub(super) fn is_right(&self, place: usize, rows: u64, execution: u32, drawn: &Drawn) -> bool {
        let statement = &self.test.statements[place];
        let Some(right) = &statement.rows else {
            return true;
        };
        let base = self.statements[place].base(statement, execution * statement.count);
        let value = |end: &Expression| end.value(&drawn.integers, base.integers);
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        let is_enough = self.forgives && statement.effect != Effect::Inserts;
        (is_enough || rows >= value(&right.least)) && rows <= value(&right.most)
    }

    /// Returns whether all of its statements are sent as text.
    pub(super) fn is_plain(&self) -> bool {
        self.test.statements.iter().all(|it| !it.prepared)
    }

    /// Returns whether an event may write.
    pub(super) fn writes(&self) -> bool {
        let mut statements = self.test.statements.iter();
        statements.any(|it| it.effect != Effect::Reads)
    }

    /// Returns whether some events may write and others only read, by the statement that they run of those with a weight.
    pub(super) fn writes_sometimes(&self) -> bool {
        let statements = self.test.statements.iter();
        let (weighted, always): (Vec<_>, Vec<_>) = statements.partition(|it| it.weight.is_some());
        let reads = |it: &&TestStatement| it.effect == Effect::Reads;
        self.writes() && always.iter().all(reads) && weighted.iter().any(reads)
    }

    /// Returns whether the statement with a weight that the event runs may write.
    #[inline]
    pub(super) fn choice_writes(&self, drawn: &Drawn) -> bool {
        self.test.statements[drawn.chosen].effect != Effect::Reads
    }

    /// Returns whether it neither inserts nor deletes.
    pub(super) fn has_no_effect(&self) -> bool {
        let mut statements = self.test.statements.iter();
        statements.all(|it| matches!(it.effect, Effect::Reads | Effect::Changes))
    }

    fn with(&self, effect: Effect) -> impl Iterator<Item = &TestStatement> {
        let statements = self.test.statements.iter();
        statements.filter(move |it| it.effect == effect)
    }

    /// Returns whether each row that it deletes it inserts again, in one transaction and in every event: both are told the same
    /// value of the event's.
    pub(super) fn puts_back(&self) -> bool {
        let values = |statement: &TestStatement| {
            let is_value = |piece: &&Piece| !matches!(piece, Piece::Text(_) | Piece::Table);
            let values = statement.text.iter().filter(is_value);
            values.cloned().collect::<Vec<_>>()
        };
        let is_put_back = |deletes: &TestStatement| match values(deletes).as_slice() {
            [
                value @ Piece::Integers {
                    first: Slot::Event(_),
                    count: 1,
                    ..
                },
            ] => self
                .with(Effect::Inserts)
                .any(|inserts| values(inserts).contains(value)),
            _ => false,
        };
        let mut ends = self.with(Effect::Deletes).chain(self.with(Effect::Inserts));
        self.test.transaction
            && ends.all(|statement| statement.weight.is_none())
            && self.with(Effect::Deletes).next().is_some()
            && self.with(Effect::Deletes).all(is_put_back)
    }
}

impl Ready {
    /// Returns where its values begin that are drawn at that time, counted from 0.
    #[inline]
    fn base(&self, statement: &TestStatement, time: u32) -> Base {
        Base {
            integers: self.base.integers + time as usize * statement.own.integers,
            texts: self.base.texts + time as usize * statement.own.texts,
        }
    }
}

impl Drawn {
    #[inline]
    fn integers(&self, first: Slot, count: usize, base: Base) -> &[i64] {
        &self.integers[first.index(base.integers)..][..count]
    }

    #[inline]
    fn text(&self, slot: Slot, is_pad: bool, base: Base) -> &str {
        let length = if is_pad { PAD_LENGTH } else { C_LENGTH };
        text::as_text(&self.texts[slot.index(base.texts)][..length])
    }
}

/// Writes a number as SQL has it; one below zero is no part of a comment that two dashes begin.
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
    let digits = text::as_text(&digits[at..]);
    if value < 0 {
        written.push_str("(-");
        written.push_str(digits);
        written.push(')');
    } else {
        written.push_str(digits);
    }
}

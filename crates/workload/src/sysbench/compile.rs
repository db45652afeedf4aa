//! A test made ready to run: where its parameters lie, how each is drawn, and in which order they are sent.
//!
//! All values of one event lie in one vector of integers and one of bytes, which are as large as they have to be from
//! the beginning. Those of the event come first, then those of each execution of each statement.

use engine::{Dialect, ParamType, Session};

use super::data::k_most;
use super::distribution::{Distribution, Sampler};
use super::expression::{self, Bounds, Code, Environment, Expression, Names, Place};
use super::mix::Mix;
use super::test::{Draw, Parameter, Test, TestStatement};
use super::text::{self, C_LENGTH, PAD_LENGTH};
use crate::Random;

/// The most values of a list: the parameters of a statement have numbers of 16 bits.
const LIST_MOST: i64 = 65_535;

/// How the value of a parameter is had; places are those among its block's own.
#[derive(Clone, Debug)]
enum Step {
    Samples {
        at: usize,
        count: usize,
        sampler: Sampler,
    },
    /// Its bounds are known only then.
    Between {
        at: usize,
        bounds: (Code, Code),
        distribution: Distribution,
    },
    Consecutive {
        at: usize,
        count: usize,
        first: Code,
    },
    Value {
        at: usize,
        code: Code,
    },
    C {
        at: usize,
    },
    Pad {
        at: usize,
    },
}

/// The random streams of one connection.
#[derive(Debug)]
pub(super) struct Streams {
    /// Draws tables, statements and numbers.
    pub(super) choices: Random,
    /// Draws texts, which decide nothing.
    pub(super) texts: Random,
}

impl Step {
    #[inline]
    fn run(&self, streams: &mut Streams, drawn: &mut Drawn, base: usize, text_base: usize) {
        let Drawn { values, texts, .. } = drawn;
        let random = &mut streams.choices;
        match self {
            Self::Samples { at, count, sampler } => {
                for value in &mut values[base + at..][..*count] {
                    *value = sampler.draw(random);
                }
            }
            Self::Between {
                at,
                bounds: (low, high),
                distribution,
            } => {
                let (low, high) = (low.value(values, base), high.value(values, base));
                values[base + at] = Sampler::new(*distribution, low, high).draw(random);
            }
            Self::Consecutive { at, count, first } => {
                let first = first.value(values, base);
                for (value, number) in values[base + at..][..*count].iter_mut().zip(first..) {
                    *value = number;
                }
            }
            Self::Value { at, code } => values[base + at] = code.value(values, base),
            Self::C { at } => {
                if let Some(place) = texts[text_base + at..].first_chunk_mut() {
                    text::write_c(&mut streams.texts, place);
                }
            }
            Self::Pad { at } => {
                if let Some(place) = texts[text_base + at..].first_chunk_mut() {
                    text::write_pad(&mut streams.texts, place);
                }
            }
        }
    }
}

/// What is sent for one `{p}` of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// So many integers, of 32 bits unless they are wide.
    Integers {
        place: Place,
        count: usize,
        is_wide: bool,
    },
    Text {
        place: Place,
        length: usize,
    },
}

/// What a statement does to the rows of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    /// It changes rows, and not their number.
    Changes,
    /// It inserts the rows that it answers with.
    Inserts,
    /// It deletes them.
    Deletes,
    /// It may do anything.
    Unknown,
}

impl Effect {
    pub(super) fn of(sql: &str) -> Self {
        // What is within quotes says nothing.
        let sql: Vec<&str> = sql.split('\'').step_by(2).collect();
        let sql = sql.join(" ");
        let mut words = sql
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default().to_ascii_lowercase();
        let has = |others: &[&str]| {
            let is_one = |word: &str| others.iter().any(|other| word.eq_ignore_ascii_case(other));
            words.clone().any(is_one)
        };
        match first.as_str() {
            "select" => Self::Reads,
            "with" if !has(&["insert", "update", "delete", "merge", "replace"]) => Self::Reads,
            "update" => Self::Changes,
            "delete" => Self::Deletes,
            // Rows that exist may be changed, or replaced, and are counted in ways that differ.
            "insert" if has(&["on", "replace"]) => Self::Unknown,
            "insert" => Self::Inserts,
            _ => Self::Unknown,
        }
    }
}

/// A part of a statement's text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Table,
    /// What is sent at that place, in a statement that is sent as text.
    Value(usize),
}

/// A statement made ready.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pieces: Vec<Piece>,
    /// It is not prepared, but sent as text each time.
    is_plain: bool,
    pub(super) types: Vec<ParamType>,
    pub(super) repeat: u32,
    /// It is one of those of which an event runs one.
    is_weighted: bool,
    steps: Vec<Step>,
    sent: Vec<Sent>,
    /// Where the values of the first execution begin, and how many each has.
    values: (usize, usize),
    /// The same for the bytes of texts.
    texts: (usize, usize),
    /// The fewest and the most rows that are right.
    rows: Option<(Code, Code)>,
    /// Rows that an engine without data is to answer with.
    answered: u64,
    pub(super) effect: Effect,
}

impl Ready {
    /// Its text for one table, to be prepared; `None` where it is sent as text.
    pub(super) fn sql(&self, table: &str, dialect: &dyn Dialect) -> Option<String> {
        let sql = self
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => Some(text.as_str()),
                Piece::Table => Some(table),
                Piece::Value(_) => None,
            })
            .collect::<Option<String>>()?;
        (!self.is_plain).then(|| dialect.statement(sql, self.answered))
    }

    /// Writes its text for one table, with its parameters in it.
    #[inline]
    pub(super) fn write(&self, table: &str, execution: u32, drawn: &Drawn, written: &mut String) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => written.push_str(text),
                Piece::Table => written.push_str(table),
                Piece::Value(index) => match self.sent[*index] {
                    Sent::Integers { place, count, .. } => {
                        let at = place.index(self.base(execution));
                        for (number, &value) in drawn.values[at..][..count].iter().enumerate() {
                            if number > 0 {
                                written.push_str(", ");
                            }
                            write_integer(value, written);
                        }
                    }
                    Sent::Text { place, length } => {
                        let at = place.index(self.text_base(execution));
                        written.push('\'');
                        written.push_str(text::as_text(&drawn.texts[at..][..length]));
                        written.push('\'');
                    }
                },
            }
        }
    }

    #[inline]
    fn base(&self, execution: u32) -> usize {
        self.values.0 + execution as usize * self.values.1
    }

    #[inline]
    fn text_base(&self, execution: u32) -> usize {
        self.texts.0 + execution as usize * self.texts.1
    }

    /// Gives its parameters to a session that has started it.
    #[inline]
    pub(super) fn push<S: Session>(&self, execution: u32, drawn: &Drawn, session: &mut S) {
        let base = self.base(execution);
        for sent in &self.sent {
            match *sent {
                Sent::Integers {
                    place,
                    count,
                    is_wide,
                } => {
                    let values = &drawn.values[place.index(base)..][..count];
                    match is_wide {
                        true => values.iter().for_each(|&value| session.int8(value)),
                        // Its bounds say that it fits.
                        false => values.iter().for_each(|&value| session.int4(value as i32)),
                    }
                }
                Sent::Text { place, length } => {
                    let at = place.index(self.text_base(execution));
                    session.text(text::as_text(&drawn.texts[at..][..length]));
                }
            }
        }
    }

    /// Whether so many rows are right.
    #[inline]
    pub(super) fn is_right(&self, rows: u64, execution: u32, drawn: &Drawn) -> bool {
        match &self.rows {
            None => true,
            Some((least, most)) => {
                let base = self.base(execution);
                let rows = i64::try_from(rows).unwrap_or(i64::MAX);
                rows >= least.value(&drawn.values, base) && rows <= most.value(&drawn.values, base)
            }
        }
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

/// The values of one event.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    values: Vec<i64>,
    texts: Vec<u8>,
    /// The place of the statement with a weight that it runs, if there are any.
    chosen: usize,
}

/// A test made ready for one connection.
#[derive(Clone, Debug)]
pub(super) struct Event {
    steps: Vec<Step>,
    pub(super) statements: Vec<Ready>,
    mix: Option<Mix>,
    pub(super) transaction: bool,
    values: usize,
    text_bytes: usize,
}

/// What a test is made ready for.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) environment: Environment,
    pub(super) distribution: Distribution,
    pub(super) dialect: &'a dyn Dialect,
    /// Rows that were loaded may be missing by now.
    pub(super) may_miss: bool,
    /// Other connections do the same at the same time.
    pub(super) is_shared: bool,
}

impl Event {
    /// Makes a test ready.
    ///
    /// # Errors
    /// What is wrong with the test, and where.
    pub(super) fn new(test: &Test, target: &Target<'_>) -> Result<Self, String> {
        let mut scope = Scope::new(target);
        let steps = scope
            .define(&test.parameters)
            .map_err(|why| format!("test `{}`, {why}", test.name))?;
        let shared = scope.named.len();
        let (mut values, mut text_bytes) = (scope.values, scope.text_bytes);
        let mut statements = Vec::new();
        for (index, statement) in test.statements.iter().enumerate() {
            scope.named.truncate(shared);
            (scope.values, scope.text_bytes, scope.is_event) = (0, 0, false);
            let mut ready = scope
                .statement(statement)
                .map_err(|why| format!("test `{}`, statement {}: {why}", test.name, index + 1))?;
            ready.values = (values, scope.values);
            ready.texts = (text_bytes, scope.text_bytes);
            values += scope.values * statement.repeat as usize;
            text_bytes += scope.text_bytes * statement.repeat as usize;
            statements.push(ready);
        }
        let mut event = Self {
            steps,
            statements,
            mix: Mix::new(&test.statements),
            transaction: test.transaction,
            values,
            text_bytes,
        };
        // A row that another connection has just deleted is not found, even where it is put back at once.
        let removes = event.deletes() && (target.is_shared || !event.puts_back());
        if target.may_miss || removes {
            event.forgive_missing_rows();
        }
        Ok(event)
    }

    /// Fewer rows than usual are right, but for those that it inserts.
    fn forgive_missing_rows(&mut self) {
        for statement in &mut self.statements {
            if let Some((least, _)) = &mut statement.rows
                && statement.effect != Effect::Inserts
            {
                *least = Code::Constant(0);
            }
        }
    }

    /// Room for the values of one event.
    pub(super) fn room(&self) -> Drawn {
        Drawn {
            values: vec![0; self.values],
            texts: vec![0; self.text_bytes],
            chosen: 0,
        }
    }

    /// Draws which statements an event runs, and their values.
    #[inline]
    pub(super) fn draw(&self, streams: &mut Streams, drawn: &mut Drawn) {
        if let Some(mix) = &self.mix {
            drawn.chosen = mix.draw(&mut streams.choices);
        }
        for step in &self.steps {
            step.run(streams, drawn, 0, 0);
        }
        for (place, statement) in self.statements.iter().enumerate() {
            if statement.is_weighted && place != drawn.chosen {
                continue;
            }
            for execution in 0..statement.repeat {
                let base = statement.base(execution);
                let text_base = statement.text_base(execution);
                for step in &statement.steps {
                    step.run(streams, drawn, base, text_base);
                }
            }
        }
    }

    /// The place of the first statement from `from` on that the event runs; how many there are, if there is none.
    #[inline]
    pub(super) fn next(&self, from: usize, drawn: &Drawn) -> usize {
        let mut place = from;
        while let Some(statement) = self.statements.get(place)
            && statement.is_weighted
            && place != drawn.chosen
        {
            place += 1;
        }
        place
    }

    /// Whether all of its statements are sent as text.
    pub(super) fn is_plain(&self) -> bool {
        self.statements.iter().all(|statement| statement.is_plain)
    }

    pub(super) fn writes(&self) -> bool {
        let mut effects = self.statements.iter().map(|statement| statement.effect);
        effects.any(|effect| effect != Effect::Reads)
    }

    /// Whether some events may write and others only read, by the statement that they run of those with a weight.
    pub(super) fn writes_sometimes(&self) -> bool {
        let reads = |it: &Ready| it.effect == Effect::Reads;
        let mut weighted = self.statements.iter().filter(|it| it.is_weighted);
        let mut always = self.statements.iter().filter(|it| !it.is_weighted);
        self.writes() && always.all(reads) && weighted.any(reads)
    }

    /// Whether the statement with a weight that the event runs may write.
    #[inline]
    pub(super) fn choice_writes(&self, drawn: &Drawn) -> bool {
        self.statements[drawn.chosen].effect != Effect::Reads
    }

    fn deletes(&self) -> bool {
        let mut effects = self.statements.iter().map(|statement| statement.effect);
        effects.any(|effect| effect == Effect::Deletes)
    }

    /// It neither inserts nor deletes.
    pub(super) fn has_no_effect(&self) -> bool {
        let mut effects = self.statements.iter().map(|statement| statement.effect);
        effects.all(|effect| matches!(effect, Effect::Reads | Effect::Changes))
    }

    /// Each row that it deletes it inserts again, in one transaction and in every event: both are told the same value of
    /// the event's.
    pub(super) fn puts_back(&self) -> bool {
        let with = |effect| {
            self.statements
                .iter()
                .filter(move |statement| statement.effect == effect)
        };
        let is_put_back = |deletes: &Ready| match deletes.sent.as_slice() {
            [
                sent @ Sent::Integers {
                    place: Place::Event(_),
                    count: 1,
                    ..
                },
            ] => with(Effect::Inserts).any(|inserts| inserts.sent.contains(sent)),
            _ => false,
        };
        let mut ends = with(Effect::Deletes).chain(with(Effect::Inserts));
        self.transaction
            && ends.all(|statement| !statement.is_weighted)
            && with(Effect::Deletes).next().is_some()
            && with(Effect::Deletes).all(is_put_back)
    }
}

/// What a parameter is.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Integers { count: usize, bounds: Bounds },
    Text { length: usize },
}

struct Named {
    name: String,
    place: Place,
    shape: Shape,
    is_list: bool,
}

/// The parameters that are defined so far.
struct Scope<'a> {
    target: &'a Target<'a>,
    named: Vec<Named>,
    /// Values and bytes of texts of the block so far.
    values: usize,
    text_bytes: usize,
    /// The block is the event's, not a statement's.
    is_event: bool,
}

impl Names for Scope<'_> {
    fn integer(&self, name: &str) -> Result<(Place, Bounds), String> {
        match self.find(name)? {
            Named {
                place,
                shape: Shape::Integers { bounds, .. },
                is_list: false,
                ..
            } => Ok((*place, *bounds)),
            Named { is_list: true, .. } => Err(format!(
                "`{name}` is a list; an expression is made of integers"
            )),
            _ => Err(format!(
                "`{name}` is a text; an expression is made of integers"
            )),
        }
    }
}

impl<'a> Scope<'a> {
    fn new(target: &'a Target<'a>) -> Self {
        Self {
            target,
            named: Vec::new(),
            values: 0,
            text_bytes: 0,
            is_event: true,
        }
    }

    /// A later one of the same name hides an earlier one.
    fn find(&self, name: &str) -> Result<&Named, String> {
        self.named
            .iter()
            .rev()
            .find(|named| named.name == name)
            .ok_or_else(|| format!("`{name}` is not a parameter that is defined before"))
    }

    fn compile(&self, expression: &Expression) -> Result<(Code, Bounds), String> {
        expression::compile(expression, &self.target.environment, self)
    }

    /// The length of a list, which is a part of the statement's text.
    fn count(&self, expression: &Expression) -> Result<usize, String> {
        match self.compile(expression)?.0 {
            Code::Constant(count) if (1..=LIST_MOST).contains(&count) => Ok(count as usize),
            Code::Constant(count) => Err(format!(
                "a list of {count} values: it has between 1 and {LIST_MOST}"
            )),
            _ => Err(
                "the length of a list depends on a value that is drawn: it must be known before"
                    .into(),
            ),
        }
    }

    fn define(&mut self, parameters: &[Parameter]) -> Result<Vec<Step>, String> {
        parameters
            .iter()
            .map(|parameter| {
                self.parameter(parameter)
                    .map_err(|why| format!("parameter `{}`: {why}", parameter.name))
            })
            .collect()
    }

    fn parameter(&mut self, parameter: &Parameter) -> Result<Step, String> {
        let rows = self.target.environment.rows;
        let of_id = Bounds::new(1, i64::try_from(rows).unwrap_or(i64::MAX).max(1));
        let of_k = Bounds::new(1, k_most(rows).cast_signed());
        let at = self.values;
        let samples = |count: usize, bounds: Bounds| {
            let step = Step::Samples {
                at,
                count,
                sampler: Sampler::new(self.target.distribution, bounds.least, bounds.most),
            };
            (step, Shape::Integers { count, bounds })
        };
        let text = |length: usize| Shape::Text { length };
        let (step, shape) = match &parameter.draw {
            Draw::Id => samples(1, of_id),
            Draw::K => samples(1, of_k),
            Draw::Ids(count) => samples(self.count(count)?, of_id),
            Draw::Ks(count) => samples(self.count(count)?, of_k),
            Draw::C => (
                Step::C {
                    at: self.text_bytes,
                },
                text(C_LENGTH),
            ),
            Draw::Pad => (
                Step::Pad {
                    at: self.text_bytes,
                },
                text(PAD_LENGTH),
            ),
            Draw::Consecutive(first, count) => {
                let count = self.count(count)?;
                let (first, bounds) = self.compile(first)?;
                let most = bounds
                    .most
                    .checked_add(count as i64 - 1)
                    .ok_or("a value that 64 bits don't hold")?;
                let bounds = Bounds::new(bounds.least, most);
                (
                    Step::Consecutive { at, count, first },
                    Shape::Integers { count, bounds },
                )
            }
            Draw::Uniform(low, high) => self.between(at, low, high, Distribution::Uniform)?,
            Draw::Zipfian(low, high, exponent) => {
                let exponent = *exponent;
                self.between(at, low, high, Distribution::Zipfian { exponent })?
            }
            Draw::Value(value) => {
                let (code, bounds) = self.compile(value)?;
                (
                    Step::Value { at, code },
                    Shape::Integers { count: 1, bounds },
                )
            }
        };
        let at = match shape {
            Shape::Integers { count, .. } => {
                self.values += count;
                at
            }
            Shape::Text { length } => {
                let at = self.text_bytes;
                self.text_bytes += length;
                at
            }
        };
        self.named.push(Named {
            name: parameter.name.clone(),
            place: match self.is_event {
                true => Place::Event(at),
                false => Place::Own(at),
            },
            shape,
            is_list: matches!(
                parameter.draw,
                Draw::Ids(_) | Draw::Ks(_) | Draw::Consecutive(..)
            ),
        });
        Ok(step)
    }

    fn between(
        &self,
        at: usize,
        low: &Expression,
        high: &Expression,
        distribution: Distribution,
    ) -> Result<(Step, Shape), String> {
        let (low, of_low) = self.compile(low)?;
        let (high, of_high) = self.compile(high)?;
        if of_low.least > of_high.most {
            return Err(format!(
                "there is nothing between {} and {}",
                of_low.least, of_high.most
            ));
        }
        let bounds = Bounds::new(of_low.least, of_high.most.max(of_low.most));
        let step = match (low, high) {
            (Code::Constant(low), Code::Constant(high)) => Step::Samples {
                at,
                count: 1,
                sampler: Sampler::new(distribution, low, high),
            },
            bounds => Step::Between {
                at,
                bounds,
                distribution,
            },
        };
        Ok((step, Shape::Integers { count: 1, bounds }))
    }

    fn statement(&mut self, statement: &TestStatement) -> Result<Ready, String> {
        let steps = self.define(&statement.parameters)?;
        let is_plain = !statement.prepared;
        let (mut pieces, sent, types) = self.text(&statement.sql, is_plain)?;
        let (mut rows, mut answered) = (None, 0);
        if let Some((least, most)) = &statement.rows {
            let (least, _) = self.compile(least).map_err(|why| format!("rows: {why}"))?;
            let (most, of_most) = self.compile(most).map_err(|why| format!("rows: {why}"))?;
            answered = of_most.least.max(0).cast_unsigned();
            rows = Some((least, most));
        }
        if is_plain {
            // An engine without data has one text whatever is asked.
            let text = self.target.dialect.statement(String::new(), answered);
            if !text.is_empty() {
                pieces = vec![Piece::Text(text)];
            }
        }
        Ok(Ready {
            pieces,
            is_plain,
            types,
            repeat: statement.repeat,
            is_weighted: statement.weight.is_some(),
            steps,
            sent,
            values: (0, 0),
            texts: (0, 0),
            rows,
            answered,
            effect: Effect::of(&statement.sql),
        })
    }

    /// The text with the engine's notation of parameters, or with places for them, and what is sent for each in turn.
    #[expect(
        clippy::type_complexity,
        reason = "three lists that belong together only here"
    )]
    fn text(
        &self,
        sql: &str,
        is_plain: bool,
    ) -> Result<(Vec<Piece>, Vec<Sent>, Vec<ParamType>), String> {
        let dialect = self.target.dialect;
        let (mut pieces, mut sent, mut types) = (Vec::new(), Vec::new(), Vec::new());
        let mut text = String::new();
        let mut rest = sql;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            // Doubled it is one of the text's own.
            if let Some(after) = after.strip_prefix(brace) {
                text.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                return Err(format!("`}}` without `{{` in `{sql}`"));
            }
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("`{{` without `}}` in `{sql}`"))?;
            rest = after;
            if name == "table" {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Table);
                continue;
            }
            let named = self.find(name)?;
            let (kind, count) = match named.shape {
                Shape::Integers { count, bounds } => {
                    let is_wide = !bounds.is_narrow();
                    sent.push(Sent::Integers {
                        place: named.place,
                        count,
                        is_wide,
                    });
                    let kind = match is_wide {
                        true => ParamType::Int8,
                        false => ParamType::Int4,
                    };
                    (kind, count)
                }
                Shape::Text { length } => {
                    sent.push(Sent::Text {
                        place: named.place,
                        length,
                    });
                    (ParamType::Text, 1)
                }
            };
            if is_plain {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Value(sent.len() - 1));
                continue;
            }
            for number in 0..count {
                types.push(kind);
                if number > 0 {
                    text.push_str(", ");
                }
                text.push_str(&dialect.parameter(types.len()));
            }
        }
        text.push_str(rest);
        pieces.push(Piece::Text(text));
        Ok((pieces, sent, types))
    }
}

//! The values that actions read and assign, by their places.

use std::collections::{BTreeMap, BTreeSet};

use plan::transactions::{
    Action, List, Number, ScriptStatement, ScriptStatements, SqlPiece, Taken, TextValue,
};
use words::Engine;

/// Places of values.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Those of integers, without those of lists.
    pub(super) integers: BTreeSet<usize>,
    /// Those of texts.
    pub(super) texts: BTreeSet<usize>,
    /// The lists, each by the place of its length.
    pub(super) lists: BTreeMap<usize, List>,
}

/// Returns the actions that an engine runs, without the blocks of other engines.
pub(super) fn actions_on(
    engine: Engine,
    statements: ScriptStatements,
    actions: &[Action],
) -> Vec<Action> {
    let mut chosen = Vec::new();
    for action in actions {
        if let Action::On { engines, is_native, then, otherwise } = action {
            let is_first = statements.choose_first(engines, *is_native, Some(engine));
            let block = if is_first { then } else { otherwise };
            chosen.extend(actions_on(engine, statements, block));
        } else {
            chosen.push(action_on(engine, statements, action));
        }
    }
    chosen
}

/// Returns an action with the actions of its blocks that an engine runs.
fn action_on(engine: Engine, statements: ScriptStatements, action: &Action) -> Action {
    match action {
        Action::If { condition, then, otherwise } => Action::If {
            condition: condition.clone(),
            then: actions_on(engine, statements, then),
            otherwise: actions_on(engine, statements, otherwise),
        },
        Action::ForEach { lists, body } => {
            Action::ForEach { lists: lists.clone(), body: actions_on(engine, statements, body) }
        }
        Action::ForRange { slot, from, to, body } => Action::ForRange {
            slot: *slot,
            from: from.clone(),
            to: to.clone(),
            body: actions_on(engine, statements, body),
        },
        other => other.clone(),
    }
}

impl Places {
    /// Adds the places that actions assign.
    pub(super) fn add_assigned(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Number { slot, .. } => {
                    self.integers.insert(*slot);
                }
                Action::Text { slot, .. } => {
                    self.texts.insert(*slot);
                }
                Action::List { list, .. } => {
                    self.lists.insert(list.count, *list);
                }
                Action::Statement(statement) => self.add_taken(&statement.into),
                Action::Abort => {}

                // Blocks, some of which assign a value before each round.
                Action::If { then, otherwise, .. } | Action::On { then, otherwise, .. } => {
                    self.add_assigned(then);
                    self.add_assigned(otherwise);
                }
                Action::ForEach { lists, body } => {
                    self.integers.extend(lists.iter().map(|(slot, _)| *slot));
                    self.add_assigned(body);
                }
                Action::ForRange { slot, body, .. } => {
                    self.integers.insert(*slot);
                    self.add_assigned(body);
                }
            }
        }
    }

    /// Adds the places of what a statement's result is taken into.
    fn add_taken(&mut self, into: &[Taken]) {
        for taken in into {
            match taken {
                Taken::Integer(slot) => self.integers.insert(*slot),
                Taken::Text(slot) => self.texts.insert(*slot),
            };
        }
    }

    /// Adds the places that actions read.
    pub(super) fn add_read(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Number { value, .. } => self.add_number(value),
                Action::Text { value, .. } => self.add_text(value),
                Action::List { count, value, .. } => {
                    self.add_number(count);
                    self.add_number(value);
                }
                Action::Statement(statement) => self.add_statement(statement),
                Action::Abort => {}

                // Blocks, with what decides which of them run, and for which values.
                Action::If { condition, then, otherwise } => {
                    self.add_number(condition);
                    self.add_read(then);
                    self.add_read(otherwise);
                }
                Action::ForEach { lists, body } => {
                    self.lists.extend(lists.iter().map(|(_, list)| (list.count, *list)));
                    self.add_read(body);
                }
                Action::ForRange { from, to, body, .. } => {
                    self.add_number(from);
                    self.add_number(to);
                    self.add_read(body);
                }
                Action::On { then, otherwise, .. } => {
                    self.add_read(then);
                    self.add_read(otherwise);
                }
            }
        }
    }

    fn add_statement(&mut self, statement: &ScriptStatement) {
        for piece in &statement.pieces {
            match piece {
                SqlPiece::Number { value, .. } => self.add_number(value),
                SqlPiece::Text(slot) => {
                    self.texts.insert(*slot);
                }
                SqlPiece::Fixed(_) | SqlPiece::ForUpdate => {}
            }
        }
        if let Some((least, most)) = &statement.rows {
            self.add_number(least);
            self.add_number(most);
        }
    }

    fn add_number(&mut self, number: &Number) {
        match number {
            Number::Constant(_)
            | Number::Next(_)
            | Number::Newest(_)
            | Number::Home(_)
            | Number::HomeCount(_) => {}
            Number::Variable(slot) => {
                self.integers.insert(*slot);
            }
            Number::Hash(part) => self.add_number(part),
            Number::Binary(_, parts) | Number::At(parts) => {
                parts.iter().for_each(|part| self.add_number(part));
            }
            Number::Choose(parts) => parts.iter().for_each(|part| self.add_number(part)),
            Number::Draw(draw) => {
                self.add_number(&draw.least);
                self.add_number(&draw.most);
            }
        }
    }

    fn add_text(&mut self, text: &TextValue) {
        match text {
            TextValue::Constant(_) => {}
            TextValue::Variable(slot) => {
                self.texts.insert(*slot);
            }
            TextValue::Letters(least, most) => {
                self.add_number(least);
                self.add_number(most);
            }
            TextValue::Digits(number)
            | TextValue::LastName(number)
            | TextValue::Numbered(_, number) => self.add_number(number),
            TextValue::Either(condition, texts) => {
                self.add_number(condition);
                texts.iter().for_each(|text| self.add_text(text));
            }
        }
    }
}

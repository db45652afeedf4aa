//! Reads the transactions of a script.

use words::Engine;

use super::bounded::Bounded;
use super::parser::{Draws, Fault, Parser, Scope, Symbol, fault};
use crate::spec::transactions::{Action, List, Number, ScriptStatement, Taken, Transaction};
use crate::text::wording::{choices, code};

/// The most values of a list.
const LIST_MAX: i64 = 1000;
/// The engines whose names scripts may use.
const ENGINES: [Engine; 3] = [Engine::Postgres, Engine::Mysql, Engine::Sqlite];

const TOO_LATE: &str = "draws come before the first statement, so that a retry has the same input";
const IN_A_BLOCK: &str = "draws come before the first block; use `if(CONDITION, A, B)`";

impl Parser<'_> {
    /// Takes a transaction after its keyword. `globals` are the names that all values may use.
    pub(super) fn transaction(
        &mut self,
        globals: &[(String, Symbol)],
        clients: u32,
    ) -> Result<Transaction, Fault> {
        let span = self.peek();
        let name = self.name("the name of a transaction")?.to_owned();
        let is_autocommitted = self.take("autocommit");

        self.begin_scope(globals, clients);

        self.expect("{")?;
        let mut input = Vec::new();
        let mut body = Vec::new();
        while !self.take("}") {
            // What changes during an attempt is set anew by each one.
            let is_variable = self.ahead() == "var";
            let action = self.action()?;
            let is_input =
                matches!(action, Action::Number { .. } | Action::Text { .. } | Action::List { .. });
            if is_input && !is_variable && body.is_empty() {
                input.push(action);
            } else {
                body.push(action);
                self.scope.draws = Draws::Refused(TOO_LATE);
            }
        }

        self.scope.draws = Draws::Allowed;
        let transaction = Transaction {
            name,
            input,
            body,
            integers: self.scope.integers,
            texts: self.scope.texts,
            is_autocommitted,
            numbered_tables: std::mem::take(&mut self.scope.numbered_tables),
            homes: std::mem::take(&mut self.scope.homes),
        };
        refuse_partial_commits(&transaction, span)?;
        Ok(transaction)
    }

    /// Forgets the scope of the last transaction. `globals` are the names that all values may use.
    fn begin_scope(&mut self, globals: &[(String, Symbol)], clients: u32) {
        let client = Bounded::variable(0, (0, i64::from(clients.max(1)) - 1));
        let mut named = globals.to_vec();
        named.push(("client".to_owned(), Symbol::Number(client)));

        // The first integer is the client's number.
        self.scope = Scope { named, integers: 1, ..Scope::default() };
    }

    /// Takes a block in braces, whose names end with it.
    fn block(&mut self) -> Result<Vec<Action>, Fault> {
        let named = self.scope.named.len();
        let draws = std::mem::replace(&mut self.scope.draws, Draws::Refused(IN_A_BLOCK));

        self.expect("{")?;
        let actions = self.nested(|parser| {
            let mut actions = Vec::new();
            while !parser.take("}") {
                actions.push(parser.action()?);
            }
            Ok(actions)
        })?;

        self.scope.named.truncate(named);
        self.scope.draws = draws;
        Ok(actions)
    }

    /// Takes the actions of `else`, if it comes next: a block, or another condition.
    fn otherwise(&mut self) -> Result<Vec<Action>, Fault> {
        if !self.take("else") {
            Ok(Vec::new())
        } else if self.ahead() == "if" {
            Ok(vec![self.nested(Self::action)?])
        } else {
            self.block()
        }
    }

    /// Takes an action, with its semicolon or block.
    fn action(&mut self) -> Result<Action, Fault> {
        let keyword = self.peek();
        match &self.text[keyword.clone()] {
            "let" => {
                self.at = keyword.end;
                self.assignment()
            }
            "var" => {
                self.at = keyword.end;
                self.variable_definition()
            }
            "set" if self.is_variable_after(keyword.end) => {
                self.at = keyword.end;
                self.change()
            }

            "if" => {
                self.at = keyword.end;
                let condition = self.fixed_number()?;
                let then = self.block()?;
                Ok(Action::If { condition, then, otherwise: self.otherwise()? })
            }
            "for" => {
                self.at = keyword.end;
                self.repetition()
            }
            "on" | "native" => {
                self.at = keyword.end;
                let is_native = &self.text[keyword] == "native";
                self.choice_of_engines(is_native)
            }

            "abort" => {
                self.at = keyword.end;
                self.expect(";")?;
                Ok(Action::Abort)
            }

            "" | "}" | ";" => Err(self.unexpected("an action or `}`")),
            _ => Ok(Action::Statement(self.statement()?)),
        }
    }

    /// Takes the engines of `on` or `native`, and the blocks for them and for all others.
    fn choice_of_engines(&mut self, is_native: bool) -> Result<Action, Fault> {
        let mut engines = vec![self.engine()?];
        while self.take(",") {
            engines.push(self.engine()?);
        }

        let then = self.block()?;
        Ok(Action::On { engines, is_native, then, otherwise: self.otherwise()? })
    }

    fn engine(&mut self) -> Result<Engine, Fault> {
        let span = self.peek();
        let name = self.name("the name of an engine")?;
        ENGINES.into_iter().find(|engine| engine.name() == name).ok_or_else(|| {
            let known = ENGINES.map(Engine::name);
            let message = format!("{} is not an engine with SQL", code(name));
            let mut fault = fault("plan::bad-script", span, message, "unknown engine");
            fault.help(choices(name, "engines", &known));
            fault
        })
    }

    /// Takes a number that is not random.
    fn fixed_number(&mut self) -> Result<Number, Fault> {
        let outer = self.scope.draws.clone();
        if outer == Draws::Allowed {
            self.scope.draws = Draws::Refused("draw it with `let` first");
        }
        let number = self.number();
        self.scope.draws = outer;
        Ok(number?.number)
    }

    /// Takes a statement, perhaps with the rows that it must have.
    fn statement(&mut self) -> Result<ScriptStatement, Fault> {
        if !self.take("expect") {
            return self.sql();
        }

        let rows = if self.take("any") {
            None
        } else {
            let least = self.fixed_number()?;
            let most = if self.take("..") { self.fixed_number()? } else { least.clone() };
            Some((least, most))
        };
        self.expect(":")?;
        Ok(ScriptStatement { rows, ..self.sql()? })
    }

    /// Takes the names and the value after `let`.
    fn assignment(&mut self) -> Result<Action, Fault> {
        let mut names = Vec::new();
        loop {
            let span = self.peek();
            let name = self.name("a name")?.to_owned();
            self.refuse_known(&name, span)?;

            let is_text = self.take(":");
            if is_text {
                self.expect("text")?;
            }
            names.push((name, is_text));
            if !self.take(",") {
                break;
            }
        }
        self.expect("=")?;

        if self.is_query_ahead() || self.ahead() == "expect" {
            return self.taken_row(names);
        }
        match names.pop() {
            Some((name, false)) if names.is_empty() => self.assigned_value(name),
            _ => Err(self.unexpected("a statement that returns a row")),
        }
    }

    /// Takes the name and the first value of a variable that may change.
    fn variable_definition(&mut self) -> Result<Action, Fault> {
        let span = self.peek();
        let name = self.name("a name")?.to_owned();
        self.refuse_known(&name, span)?;
        self.expect("=")?;
        let value = self.fixed_number()?;
        self.expect(";")?;

        let slot = self.scope.add_integers(1);
        let variable = Bounded::variable(slot, (i64::MIN, i64::MAX));
        self.scope.named.push((name, Symbol::Number(variable)));
        self.scope.changeable.push(slot);
        Ok(Action::Number { slot, value })
    }

    /// Returns whether the name at a place is that of a variable that may change. `set` also begins
    /// statements of SQL.
    fn is_variable_after(&self, at: usize) -> bool {
        self.changeable_slot(&self.text[self.token_after(at)]).is_some()
    }

    /// Returns the place of a variable that may change.
    fn changeable_slot(&self, name: &str) -> Option<usize> {
        match self.scope.find(name)? {
            Symbol::Number(Bounded { number: Number::Variable(slot), .. }) => {
                self.scope.changeable.contains(slot).then_some(*slot)
            }
            _ => None,
        }
    }

    /// Takes the name and the new value of a variable that may change.
    fn change(&mut self) -> Result<Action, Fault> {
        let span = self.peek();
        let name = self.name("a name")?;
        let slot = self.changeable_slot(name);
        let slot = slot.ok_or_else(|| self.undefined(name, span))?;
        self.expect("=")?;
        let value = self.fixed_number()?;
        self.expect(";")?;
        Ok(Action::Number { slot, value })
    }

    fn refuse_known(&self, name: &str, span: std::ops::Range<usize>) -> Result<(), Fault> {
        if self.scope.find(name).is_none() {
            return Ok(());
        }
        let message = format!("{} is defined already", code(name));
        let mut fault = fault("plan::bad-name", span, message, "defined twice");
        fault.help("choose another name");
        Err(fault)
    }

    /// Takes a statement, and the variables for the columns of its row.
    fn taken_row(&mut self, names: Vec<(String, bool)>) -> Result<Action, Fault> {
        let has_rows = self.ahead() == "expect";
        let mut statement = self.statement()?;
        if !has_rows {
            let one = Number::Constant(1);
            statement.rows = Some((one.clone(), one));
        }

        for (name, is_text) in names {
            let symbol = if is_text {
                let slot = self.scope.add_text();
                statement.into.push(Taken::Text(slot));
                Symbol::Text(slot)
            } else {
                let slot = self.scope.add_integers(1);
                statement.into.push(Taken::Integer(slot));
                Symbol::Number(Bounded::variable(slot, (i64::MIN, i64::MAX)))
            };
            self.scope.named.push((name, symbol));
        }
        Ok(Action::Statement(statement))
    }

    /// Takes a computed or drawn value.
    fn assigned_value(&mut self, name: String) -> Result<Action, Fault> {
        let (symbol, action) = if self.ahead() == "list" {
            let start = self.peek().start;
            self.take("list");
            self.expect("(")?;
            let count = self.number()?;
            if count.min < 0 || count.max > LIST_MAX {
                let message = format!("a list of {} to {} values", count.min, count.max);
                let label = format!("allowed: 0 to {LIST_MAX}");
                return Err(fault("plan::out-of-range", start..self.at, message, label));
            }
            self.expect(",")?;
            let value = self.number()?;
            self.expect(")")?;

            let capacity = usize::try_from(count.max).unwrap_or_default();
            let places = self.scope.add_integers(1 + capacity);
            let list = List { count: places, first: places + 1, capacity };
            let symbol = Symbol::List(list, (value.min, value.max));
            (symbol, Action::List { list, count: count.number, value: value.number })
        } else if self.is_text_ahead() {
            let value = self.text_value()?;
            let slot = self.scope.add_text();
            (Symbol::Text(slot), Action::Text { slot, value })
        } else {
            let value = self.number()?;
            let slot = self.scope.add_integers(1);
            let symbol = Symbol::Number(Bounded::variable(slot, (value.min, value.max)));
            (symbol, Action::Number { slot, value: value.number })
        };

        self.expect(";")?;
        self.scope.named.push((name, symbol));
        Ok(action)
    }

    /// Takes a loop after its keyword.
    fn repetition(&mut self) -> Result<Action, Fault> {
        let mut names = vec![self.name("a name")?.to_owned()];
        while self.take(",") {
            names.push(self.name("a name")?.to_owned());
        }
        self.expect("in")?;

        let named = self.scope.named.len();
        let is_list = matches!(self.scope.find(self.ahead()), Some(Symbol::List(..)));
        let action = match names.as_slice() {
            [name] if !is_list => {
                let (from, to) = self.range()?;
                let slot = self.scope.add_integers(1);
                let variable = Bounded::variable(slot, (from.min, to.max.max(from.min)));
                self.scope.named.push((name.clone(), Symbol::Number(variable)));
                Action::ForRange { slot, from: from.number, to: to.number, body: self.block()? }
            }
            _ => {
                let mut lists = Vec::new();
                for (number, name) in names.into_iter().enumerate() {
                    if number > 0 {
                        self.expect(",")?;
                    }
                    let (list, bounds) = self.list()?;
                    let slot = self.scope.add_integers(1);
                    lists.push((slot, list));
                    self.scope.named.push((name, Symbol::Number(Bounded::variable(slot, bounds))));
                }
                Action::ForEach { lists, body: self.block()? }
            }
        };
        self.scope.named.truncate(named);
        Ok(action)
    }

    /// Takes the two ends of a range.
    fn range(&mut self) -> Result<(Bounded, Bounded), Fault> {
        let start = self.peek().start;
        let from = self.number()?;
        self.expect("to")?;
        let to = self.number()?;
        if from.draws || to.draws {
            let message = "a random number of iterations";
            return Err(fault(
                "plan::bad-script",
                start..self.at,
                message,
                "draw it with `let` first",
            ));
        }
        Ok((from, to))
    }

    /// Takes the name of a list, and returns it with the bounds of its values.
    fn list(&mut self) -> Result<(List, (i64, i64)), Fault> {
        let span = self.peek();
        let name = self.name("the name of a list")?;
        match self.scope.find(name) {
            Some(Symbol::List(list, bounds)) => Ok((*list, *bounds)),
            Some(_) => {
                let message = format!("{} is not a list", code(name));
                Err(fault("plan::bad-script", span, message, "expected a list"))
            }
            None => Err(self.undefined(name, span)),
        }
    }
}

/// Refuses a transaction without `begin` and `commit` that a failure could leave half done: a retry
/// would repeat the first half.
fn refuse_partial_commits(
    transaction: &Transaction,
    span: std::ops::Range<usize>,
) -> Result<(), Fault> {
    if !transaction.is_autocommitted || !transaction.goes_on_after_writing() {
        return Ok(());
    }
    let message = format!("a failure of {} could not be rolled back", code(&transaction.name));
    let label = "only its last statement may write, because each commits";
    let mut fault = fault("plan::bad-script", span, message, label);
    fault.help("remove `autocommit`");
    Err(fault)
}

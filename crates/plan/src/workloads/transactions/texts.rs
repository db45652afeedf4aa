//! Reads the texts of a script.

use super::bounded::Bounded;
use super::parser::{Draws, Fault, Parser, Symbol, fault};
use crate::spec::transactions::TextValue;
use crate::text::wording::code;

/// The longest random text.
const TEXT_LENGTH_MAX: i64 = 10_000;

/// Functions of texts.
const TEXT_FUNCTIONS: [&str; 5] = ["letters", "digits", "lastname", "either", "numbered"];

impl Parser<'_> {
    /// Returns whether the next value is a text.
    pub(super) fn is_text_ahead(&self) -> bool {
        let token = self.ahead();
        token.starts_with('\'')
            || TEXT_FUNCTIONS.contains(&token)
            || matches!(self.scope.find(token), Some(Symbol::Text(_)))
    }

    /// Takes the computation of a text.
    pub(super) fn text_value(&mut self) -> Result<TextValue, Fault> {
        if let Some(constant) = self.quoted('\'') {
            return Ok(TextValue::Constant(constant));
        }

        let span = self.peek();
        let name = &self.text[span.clone()];
        if let Some(Symbol::Text(slot)) = self.scope.find(name) {
            let slot = *slot;
            self.at = span.end;
            return Ok(TextValue::Variable(slot));
        }
        if !TEXT_FUNCTIONS.contains(&name) {
            let expected = "a text in quotes, `letters(A, B)`, `digits(N)`, `lastname(N)`, \
                            `numbered('TEXT', N)` or `either(CONDITION, A, B)`";
            return Err(self.unexpected(expected));
        }

        self.at = span.end;
        self.expect("(")?;

        // Of all functions of texts, only this one begins with a text.
        if name == "numbered" {
            let Some(prefix) = self.quoted('\'') else {
                return Err(self.unexpected("a text in quotes"));
            };
            self.expect(",")?;
            let number = self.number()?;
            self.expect(")")?;
            return Ok(TextValue::Numbered(prefix, number.number));
        }

        let first = self.length(name)?;
        let value = match name {
            "either" => {
                self.expect(",")?;
                let second = self.nested(Self::text_value)?;
                self.expect(",")?;
                let third = self.nested(Self::text_value)?;
                TextValue::Either(first.number, Box::new([second, third]))
            }
            "letters" => {
                self.expect(",")?;
                TextValue::Letters(first.number, self.length(name)?.number)
            }
            "digits" => TextValue::Digits(first.number),
            _ => TextValue::LastName(first.number),
        };
        self.expect(")")?;

        match (&self.scope.draws, &value) {
            (Draws::Refused(why), TextValue::Letters(..) | TextValue::Digits(_)) => {
                let message = format!("{} draws a random text here", code(name));
                Err(fault("plan::bad-expression", span.start..self.at, message, *why))
            }
            _ => Ok(value),
        }
    }

    /// Takes an argument of a function of texts.
    fn length(&mut self, name: &str) -> Result<Bounded, Fault> {
        let start = self.peek().start;
        let length = self.number()?;
        if !["lastname", "either"].contains(&name)
            && (length.min < 0 || length.max > TEXT_LENGTH_MAX)
        {
            let message = format!("a text of {} to {} characters", length.min, length.max);
            let label = format!("allowed: 0 to {TEXT_LENGTH_MAX}");
            return Err(fault("plan::out-of-range", start..self.at, message, label));
        }
        Ok(length)
    }
}

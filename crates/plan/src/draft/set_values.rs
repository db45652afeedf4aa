//! Writes the values of `--set` arguments into the text of a drafted plan, which keeps its comments.

use std::cmp::Reverse;

use crate::reading::context::Context;
use crate::reading::{document, overrides};
use crate::spec::{Plan, Resolved};
use crate::text::diagnostic::{Place, Span};
use crate::text::tree::{Node, Table, Value};
use crate::text::wording::{key_part, quoted};

/// The path of a draft, which has none yet.
const PATH: &str = "draft.toml";

/// The beginning of the first key of every draft.
const FIRST_KEY: &str = "\nclients = ";

/// A value that the text is to have.
struct SetValue {
    /// The names in its dotted key.
    names: Vec<String>,
    /// The value in TOML.
    toml: String,
    /// The place of the value that it replaces; `None`: the text lacks the key.
    replaced: Option<Span>,
}

/// The values that `--set` arguments give.
struct SetValues<'a> {
    sets: &'a [String],
    /// The values of the plan, in its notation.
    resolved: &'a [Resolved],
    found: Vec<SetValue>,
}

/// Returns the text of a drafted plan that means alone what `text` means with `sets`. Returns `None`
/// if the plan is invalid, or if an argument replaces more than a single value.
pub fn with_sets(text: &str, sets: &[String]) -> Option<String> {
    let (plan, _) = crate::parse(PATH, text, sets).ok()?;

    let mut cx = Context::new(text);
    let drafted = document::read(&mut cx, text)?;
    let mut changed = drafted.clone();
    overrides::apply(&mut cx, &mut changed, sets);

    let mut values = SetValues { sets, resolved: &plan.resolved, found: Vec::new() };
    values.add_changes(&[], &drafted, &changed)?;
    let text_alone = written(text, values.found);

    // The origins of values differ, and nothing else may.
    let (alone, _) = crate::parse(PATH, &text_alone, &[]).ok()?;
    let is_same = Plan { resolved: Vec::new(), ..plan } == Plan { resolved: Vec::new(), ..alone };
    is_same.then_some(text_alone)
}

impl SetValues<'_> {
    /// Adds the values that `changed` has and `drafted` lacks. Returns `None` if a whole table is
    /// replaced, which the text may have in several places.
    fn add_changes(&mut self, path: &[String], drafted: &Table, changed: &Table) -> Option<()> {
        for entry in &changed.entries {
            let mut names = path.to_vec();
            names.push(entry.key.clone());
            let before = drafted.entries.iter().find(|other| other.key == entry.key);
            let is_given = matches!(entry.node.place, Place::Set { .. });

            if let Value::Table(inner) = &entry.node.value {
                match before.map(|other| &other.node.value) {
                    None => self.add_changes(&names, &Table::default(), inner)?,
                    Some(Value::Table(known)) if !is_given => {
                        self.add_changes(&names, known, inner)?;
                    }
                    Some(_) => return None,
                }
            } else if is_given {
                let toml = self.toml_of(&entry.key, &entry.node)?;
                let replaced = match before {
                    Some(other) => Some(span_of(&other.node)?),
                    None => None,
                };
                self.found.push(SetValue { names, toml, replaced });
            }
        }

        Some(())
    }

    /// Returns the value of an argument in TOML.
    fn toml_of(&self, key: &str, node: &Node) -> Option<String> {
        let Place::Set { index, span } = node.place else {
            return None;
        };
        let Value::Bare(text) = &node.value else {
            return self.sets.get(index)?.get(span.start..span.end).map(str::to_owned);
        };

        // The key decides whether such text is a number, a string or a list.
        let end = key_part(key);
        let mut values = self.resolved.iter();
        let noted = values.find(|value| value.place == node.place && value.key.ends_with(&end));
        match noted {
            Some(value) => Some(value.value.clone()),
            None => Some(quoted(text)),
        }
    }
}

/// Returns the place of a value in the text of the draft.
fn span_of(node: &Node) -> Option<Span> {
    match node.place {
        Place::File(span) => Some(span),
        Place::Set { .. } | Place::Nowhere => None,
    }
}

/// Writes values into a text.
fn written(text: &str, mut values: Vec<SetValue>) -> String {
    let mut out = text.to_owned();

    // From the end, so that the places of those before stay right.
    values.sort_by_key(|value| value.replaced.map(|span| Reverse(span.start)));
    for value in &values {
        if let Some(span) = value.replaced {
            out.replace_range(span.start..span.end, &value.toml);
        }
    }

    for value in &values {
        if value.replaced.is_none() {
            add(&mut out, value);
        }
    }
    out
}

/// Adds a value at the end of the innermost table around it whose header the text has. If it has none
/// of them, the table is added at the end.
fn add(text: &mut String, value: &SetValue) {
    let parts: Vec<String> = value.names.iter().map(|name| key_part(name)).collect();

    for depth in (1..parts.len()).rev() {
        let header = format!("\n[{}]", parts[..depth].join("."));
        if let Some(newline) = text.find(&header) {
            let end = end_of_table(text, newline + 1);
            let key = parts[depth..].join(".");
            text.insert_str(end, &format!("{key} = {}\n", value.toml));
            return;
        }
    }

    let Some((key, tables)) = parts.split_last() else {
        return;
    };
    let line = format!("{key} = {}\n", value.toml);
    if tables.is_empty() {
        let first_at = text.find(FIRST_KEY).map_or(0, |newline| newline + 1);
        text.insert_str(first_at, &line);
    } else {
        text.push_str(&format!("\n[{}]\n{line}", tables.join(".")));
    }
}

/// Returns the end of the last value of the table whose header is at `header_at`. Comments after that
/// are about the next table.
fn end_of_table(text: &str, header_at: usize) -> usize {
    let (mut end, mut line_end) = (header_at, header_at);
    for line in text[header_at..].split_inclusive('\n') {
        if line_end > header_at && line.starts_with('[') {
            break;
        }

        line_end += line.len();
        if !line.trim().is_empty() && !line.starts_with('#') {
            end = line_end;
        }
    }

    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::{Draft, DraftBuild, DraftConfig, DraftRepeats, DraftWorkload, Template};
    use crate::{Engine, Reuse};

    /// Returns the draft of a plan that compares two configs of SQLite.
    fn drafted() -> String {
        let source = "bundled".to_owned();
        let builds = [DraftBuild { name: "one".to_owned(), engine: Engine::Sqlite, source }];
        let configs = Vec::from_iter(DraftConfig::second_of(Engine::Sqlite));
        let draft = Draft {
            head: "A plan.".to_owned(),
            template: Template::of(Some(DraftWorkload::Insert), Engine::Sqlite),
            is_quick: true,
            builds: &builds,
            clients: &[1],
            configs: &configs,
            has_base: true,
            is_against_itself: false,
            reuse: Reuse::Off,
            exact: None,
        };
        draft.text(DraftRepeats::Count(7))
    }

    fn with(sets: &[&str]) -> Option<String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        with_sets(&drafted(), &sets)
    }

    #[test]
    fn values_of_set_are_written_and_the_comments_stay() {
        let text = with(&[
            "clients=1,4",
            "seed=7",
            "workload.insert.initial-rows=2000",
            "workload.insert.step.\"l.i1\".time=\"100ms\"",
            "config.sqlite.base.set.mmap_size=1G",
            "config.sqlite.full.set.cache_size=-4000",
            "profile.repeats=2",
            "profile.frequency=99",
        ])
        .unwrap();

        for lines in [
            "# A plan.\n",
            "\nseed = 7\nclients = [1, 4]  # each number",
            "\ninitial-rows = \"2k\"   # loaded by",
            "\nstep.\"l.i1\".time = \"100ms\"  # a time and not rows",
            "  # KiB\nmmap_size = \"1G\"\n",
            "\nset.synchronous = \"full\"\nset.cache_size = -4000\n",
            "\n[profile]\nrepeats = 2\nfrequency = 99\n",
        ] {
            assert!(text.contains(lines), "no `{lines}` in\n{text}");
        }
        assert_eq!(with(&[]).unwrap(), drafted());
    }

    #[test]
    fn a_table_that_is_replaced_and_a_wrong_step_are_not_written() {
        assert_eq!(with(&["workload.insert={steps=[\"l.i0\"]}"]), None);
        assert_eq!(with(&["workload.insert.steps=l.i0,l.y"]), None);
    }
}

//! Writes tables and sentences into a text, for a terminal or as Markdown.

use std::collections::BTreeSet;

use analysis::{explain::Finding, figures::Figures, settings::Settings};
use record::Run;
use unicode_width::UnicodeWidthStr;

use super::layout::{rendered, split};
use crate::model::matrix::Matrix;
use crate::model::number::{listed, moment, typeset, with_microseconds};
use crate::model::repeats::folded;
use crate::model::table::Table;
use crate::model::text::terminal_text;
use crate::printers::markdown;
use crate::prose::Passage;
use crate::prose::findings::FindingPassages;
use crate::prose::method::Method;
use crate::prose::problems::{Problem, Severity, problems};
use crate::prose::run::{ended, targets, took};
use crate::prose::settings::{Block, blocks};
use crate::prose::validity::Validity;

/// The style of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStyle {
    /// Uses colors. The caller checks `NO_COLOR` and for a terminal; marks are always shown.
    pub color: bool,
    /// The columns of the terminal: wider tables are split. `None`: no limit.
    pub width: Option<usize>,
    /// Uses Unicode signs for arrows, not ASCII.
    pub unicode: bool,
    /// Lists all settings, and shows long values in full.
    pub all_settings: bool,
    /// Shows each repeat of a target instead of the median of all.
    pub each_repeat: bool,
    /// Writes Markdown, which has neither colors nor a width.
    pub markdown: bool,
}

/// The maximum length of the rule above a step.
const RULE_MAX: usize = 100;

/// The maximum number of rows of an undivided table. Longer tables are divided by variant and
/// number of clients.
const ROWS_TOGETHER_MAX: usize = 24;

/// The colors of titles and words.
const BOLD: &str = "1";
const BOLD_AMBER: &str = "1;33";
const AMBER: &str = "33";
const RED: &str = "31";

/// The maximum number of places that a problem lists.
const PLACES_MAX: usize = 4;

/// The space before the paragraphs of a finding.
const FINDING_INDENT: &str = "   ";

/// Text under construction, for a terminal or as Markdown.
pub(crate) struct TerminalWriter {
    style: TableStyle,
    is_markdown: bool,
    text: String,
    /// The names and the methods that were explained already.
    explained: BTreeSet<String>,
}

impl TerminalWriter {
    /// Returns an empty text for a terminal, or as Markdown.
    pub(crate) fn new(style: TableStyle) -> Self {
        let is_markdown = style.markdown;
        let style = if is_markdown {
            TableStyle { color: false, width: None, unicode: true, ..style }
        } else {
            style
        };
        Self { style, is_markdown, text: String::new(), explained: BTreeSet::new() }
    }

    /// Returns an empty Markdown text.
    pub(crate) fn markdown() -> Self {
        Self::new(TableStyle { markdown: true, ..TableStyle::default() })
    }

    pub(crate) fn is_markdown(&self) -> bool {
        self.is_markdown
    }

    pub(crate) fn finish(self) -> String {
        if self.is_markdown { markdown::squeezed(&self.text) } else { self.text }
    }

    /// Writes what was run, when, how it ended, and whether its figures are valid.
    pub(super) fn head(&mut self, run: &Run, figures: &Figures) {
        let took = took(run).map_or_else(String::new, |took| format!(" in {took}"));
        let validity = Validity::of(figures);
        let title = format!("{}: {}{took}; {}", run.name, ended(run), validity.text);

        self.colored_title(if validity.is_good { BOLD } else { BOLD_AMBER }, &title);
        self.line(&format!(
            "{}, seed {}, assay {}",
            moment(run.started_unix_ns),
            run.seed,
            run.assay
        ));
    }

    /// Writes a line about each target.
    pub(super) fn targets(&mut self, run: &Run) {
        for target in targets(run) {
            self.wrapped("  ", &format!("{}: {}", target.name, target.text));
        }
    }

    /// Writes an answer and the figures that it rests on. In Markdown the sentences are first; in a
    /// terminal they are last, where they stay in view.
    pub(super) fn answer(&mut self, answer: &Passage) {
        if self.is_markdown {
            self.answer_sentences(answer);
        }

        for table in &answer.figures {
            self.table(table);
        }

        if !self.is_markdown {
            self.answer_sentences(answer);
        }
    }

    /// Writes the sentences of an answer, without its tables.
    pub(super) fn answer_sentences(&mut self, answer: &Passage) {
        self.gap();
        self.title(&answer.heading);

        let more = answer.text();

        if !more.is_empty() {
            self.line(&more);
        }

        if let Some(doubt) = &answer.doubt {
            self.warning(doubt);
        }
    }

    /// Writes a paragraph for each finding, with its caveats and figures, and the number of the
    /// less important findings.
    pub(super) fn findings(&mut self, findings: &[Finding]) {
        let findings = FindingPassages::of(findings, "\u{b5}s");
        if findings.shown.is_empty() {
            return;
        }

        self.gap();
        self.title("Findings");
        for (index, finding) in findings.shown.iter().enumerate() {
            if index > 0 {
                self.gap();
            }

            self.line(&format!("{}. {}", index + 1, finding.heading));
            self.wrapped(FINDING_INDENT, &finding.text());
            if let Some(doubt) = &finding.doubt {
                self.wrapped(FINDING_INDENT, doubt);
            }

            for table in &finding.figures {
                self.untitled_table(table);
            }
        }

        if let Some(remainder) = &findings.remainder {
            self.line(remainder);
        }
    }

    /// Writes how the targets were compared and what the verdicts mean, what is said of several
    /// groups only once.
    pub(super) fn method(&mut self, method: &Method) {
        self.gap();
        for paragraph in method.all() {
            if self.explained.insert(paragraph.clone()) {
                self.line(paragraph);
            }
        }
    }

    /// Writes a text line by line, without control characters.
    pub(super) fn verbatim(&mut self, text: &str) {
        // Four spaces make a code block in Markdown.
        let indent = if self.is_markdown { "    " } else { "" };
        for line in text.lines() {
            self.text += &format!("{indent}{}\n", terminal_text(line));
        }
    }

    /// Begins the part of a step.
    pub(super) fn heading(&mut self, name: &str) {
        if self.is_markdown {
            self.text.push_str(&markdown::heading(2, name));
            return;
        }

        let width = self.style.width.unwrap_or(RULE_MAX).min(RULE_MAX);
        let name = terminal_text(name);
        let rule = "━".repeat(width.saturating_sub(name.width() + 4));
        let line = self.colored(&format!("━━ {name} {rule}"), BOLD);

        self.text.push_str(&format!("\n\n{line}\n"));
    }

    pub(crate) fn tables(&mut self, tables: impl IntoIterator<Item = Table>) {
        tables.into_iter().for_each(|table| self.table(&table));
    }

    /// Writes a table, with one row or column for all repeats of a target unless each is wanted.
    pub(crate) fn table(&mut self, table: &Table) {
        if table.is_empty() {
            return;
        }

        let folded = if self.style.each_repeat { None } else { folded(table) };
        let table = folded.as_ref().unwrap_or(table);

        self.gap();
        self.title(&table.title);

        if table.rows.len() > ROWS_TOGETHER_MAX {
            self.table_by_group(table);
        } else {
            self.untitled_table(table);
        }

        self.notes(table);
    }

    /// Writes a long table, divided into groups of rows that are compared with each other.
    fn table_by_group(&mut self, table: &Table) {
        let all = table.groups();
        let has_several = all.len() > 1;
        // In an unfinished or partial run, whole groups may be empty.
        let (groups, empty): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, group)| group.has_figures());
        if !has_several || groups.is_empty() {
            self.untitled_table(table);
            return;
        }

        for (number, (name, group)) in groups.iter().enumerate() {
            if number > 0 {
                self.text.push('\n');
            }
            self.line(&format!("{name}:"));
            self.untitled_table(group);
        }

        if !empty.is_empty() {
            let names: Vec<&str> = empty.iter().map(|(name, _)| name.as_str()).collect();
            self.wrapped("  ", &format!("no figures for: {}", names.join("; ")));
        }
    }

    /// Writes what is below a table. Names are explained only once in a text.
    fn notes(&mut self, table: &Table) {
        let mut names = table.names.clone();
        names.retain(|name| self.explained.insert(name.clone()));
        if !names.is_empty() {
            self.wrapped("  ", &names.join("; "));
        }

        let meanings: Vec<String> = table
            .legend()
            .into_iter()
            .map(|(tone, meaning)| format!("`{}` {meaning}", tone.mark()))
            .collect();
        if !meanings.is_empty() {
            self.wrapped("  ", &meanings.join("; "));
        }

        for note in &table.notes {
            self.wrapped("  ", note);
        }
    }

    /// Writes a table without its title, split into as many tables as the width requires; nothing
    /// for an empty one.
    fn untitled_table(&mut self, table: &Table) {
        if table.is_empty() {
            return;
        }

        if self.is_markdown {
            self.text.push_str(&markdown::table(table));
            return;
        }

        for (part, columns) in split(table, self.style.width).into_iter().enumerate() {
            if part > 0 {
                self.text.push('\n');
            }
            self.text.push_str(&rendered(table, columns, self.style));
            self.text.push('\n');
        }
    }

    pub(super) fn settings(&mut self, settings: &Settings) {
        let blocks = blocks(settings, self.style.all_settings);
        if !blocks.is_empty() {
            self.text.push('\n');
            self.title("What differs between targets");
            self.blocks(&blocks);
        }
    }

    /// Writes the differences between settings without a title.
    pub(super) fn setting_blocks(&mut self, settings: &Settings) {
        self.blocks(&blocks(settings, self.style.all_settings));
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            let has_heading = !block.heading.is_empty();
            if has_heading {
                self.line(&block.heading);
            }
            for line in &block.lines {
                self.wrapped(if has_heading { "  " } else { "" }, line);
            }
        }
    }

    pub(super) fn problems(&mut self, run: &Run, figures: &Figures, matrix: &Matrix<'_>) {
        let problems = problems(&[run], figures, matrix);
        if problems.is_empty() {
            return;
        }

        self.gap();
        self.title("Problems and warnings");

        for problem in &problems {
            self.problem(problem);
        }
    }

    fn problem(&mut self, problem: &Problem) {
        let word = problem.severity.word();
        let place = match problem.places.as_slice() {
            [] => String::new(),
            places => format!(" ({})", listed(places, PLACES_MAX, "; ")),
        };
        if self.is_markdown {
            let texts = problem.texts.join("; ");
            self.wrapped("  ", &format!("{word}: {texts}{place}"));
            return;
        }

        let mut texts = problem.texts.iter();
        let first = texts.next().map_or("", String::as_str);
        let from = self.text.len();
        self.wrapped("", &format!("{word}: {first}{place}"));

        // The word is colored after the line was wrapped: color codes have no width.
        let color = match problem.severity {
            Severity::Error => RED,
            Severity::Damaged | Severity::Missing | Severity::Invalid | Severity::Warning => AMBER,
        };
        let colored = self.colored(word, color);
        self.text.replace_range(from..from + word.len(), &colored);

        for text in texts {
            self.wrapped("  ", text);
        }
    }

    fn colored(&self, text: &str, code: &str) -> String {
        if self.style.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }

    /// Writes a paragraph in the color of warnings.
    pub(crate) fn warning(&mut self, text: &str) {
        self.colored_paragraph(AMBER, text);
    }

    /// Adds an empty line, except at the beginning.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Writes the title of the text.
    pub(crate) fn main_title(&mut self, title: &str) {
        self.colored_title(BOLD, title);
    }

    fn colored_title(&mut self, color: &str, title: &str) {
        if self.is_markdown {
            self.text.push_str(&markdown::heading(2, title));
        } else {
            self.colored_paragraph(color, title);
        }
    }

    pub(crate) fn title(&mut self, title: &str) {
        if self.is_markdown {
            self.text.push_str(&markdown::heading(3, title));
            return;
        }
        self.colored_paragraph(BOLD, title);
    }

    /// Writes a paragraph in a color.
    fn colored_paragraph(&mut self, color: &str, text: &str) {
        let from = self.text.len();
        self.wrapped("", text);
        if self.style.color && !self.is_markdown {
            let text = self.text.split_off(from);
            self.text.push_str(&self.colored(text.trim_end(), color));
            self.text.push('\n');
        }
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.wrapped("", text);
    }

    /// Wraps a paragraph to the terminal's width and removes backticks. Indents lines after the
    /// first by two more spaces. In Markdown, indented paragraphs are list items.
    pub(crate) fn wrapped(&mut self, indent: &str, text: &str) {
        let text = if self.style.unicode { typeset(text) } else { with_microseconds(text) };
        if self.is_markdown {
            let is_item = !indent.is_empty();
            self.text.push_str(&markdown::paragraph(&text, is_item));
            return;
        }

        // However narrow a terminal is, a line has room for words.
        let width = self.style.width.unwrap_or(usize::MAX).max(20);
        let mut line = indent.to_string();
        let mut is_empty = true;
        for word in terminal_text(&text).replace('`', "").split_whitespace() {
            if !is_empty && line.width() + 1 + word.width() > width {
                self.text.push_str(&line);

                self.text.push('\n');
                line = format!("{indent}  ");
                is_empty = true;
            }

            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }

        self.text.push_str(&line);
        self.text.push('\n');
    }
}

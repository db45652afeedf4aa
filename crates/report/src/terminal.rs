//! Formats tables for a terminal or as Markdown.

mod layout;

use std::collections::BTreeSet;

use analysis::figures::Figures;
use analysis::settings::Settings;
use record::Run;
use unicode_width::UnicodeWidthStr;

use crate::answer;
use crate::classic;
use crate::compared::{self, Comparison};
use crate::differences::{Block, blocks};
use crate::findings;
use crate::grouped;
use crate::lsm;
use crate::markdown;
use crate::matrix::{Matrix, StepHead};
use crate::metrics;
use crate::number::{listed, moment, typeset};
use crate::operations::split_kinds;
use crate::problems::{Problem, Severity, ended, problems, targets, took, verdict};
use crate::quality;
use crate::searches;
use crate::table::{Table, anchor};
use crate::times;
use layout::{rendered, split};

/// The style of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStyle {
    /// Uses colors. The caller checks `NO_COLOR` and for a terminal; marks are always shown.
    pub color: bool,
    /// The columns of the terminal: wider tables are split. `None`: no limit.
    pub width: Option<usize>,
    /// Uses Unicode signs for arrows and microseconds, not ASCII.
    pub unicode: bool,
    /// Lists all settings, and shows long values in full.
    pub all_settings: bool,
}

/// The maximum length of the rule above a step.
const RULE_MAX: usize = 100;

/// The maximum number of rows of an undivided table. Longer tables are divided by variant and
/// number of clients.
const ROWS_TOGETHER_MAX: usize = 24;

/// The maximum number of lines with which the tables of operations are shown for all steps.
const DETAILED_LINES_MAX: usize = 24;

/// The maximum number of tests with which the tables of each test are shown.
const TESTS_EACH_MAX: usize = 12;

/// The colors of titles and words.
const BOLD: &str = "1";
const BOLD_AMBER: &str = "1;33";
const AMBER: &str = "33";
const RED: &str = "31";

/// The maximum number of places that a problem lists.
const PLACES_MAX: usize = 4;

/// Makes text of other sources safe to print. Removes control characters and marks that change the
/// direction of writing, so that a server's message or a name can't move the cursor, color the
/// screen or hide text. Line breaks and tabs become spaces.
pub fn terminal_text(text: &str) -> String {
    text.chars()
        .filter_map(|letter| match letter {
            '\n' | '\t' => Some(' '),
            _ => printable(letter),
        })
        .collect()
}

/// Returns whether a character is neither a control character nor changes the direction of writing.
pub fn is_printable(letter: char) -> bool {
    printable(letter).is_some()
}

/// Returns the character unless a terminal would obey it: a control character, or a mark that turns
/// the direction of writing.
pub(crate) fn printable(letter: char) -> Option<char> {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (!letter.is_control() && !turns).then_some(letter)
}

/// Formats all `figures` as tables, the most important first.
pub fn tables(run: &Run, figures: &Figures, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    write_tables(&mut out, run, figures);
    out.finish()
}

/// Formats all `figures` as Markdown.
pub fn tables_markdown(run: &Run, figures: &Figures, all_settings: bool) -> String {
    let mut out = TerminalWriter::markdown(all_settings);
    write_tables(&mut out, run, figures);
    out.finish()
}

fn write_tables(out: &mut TerminalWriter, run: &Run, figures: &Figures) {
    let matrix = Matrix::new(run, figures);
    let (compared, findings) = findings::of(run, figures);
    let comparison = Comparison::of_run(run, figures, &compared, &findings);
    out.head(run, figures);
    if out.is_markdown {
        answer::write(out, &comparison);
    }

    out.targets(run);
    out.tables(searches::table(run, figures));
    out.tables(classic::summary(&matrix));
    out.tables(classic::rates(&matrix));
    out.table(&lsm::stalled(&matrix));
    findings::write(out, &findings);
    out.table(&classic::fairness(&matrix));
    out.tables(grouped::costs(&matrix));
    out.tables(grouped::times(&matrix));
    out.tables(classic::lengths(&matrix));
    out.table(&quality::debt(&matrix));
    out.settings(&figures.settings);
    out.problems(run, figures, &matrix);

    write_steps(out, &matrix);
    // In a terminal the answer is last, where it stays in view.
    if !out.is_markdown {
        answer::write(out, &comparison);
    }
}

/// Writes the tables of each step, and which are left out because there would be too many.
fn write_steps(out: &mut TerminalWriter, matrix: &Matrix<'_>) {
    let has_one_step = matrix.measured().count() < 2;
    let is_detailed = matrix.lines.len() <= DETAILED_LINES_MAX || has_one_step;
    let tests = matrix.measured().filter(|step| step.group.is_some()).count();
    let are_tests_shown = tests <= TESTS_EACH_MAX;
    for step in matrix.measured().filter(|step| step.group.is_none() || are_tests_shown) {
        out.heading(step.name);
        out.tables(of_step(matrix, step));
        if is_detailed {
            out.tables(details_of_step(matrix, step));
        }
    }

    if !are_tests_shown {
        out.gap();
        out.line(&format!(
            "The other tables of each test are omitted, since there are {tests} tests: `--step NAME` shows those of one \
             test, `--format csv` shows all figures."
        ));
    }
    if !is_detailed {
        out.gap();
        out.line(&format!(
            "The tables of stalls, shifts, operations and response times are omitted, since there are {} lines: \
             `--step NAME` shows those of one step, `--format json` shows all figures.",
            matrix.lines.len()
        ));
    }
}

/// Returns the short tables of a step.
fn of_step(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let mut tables = vec![
        metrics::metrics(matrix, step),
        metrics::costs(matrix, step),
        metrics::time(matrix, step),
        metrics::upkeep(matrix, step),
        metrics::replication(matrix, step),
        quality::spread(matrix, step),
    ];
    tables.extend(lsm::tables(matrix, step));
    tables
}

/// Returns the longer tables of a step.
fn details_of_step(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let (kinds, _) = split_kinds(matrix, step);
    let mut tables = quality::details(matrix, step);
    tables.push(times::accounting(matrix, step));
    tables.push(times::buckets(matrix, step, &kinds));
    tables.push(times::percentiles(matrix, step, &kinds));
    tables
}

/// Formats the tables with these names, step by step; as Markdown if there is no style.
///
/// # Errors
/// Returns an unknown name, and the known names.
pub fn tables_named(
    run: &Run,
    figures: &Figures,
    names: &[String],
    style: Option<TableStyle>,
) -> Result<String, (String, Vec<String>)> {
    let mut out = TerminalWriter::of_style(style);
    let matrix = Matrix::new(run, figures);
    let mut known: Vec<String> = Vec::new();
    for step in matrix.measured() {
        // The identifier of a table is its name with the step, which makes it unique in a page.
        let suffix = format!("-{}", anchor(step.name));
        let mut has_heading = false;
        for table in all_of_step(&matrix, step) {
            let name = table.id.strip_suffix(&suffix).unwrap_or(&table.id);
            if names.iter().any(|wanted| wanted == name) {
                if !has_heading {
                    out.heading(step.name);
                    has_heading = true;
                }
                out.table(&table);
            }
            if !known.iter().any(|known| known == name) {
                known.push(name.to_string());
            }
        }
    }

    match names.iter().find(|name| !known.contains(name)) {
        Some(unknown) => Err((unknown.clone(), known)),
        None => Ok(out.finish()),
    }
}

/// Returns all tables of a step that are not empty.
fn all_of_step(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let mut tables = of_step(matrix, step);
    tables.extend(details_of_step(matrix, step));
    tables.extend(metrics::of_host(matrix, step));
    tables.push(classic::counters(matrix, step));
    tables.retain(|table| !table.is_empty());
    tables
}

/// Formats texts with their headings, line by line and without control characters; as Markdown if
/// there is no style.
pub fn verbatim(texts: &[(String, String)], style: Option<TableStyle>) -> String {
    let mut out = TerminalWriter::of_style(style);
    // Four spaces make a code block in Markdown.
    let indent = if out.is_markdown { "    " } else { "" };
    for (heading, text) in texts {
        out.heading(heading);
        for line in text.lines() {
            out.text += &format!("{indent}{}\n", terminal_text(line));
        }
    }
    out.finish()
}

/// Formats the tables for the end of a run: throughput, insert rate, problems, findings, and last,
/// where it stays visible, the answer.
pub fn tables_brief(run: &Run, figures: &Figures, style: TableStyle) -> String {
    let matrix = Matrix::new(run, figures);
    let (compared, findings) = findings::of(run, figures);
    let comparison = Comparison::of_run(run, figures, &compared, &findings);
    let mut out = TerminalWriter::new(style);
    out.head(run, figures);

    // Of a search, the rates that it tried are all there is to show.
    if let Some(search) = searches::table(run, figures) {
        out.problems(run, figures, &matrix);
        out.tables([search]);
        answer::write(&mut out, &comparison);
        return out.finish();
    }

    out.tables(classic::summary(&matrix));
    out.tables(classic::rates(&matrix));
    out.table(&lsm::stalled(&matrix));
    out.problems(run, figures, &matrix);
    findings::write(&mut out, &findings);
    if compared::is_repeated(&compared) {
        out.tables(compared::other_verdicts(&comparison));
        compared::write_method(&mut out, &compared);
    }
    answer::write(&mut out, &comparison);
    out.finish()
}

/// Formats only the answer, with its verdicts.
pub fn tables_summary(run: &Run, figures: &Figures, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    let (compared, findings) = findings::of(run, figures);
    let comparison = Comparison::of_run(run, figures, &compared, &findings);
    answer::write(&mut out, &comparison);
    out.finish()
}

/// Formats only the differences between settings.
pub fn differences(settings: &Settings, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    out.blocks(&blocks(settings, style.all_settings));
    out.text
}

/// Text under construction, for a terminal or as Markdown.
pub(crate) struct TerminalWriter {
    style: TableStyle,
    is_markdown: bool,
    text: String,
    /// The names that were explained already.
    explained_names: BTreeSet<String>,
}

impl TerminalWriter {
    /// Returns an empty text for a terminal.
    pub(crate) fn new(style: TableStyle) -> Self {
        Self { style, is_markdown: false, text: String::new(), explained_names: BTreeSet::new() }
    }

    /// Returns an empty Markdown text, which has neither colors nor a width.
    pub(crate) fn markdown(all_settings: bool) -> Self {
        let style = TableStyle { all_settings, unicode: true, ..TableStyle::default() };
        Self { is_markdown: true, ..Self::new(style) }
    }

    /// Returns a text of a style; Markdown without one.
    fn of_style(style: Option<TableStyle>) -> Self {
        style.map_or_else(|| Self::markdown(false), Self::new)
    }

    pub(crate) fn is_markdown(&self) -> bool {
        self.is_markdown
    }

    /// Returns the unit of microseconds: `µs`, or `us` in ASCII.
    pub(crate) fn microseconds(&self) -> &'static str {
        if self.style.unicode { "\u{b5}s" } else { "us" }
    }

    pub(crate) fn finish(self) -> String {
        if self.is_markdown { markdown::squeezed(&self.text) } else { self.text }
    }

    /// Writes what was run, when, how it ended, and whether its figures are valid.
    fn head(&mut self, run: &Run, figures: &Figures) {
        let took = took(run).map_or_else(String::new, |took| format!(" in {took}"));
        let (verdict, is_good) = verdict(figures);
        let title = format!("{}: {}{took}; {verdict}", run.name, ended(run));
        self.colored_title(if is_good { BOLD } else { BOLD_AMBER }, &title);
        self.line(&format!(
            "{}, seed {}, assay {}",
            moment(run.started_unix_ns),
            run.seed,
            run.assay
        ));
    }

    /// Writes a line about each target.
    fn targets(&mut self, run: &Run) {
        for (name, text) in targets(run) {
            self.wrapped("  ", &format!("{name}: {text}"));
        }
    }

    /// Begins the part of a step.
    fn heading(&mut self, name: &str) {
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

    pub(crate) fn table(&mut self, table: &Table) {
        if table.is_empty() {
            return;
        }
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
        names.retain(|name| self.explained_names.insert(name.clone()));
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
    pub(crate) fn untitled_table(&mut self, table: &Table) {
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

    fn settings(&mut self, settings: &Settings) {
        let blocks = blocks(settings, self.style.all_settings);
        if !blocks.is_empty() {
            self.text.push('\n');
            self.title("What differs between targets");
            self.blocks(&blocks);
        }
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

    fn problems(&mut self, run: &Run, figures: &Figures, matrix: &Matrix<'_>) {
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
        let text = if self.style.unicode { typeset(text) } else { text.to_string() };
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

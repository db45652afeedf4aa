//! Computes the tables that the author of a campaign published, with his arithmetic, and compares
//! them with what he printed, cell by cell.
//!
//! This is the proof that files are understood: a reader that takes a wrong column cannot give the
//! digits of a table. Records have other figures, which leave out what the author's scripts count
//! by mistake.

mod from_raw;
mod from_tables;
mod grid;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use crate::assembly::Understood;
use crate::campaign::{Campaign, CampaignError, Pattern, PublishedRule};
use crate::files::{WalkError, walk};
use from_raw::Raw;

/// The largest published table in bytes.
const TABLE_BYTES_MAX: u64 = 4 << 20;

/// The most tables that are kept.
const TABLES_MAX: usize = 20_000;

/// The most different cells that are listed for a kind.
const LISTED_MAX: usize = 10;

/// The kinds of tables.
const KINDS: [&str; 9] = [
    "sysbench-rates",
    "sysbench-costs",
    "cost-table",
    "ratios",
    "csv-of",
    "metric-ratios",
    "value-ratios",
    "index-seconds",
    "second-lines",
];

/// The comparison of a campaign's tables.
#[derive(Debug, Default)]
pub struct Published {
    /// A comparison for each rule.
    pub tables: Vec<PublishedTables>,
}

/// The comparison of the tables of one rule.
#[derive(Debug, Default)]
pub struct PublishedTables {
    /// The pattern of their paths.
    pub pattern: String,
    /// The kind.
    pub kind: String,
    /// The number of tables.
    pub table_count: usize,
    /// Cells whose digits follow from the files.
    pub equal: usize,
    /// Cells that another quirk explains, by the quirk.
    pub explained: BTreeMap<String, usize>,
    /// Cells whose files the campaign does not have.
    pub without_files: usize,
    /// Cells that nothing explains.
    pub different: Vec<String>,
}

impl Published {
    /// Returns the number of cells of all tables that are equal, explained and different.
    pub fn counts(&self) -> [usize; 3] {
        let explained = |tables: &PublishedTables| tables.explained.values().sum::<usize>();
        [
            self.tables.iter().map(|tables| tables.equal).sum(),
            self.tables.iter().map(explained).sum(),
            self.tables.iter().map(|tables| tables.different.len()).sum(),
        ]
    }

    /// Returns a line for each rule, and lines for cells that are not equal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for tables in &self.tables {
            let count = words::counted(tables.table_count, "table");
            let _ = writeln!(
                text,
                "{} ({}): {count}, {} equal, {} explained, {} different, {} without files",
                tables.pattern,
                tables.kind,
                words::counted(tables.equal, "cell"),
                tables.explained.values().sum::<usize>(),
                tables.different.len(),
                tables.without_files
            );

            for (quirk, count) in &tables.explained {
                let _ = writeln!(text, "  {count} explained: {quirk}");
            }
            for cell in tables.different.iter().take(LISTED_MAX) {
                let _ = writeln!(text, "  different: {cell}");
            }
        }

        let [equal, explained, different] = self.counts();
        let without: usize = self.tables.iter().map(|tables| tables.without_files).sum();
        let _ = writeln!(
            text,
            "all cells: {equal} equal, {explained} explained, {different} different, {without} without files"
        );
        text
    }
}

/// A printed cell with what follows from the files.
struct Cell {
    /// The row and the column.
    place: String,
    printed: String,
    /// `Err`: nothing follows, with the reason.
    computed: Result<String, String>,
    /// The campaign does not have its files.
    is_without_files: bool,
    /// The cell as another quirk gives it.
    quirk: Option<Quirk>,
}

/// Another way in which a cell may have come about.
struct Quirk {
    computed: String,
    name: &'static str,
}

impl Cell {
    fn new(place: String, printed: &str, computed: Result<String, String>) -> Self {
        let is_without_files = false;
        Self { place, printed: printed.to_owned(), computed, is_without_files, quirk: None }
    }

    fn without_files(place: String, printed: &str) -> Self {
        let computed = Err(String::new());
        Self { is_without_files: true, ..Self::new(place, printed, computed) }
    }

    fn with_quirk(mut self, computed: String, name: &'static str) -> Self {
        self.quirk = Some(Quirk { computed, name });
        self
    }
}

impl PublishedTables {
    fn add(&mut self, path: &str, cell: Cell) {
        if cell.is_without_files {
            self.without_files += 1;
            return;
        }
        if cell.computed.as_ref().is_ok_and(|computed| *computed == cell.printed) {
            self.equal += 1;
            return;
        }
        if let Some(quirk) = cell.quirk.filter(|quirk| quirk.computed == cell.printed) {
            *self.explained.entry(quirk.name.to_owned()).or_default() += 1;
            return;
        }
        let computed = match cell.computed {
            Ok(computed) => format!("the files give {computed}"),
            Err(reason) => reason,
        };
        let (place, printed) = (cell.place, cell.printed);
        self.different.push(format!("{path}: {place} is {printed}, and {computed}"));
    }
}

/// The texts of all tables by their paths.
type Texts = BTreeMap<String, String>;

/// Compares the tables of a campaign.
///
/// # Errors
/// The folder cannot be read, or the campaign has an unknown kind or pattern.
pub fn as_published(
    source: &Path,
    campaign: &Campaign,
    understood: &Understood,
) -> Result<Published, PublishedError> {
    let mut patterns = Vec::new();
    for rule in &campaign.published {
        if !KINDS.contains(&rule.kind.as_str()) {
            let known = KINDS.join(", ");
            let text = format!("unknown kind of table `{}`; known are {known}", rule.kind);
            return Err(CampaignError::new(text).into());
        }
        patterns.push(Pattern::parse(&rule.path).map_err(CampaignError::new)?);
    }

    let texts = texts(source, campaign, &patterns)?;
    let raw = Raw::new(understood);
    let mut published = Published::default();
    for (rule, pattern) in campaign.published.iter().zip(&patterns) {
        let mut tables = PublishedTables {
            pattern: rule.path.clone(),
            kind: rule.kind.clone(),
            ..PublishedTables::default()
        };
        for (path, text) in &texts {
            if let Some(values) = pattern.find(path) {
                tables.table_count += 1;
                let table = Table { path, text, rule, values, texts: &texts, raw: &raw };
                for cell in table.cells() {
                    tables.add(path, cell);
                }
            }
        }
        published.tables.push(tables);
    }
    Ok(published)
}

/// The reason why tables cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The folder cannot be read.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The campaign is wrong.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
}

/// Reads the texts of published tables and of those that they come from.
fn texts(
    source: &Path,
    campaign: &Campaign,
    patterns: &[Pattern],
) -> Result<Texts, PublishedError> {
    let mut wanted = patterns.to_vec();
    for rule in &campaign.published {
        for path in rule.of.iter().chain(&rule.from) {
            wanted.push(Pattern::parse(path).map_err(CampaignError::new)?);
        }
    }

    let mut texts = Texts::new();
    walk(source, &mut |path, content| {
        let is_wanted = wanted.iter().any(|pattern| pattern.find(path).is_some());
        if is_wanted && texts.len() < TABLES_MAX {
            let mut bytes = Vec::new();
            let mut limited = content.take(TABLE_BYTES_MAX);
            if limited.read_to_end(&mut bytes).is_ok() {
                texts.insert(path.to_owned(), String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        Ok(())
    })?;
    Ok(texts)
}

/// A published table with all that it may come from.
struct Table<'a> {
    path: &'a str,
    text: &'a str,
    rule: &'a PublishedRule,
    /// The values of the placeholders in its path.
    values: BTreeMap<String, String>,
    texts: &'a Texts,
    raw: &'a Raw<'a>,
}

impl Table<'_> {
    fn cells(&self) -> Vec<Cell> {
        match self.rule.kind.as_str() {
            "sysbench-rates" => from_raw::rates(self),
            "sysbench-costs" => from_raw::costs(self),
            "index-seconds" => from_raw::index_seconds(self),
            "second-lines" => from_raw::second_lines(self),
            "cost-table" => from_tables::cost_table(self),
            "ratios" => from_tables::ratios(self),
            "csv-of" => from_tables::csv_of(self),
            "metric-ratios" => from_tables::metric_ratios(self),
            _ => from_tables::value_ratios(self),
        }
    }

    /// Returns the text of the table that this one comes from: `of`, with the values of the
    /// placeholders, in the same folder.
    fn source(&self) -> Result<&str, String> {
        let Some(of) = &self.rule.of else {
            return Err("`of` is missing in the campaign".to_owned());
        };
        let mut name = of.clone();
        for (placeholder, value) in &self.values {
            name = name.replace(&format!("{{{placeholder}}}"), value);
        }

        // The nearest folder counts.
        let mut folder = self.path;
        while let Some((outer, _)) = folder.rsplit_once('/') {
            folder = outer;
            if let Some(text) = self.texts.get(&format!("{folder}/{name}")) {
                return Ok(text);
            }
        }
        self.texts.get(&name).map(String::as_str).ok_or_else(|| format!("there is no `{name}`"))
    }

    /// Returns a further value of the campaign, or of the path.
    fn with(&self, name: &str) -> Option<&str> {
        let value = self.rule.with.get(name).or_else(|| self.values.get(name));
        value.map(String::as_str)
    }
}

//! Tests of the whole crate on figures of a run that never was.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod browser;
mod compared;
mod effects;
mod findings;
mod html;
mod kv;
mod overview;
mod plots;
mod published;
mod quality;
mod synthetic;
mod sysbench;
mod terminal;
mod work;
mod written;

use analysis::figures::Figures;
use record::Run;
use report::{Curves, Page, Source, TableStyle, html_page};

/// Tables as wide as a terminal.
const PLAIN: TableStyle = TableStyle {
    color: false,
    width: Some(100),
    unicode: false,
    all_settings: false,
    each_repeat: false,
    markdown: false,
};

/// Tables that are not split.
const WIDE: TableStyle = TableStyle { width: None, ..PLAIN };

/// Returns a report with charts of the figures' own seconds.
fn html(sources: &[Source], figures: &Figures) -> String {
    let curves: Vec<Curves> = figures.rows.iter().map(Curves::of).collect();
    html_page(&Page { sources, figures, curves: &curves, notes: &[] })
}

/// Returns the report of a run of whose cells nothing but the figures is known.
fn page(run: Run, figures: &Figures) -> String {
    let cells = Vec::new();
    html(&[Source { run, cells }], figures)
}

/// Each of these identifiers is in a page once.
#[track_caller]
fn check_once(page: &str, ids: &[&str]) {
    for id in ids {
        assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
    }
}

/// Returns a column of a CSV table, and checks that all lines have the same length.
#[track_caller]
fn column(csv: &str, name: &str) -> Vec<String> {
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let mut heads = reader.headers().unwrap().iter();
    let at = heads.position(|head| head == name);
    let at = at.unwrap_or_else(|| panic!("no `{name}` in {csv}"));
    let lines = reader.records().map(Result::unwrap);
    lines.map(|line| line[at].to_owned()).collect()
}

/// Returns the first line that begins so, in words.
#[track_caller]
fn words<'t>(text: &'t str, begin: &str) -> Vec<&'t str> {
    let line = text.lines().find(|line| line.starts_with(begin));
    let line = line.unwrap_or_else(|| panic!("no line `{begin}` in {text}"));
    line.split_whitespace().collect()
}

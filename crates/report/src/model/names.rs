//! Names of targets and steps: the full names, and short names without what all targets share.

use std::collections::BTreeMap;

use analysis::{distinct, figures::Figures};
use record::CellKey;

use crate::model::matrix::Matrix;

/// The names of targets and steps, to find them at the beginning of texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names<'a> {
    targets: Vec<&'a str>,
    steps: Vec<&'a str>,
    short: BTreeMap<&'a str, &'a str>,
}

/// The target or step at the beginning of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject<'n> {
    pub name: &'n str,
    /// The whole text, with the short name if there is one.
    pub text: String,
    /// True if `text` has the short name.
    pub is_short: bool,
}

impl<'a> Names<'a> {
    pub(crate) fn new(matrix: &Matrix<'a>, figures: &'a Figures) -> Self {
        Self {
            targets: distinct(matrix.lines.iter().map(|line| line.cell.target.as_str())),
            steps: matrix.steps.iter().map(|step| step.name).collect(),
            short: short_names(figures),
        }
    }

    /// Finds the target at the beginning of a text, which may contain line breaks.
    pub(crate) fn target_in(&self, text: &str) -> Option<Subject<'a>> {
        self.subject(&self.targets, text)
    }

    /// Replaces the target at the beginning of a text by its short name.
    pub(crate) fn short(&self, text: &str) -> String {
        self.target_in(text).map_or_else(|| text.to_owned(), |subject| subject.text)
    }

    /// Finds the step at the beginning of a text.
    pub(crate) fn step_in(&self, text: &str) -> Option<Subject<'a>> {
        self.subject(&self.steps, text)
    }

    fn subject(&self, names: &[&'a str], text: &str) -> Option<Subject<'a>> {
        let matches = names.iter().filter_map(|name| Some((*name, after(text, name)?)));
        let (name, rest) = matches.max_by_key(|(name, _)| name.len())?;
        let short = self.short.get(name);
        Some(Subject {
            name,
            text: short.map_or_else(|| text.to_owned(), |short| format!("{short}{rest}")),
            is_short: short.is_some(),
        })
    }

    /// Returns the names that all targets share and short names omit: `build pg17`.
    pub(crate) fn shared(&self) -> Option<String> {
        let (name, short) = self.short.first_key_value()?;
        if let Some(build) = name.strip_suffix(short).and_then(|rest| rest.strip_suffix('.')) {
            return Some(format!("build {build}"));
        }
        let config = name.strip_prefix(short).and_then(|rest| rest.strip_prefix('.'))?;
        Some(format!("config {config}"))
    }
}

/// Returns the text after a name. Ignores line breaks within the name.
fn after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = text;
    for letter in name.chars() {
        rest = rest.trim_start_matches('\n').strip_prefix(letter)?;
    }
    (rest.is_empty() || rest.starts_with(['\n', ' '])).then_some(rest)
}

/// Returns names of targets without the build or the config that all targets share. Empty if target
/// names don't consist of these. Targets that a report shows without results count too.
fn short_names(figures: &Figures) -> BTreeMap<&str, &str> {
    let targets = distinct(figures.rows.iter().map(|row| TargetParts {
        name: &row.cell.target,
        build: &row.build,
        config: &row.config,
    }));
    let are_names = targets.iter().all(TargetParts::make_name);
    let has_one_build = distinct(targets.iter().map(|target| target.build)).len() == 1;
    let has_one_config = distinct(targets.iter().map(|target| target.config)).len() == 1;

    // A single target shares both with itself, and others may share neither.
    if !are_names || has_one_build == has_one_config {
        return BTreeMap::new();
    }

    let shared = if has_one_build {
        SharedPart::Build(targets[0].build)
    } else {
        SharedPart::Config(targets[0].config)
    };

    let measured = targets.iter().map(|target| target.name);
    let missing = figures.missing.iter().map(|row| row.cell.target.as_str());
    let unfinished = figures.unfinished.iter().map(|cell| cell.cell.target.as_str());
    let names = distinct(measured.chain(missing).chain(unfinished));

    // One name that cannot be shortened keeps all others long, so that all have one form.
    let short: Option<BTreeMap<&str, &str>> =
        names.into_iter().map(|name| Some((name, shared.without(name)?))).collect();
    short.unwrap_or_default()
}

/// The part of their names that all targets share.
#[derive(Clone, Copy)]
enum SharedPart<'a> {
    Build(&'a str),
    Config(&'a str),
}

impl SharedPart<'_> {
    /// Returns a target's name without this part; `None` if the name lacks the part.
    fn without(self, name: &str) -> Option<&str> {
        match self {
            Self::Build(build) => name.strip_prefix(build)?.strip_prefix('.'),
            Self::Config(config) => name.strip_suffix(config)?.strip_suffix('.'),
        }
    }
}

/// A target and what its name is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TargetParts<'a> {
    name: &'a str,
    build: &'a str,
    config: &'a str,
}

impl TargetParts<'_> {
    /// Returns true if the name is `build.config`.
    fn make_name(&self) -> bool {
        let rest = self.name.strip_prefix(self.build).and_then(|rest| rest.strip_prefix('.'));
        rest == Some(self.config)
    }
}

/// Returns the name of a cell in all its repeats: `pg17.base/c8`.
pub(crate) fn cell_name(cell: &CellKey) -> String {
    match &cell.variant {
        Some(variant) => format!("{}/{variant}/c{}", cell.target, cell.clients),
        None => format!("{}/c{}", cell.target, cell.clients),
    }
}

#[cfg(test)]
mod tests {
    use analysis::figures::{Row, UnfinishedCell};

    use super::*;

    #[test]
    fn a_text_is_about_the_longest_name_that_it_begins_with() {
        let names = Names {
            targets: vec!["pg17.base", "pg17.base-2", "pg17.big"],
            steps: vec!["qr100", "qr1000"],
            short: [("pg17.base", "base"), ("pg17.base-2", "base-2")].into(),
        };
        let target =
            |text| names.target_in(text).map(|found| (found.name, found.text, found.is_short));
        let expected = |name, text: &str, is_short| Some((name, text.to_owned(), is_short));
        assert_eq!(target("pg17.base"), expected("pg17.base", "base", true));
        assert_eq!(target("pg17.\nbase-\n2"), expected("pg17.base-2", "base-2", true));
        assert_eq!(target("pg17.\nbase\nr2"), expected("pg17.base", "base\nr2", true));
        assert_eq!(target("pg17.base c8"), expected("pg17.base", "base c8", true));
        assert_eq!(target("pg17.big"), expected("pg17.big", "pg17.big", false));
        assert_eq!(target("pg17.bases"), None);
        assert_eq!(names.step_in("qr1000\npct").unwrap().name, "qr1000");
        assert_eq!(names.step_in("qps"), None);
        let short = ["pg17.base c8", "pg17.bases"].map(|text| names.short(text));
        assert_eq!(short, ["base c8", "pg17.bases"]);
        assert_eq!(names.shared().unwrap(), "build pg17");
    }

    /// Returns figures of two targets with results, and of one whose only cell never began.
    fn figures_of(measured: [[&str; 2]; 2], unfinished: &str) -> Figures {
        let mut figures = Figures::default();
        for [build, config] in measured {
            figures.rows.push(Row {
                cell: CellKey::new(&format!("{build}.{config}"), None, 1, 1),
                build: build.to_owned(),
                config: config.to_owned(),
                ..Row::default()
            });
        }
        figures.unfinished.push(UnfinishedCell {
            run: 0,
            cell: CellKey::new(unfinished, None, 1, 1),
            status: None,
            causes: Vec::new(),
        });
        figures
    }

    #[test]
    fn targets_without_results_are_shortened_as_the_others_are() {
        let releases = figures_of([["v6_29", "leveled"], ["v9_9", "leveled"]], "v7_10.leveled");
        assert_eq!(short_names(&releases)["v7_10.leveled"], "v7_10");
        assert_eq!(short_names(&releases)["v9_9.leveled"], "v9_9");
        let configs = figures_of([["pg", "a"], ["pg", "b"]], "pg.a25");
        assert_eq!(short_names(&configs)["pg.a25"], "a25");

        let other = figures_of([["pg", "a"], ["pg", "b"]], "pg18.a");
        assert!(short_names(&other).is_empty(), "the build is not shared");
    }
}

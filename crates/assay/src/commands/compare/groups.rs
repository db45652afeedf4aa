//! `--base GROUP=TARGET`: several comparisons, each of the targets of one engine or build with a base of their own.

use analysis::Figures;
use record::{CellKey, Run, Target};

use crate::cli::Base;
use crate::outcome::UsageError;
use crate::output::complain;

/// What is compared with one base.
pub struct Part {
    /// Its targets and its base.
    pub run: Run,
    /// Their figures.
    pub figures: Figures,
}

/// Divides targets by the bases that are given for them; one part where a base is given for all of them, or none is.
pub fn parts(bases: &[Base], run: Run, mut figures: Figures) -> Result<Vec<Part>, UsageError> {
    let groups: Option<Vec<(&str, &str)>> = bases
        .iter()
        .map(|base| Some((base.group.as_deref()?, base.target.as_str())))
        .collect();
    let Some(groups) = groups.filter(|groups| !groups.is_empty()) else {
        return match bases.len() {
            0 | 1 => Ok(vec![Part { run, figures }]),
            _ => Err(UsageError::new(
                "several bases, and not every `--base` says of which targets",
                Some("give each as GROUP=TARGET, where GROUP is an engine or a build".into()),
            )),
        };
    };
    for (index, (group, base)) in groups.iter().enumerate() {
        check(&run, group, base)?;
        if groups[..index].iter().any(|(other, _)| other == group) {
            return Err(UsageError::new(format!("`{group}` has two bases"), None));
        }
    }
    // A build says more than its engine.
    let group_of = |target: &Target| {
        let names = [&target.build, &target.engine];
        let mut found = names.into_iter().filter_map(|name| {
            let name_of = |(group, _): &&(&str, &str)| *group == name.as_str();
            groups.iter().find(name_of)
        });
        found.next()
    };
    let mut parts = Vec::new();
    for group in &groups {
        let mut own = run.clone();
        own.targets.retain(|target| group_of(target) == Some(group));
        own.base = group.1.to_owned();
        let figures = taken(&mut figures, &own);
        parts.push(Part { run: own, figures });
    }
    if let Some(first) = parts.first_mut() {
        first.figures.damages = figures.damages;
    }
    let left = run.targets.iter().filter(|it| group_of(it).is_none());
    let left: Vec<&str> = left.map(|target| target.name.as_str()).collect();
    if !left.is_empty() {
        complain!("note: no base is given for {}", left.join(", "));
    }
    Ok(parts)
}

/// Refuses a group of which there are no targets, and a base that is none of its targets.
fn check(run: &Run, group: &str, base: &str) -> Result<(), UsageError> {
    let is_of = |target: &&Target| target.engine == group || target.build == group;
    let names: Vec<&str> = (run.targets.iter().filter(is_of))
        .map(|target| target.name.as_str())
        .collect();
    if names.is_empty() {
        let groups = run.targets.iter().flat_map(|it| [&it.engine, &it.build]);
        let groups: Vec<&str> = analysis::distinct(groups.map(String::as_str));
        return Err(UsageError::new(
            format!("`{group}` is no engine and no build of these runs"),
            Some(format!("engines and builds here: {}", groups.join(", "))),
        ));
    }
    if !names.contains(&base) {
        return Err(UsageError::new(
            format!("`{base}` is no target of `{group}`"),
            Some(format!("its targets: {}", names.join(", "))),
        ));
    }
    Ok(())
}

/// Takes what is of the targets of a run out of figures.
fn taken(figures: &mut Figures, run: &Run) -> Figures {
    let is_own = |cell: &CellKey| run.targets.iter().any(|it| it.name == cell.target);
    let mut own = Figures {
        settings: figures.settings.clone(),
        ..Figures::default()
    };
    let settings = &mut own.settings;
    let has = |name: &str| run.targets.iter().any(|it| it.name == name);
    settings.differences.retain(|it| has(&it.a) && has(&it.b));
    own.rows = figures
        .rows
        .extract_if(.., |row| is_own(&row.cell))
        .collect();
    own.missing = figures
        .missing
        .extract_if(.., |row| is_own(&row.cell))
        .collect();
    own.unfinished = figures
        .unfinished
        .extract_if(.., |it| is_own(&it.cell))
        .collect();
    own.begun = figures
        .begun
        .extract_if(.., |it| is_own(&it.cell))
        .collect();
    own
}

//! Comparisons of several bases: the targets of each engine or build have one of their own.

use record::{CellKey, GroupBase, Run};

use crate::figures::Figures;

/// Targets that are compared with one base.
#[derive(Clone, Debug)]
pub struct BaseGroup {
    /// The engine or build; `None` if all targets have one base.
    pub name: Option<String>,
    /// The targets and their base.
    pub run: Run,
    /// The figures of the targets.
    pub figures: Figures,
}

impl BaseGroup {
    /// Returns whether a target is one of the group's.
    pub fn has_target(&self, name: &str) -> bool {
        self.run.targets.iter().any(|target| target.name == name)
    }
}

/// Divides the targets of a run by their bases. All are one group if the run has one base. Targets
/// without a base are in no group.
pub fn groups_by_base(run: Run, mut figures: Figures) -> Vec<BaseGroup> {
    if run.bases.is_empty() {
        return vec![BaseGroup { name: None, run, figures }];
    }

    let mut groups = Vec::new();
    for base in &run.bases {
        let own = of_group(&run, base);
        let figures = take_figures(&mut figures, &own);
        groups.push(BaseGroup { name: Some(base.group.clone()), run: own, figures });
    }

    // Damages are of the runs, not of targets: one group tells them.
    if let Some(first) = groups.first_mut() {
        first.figures.damages = figures.damages;
    }
    groups
}

/// Returns a run with only the targets of a group.
fn of_group(run: &Run, base: &GroupBase) -> Run {
    let mut own = run.clone();
    own.targets
        .retain(|target| run.group_of(target).is_some_and(|group| group.group == base.group));
    own.base.clone_from(&base.target);
    own.bases.clear();
    own
}

/// Moves the figures of a run's targets out of `figures`.
fn take_figures(figures: &mut Figures, run: &Run) -> Figures {
    let is_own = |cell: &CellKey| run.targets.iter().any(|target| target.name == cell.target);

    let mut own = Figures {
        settings: figures.settings.clone(),
        effect: figures.effect,
        looks: figures.looks,
        sides: figures.sides,
        ..Figures::default()
    };
    let settings = &mut own.settings;
    let has = |name: &str| run.targets.iter().any(|target| target.name == name);
    settings.differences.retain(|pair| has(&pair.a) && has(&pair.b));

    own.rows = figures.rows.extract_if(.., |row| is_own(&row.cell)).collect();
    own.missing = figures.missing.extract_if(.., |row| is_own(&row.cell)).collect();
    own.unfinished = figures.unfinished.extract_if(.., |row| is_own(&row.cell)).collect();
    own.begun = figures.begun.extract_if(.., |row| is_own(&row.cell)).collect();
    own.unlimited = figures.unlimited.extract_if(.., |row| is_own(&row.cell)).collect();
    own.profiled = figures.profiled.extract_if(.., |step| is_own(&step.row.cell)).collect();
    own.exact = figures.exact.extract_if(.., |step| is_own(&step.row.cell)).collect();

    own
}

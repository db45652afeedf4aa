//! The steps that were to be profiled and have no profile.

use analysis::figures::Figures;

/// A reason why steps that were to be profiled have no profile.
pub(crate) struct MissingProfiles<'a> {
    pub reason: &'a str,
    /// The target and the step of each.
    pub places: Vec<String>,
}

/// Returns the reasons why steps that were to be profiled have no profile.
pub(crate) fn missing(figures: &Figures) -> Vec<MissingProfiles<'_>> {
    let mut all: Vec<MissingProfiles<'_>> = Vec::new();
    for step in figures.profiled.iter().filter(|step| step.row.reported) {
        let Some(reason) = step.profile.missing.as_deref() else {
            continue;
        };

        let place = format!("{} {}", step.row.cell.target, step.row.step);
        match all.iter_mut().find(|known| known.reason == reason) {
            Some(known) if known.places.contains(&place) => {}
            Some(known) => known.places.push(place),
            None => all.push(MissingProfiles { reason, places: vec![place] }),
        }
    }
    all
}

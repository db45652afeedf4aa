//! Notes on databases that cells did not load themselves.

use super::note::{KeptAfter, Note};
use crate::figures::{CopiedDatabase, StartedCell};
use crate::order::grouped;

/// Returns notes on the cells that used a copy of a database of another cell.
pub(super) fn notes(begun: &[StartedCell]) -> Vec<Note> {
    let mut notes = Vec::new();

    let copies = begun.iter().filter_map(|start| Some((start, start.database.as_ref()?)));
    let of = begun.len();
    let is_load_of_others =
        |database: &CopiedDatabase| !database.made_here && !database.has_measured_steps;
    let cell_count = copies.clone().filter(|(_, database)| is_load_of_others(database)).count();
    if cell_count > 0 {
        let are_repeats_alike = repeats_share_a_database(begun);
        notes.push(Note::SharedLoads { cell_count, of, are_repeats_alike });
    }

    let kept_later = copies.clone().filter(|(_, database)| database.has_measured_steps);
    let by_origin = kept_later
        .map(|(_, database)| ((database.after_step.clone(), database.made_by.clone()), database));
    for ((step, made_by), databases) in grouped(by_origin) {
        let cell_count = databases.len();
        notes.push(Note::KeptAfter(KeptAfter { cell_count, of, step, made_by }));
    }

    let upgraded = copies.filter_map(|(start, database)| {
        let loader = database.loaded_by.clone()?;
        Some(((start.cell.target.clone(), loader), database))
    });

    for ((target, loader), databases) in grouped(upgraded) {
        let upgrades: Vec<u64> = databases.iter().filter_map(|one| one.upgrade_ns).collect();
        let starts: Vec<u64> = databases.iter().map(|one| one.open_ns).collect();
        let open_s = extremes_s(&starts).unwrap_or_default();
        notes.push(Note::Upgrade { target, loader, upgrade_s: extremes_s(&upgrades), open_s });
    }
    notes
}

/// Returns whether two repeats of a target began with the same database. Then intervals don't say how
/// databases that are loaded alike differ.
pub(crate) fn repeats_share_a_database(begun: &[StartedCell]) -> bool {
    let mut seen = Vec::new();
    for start in begun {
        let Some(database) = &start.database else {
            continue;
        };

        let one = (start.run, &start.cell.target, &start.cell.variant, &database.fingerprint);
        if seen.contains(&(one, start.cell.clients)) {
            return true;
        }
        seen.push((one, start.cell.clients));
    }
    false
}

/// Returns the shortest and the longest time in seconds; `None` without any.
fn extremes_s(times_ns: &[u64]) -> Option<[f64; 2]> {
    let (shortest, longest) = (times_ns.iter().min()?, times_ns.iter().max()?);
    Some([*shortest, *longest].map(|ns| ns as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use record::CellKey;

    use super::*;

    #[test]
    fn a_load_for_each_repeat_is_told_from_one_for_all() {
        let start = |target: &str, repeat, load: &str| StartedCell {
            cell: CellKey::new(target, None, 1, repeat),
            database: Some(CopiedDatabase {
                fingerprint: load.to_owned(),
                made_here: target == "a.x",
                ..CopiedDatabase::default()
            }),
            ..StartedCell::default()
        };
        let each = [
            start("a.x", 1, "first"),
            start("b.x", 1, "first"),
            start("a.x", 2, "second"),
            start("b.x", 2, "second"),
        ];
        assert!(!repeats_share_a_database(&each));
        let text = notes(&each)[0].to_string();
        assert!(text.ends_with("the targets of a repeat share its load"), "{text}");

        assert!(repeats_share_a_database(&[start("a.x", 1, "only"), start("a.x", 2, "only")]));
    }

    #[test]
    fn copied_databases_and_upgrades_are_noted() {
        let start = |target: &str, repeat, database: CopiedDatabase| StartedCell {
            cell: CellKey::new(target, None, 1, repeat),
            database: Some(database),
            ..StartedCell::default()
        };
        let made = CopiedDatabase { made_here: true, ..CopiedDatabase::default() };
        let upgraded = |seconds: u64| CopiedDatabase {
            loaded_by: Some("old.a".to_owned()),
            upgrade_ns: Some(seconds * 1_000_000_000),
            open_ns: 500_000_000,
            ..CopiedDatabase::default()
        };
        let begun = [
            start("old.a", 1, made.clone()),
            start("old.a", 2, CopiedDatabase::default()),
            start("new.a-from-old.a", 1, upgraded(7)),
            start("new.a-from-old.a", 2, upgraded(9)),
        ];
        let texts: Vec<String> = notes(&begun).iter().map(Note::to_string).collect();
        assert!(texts[0].starts_with("3 of 4 cells began with a copy"), "{texts:?}");
        assert!(texts[0].ends_with("not for how they differ from load to load"), "{texts:?}");
        assert_eq!(
            texts[1],
            "new.a-from-old.a opened the database that old.a had loaded: the upgrade took 7.0 to 9.0 s, \
             and the start took 0.5 to 0.5 s"
        );
        assert!(notes(&[start("old.a", 1, made)]).is_empty());
    }
}

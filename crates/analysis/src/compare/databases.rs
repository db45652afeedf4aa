//! Notes on databases that cells did not load themselves.

use super::reason::Note;
use crate::figures::{CopiedDatabase, StartedCell};
use crate::order::grouped;

/// Returns notes on the cells that used a copy of a database of another cell.
pub(super) fn notes(begun: &[StartedCell]) -> Vec<Note> {
    let mut notes = Vec::new();

    let copies = begun.iter().filter_map(|start| Some((start, start.database.as_ref()?)));
    let is_of_others = |database: &CopiedDatabase| !database.made_here;
    let cell_count = copies.clone().filter(|(_, database)| is_of_others(database)).count();
    if cell_count > 0 {
        notes.push(Note::SharedLoads { cell_count, of: begun.len() });
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
        assert_eq!(
            texts[1],
            "new.a-from-old.a opened the database that old.a had loaded: the upgrade took 7.0 to 9.0 s, \
             and the start took 0.5 to 0.5 s"
        );
        assert!(notes(&[start("old.a", 1, made)]).is_empty());
    }
}

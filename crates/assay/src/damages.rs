//! Says what is damaged in the records of runs.

use analysis::figures::Figures;

use crate::exit::Exit;
use crate::output::eprint_line;

/// Prints what is damaged in a record and what to do about it, and returns the exit code: the
/// undamaged figures are shown anyway.
pub fn exit_of_reading(figures: &Figures) -> Exit {
    if !say_damages(figures) {
        return Exit::Ok;
    }
    eprint_line!("help: {}", damage_help(figures));
    Exit::Failed
}

/// Returns what to do about damage in the record of these figures. In turns, a damaged cell that is
/// measured again has no other to be compared with.
fn damage_help(figures: &Figures) -> String {
    if figures.rows.iter().all(|row| row.turns.is_none()) {
        return record::DAMAGE_HELP.to_owned();
    }

    let repeat_count = figures.rows.iter().map(|row| row.cell.repeat).max().unwrap_or(0);
    format!(
        "copy the run directory again from where it was measured, or add a repeat with `assay run --resume RUN --repeats {}`: \
         the damaged cell is measured alone then, not in turns, so it is not compared",
        repeat_count + 1
    )
}

/// Prints what is damaged in a record. Returns whether anything is.
pub fn say_damages(figures: &Figures) -> bool {
    for damage in &figures.damages {
        eprint_line!("error: {}", report::terminal_text(damage));
    }
    !figures.damages.is_empty()
}

/// Prints what to do about damage, after the errors that name each damaged part.
pub fn say_help_for_damage() {
    eprint_line!("help: {}", record::DAMAGE_HELP);
}

#[cfg(test)]
mod tests {
    use analysis::figures::Row;
    use record::CellKey;

    use super::*;

    #[test]
    fn damage_in_turns_is_made_up_for_by_another_repeat() {
        let row = |repeat, turns| Row {
            cell: CellKey::new("pg.a", None, 1, repeat),
            turns,
            ..Row::default()
        };
        let help = |turns| {
            let rows = vec![row(1, None), row(3, turns)];
            damage_help(&Figures { rows, ..Figures::default() })
        };
        assert_eq!(help(None), record::DAMAGE_HELP);
        assert!(help(Some(7)).contains("`assay run --resume RUN --repeats 4`"));
    }
}

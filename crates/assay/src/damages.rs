//! Says what is damaged in the records of runs.

use std::path::Path;

use analysis::figures::Figures;
use inquiry::damage::DamageFacts;
use words::shell_quoted;

use crate::exit::Exit;
use crate::output::eprint_line;

/// Prints what is damaged in the records of runs with these directories and what to do about it, and
/// returns the exit code: the undamaged figures are shown anyway.
pub fn exit_of_reading(figures: &Figures, directories: &[impl AsRef<Path>]) -> Exit {
    if !say_damages(figures) {
        return Exit::Ok;
    }
    say_help_for_damage(&DamageFacts::of(figures), directories);
    Exit::Failed
}

/// Returns what to do about damage in the records of runs with these directories. In turns, a damaged
/// cell that is measured again has no other to be compared with.
fn damage_help(damage: &DamageFacts, directories: &[impl AsRef<Path>]) -> String {
    let Some(in_turns) = damage.damaged_turns() else {
        return record::DAMAGE_HELP.to_owned();
    };
    let Some(directory) = directories.get(in_turns.run) else {
        return record::DAMAGE_HELP.to_owned();
    };

    format!(
        "copy the run directory again from where it was measured, or add a repeat with `assay run --resume {} --repeats {}`: \
         the damaged cell is measured alone then, not in turns, so it is not compared",
        shell_quoted(&directory.as_ref().display().to_string()),
        in_turns.last_repeat + 1
    )
}

/// Prints what is damaged in a record. Returns whether anything is.
pub fn say_damages(figures: &Figures) -> bool {
    for damage in &figures.damages {
        eprint_line!("error: {}", report::terminal_text(damage));
    }
    !figures.damages.is_empty()
}

/// Prints what to do about damage in the records of runs with these directories, after the errors
/// that name each damaged part.
pub fn say_help_for_damage(damage: &DamageFacts, directories: &[impl AsRef<Path>]) {
    eprint_line!("help: {}", damage_help(damage, directories));
}

#[cfg(test)]
mod tests {
    use analysis::figures::Row;
    use record::CellKey;

    use super::*;

    const DAMAGE: &str = "intervals.parquet is gone";

    #[test]
    fn damage_in_turns_is_made_up_for_by_another_repeat_of_its_run() {
        let row = |run, repeat, turns| Row {
            run,
            cell: CellKey::new("pg.a", None, 1, repeat),
            turns,
            ..Row::default()
        };
        let help = |old_turns, new_turns| {
            let mut rows = vec![row(0, 12, old_turns), row(1, 1, None), row(1, 3, new_turns)];
            rows[1].reasons = vec![DAMAGE.to_owned()];
            let damages = vec![DAMAGE.to_owned()];
            let figures = Figures { rows, damages, ..Figures::default() };
            damage_help(&DamageFacts::of(&figures), &["old", "my new"])
        };

        assert_eq!(help(None, None), record::DAMAGE_HELP);
        assert_eq!(help(Some(7), None), record::DAMAGE_HELP);
        let of_turns = help(None, Some(7));
        assert!(of_turns.contains("`assay run --resume 'my new' --repeats 4`"), "{of_turns}");
    }
}

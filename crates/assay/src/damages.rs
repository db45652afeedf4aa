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
    say_help_for_damage();
    Exit::Failed
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

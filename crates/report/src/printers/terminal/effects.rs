//! The effects of factors, for a terminal or as Markdown.

use analysis::settings::Factors;

use super::writer::{TableStyle, TerminalWriter};
use crate::model::comparison::FactorEffects;
use crate::prose::method::Method;
use crate::prose::{factors as factor_prose, method, uneven};
use crate::tables::compared::effects as effect_tables;

/// Lists factors with their levels, for a terminal.
pub fn factors(known: &Factors, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    for line in factor_prose::list(known) {
        out.wrapped("  ", &line);
    }
    out.finish()
}

/// Formats effects as tables for a terminal.
pub fn effects(shown: &FactorEffects<'_>, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    write(&mut out, shown);
    out.finish()
}

/// Formats effects as Markdown.
pub fn effects_markdown(shown: &FactorEffects<'_>) -> String {
    let mut out = TerminalWriter::markdown();
    write(&mut out, shown);
    out.finish()
}

fn write(out: &mut TerminalWriter, shown: &FactorEffects<'_>) {
    let effects = shown.effects;
    out.main_title(&factor_prose::title(effects));
    for line in method::runs(shown.runs) {
        out.wrapped("  ", &line);
    }
    if let Some(busy) = uneven::busy(shown.figures) {
        out.warning(&format!("warning: {busy}"));
    }

    for factor in &effects.factors {
        out.wrapped("  ", &factor_prose::described(factor));
    }
    out.wrapped("", &factor_prose::how(effects));
    out.method(&Method::of_effects(effects));
    out.tables(effect_tables::tables(shown));
}

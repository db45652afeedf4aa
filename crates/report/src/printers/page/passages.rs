//! Findings and the effects of factors as sections of a page.

use analysis::explain::Finding;
use maud::{Markup, html as markup};

use super::table::table;
use super::{marked, permalink};
use crate::model::comparison::FactorEffects;
use crate::model::names::Names;
use crate::model::number::typeset;
use crate::model::table::Table;
use crate::model::text::clean;
use crate::prose::factors::{described, how};
use crate::prose::findings::FindingPassages;
use crate::prose::method::Method;
use crate::tables::compared::effects::{self as effect_tables, EACH};

/// The figures of a finding that are not folded.
const FIGURES_SHOWN: usize = 3;

/// Returns the findings as a section; empty without findings.
/// Identifiers end with `scope`.
pub(crate) fn findings(findings: &[Finding], scope: &str) -> Markup {
    let id = format!("findings{scope}");
    let findings = FindingPassages::of(findings, "\u{b5}s");

    markup! {
        @if !findings.shown.is_empty() {
            section id=(id) {
                h3 { "Findings" (permalink(&id)) }
                @for finding in &findings.shown {
                    article.finding {
                        div {
                            h4 { (prose(&finding.heading)) }
                            p { (prose(&finding.text())) }
                            @if let Some(doubt) = &finding.doubt { p.note { (prose(doubt)) } }
                        }
                        div { @for figures in &finding.figures { (figures_of_finding(figures, scope)) } }
                    }
                }
                @if let Some(remainder) = &findings.remainder { p.note { (prose(remainder)) } }
            }
        }
    }
}

/// Returns the figures that matter most, and the others folded.
fn figures_of_finding(figures: &Table, scope: &str) -> Markup {
    let mut shown = figures.clone();
    shown.id += scope;
    let mut others = shown.clone();
    shown.rows.truncate(FIGURES_SHOWN);
    others.rows.drain(..shown.rows.len());
    others.id += "-others";

    markup! {
        (table(&Names::default(), &shown))
        @if !others.rows.is_empty() {
            details {
                summary { (analysis::counted(others.rows.len(), "other figure")) }
                (table(&Names::default(), &others))
            }
        }
    }
}

/// Formats text for a page.
fn prose(text: &str) -> String {
    typeset(&clean(text))
}

/// Returns the effects of factors as a section; empty without effects. Identifiers end with `scope`.
pub(super) fn effects(shown: &FactorEffects<'_>, scope: &str) -> Markup {
    let id = format!("factors{scope}");
    let effects = shown.effects;
    // There is one table for each combination and metric, so these are folded.
    let mut all = effect_tables::tables(shown);
    for table in &mut all {
        table.id += scope;
    }
    let (of_combinations, of_factors): (Vec<Table>, Vec<Table>) =
        all.into_iter().partition(|table| table.id.starts_with(EACH));

    markup! {
        @if !of_factors.is_empty() {
            section id=(id) {
                h3 { "Effects of factors" (permalink(&id)) }
                ul { @for factor in &effects.factors { li { (marked(&described(factor))) } } }

                @for figures in &of_factors { (table(&Names::default(), figures)) }
                @if !of_combinations.is_empty() {
                    details {
                        summary { "Effects in each combination of the other factors" }
                        @for figures in &of_combinations { (table(&Names::default(), figures)) }
                    }
                }

                p.note { (how(effects)) }
                @for text in &Method::of_effects(effects).paragraphs { p.note { (marked(text)) } }
            }
        }
    }
}

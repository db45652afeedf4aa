//! Plots in a page, each with a link that saves it as a file.

use maud::{Markup, PreEscaped, html as markup};

use super::permalink;
use crate::model::text::clean;
use crate::plot::{FACTORS, OVER_TARGETS, Plot, PlotSection, chart_sections, save_link, subject};
use crate::tables::compared::Board;

/// Returns the sections of a page with the other plots. Identifiers end with `scope`.
pub(super) fn sections(board: &Board<'_>, scope: &str) -> Markup {
    let subject = subject(board);

    markup! {
        @for PlotSection { id, heading, plots } in chart_sections(board) {
            @if !plots.is_empty() {
                section id={ "plots-" (id) (scope) } {
                    h3 { (heading) (permalink(&format!("plots-{id}{scope}"))) }
                    // A matrix on the first screen says the same in less space.
                    @if let Some(summary) = summary(id) {
                        details {
                            summary { (summary) }
                            @for plot in &plots { (figure(plot, &subject, scope)) }
                        }
                    } @else { @for plot in &plots { (figure(plot, &subject, scope)) } }
                }
            }
        }
    }
}

/// Returns what is said of a section that is folded; `None` if it is open.
fn summary(id: &str) -> Option<&'static str> {
    match id {
        FACTORS => Some("levels, interactions and noise, step by step"),
        OVER_TARGETS => Some("each step over the targets, in the plan's order"),
        _ => None,
    }
}

/// Returns a plot for wide and for narrow screens, with its legend.
fn figure(plot: &Plot<'_>, subject: &str, scope: &str) -> Markup {
    let figure = markup! {
        div.plots id={ "plot-" (plot.id) (scope) } {
            div.heading {
                h4 { (plot.title) (permalink(&format!("plot-{}{scope}", plot.id))) }
                (save_link(plot, subject))
            }

            @if plot.is_of_one_size() { div.panels { (panels(plot, true)) } } @else {
                div.panels.wide { (panels(plot, true)) }
                div.panels.narrow { (panels(plot, false)) }
            }

            ul.key {
                @for (mark, meaning) in plot.keys() {
                    li { svg.drawn width="24" height="12" viewBox="0 -6 24 12" aria-hidden="true" { (mark) } (meaning) }
                }
            }

            p.note { (plot.note) }
        }
    };

    PreEscaped(clean(&figure.into_string()))
}

fn panels(plot: &Plot<'_>, is_wide: bool) -> Markup {
    markup! { @for panel in plot.panels(is_wide) { (panel.inline()) } }
}

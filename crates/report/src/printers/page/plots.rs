//! Plots in a page, each with a link that saves it as a file.

use maud::{Markup, PreEscaped, html as markup};

use super::permalink;
use crate::model::comparison::Comparison;
use crate::model::text::clean;
use crate::plot::{Plot, PlotSection, chart_sections, subject, verdicts};
use crate::tables::compared::Board;

/// Returns the plot on the first screen of a page: a forest plot for each of a few targets, or a
/// heat map of many. Empty if there is nothing to compare.
pub(super) fn overview(comparison: &Comparison<'_>) -> Markup {
    let board = Board::new(comparison);
    markup! { @if let Some(plot) = verdicts(&board) { (figure(&plot, &subject(&board))) } }
}

/// Returns the sections of a page with the other plots.
pub(super) fn sections(comparison: &Comparison<'_>) -> Markup {
    let board = Board::new(comparison);
    let subject = subject(&board);
    markup! {
        @for PlotSection { id, heading, plots } in chart_sections(&board) {
            @if !plots.is_empty() {
                section id={ "plots-" (id) } {
                    h3 { (heading) (permalink(&format!("plots-{id}"))) }
                    @for plot in &plots { (figure(plot, &subject)) }
                }
            }
        }
    }
}

/// Returns a plot for wide and for narrow screens, with its legend.
fn figure(plot: &Plot<'_>, subject: &str) -> Markup {
    let figure = markup! {
        div.plots id={ "plot-" (plot.id) } {
            div.heading {
                h4 { (plot.title) (permalink(&format!("plot-{}", plot.id))) }
                a.save download={ (plot.id) ".svg" } href={ "data:image/svg+xml," (encoded(&plot.file(subject))) } { "save as SVG" }
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

/// Encodes text for a `data:` link.
fn encoded(text: &str) -> String {
    const PLAIN: &[u8] = b" -_./,=()";
    let mut link = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            link.push(char::from(byte));
        } else {
            link += &format!("%{byte:02X}");
        }
    }
    link
}

//! The live page of a run. It contains no figures: its script fetches them.

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use super::{UPLOT_SCRIPT, UPLOT_STYLE};
use crate::printers::html::{Head, STYLE};

const SCRIPTS: [&str; 2] = [UPLOT_SCRIPT, include_str!("live.js")];

/// Returns the page. Its script fetches `live.json` from the same server once a second, and nothing
/// else.
pub fn live_page() -> String {
    let head = Head {
        title: "Assay",
        scripts: &SCRIPTS,
        styles: &[UPLOT_STYLE, STYLE],
        allowed: "connect-src 'self'; ",
        is_served: true,
        is_incomplete: false,
    };

    markup! {
        (DOCTYPE)
        html lang="en" {
            (head)

            body {
                header {
                    h1 #run { "Assay" }
                    p #state .status role="status" { "Waiting for the run" }
                    p #cells {}
                    p #directory .soft {}
                }

                main {
                    (so_far_table("compared", "So far"))

                    section #running hidden {
                        h2 { "Running step" }
                        div .scroll {
                            table .figures .bare {
                                thead { tr {
                                    @for (name, is_number) in COLUMNS { th .n[is_number] scope="col" { (name) } }
                                } }
                                tbody #kinds {}
                            }
                        }
                        p .note {
                            "Rates and latencies of the last second that all connections have reported. Latency is response time if "
                            "operations have a schedule, otherwise service time; percentiles cover all clients."
                        }
                    }

                    div #charts .charts {}
                    (so_far_table("ended", "Finished cells"))
                    noscript { p { "This page needs JavaScript; " a href="metrics" { "metrics" } " don't." } }
                }

                @for script in SCRIPTS { script { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

/// Returns the place of a table of what has ended, which is hidden until something has.
fn so_far_table(id: &str, heading: &str) -> Markup {
    markup! {
        section id=(id) hidden {
            h2 { (heading) }
            div .scroll { table .figures .bare { thead {} tbody {} } }
            p .note {}
        }
    }
}

/// The columns of the table, and whether they are numbers.
const COLUMNS: [(&str, bool); 10] = [
    ("operation", false),
    ("connections", false),
    ("operations/s", true),
    ("rows/s", true),
    ("p50", true),
    ("p99", true),
    ("longest", true),
    ("operations", true),
    ("failed", true),
    ("retried", true),
];

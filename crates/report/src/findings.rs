//! Findings as text for a terminal, Markdown and HTML: the most important ones, and the number of
//! the others.

use analysis::compare::{CompareOptions, Compared, compare, costs};
use analysis::explain::{Evidence, FINDINGS_SHOWN_MAX, Finding, explain, factor, figure};
use analysis::figures::Figures;
use maud::{Markup, html as markup};
use record::Run;

use crate::html::{clean, permalink, table};
use crate::names::Names;
use crate::number::typeset;
use crate::table::{Cell, Table};
use crate::terminal::TerminalWriter;

/// Compares the targets of a run with its base by the rules of `assay compare`, and explains the
/// changes.
pub(crate) fn of(run: &Run, figures: &Figures) -> (Compared, Vec<Finding>) {
    let options = CompareOptions {
        base: run.base.clone(),
        metrics: costs(figures),
        ..CompareOptions::default()
    };
    let compared = compare(figures, &options);
    let findings = explain(figures, &compared);
    (compared, findings)
}

/// Writes a paragraph for each finding, with its caveats and figures, and the number of the less
/// important findings.
pub(crate) fn write(out: &mut TerminalWriter, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    out.gap();
    out.title("Findings");
    for (number, finding) in findings.iter().take(FINDINGS_SHOWN_MAX).enumerate() {
        if number > 0 {
            out.gap();
        }
        out.line(&format!("{}. {}", number + 1, finding.title));
        out.wrapped("   ", &finding.text);
        if let Some(caveats) = caveats(finding) {
            out.wrapped("   ", &caveats);
        }
        out.untitled_table(&evidence(finding, number, out.microseconds()));
    }
    if let Some(not_shown) = not_shown(findings) {
        out.line(&not_shown);
    }
}

/// Returns the findings as a section of a page; empty without findings.
pub(crate) fn section(findings: &[Finding]) -> Markup {
    markup! {
        @if !findings.is_empty() {
            section id="findings" {
                h3 { "Findings" (permalink("findings")) }
                @for (number, finding) in findings.iter().take(FINDINGS_SHOWN_MAX).enumerate() {
                    article.finding {
                        h4 { (prose(&finding.title)) }
                        p { (prose(&finding.text)) }
                        @if let Some(caveats) = caveats(finding) { p.note { (prose(&caveats)) } }
                        (table(&Names::default(), &evidence(finding, number, "\u{b5}s")))
                    }
                }
                @if let Some(not_shown) = not_shown(findings) { p.note { (prose(&not_shown)) } }
            }
        }
    }
}

/// Formats text for a page.
fn prose(text: &str) -> String {
    typeset(&clean(text))
}

/// Lists the reasons to doubt a finding in one sentence.
fn caveats(finding: &Finding) -> Option<String> {
    let has_any = !finding.caveats.is_empty();
    has_any.then(|| format!("Caveat: {}.", finding.caveats.join("; ")))
}

/// Returns the figures of a finding that changed, the most important first; `us` is the unit of
/// microseconds.
fn evidence(finding: &Finding, number: usize, us: &str) -> Table {
    const LISTED: usize = 10;
    let base = finding.base.as_deref().unwrap_or("expected");
    // The names of figures that are not compared have their targets.
    let is_compared = finding.evidence.iter().any(|it| it.base.is_some());
    let columns = if is_compared { vec![base, &finding.target, "change"] } else { vec!["value"] };
    let mut table = Table::new(
        format!("finding-{}", number + 1),
        "Figures",
        vec!["figure".to_owned(), "unit".to_owned()],
        columns,
    );
    let changed = finding.evidence.iter().filter(|it| it.is_shown());
    for shown in changed.take(LISTED) {
        let value = |value: Option<f64>| Cell::plain(value.map(figure).unwrap_or_default());
        let cells = if is_compared {
            vec![
                value(shown.base),
                value(shown.value),
                Cell::plain(change(shown).unwrap_or_default()),
            ]
        } else {
            vec![value(shown.value)]
        };
        let unit = match shown.unit.strip_prefix("us") {
            Some(not_shown) => format!("{us}{not_shown}"),
            None => shown.unit.clone(),
        };
        table.push(vec![shown.name.clone(), unit], cells);
    }
    table
}

/// Returns by which factor a figure changed: `1.19x more`.
fn change(shown: &Evidence) -> Option<String> {
    let ratio = shown.ratio?;
    let less = if ratio < 1.0 { "less" } else { "more" };
    Some(format!("{} {less}", factor(ratio)))
}

/// Returns the number of findings that are not shown, in a sentence.
fn not_shown(findings: &[Finding]) -> Option<String> {
    let count = findings.len().saturating_sub(FINDINGS_SHOWN_MAX);
    (count > 0).then(|| {
        format!("{count} less important findings are not shown: `assay compare --format json` lists all.")
    })
}

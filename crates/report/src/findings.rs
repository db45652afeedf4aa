//! Findings in words, for a terminal, Markdown and HTML: the most important ones, and how many more there are.

use analysis::{
    CompareOptions, Compared, FINDINGS_SHOWN_MAX, Figures, Finding, compare, costs, explain,
};
use maud::{Markup, html as markup};
use record::Run;

use crate::html::clean;
use crate::number::typeset;
use crate::terminal::Text;

/// Compares the targets of a run with its own base, by the rules of `assay compare`, and explains that.
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

/// Writes a paragraph for each, with its caveats and figures; those that matter least are counted.
pub(crate) fn write(out: &mut Text, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    out.gap();
    out.title("Findings");
    for (number, finding) in findings.iter().take(FINDINGS_SHOWN_MAX).enumerate() {
        out.line(&format!("{}. {}", number + 1, finding.title));
        out.wrapped("   ", &finding.text);
        for text in [caveats(finding), evidence(finding)].into_iter().flatten() {
            out.wrapped("   ", &text);
        }
    }
    if let Some(rest) = rest(findings) {
        out.line(&rest);
    }
}

/// Makes a section of a page of them; nothing without findings.
pub(crate) fn section(findings: &[Finding]) -> Markup {
    markup! {
        @if !findings.is_empty() {
            section id="findings" {
                h3 { "Findings" }
                @for finding in findings.iter().take(FINDINGS_SHOWN_MAX) {
                    article.finding {
                        h4 { (prose(&finding.title)) }
                        p { (prose(&finding.text)) }
                        @if let Some(caveats) = caveats(finding) { p.note { (prose(&caveats)) } }
                        @if let Some(evidence) = evidence(finding) { p.note { (prose(&evidence)) } }
                    }
                }
                @if let Some(rest) = rest(findings) { p.note { (prose(&rest)) } }
            }
        }
    }
}

/// Returns a text as a page shows it.
fn prose(text: &str) -> String {
    typeset(&clean(text))
}

/// Lists the reasons to doubt a finding in one sentence.
fn caveats(finding: &Finding) -> Option<String> {
    let has_any = !finding.caveats.is_empty();
    has_any.then(|| format!("Caveat: {}.", finding.caveats.join("; ")))
}

/// Lists the figures of a finding that changed, the most telling first.
fn evidence(finding: &Finding) -> Option<String> {
    const LISTED: usize = 10;
    let changed = finding
        .evidence
        .iter()
        .filter(|figure| figure.has_changed());
    let figures: Vec<String> = changed.take(LISTED).map(ToString::to_string).collect();
    (!figures.is_empty()).then(|| format!("Figures: {}.", figures.join("; ")))
}

/// Counts those that are not shown.
fn rest(findings: &[Finding]) -> Option<String> {
    let count = findings.len().saturating_sub(FINDINGS_SHOWN_MAX);
    (count > 0).then(|| format!("{count} more matter less: `assay compare --format json` has all."))
}

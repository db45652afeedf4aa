//! Findings in words, for a terminal, Markdown and HTML: what matters most, and how many more there are.

use analysis::{
    CompareOptions, Compared, FINDINGS_SHOWN_MAX, Figures, Finding, compare, costs, explain,
};
use maud::{Markup, html as markup};
use record::Run;

use crate::terminal::{Text, printable};

/// The targets of a run compared with its own base, by what `assay compare` goes by, and what there is to be said of it.
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

/// A paragraph each, with what speaks against it; those that matter least are counted.
pub(crate) fn write(out: &mut Text, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    out.gap();
    out.title("Findings");
    for (number, finding) in findings.iter().take(FINDINGS_SHOWN_MAX).enumerate() {
        out.line(&format!("{}. {}", number + 1, finding.title));
        out.wrapped("   ", &finding.text);
        if let Some(against) = against(finding) {
            out.wrapped("   ", &against);
        }
    }
    if let Some(rest) = rest(findings) {
        out.line(&rest);
    }
}

/// The same as a section of a page; nothing without findings.
pub(crate) fn section(findings: &[Finding]) -> Markup {
    markup! {
        @if !findings.is_empty() {
            section id="findings" {
                h3 { "Findings" }
                @for finding in findings.iter().take(FINDINGS_SHOWN_MAX) {
                    article.finding {
                        h4 { (clean(&finding.title)) }
                        p { (clean(&finding.text)) }
                        @if let Some(against) = against(finding) { p.note { (clean(&against)) } }
                    }
                }
                @if let Some(rest) = rest(findings) { p.note { (clean(&rest)) } }
            }
        }
    }
}

fn clean(text: &str) -> String {
    text.chars().filter_map(printable).collect()
}

/// What speaks against a finding, in one sentence.
fn against(finding: &Finding) -> Option<String> {
    let has_any = !finding.against.is_empty();
    has_any.then(|| format!("Against it: {}.", finding.against.join("; ")))
}

/// How many are not shown.
fn rest(findings: &[Finding]) -> Option<String> {
    let count = findings.len().saturating_sub(FINDINGS_SHOWN_MAX);
    (count > 0).then(|| format!("{count} more matter less: `assay compare --format json` has all."))
}

//! Judgments of the gate and of requirements, for systems of continuous integration: JUnit, the
//! annotations of GitHub, the code quality report of GitLab, and a summary in Markdown.

use std::fmt::Write as _;

use serde_json::json;

use crate::model::table::{Cell, Table, TableRow};
use crate::model::text::terminal_text;
use crate::printers::markdown;

/// The most judgments that a summary lists: GitHub cuts a summary off at 1 MiB.
const LISTED_MAX: usize = 50;

/// The outcome of a judgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JudgementOutcome {
    /// A regression is shown, or a requirement is missed.
    Failed,
    /// Neither is certain.
    Undecided,
    /// No regression beyond the threshold, or the requirement is met.
    Passed,
}

/// A comparison that the gate judged, or a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The target, with its variant and clients; for what concerns all targets, a word for that.
    pub subject: String,
    /// The subject: the step and the metric, or the requirement.
    pub what: String,
    /// The outcome.
    pub outcome: JudgementOutcome,
    /// The outcome as a sentence.
    pub sentence: String,
    /// True if it passed, and no other comparison of its metric is closer to the threshold.
    pub is_closest: bool,
}

impl Judgement {
    /// Returns the judgments of a kind, in their order.
    fn with(all: &[Self], outcome: JudgementOutcome) -> impl Iterator<Item = &Self> {
        all.iter().filter(move |judgement| judgement.outcome == outcome)
    }
}

/// Formats judgments as a JUnit report: a test case each, in one suite of this name. What is not
/// certain is an error, which fails a build like a failure.
pub fn junit(suite: &str, judgements: &[Judgement]) -> String {
    let count = |outcome| Judgement::with(judgements, outcome).count();
    let (failures, errors) = (count(JudgementOutcome::Failed), count(JudgementOutcome::Undecided));
    let totals =
        format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", judgements.len());

    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites {totals}>");
    let _ = writeln!(text, "  <testsuite name=\"{}\" {totals}>", in_xml(suite));

    for Judgement { subject, what, outcome, sentence, .. } in judgements {
        let (subject, what, sentence) = (in_xml(subject), in_xml(what), in_xml(sentence));
        let _ = write!(text, "    <testcase classname=\"{subject}\" name=\"{what}\"");
        let _ = match outcome {
            JudgementOutcome::Passed => {
                writeln!(text, "><system-out>{sentence}</system-out></testcase>")
            }
            JudgementOutcome::Failed => {
                writeln!(text, "><failure message=\"{sentence}\"/></testcase>")
            }
            JudgementOutcome::Undecided => {
                writeln!(text, "><error message=\"{sentence}\"/></testcase>")
            }
        };
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// Escapes text for an attribute. Characters that XML cannot have are left out.
fn in_xml(text: &str) -> String {
    let mut escaped = String::new();
    for letter in terminal_text(text).chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\u{fffe}' | '\u{ffff}' => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// Formats what did not pass as workflow commands of GitHub, a line each: errors, then warnings.
pub fn github_annotations(judgements: &[Judgement]) -> String {
    let mut text = String::new();
    let kinds = [(JudgementOutcome::Failed, "error"), (JudgementOutcome::Undecided, "warning")];

    for (outcome, command) in kinds {
        for judgement in Judgement::with(judgements, outcome) {
            let title = format!("{} {}", judgement.subject, judgement.what);
            let title = in_property(&title);

            let _ =
                writeln!(text, "::{command} title={title}::{}", in_message(&judgement.sentence));
        }
    }
    text
}

/// Escapes the message of a workflow command.
fn in_message(text: &str) -> String {
    // Line breaks have become spaces.
    terminal_text(text).replace('%', "%25")
}

/// Escapes a property of a workflow command.
fn in_property(text: &str) -> String {
    in_message(text).replace(':', "%3A").replace(',', "%2C")
}

/// Formats what did not pass as a code quality report of GitLab, about the file of the plan.
pub fn gitlab_report(plan: &str, judgements: &[Judgement]) -> String {
    let mut issues = Vec::new();
    let kinds = [(JudgementOutcome::Failed, "major"), (JudgementOutcome::Undecided, "info")];

    for (outcome, severity) in kinds {
        for Judgement { subject, what, sentence, .. } in Judgement::with(judgements, outcome) {
            issues.push(json!({
                "description": terminal_text(sentence),
                "check_name": "assay",
                // The same finding of two pipelines has the same fingerprint.
                "fingerprint": terminal_text(&format!("{subject} {what}")),
                "severity": severity,
                "location": { "path": terminal_text(plan), "lines": { "begin": 1 } },
            }));
        }
    }

    format!("{:#}\n", serde_json::Value::from(issues))
}

/// Formats judgments as Markdown: how many there are of each outcome, those that did not pass, and
/// of each metric the one that passed closest to its threshold.
pub fn judgements_markdown(judgements: &[Judgement]) -> String {
    let count = |outcome| Judgement::with(judgements, outcome).count();
    let (failed, undecided) = (count(JudgementOutcome::Failed), count(JudgementOutcome::Undecided));
    let passed = count(JudgementOutcome::Passed);

    let heading = match (failed, undecided) {
        (0, 0) => "Passed",
        (0, _) => "Not certain",
        _ => "Failed",
    };

    let mut text = markdown::heading(2, heading);
    text += &markdown::paragraph(
        &format!("{failed} failed, {undecided} not certain, {passed} passed."),
        false,
    );

    for judgement in judgements.iter().filter(|judgement| judgement.is_closest) {
        let closest = format!("Closest to its threshold: {}", judgement.sentence);
        text += &markdown::paragraph(&closest, false);
    }

    if failed + undecided == 0 {
        return text;
    }

    let mut table = Table {
        lead: ["", "target", "judged", "result"].map(str::to_owned).to_vec(),
        ..Table::default()
    };
    let kinds = [(JudgementOutcome::Failed, "❌"), (JudgementOutcome::Undecided, "❔")];

    for (outcome, sign) in kinds {
        for Judgement { subject, what, sentence, .. } in Judgement::with(judgements, outcome) {
            let lead = [sign, subject, what, sentence].map(str::to_owned).to_vec();
            table.rows.push(TableRow { lead, cells: Vec::<Cell>::new(), ..TableRow::default() });
        }
    }

    let more = table.rows.len().saturating_sub(LISTED_MAX);
    table.rows.truncate(LISTED_MAX);
    text += &markdown::table(&table);
    if more > 0 {
        text += &markdown::paragraph(&format!("{more} more are not listed."), false);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgements() -> Vec<Judgement> {
        let judgement = |subject: &str, outcome, sentence: &str| Judgement {
            subject: subject.into(),
            what: "l.i1: throughput".into(),
            outcome,
            sentence: sentence.into(),
            is_closest: false,
        };
        vec![
            judgement("pg.same c8", JudgementOutcome::Passed, "no change shown"),
            judgement("pg.noisy c8", JudgementOutcome::Undecided, "too noisy to say"),
            judgement(
                "pg.<b>|\"& c8",
                JudgementOutcome::Failed,
                "slower, 50%\n::error::x\u{1b}[31m",
            ),
        ]
    }

    #[test]
    fn a_junit_report_has_a_test_case_for_each_judgement() {
        let text = junit("plan <1>", &judgements());
        let totals = "tests=\"3\" failures=\"1\" errors=\"1\"";
        assert_eq!(text.matches(totals).count(), 2, "{text}");
        let passed = "<testcase classname=\"pg.same c8\" name=\"l.i1: throughput\"><system-out>no change shown</system-out>";
        assert!(text.contains(passed), "{text}");
        assert!(text.contains("classname=\"pg.&lt;b&gt;|&quot;&amp; c8\""), "{text}");
        assert!(text.contains("<failure message=\"slower, 50% ::error::x[31m\"/>"), "{text}");
        assert!(text.contains("<error message=\"too noisy to say\"/>"), "{text}");
        assert!(text.contains("name=\"plan &lt;1&gt;\""), "{text}");
    }

    #[test]
    fn a_name_or_a_message_can_not_begin_another_command() {
        let text = github_annotations(&judgements());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "::error title=pg.<b>|\"& c8 l.i1%3A throughput::slower, 50%25 ::error::x[31m",
                "::warning title=pg.noisy c8 l.i1%3A throughput::too noisy to say",
            ]
        );
    }

    #[test]
    fn a_report_for_gitlab_has_the_same_fingerprint_each_time() {
        let text = gitlab_report("plan.toml", &judgements());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json[0]["severity"], "major");
        assert_eq!(json[1]["fingerprint"], "pg.noisy c8 l.i1: throughput");
        assert_eq!(json[1]["location"]["path"], "plan.toml");
        assert_eq!(gitlab_report("plan.toml", &judgements()[..1]), "[]\n");
    }

    #[test]
    fn a_summary_has_what_did_not_pass_first() {
        let text = judgements_markdown(&judgements());
        assert!(text.contains("## Failed") && text.contains("1 failed, 1 not certain, 1 passed"));
        assert!(text.find("❌") < text.find("❔"), "{text}");
        assert!(!text.contains("no change shown"), "{text}");
        let many = vec![judgements()[1].clone(); LISTED_MAX + 7];
        assert!(judgements_markdown(&many).ends_with("7 more are not listed.\n\n"));
        let passed = judgements_markdown(&judgements()[..1]);
        assert!(passed.contains("## Passed") && !passed.contains('|'), "{passed}");

        let closest = Judgement { is_closest: true, ..judgements()[0].clone() };
        let said = judgements_markdown(&[closest]);
        assert!(said.contains("Closest to its threshold: no change shown"), "{said}");
    }
}

//! Runs small plans of published experiments, and judges whether the first thing that a reader sees
//! says what was published: the answer of `assay compare`, and its first findings.
//!
//! Each plan of `plans/small` has a file of expectations beside it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::Value;

use super::run::{Run, fetch};
use super::{Setup, need};
use crate::prepare::MYSQL_LIBRARIES;

/// The folder of the plans, in the workspace.
const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plans/small");
/// The beginning of the line of a plan that names its builds.
const FETCH: &str = "#   assay fetch ";
/// The findings that a reader sees without scrolling.
const FINDINGS_SEEN: usize = 3;
/// The words for the direction of a change, which end what an earlier one says.
const SIGNS: [&str; 9] =
    ["faster", "slower", "fewer", "less", "more", "smaller", "larger", "higher", "lower"];

/// Runs all plans, or those whose name has a part in it. Returns false if a published finding is not
/// on the first screen of one.
pub fn run(setup: &Setup) -> Result<bool> {
    let mut passed = true;
    for plan in plans()? {
        let name = plan.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(&setup.only) {
            passed &= judge(setup, &plan, &name)?;
        }
    }
    Ok(passed)
}

/// Returns the paths of the plans, in order.
fn plans() -> Result<Vec<PathBuf>> {
    let mut plans = Vec::new();
    for entry in fs::read_dir(PLANS)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            plans.push(path);
        }
    }
    plans.sort();
    Ok(plans)
}

/// Runs a plan, prints the first screen, and says of each expectation whether it is there.
fn judge(setup: &Setup, path: &Path, name: &str) -> Result<bool> {
    let plan = fs::read_to_string(path)?;
    let expected = expected_beside(path)?;
    let specs = plan.lines().find_map(|line| line.strip_prefix(FETCH)).unwrap_or_default();
    if specs.contains("mysql@") {
        need(MYSQL_LIBRARIES)?;
    }
    for spec in specs.split_whitespace() {
        fetch(setup, spec).with_context(|| format!("`{name}` needs the build `{spec}`"))?;
    }

    // Without a name of its own, a plan is named after its file.
    let run = Run::of(setup, &format!("name = {name:?}\n{plan}"))?;
    let screen = Screen::of(&run.json("compare")?);
    println!("\n{name}: {}", run.directory());
    for paragraph in &screen.paragraphs {
        println!("    | {paragraph}");
    }

    let mut passed = true;
    for finding in &expected {
        let judgment = finding.judge(&screen);
        println!("  {:<10} {}", judgment.word(), finding.page);
        passed &= judgment != Judgment::Missing;
    }
    Ok(passed)
}

/// The text that a reader sees first: the answer, and the titles of the first findings, of each group
/// that has a base of its own.
struct Screen {
    paragraphs: Vec<String>,
}

impl Screen {
    /// Reads `assay compare --format json`.
    fn of(compared: &Value) -> Self {
        // A plan with one base has one comparison, without groups.
        let groups =
            compared["groups"].as_array().map_or(std::slice::from_ref(compared), Vec::as_slice);

        let mut paragraphs = Vec::new();
        for group in groups {
            paragraphs.push(group["answer"]["text"].as_str().unwrap_or_default().to_owned());
            let findings = group["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
            for finding in findings.iter().take(FINDINGS_SEEN) {
                paragraphs.push(finding["title"].as_str().unwrap_or_default().to_owned());
            }
        }
        Self { paragraphs }
    }

    /// Returns whether a clause says this of a target in a step.
    fn claims(&self, target: &str, step: &str, sign: &str) -> bool {
        self.paragraphs.iter().any(|paragraph| {
            let paragraph = with_signs_of_ratios(paragraph);
            let mut clauses = sentences(&paragraph).flat_map(|sentence| clauses(sentence, sign));
            clauses.any(|clause| has_word(&clause, target) && has_word(&clause, step))
        })
    }

    /// Returns whether a paragraph about a target has one of these texts.
    fn names_cause(&self, target: &str, causes: &[String]) -> bool {
        let of_target = |paragraph: &&String| has_word(paragraph, target);
        let mut paragraphs = self.paragraphs.iter().filter(of_target);
        paragraphs.any(|paragraph| causes.iter().any(|cause| paragraph.contains(cause.as_str())))
    }
}

fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    paragraph.split(". ").filter(|sentence| !sentence.is_empty())
}

/// Returns a text with a word for the direction of a cost: `0.79x less the fsyncs per commit`.
fn with_signs_of_ratios(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(' ') {
        let ratio = words.last().and_then(|before| before.strip_suffix('x'));
        let ratio: Option<f64> = ratio.and_then(|number| number.parse().ok());
        match ratio {
            Some(ratio) if word == "the" && ratio < 1.0 => words.push("less"),
            Some(_) if word == "the" => words.push("more"),
            _ => {}
        }
        words.push(word);
    }
    words.join(" ")
}

/// Returns what a sentence says with a word for a direction: its beginning, which has the subject,
/// and the text from that word on, up to the next such word.
fn clauses(sentence: &str, sign: &str) -> Vec<String> {
    let mut signs: Vec<(usize, &str)> = Vec::new();
    for word in SIGNS {
        let found = sentence.match_indices(word);
        signs.extend(found.filter(|(at, word)| is_word_at(sentence, *at, word)));
    }
    signs.sort_unstable();

    let subject_end = signs.first().map_or(sentence.len(), |(at, _)| *at);
    let mut clauses = Vec::new();
    for (index, (at, word)) in signs.iter().enumerate() {
        let end = signs.get(index + 1).map_or(sentence.len(), |(next, _)| *next);
        if *word == sign {
            clauses.push(format!("{}{}", &sentence[..subject_end], &sentence[*at..end]));
        }
    }
    clauses
}

fn is_word_at(text: &str, at: usize, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let before = text[..at].chars().next_back();
    // A name may end a sentence.
    let after = text[at + word.len()..].trim_start_matches('.').chars().next();
    !before.is_some_and(is_part) && !after.is_some_and(is_part)
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| is_word_at(text, at, word))
}

/// A published finding.
#[derive(Default)]
struct Finding {
    /// The claim of the page.
    page: String,
    target: String,
    step: String,
    /// The words for the direction.
    signs: Vec<String>,
    /// Texts that name the cause.
    causes: Vec<String>,
    /// Words for a direction that must not be claimed.
    absent: Vec<String>,
    /// Words for the published direction that a small plan need not show.
    unexpected: Vec<String>,
}

/// The judgment of a published finding by the first screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgment {
    /// The finding is there, with its cause.
    Shown,
    /// The finding is not there, and need not be.
    NotExpected,
    /// The finding is not there, or has another cause; or what must not be claimed is.
    Missing,
}

impl Judgment {
    fn word(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::NotExpected => "not needed",
            Self::Missing => "MISSING",
        }
    }
}

impl Finding {
    fn judge(&self, screen: &Screen) -> Judgment {
        let claims = |signs: &[String]| {
            signs.iter().any(|sign| screen.claims(&self.target, &self.step, sign))
        };
        if claims(&self.absent) {
            return Judgment::Missing;
        }
        if !self.unexpected.is_empty() {
            return if claims(&self.unexpected) { Judgment::Shown } else { Judgment::NotExpected };
        }
        if self.signs.is_empty() {
            return Judgment::Shown;
        }

        let has_cause = self.causes.is_empty() || screen.names_cause(&self.target, &self.causes);
        if claims(&self.signs) && has_cause { Judgment::Shown } else { Judgment::Missing }
    }
}

/// Reads the file of expectations beside a plan.
fn expected_beside(plan: &Path) -> Result<Vec<Finding>> {
    let path = plan.with_extension("expected");
    parse(&fs::read_to_string(&path)?).with_context(|| format!("in {}", path.display()))
}

/// Reads lines `key: value`. A line `page` begins a finding; values after it belong to it.
fn parse(text: &str) -> Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (key, value) = line.split_once(": ").with_context(|| format!("no key: `{line}`"))?;
        if key == "page" {
            findings.push(Finding { page: value.to_owned(), ..Finding::default() });
            continue;
        }

        let finding = findings.last_mut().context("the first finding has no page")?;
        let words: Vec<String> = value.split(", ").map(str::to_owned).collect();
        match key {
            "target" => value.clone_into(&mut finding.target),
            "step" => value.clone_into(&mut finding.step),
            "sign" => finding.signs = words,
            "cause" => finding.causes = words,
            "absent" => finding.absent = words,
            "unexpected" => finding.unexpected = words,
            _ => bail!("unknown key `{key}`"),
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn screen(paragraphs: &[&str]) -> Screen {
        Screen { paragraphs: paragraphs.iter().map(|text| (*text).to_owned()).collect() }
    }

    fn judge(finding: &str, screen: &Screen) -> Judgment {
        parse(&format!("page: x\n{finding}")).unwrap()[0].judge(screen)
    }

    #[test]
    fn a_finding_is_shown_if_target_step_sign_and_cause_are() {
        let shown = screen(&[
            "my80.files is slower than my56.files in 2 of 3 steps (l.i0 1.6x, l.i1 1.5x), faster in 1 (l.x 1.1x). \
             More own CPU per row explains it.",
        ]);
        let of = |step: &str, sign: &str, cause: &str| {
            judge(
                &format!("target: my80.files\nstep: {step}\nsign: {sign}\ncause: {cause}"),
                &shown,
            )
        };
        assert_eq!(of("l.i1", "slower", "own CPU"), Judgment::Shown);
        assert_eq!(of("l.x", "faster", "own CPU"), Judgment::Shown);
        assert_eq!(of("l.x", "slower", "own CPU"), Judgment::Missing);
        assert_eq!(of("l.i", "slower", "own CPU"), Judgment::Missing, "a part of a name");
        assert_eq!(of("l.i1", "slower", "fsync"), Judgment::Missing);
    }

    #[test]
    fn the_heading_about_several_targets_claims_what_it_names_with_a_step() {
        let shown = screen(&[
            "Of 2 targets against pg.a in 2 steps, pg.c is slower in l.i1 (1.2x) and faster in l.x (1.1x). \
             pg.b is faster in l.i1 (1.3x).",
            "5 targets against my.a in 2 steps: my.b and my.c are faster in some steps (up to 91x); my.d is slower in \
             some steps (1.2x). my.b does best: faster in 1 of 2 steps (l.i1 91x), slower in none.",
        ]);
        let of = |target: &str, step: &str, sign: &str| {
            judge(&format!("target: {target}\nstep: {step}\nsign: {sign}"), &shown)
        };
        assert_eq!(of("pg.c", "l.i1", "slower"), Judgment::Shown);
        assert_eq!(of("pg.c", "l.x", "faster"), Judgment::Shown);
        assert_eq!(of("pg.b", "l.i1", "faster"), Judgment::Shown);
        assert_eq!(of("pg.c", "l.i1", "faster"), Judgment::Missing);
        assert_eq!(of("my.b", "l.i1", "faster"), Judgment::Shown);
        assert_eq!(of("my.c", "l.i1", "faster"), Judgment::Missing, "only the size is named");
    }

    #[test]
    fn the_ratio_of_a_cost_has_a_direction() {
        let shown = screen(&[
            "my.off has 0.79x the fsyncs per commit of my.on in l.i1 (0.74x to 0.84x), 0.72x in l.i0.",
            "my.off has 1.5x the context switches of my.on in l.x (1.4x to 1.6x).",
        ]);
        let of = |step: &str, sign: &str| {
            judge(&format!("target: my.off\nstep: {step}\nsign: {sign}\ncause: fsync"), &shown)
        };
        assert_eq!(of("l.i1", "less"), Judgment::Shown);
        assert_eq!(of("l.i0", "less"), Judgment::Shown);
        assert_eq!(of("l.i1", "more"), Judgment::Missing);
        assert_eq!(of("l.x", "less"), Judgment::Missing);
        assert_eq!(of("l.x", "more"), Judgment::Shown);
    }

    #[test]
    fn each_group_has_an_answer_and_first_findings() {
        let group = |name: &str| {
            let titles = ["1", "2", "3", "4"].map(|number| json!({ "title": number }));
            json!({ "answer": { "text": name }, "findings": titles })
        };
        let one = ["my", "1", "2", "3"];
        assert_eq!(Screen::of(&group("my")).paragraphs, one);
        let both = Screen::of(&json!({ "groups": [group("my"), group("pg")], "across": {} }));
        assert_eq!(both.paragraphs, ["my", "1", "2", "3", "pg", "1", "2", "3"]);
    }

    #[test]
    fn what_is_absent_must_not_be_claimed_and_what_is_unexpected_may_be() {
        let shown = screen(&["pg.a25 is slower than pg.a in l.i1."]);
        let absent = "target: pg.a25\nstep: l.i1\nabsent: slower";
        assert_eq!(judge(absent, &shown), Judgment::Missing);
        assert_eq!(judge(absent, &screen(&["nothing"])), Judgment::Shown);
        let unexpected = "target: pg.a25\nstep: l.i1\nunexpected: slower";
        assert_eq!(judge(unexpected, &shown), Judgment::Shown);
        assert_eq!(judge(unexpected, &screen(&["nothing"])), Judgment::NotExpected);
    }

    #[test]
    fn every_small_plan_has_builds_and_expectations_about_its_own_targets_and_steps() {
        let plans = plans().unwrap();
        assert_eq!(plans.len(), 5);
        for path in plans {
            let plan = fs::read_to_string(&path).unwrap();
            assert!(plan.lines().any(|line| line.starts_with(FETCH)), "{}", path.display());
            let expected = expected_beside(&path).unwrap();
            assert!(!expected.is_empty(), "{}", path.display());
            for finding in &expected {
                let step = format!("\"{}\"", finding.step);
                assert!(plan.contains(&step), "{}: {step}", path.display());
                let (build, config) = finding.target.split_once('.').unwrap();
                assert!(plan.contains(&format!("[build.{build}]")), "{}", path.display());
                assert!(plan.contains(&format!(".{config}")), "{}", path.display());
                let has_sign = [&finding.signs, &finding.absent, &finding.unexpected];
                assert!(has_sign.iter().any(|words| !words.is_empty()), "{}", path.display());
            }
        }
    }
}

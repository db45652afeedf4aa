//! Judges whether the run of a bundle shows the bundle's finding again.

use std::io::Write as _;
use std::path::Path;

use analysis::figures::Figures;
use record::{Run, RunDir};
use report::terminal_text;
use runner::bundle::{Bundle, FINDING, text_in};
use runner::failure::UsageError;
use runner::prepare::bundled_plan::builds_to_fetch;
use runner::prepare::fetching::fetch_each;
use runner::{PlanRequest, RunRequest};
use words::shell_quoted;

use super::compare;
use super::facts::file_hashes;
use super::finding::{BundledFigure, BundledFinding, FORMAT, FindingPlace, figures_of};

/// Returns the text of the finding if a request begins the run of a bundle, after fetching the
/// builds that are missing, with progress to `say`. `None` for any other run.
///
/// # Errors
/// The bundle cannot be read, its plan is refused, or a build cannot be fetched.
pub fn prepare(request: &RunRequest, say: &dyn Fn(&str)) -> anyhow::Result<Option<String>> {
    let plan = match (&request.resume, &request.plan.plan) {
        (None, Some(plan)) => plan,
        _ => return Ok(None),
    };
    let Some(bundle) = Bundle::open(plan)? else {
        return Ok(None);
    };
    // Refused before anything is fetched: the finding is what the run is for.
    parse(&bundle.finding).map_err(|problem| {
        let message = format!("cannot use `{}`: `{FINDING}` {problem}", plan.display());
        let help = format!("run its plan alone: `assay run {}`", bundle.plan_path.display());
        UsageError::new(message, Some(help))
    })?;

    fetch_missing(&request.plan, say)?;
    Ok(Some(bundle.finding))
}

/// Fetches the builds of a bundle that are not on this machine.
fn fetch_missing(request: &PlanRequest, say: &dyn Fn(&str)) -> anyhow::Result<()> {
    let missing = builds_to_fetch(request)?;
    if missing.is_empty() || runner::is_further_rank() {
        return Ok(());
    }

    let specs: Result<Vec<_>, _> = missing.iter().map(|spec| builds::Spec::parse(spec)).collect();
    fetch_each(&specs?, None, say, |fetched| fetched.map(|_| ()))
}

/// Parses the text of a finding; returns what is wrong with it.
fn parse(text: &str) -> Result<BundledFinding, String> {
    let finding: BundledFinding =
        serde_json::from_str(text).map_err(|error| format!("is not a finding: {error}"))?;

    if finding.format != FORMAT {
        return Err(format!("has format {}, and this assay reads format {FORMAT}", finding.format));
    }

    Ok(finding)
}

/// Keeps the finding in the directory of the run that repeats it, also for when it is resumed.
///
/// # Errors
/// The file cannot be written.
pub fn keep(finding: &str, directory: &RunDir) -> anyhow::Result<()> {
    let path = directory.path().join(FINDING);
    match fs_err::File::create_new(&path) {
        Ok(mut file) => Ok(file.write_all(finding.as_bytes())?),
        // A resumed run has the finding already.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The judgment of a run about the finding that it repeats.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// The result, as sentences for a terminal.
    pub lines: Vec<String>,
    /// The answer to whether the finding was reproduced.
    pub outcome: ReproductionVerdict,
}

/// Judges a run that repeats a finding; `None` if it repeats none.
pub fn judge(directory: &RunDir, run: &Run, figures: &Figures) -> Option<Reproduction> {
    let text = text_in(directory.path(), FINDING).ok()?;
    let finding = parse(&text).ok()?;

    let outcome = ReproductionVerdict::of(&finding, &new_figure(&finding, figures));
    let mut sentences = vec![outcome.sentence(&finding, directory.path())];
    sentences.extend(other_builds(&finding, run));

    let lines = sentences.iter().map(|sentence| terminal_text(sentence)).collect();
    Some(Reproduction { lines, outcome })
}

/// Returns the figure of the finding in a run; one without a ratio if the run lacks it.
fn new_figure(finding: &BundledFinding, figures: &Figures) -> BundledFigure {
    let compared = compare(figures, &finding.base);
    let place = FindingPlace {
        target: &finding.target,
        step: &finding.step,
        // The plan has one of each, unless the user has set others.
        variant: None,
        clients: None,
    };

    let mut all = figures_of(&compared, &place).into_iter();
    all.find(|figure| figure.is_same_as(&finding.finding)).unwrap_or_default()
}

/// The answer to whether a finding was reproduced.
#[derive(Clone, Debug, PartialEq)]
pub enum ReproductionVerdict {
    /// A change in the same direction is shown.
    Reproduced {
        /// The figure of the run that repeats it.
        here: BundledFigure,
    },
    /// The finding's interval is ruled out: a smaller change, none, or one in the other direction.
    NotReproduced {
        /// The figure of the run that repeats it.
        here: BundledFigure,
    },
    /// The interval is too wide to tell.
    Undecided {
        /// The figure of the run that repeats it.
        here: BundledFigure,
    },
    /// The run has no ratio.
    NotCompared,
}

impl ReproductionVerdict {
    fn of(finding: &BundledFinding, here: &BundledFigure) -> Self {
        let here = here.clone();
        let there = &finding.finding;
        if here.ratio.is_none() {
            return Self::NotCompared;
        }

        if here.direction().is_some() && here.direction() == there.direction() {
            return Self::Reproduced { here };
        }

        let are_apart = match (here.interval, there.interval) {
            (Some(here), Some(there)) => here.high < there.low || there.high < here.low,
            _ => false,
        };
        if are_apart { Self::NotReproduced { here } } else { Self::Undecided { here } }
    }

    /// Returns the result in a sentence: ``reproduced: update-index of `b` against `a`: throughput
    /// is 0.52 (0.50-0.54) here, and was 0.50 (0.48-0.52)``.
    fn sentence(&self, finding: &BundledFinding, run: &Path) -> String {
        let BundledFinding { base, target, step, finding: there, .. } = finding;
        let what = format!("{step} of {target} against {base}: {}", there.label());
        let was = there.ratio_text();
        let more = |repeats: usize| {
            let repeats = (2 * repeats).max(5);
            let path = shell_quoted(&run.display().to_string());
            format!("`assay run --resume {path} --repeats {repeats}` adds repeats")
        };

        match self {
            Self::Reproduced { here } => {
                format!("reproduced: {what} is {} here, and was {was}", here.ratio_text())
            }
            Self::NotReproduced { here } => {
                format!("not reproduced: {what} is {} here, and was {was}", here.ratio_text())
            }
            Self::Undecided { here } => format!(
                "cannot tell yet whether the finding is reproduced: {what} is {} here, and was {was}; {}",
                here.ratio_text(),
                more(here.values.len())
            ),
            Self::NotCompared => format!(
                "cannot tell whether the finding is reproduced: the run has no valid figures for {what}, which was {was}"
            ),
        }
    }
}

/// Says which builds are not those of the bundle.
fn other_builds(finding: &BundledFinding, run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    for was in &finding.builds {
        let Some(is) = run.builds.iter().find(|build| build.name == was.name) else {
            continue;
        };

        let name = &was.name;
        if is.version != was.version {
            lines.push(format!(
                "note: build {name} is {} here, and was {}",
                is.version, was.version
            ));
            continue;
        }

        // Builds of one version may differ, such as in their compiler.
        let hashes = file_hashes(is);
        let changed = was.files.iter().find(|(file, sha256)| hashes.get(*file) != Some(*sha256));
        if let Some((file, _)) = changed {
            lines.push(format!("note: build {name} has another {file} here, by its SHA-256"));
        }
    }

    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::BundledInterval;

    fn figure(low: f64, high: f64) -> BundledFigure {
        BundledFigure {
            metric: "throughput".into(),
            ratio: Some(f64::midpoint(low, high)),
            interval: Some(BundledInterval { low, high, confidence: 0.95 }),
            values: vec![1.0; 5],
            ..BundledFigure::default()
        }
    }

    fn sentence(there: BundledFigure, here: BundledFigure) -> (String, ReproductionVerdict) {
        let finding = BundledFinding {
            base: "a".into(),
            target: "b".into(),
            step: "l.i0".into(),
            finding: there,
            ..BundledFinding::default()
        };
        let outcome = ReproductionVerdict::of(&finding, &here);
        (outcome.sentence(&finding, Path::new("R")), outcome)
    }

    #[test]
    fn a_finding_is_reproduced_by_a_change_in_its_direction() {
        let (text, outcome) = sentence(figure(0.4, 0.6), figure(0.45, 0.55));
        assert_eq!(
            text,
            "reproduced: l.i0 of b against a: throughput is 0.50 (0.45-0.55) here, and was 0.50 (0.40-0.60)"
        );
        assert!(matches!(outcome, ReproductionVerdict::Reproduced { .. }));
        // A change counts however small: the sentence has both intervals.
        let (_, outcome) = sentence(figure(1.4, 1.6), figure(1.1, 1.2));
        assert!(matches!(outcome, ReproductionVerdict::Reproduced { .. }));
    }

    #[test]
    fn a_finding_that_its_repetition_rules_out_is_not_reproduced() {
        for here in [figure(0.95, 1.05), figure(1.2, 1.4)] {
            let (text, outcome) = sentence(figure(0.4, 0.6), here);
            assert!(text.starts_with("not reproduced: "), "{text}");
            assert!(matches!(outcome, ReproductionVerdict::NotReproduced { .. }));
        }
    }

    #[test]
    fn a_wide_interval_or_none_decides_nothing() {
        let (text, outcome) = sentence(figure(0.4, 0.6), figure(0.5, 1.1));
        assert!(text.contains("`assay run --resume R --repeats 10` adds repeats"), "{text}");
        assert!(matches!(outcome, ReproductionVerdict::Undecided { .. }));
        let once = BundledFigure { interval: None, ..figure(0.4, 0.6) };
        assert!(matches!(
            sentence(figure(0.4, 0.6), once).1,
            ReproductionVerdict::Undecided { .. }
        ));
        let missing = BundledFigure::default();
        assert!(sentence(figure(0.4, 0.6), missing).0.contains("no valid figures"));
    }
}

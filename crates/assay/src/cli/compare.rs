//! The options of `compare`, and the form of their values.

use std::path::PathBuf;

use analysis::compare::{Bound, Requirement, THROUGHPUT, WORK};
use clap::Args;
use words::{Metric, OPERATION_TIMES};

use super::Format;

/// Arguments of `compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Targets with the same name in several runs count as repeats of one target, so they must be identical. To compare \
yesterday's run with today's, use `--by-run`: that shows ratios without verdicts, since a night is one value.

With `--gate`, the exit code is 0 if a regression beyond the threshold is ruled out, 3 if one is found, and 4 if neither is \
certain: the result is invalid, missing, too noisy or measured only once. Assay looks for regressions in throughput, in own CPU and \
instructions per operation, in exact work, and in each metric that a threshold names. Only throughput and the named metrics can rule one out.

With `--require`, the exit code is 0 if every target meets every requirement, 3 if one is missed, and 4 if none is missed but \
one can't be judged: it is invalid, not applicable, too noisy or measured only once. With `--gate` as well, 3 outweighs 4, and 4 \
outweighs 0.

Examples:
  assay compare RUN --metric response_p99 --metric response_p99:insert
  assay compare RUN --gate --threshold response_p99=10
  assay compare RUN --gate --junit gate.xml --markdown gate.md --annotations github
  assay compare RUN --require 'qr100 response_p99 < 5ms' --require 'qr100 sla >= 95%'")]
pub struct CompareArgs {
    /// The run directories
    #[arg(required_unless_present = "metrics", value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The base target [default: that of the first run's plan]. With GROUP, an engine or a build,
    /// the base of only that group's targets; may be repeated
    #[arg(
        long = "base",
        value_name = "[GROUP=]TARGET",
        conflicts_with_all = ["by_run", "by_step"]
    )]
    pub bases: Vec<Base>,
    /// Compares each target with the target of the same name in the first run
    #[arg(long)]
    pub by_run: bool,
    /// Compares steps of the same cell, in each target: `qr0=qr100` compares qr100 with qr0, and
    /// `.pre` each step X with X.pre. May be repeated
    #[arg(long, value_name = "BASE=STEP", conflicts_with_all = ["by_run", "by"])]
    pub by_step: Vec<StepPattern>,
    /// Shows the effect of a factor, all else being equal. A factor is a setting, `build`, or a
    /// name that the plan defines under `factors`. `all` selects every factor, and `?` lists
    /// them. May be repeated
    #[arg(long, value_name = "FACTOR", conflicts_with_all = ["by_run", "gate"])]
    pub by: Vec<String>,
    /// Also shows the verdicts of this metric, such as `response_p99`, `response_p99:insert`,
    /// `sla` or `fsyncs_per_commit`. `?` lists all metrics. May be repeated
    #[arg(long = "metric", value_name = "NAME", value_parser = metric_or_list)]
    pub metrics: Vec<String>,
    /// Requires a bound of every target, such as `qr100 response_p99 < 5ms` or
    /// `l.i1 throughput >= 20k`: a step, a metric, `<`, `<=`, `>` or `>=`, and a value with its
    /// unit. Sets the exit code, as described below. May be repeated
    #[arg(
        long = "require",
        value_name = "REQUIREMENT",
        value_parser = requirement,
        conflicts_with_all = ["by", "by_step"]
    )]
    pub requirements: Vec<Requirement>,
    /// Sets the exit code for use in CI, as described below
    #[arg(long)]
    pub gate: bool,
    /// Also writes the judgements of `--gate` and `--require` as a JUnit report. What is not
    /// certain is an error there
    #[arg(long, value_name = "FILE", conflicts_with = "by")]
    pub junit: Option<PathBuf>,
    /// Also writes the comparison as Markdown, after the judgements of `--gate` and `--require`,
    /// such as for `$GITHUB_STEP_SUMMARY`
    #[arg(long, value_name = "FILE", conflicts_with = "by")]
    pub markdown: Option<PathBuf>,
    /// Annotates what `--gate` or `--require` did not let pass: `github` prints workflow commands,
    /// `gitlab` writes a code quality report, gl-code-quality-report.json without FILE
    #[arg(long, value_name = "github|gitlab[=FILE]", conflicts_with = "by")]
    pub annotations: Option<Annotations>,
    /// The largest change for the worse, in percent, that `--gate` accepts: `5` for throughput,
    /// own CPU and instructions per operation [default: that of `--effect`], `cpupq=10` for one
    /// metric, or `work=1` for exact work [default: any change that is shown]. May be repeated
    #[arg(long = "threshold", value_name = "[METRIC=]PERCENT")]
    pub thresholds: Vec<Threshold>,
    /// The smallest change that matters, in percent: `equal` means that any change is smaller than
    /// this [default: 3, or the `effect` of the plan of a run until decided]
    #[arg(long, value_name = "PERCENT", value_parser = percent_above_zero)]
    pub effect: Option<f64>,
    /// Of how many tables of equal targets, in percent, may any show something faster or slower
    #[arg(long, value_name = "PERCENT", default_value_t = ERROR_RATE, value_parser = error_percent)]
    pub error_rate: f64,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Shows only this step, with the verdict that the whole table gives it; may be repeated
    #[arg(long = "step", value_name = "NAME")]
    pub steps: Vec<String>,
    /// Tells why the intervals of this step are as wide as they are, instead of printing tables
    #[arg(long, value_name = "STEP", conflicts_with_all = ["by", "format"])]
    pub why: Option<String>,
}

/// The default of `--error-rate`, in percent.
const ERROR_RATE: f64 = 5.0;

impl CompareArgs {
    /// Returns the arguments of a comparison with all options at their defaults, except for the
    /// steps.
    pub fn with_defaults(runs: Vec<PathBuf>, steps: Vec<String>) -> Self {
        Self {
            runs,
            bases: Vec::new(),
            by_run: false,
            by_step: Vec::new(),
            by: Vec::new(),
            metrics: Vec::new(),
            requirements: Vec::new(),
            gate: false,
            junit: None,
            markdown: None,
            annotations: None,
            thresholds: Vec::new(),
            effect: None,
            error_rate: ERROR_RATE,
            format: Format::Csv,
            steps,
            why: None,
        }
    }
}

/// One `--base`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The engine or build whose targets are compared with it; `None` means all targets.
    pub group: Option<String>,
    /// The target.
    pub target: String,
}

impl std::str::FromStr for Base {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (group, target) = match text.split_once('=') {
            Some((group, target)) => (Some(group.to_owned()), target),
            None => (None, text),
        };
        Ok(Self { group, target: target.to_owned() })
    }
}

/// One `--by-step`: names of steps, or suffixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepPattern {
    /// The base step or suffix.
    pub base: String,
    /// The step or suffix that is compared with it. If empty, the steps without the base's suffix
    /// are.
    pub other: String,
}

impl StepPattern {
    /// Returns whether the pattern selects steps by their suffixes.
    pub fn has_suffixes(&self) -> bool {
        self.base.starts_with('.')
    }
}

impl std::str::FromStr for StepPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (base, other) = text.split_once('=').unwrap_or((text, ""));
        let is_suffix = |text: &str| text.len() > 1 && text.starts_with('.');
        let is_allowed = match (is_suffix(base), other) {
            _ if base == other => return Err("a step can't be compared with itself"),
            (true, other) => other.is_empty() || is_suffix(other),
            (false, other) => !(base.is_empty() || other.is_empty() || other.starts_with('.')),
        };
        if !is_allowed {
            return Err(
                "write two steps, as in `qr0=qr100`, or suffixes, as in `.pre` or `.pre=.post`",
            );
        }

        Ok(Self { base: base.to_owned(), other: other.to_owned() })
    }
}

/// One `--annotations`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotations {
    /// The system that reads them.
    pub format: AnnotationFormat,
    /// The file to write.
    pub file: Option<PathBuf>,
}

/// The system that reads annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationFormat {
    /// Workflow commands of GitHub.
    Github,
    /// A code quality report of GitLab.
    Gitlab,
}

impl std::str::FromStr for Annotations {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = match text.split_once('=') {
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (text, None),
        };

        let format = match format {
            "github" => AnnotationFormat::Github,
            "gitlab" => AnnotationFormat::Gitlab,
            other => return Err(format!("unknown format `{other}`; use `github` or `gitlab`")),
        };

        Ok(Self { format, file })
    }
}

/// One `--threshold`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The metric; `None` means all metrics that the gate judges by default.
    pub metric: Option<String>,
    /// The largest accepted change for the worse, in percent.
    pub percent: f64,
}

impl std::str::FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (metric, percent) = match text.rsplit_once('=') {
            Some((metric, percent)) => (Some(metric), percent),
            None => (None, text),
        };

        if let Some(metric) = metric.filter(|metric| *metric != WORK) {
            check_metric(metric)?;
        }

        let percent = percent_of(percent)?;
        if percent < 0.0 {
            return Err(format!(
                "a threshold must be 0 or above; write for example `5`, not `{percent}`"
            ));
        }
        Ok(Self { metric: metric.map(str::to_owned), percent })
    }
}

/// The value of `--metric` that lists all metrics.
pub const METRIC_LIST: &str = "?";

/// Reads a `--metric`.
pub(super) fn metric_or_list(text: &str) -> Result<String, String> {
    if text != METRIC_LIST {
        check_metric(text)?;
    }
    Ok(text.to_owned())
}

/// Refuses an unknown metric.
fn check_metric(text: &str) -> Result<(), String> {
    if text == THROUGHPUT || Metric::named(text).is_some() {
        return Ok(());
    }
    Err(format!(
        "unknown metric `{text}`; did you mean `{}`? `assay compare --metric '?'` lists all metrics",
        nearest_metric(text)
    ))
}

/// Returns the metric that an unknown name most likely means.
fn nearest_metric(text: &str) -> String {
    // `p95` is no metric, and `query_response_us_p95` is the name of one in exported tables.
    for metric in OPERATION_TIMES {
        if metric.name.strip_prefix("response_") == Some(text) {
            return metric.name.to_owned();
        }
        match kind_in_column_name(text, metric.column) {
            Some("main") => return metric.name.to_owned(),
            Some(kind) => return format!("{}:{kind}", metric.name),
            None => {}
        }
    }

    let similarity = |name: &&str| strsim::normalized_damerau_levenshtein(text, name);
    let names = Metric::all().map(|metric| metric.name).chain([THROUGHPUT]);
    let nearest = names.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    nearest.unwrap_or(THROUGHPUT).to_owned()
}

/// Returns `query` of `query_response_us_p95` if the rest is this column.
fn kind_in_column_name<'a>(name: &'a str, column: &str) -> Option<&'a str> {
    name.strip_suffix(column)?.strip_suffix('_')
}

/// The signs of bounds, longer ones first.
const BOUNDS: [(&str, Bound); 4] =
    [("<=", Bound::AtMost), (">=", Bound::AtLeast), ("<", Bound::Below), (">", Bound::Above)];

/// Reads a `--require`: `qr100 response_p99:insert < 5ms`.
pub(super) fn requirement(text: &str) -> Result<Requirement, String> {
    let usage = "write a step, a metric, `<`, `<=`, `>` or `>=`, and a value, as in `qr100 response_p99 < 5ms`";
    let sign_at = text.find(['<', '>']).ok_or(usage)?;
    let (what, bounded) = text.split_at(sign_at);
    let [step, metric] = what.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(usage.to_owned());
    };

    check_metric(metric)?;
    let (sign, bound) =
        BOUNDS.into_iter().find(|(sign, _)| bounded.starts_with(sign)).ok_or(usage)?;
    let value = bounded[sign.len()..].trim();

    Ok(Requirement {
        text: format!("{step} {metric} {sign} {value}"),
        step: step.to_owned(),
        metric: metric.to_owned(),
        bound,
        value: in_unit_of(metric, value)?,
    })
}

/// Units of time in microseconds.
const TIMES: [(&str, f64); 6] =
    [("ns", 1e-3), ("us", 1.0), ("\u{b5}s", 1.0), ("\u{3bc}s", 1.0), ("ms", 1e3), ("s", 1e6)];

/// Powers of ten.
const POWERS: [(&str, f64); 3] = [("k", 1e3), ("M", 1e6), ("G", 1e9)];

/// Reads a value in the unit of a metric. Times need a unit.
fn in_unit_of(metric: &str, text: &str) -> Result<f64, String> {
    let unit = Metric::named(metric).map_or("/s", |metric| metric.unit);
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, given) = text.split_at(end.unwrap_or(text.len()));

    let number: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a number with a unit, such as `5ms`"))?;
    let given = given.trim();

    match factor(unit, given) {
        Some(factor) => Ok(number * factor),
        None => Err(wrong_unit(metric, unit, given)),
    }
}

/// Returns how many of a metric's units the given one is; `None` if it is of another kind.
fn factor(unit: &str, given: &str) -> Option<f64> {
    let us_in = |name: &str| TIMES.iter().find(|(known, _)| *known == name).map(|(_, us)| *us);

    // Costs may leave out what they are per.
    let (time, per) = unit.split_at(unit.find('/').unwrap_or(unit.len()));
    if let Some(own_us) = us_in(time) {
        return Some(us_in(given.strip_suffix(per).unwrap_or(given))? / own_us);
    }

    let is_percent = given == "%" && unit.starts_with('%');
    let is_rate = given == "/s" && unit.ends_with("/s");
    if given.is_empty() || given == unit || is_percent || is_rate {
        return Some(1.0);
    }

    let power = given.strip_suffix("/s").unwrap_or(given);
    POWERS.iter().find(|(known, _)| *known == power).map(|(_, factor)| *factor)
}

fn wrong_unit(metric: &str, unit: &str, given: &str) -> String {
    let own = if unit.is_empty() { "no unit".to_owned() } else { format!("the unit `{unit}`") };
    let given = if given.is_empty() { "no unit".to_owned() } else { format!("`{given}`") };

    // Published reports call rates `p50` and `p99`.
    let time = Metric::named(&format!("response_{metric}"));
    let hint = time.map(|time| format!("; the time of operations is `{}`", time.name));
    format!("`{metric}` has {own}, but the bound has {given}{}", hint.unwrap_or_default())
}

fn percent_of(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() => Ok(percent),
        _ => Err(format!("invalid percentage `{text}`; write for example `5` or `2.5`")),
    }
}

pub(super) fn percent_above_zero(text: &str) -> Result<f64, String> {
    let percent = percent_of(text)?;
    let is_within = percent > 0.0 && percent < 100.0;
    is_within.then_some(percent).ok_or("the percentage must be above 0 and below 100".into())
}

pub(super) fn error_percent(text: &str) -> Result<f64, String> {
    let percent = percent_of(text)?;
    let is_within = (0.01..=50.0).contains(&percent);
    is_within.then_some(percent).ok_or("the percentage must be from 0.01 to 50".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_has_a_step_a_metric_and_a_bound_in_the_unit_of_the_metric() {
        for (text, step, metric, bound, value) in [
            ("qr100 response_p99 < 5ms", "qr100", "response_p99", Bound::Below, 5000.0),
            (
                "l.i1 service_p99.9:insert<=250us",
                "l.i1",
                "service_p99.9:insert",
                Bound::AtMost,
                250.0,
            ),
            ("l.i1 response_max >= 1.5 s", "l.i1", "response_max", Bound::AtLeast, 1.5e6),
            ("l.i1 maxop < 20ms", "l.i1", "maxop", Bound::Below, 0.02),
            ("l.i0 throughput > 20k", "l.i0", "throughput", Bound::Above, 20_000.0),
            ("l.i0 ips > 20k/s", "l.i0", "ips", Bound::Above, 20_000.0),
            ("qr100 sla >= 95%", "qr100", "sla", Bound::AtLeast, 95.0),
            ("qr100 cpupq < 1ms/op", "qr100", "cpupq", Bound::Below, 1000.0),
            ("qr100 fsyncs_per_commit < 0.5", "qr100", "fsyncs_per_commit", Bound::Below, 0.5),
        ] {
            let read = requirement(text).unwrap();
            assert_eq!((read.step.as_str(), read.metric.as_str()), (step, metric), "{text}");
            assert_eq!(read.bound, bound, "{text}");
            assert!((read.value - value).abs() < 1e-9, "{text}: {}", read.value);
        }
    }

    #[test]
    fn a_wrong_requirement_is_refused_with_what_to_write() {
        for (text, expected) in [
            ("qr100 response_p99", "as in `qr100 response_p99 < 5ms`"),
            ("response_p99 < 5ms", "write a step"),
            ("qr100 response_p99 < 5", "the bound has no unit"),
            ("qr100 response_p99 < fast", "not a number"),
            ("qr100 throughput < 5ms", "`throughput` has the unit `/s`, but the bound has `ms`"),
            ("qr100 p99 < 5ms", "the time of operations is `response_p99`"),
            ("qr100 p95 < 5ms", "did you mean `response_p95`?"),
        ] {
            let error = requirement(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn names_that_people_try_lead_to_the_metric() {
        for (text, expected) in [
            ("p95", "response_p95"),
            ("max", "response_max"),
            ("query_response_us_p99", "response_p99:query"),
            ("main_service_us_p99_9", "service_p99.9"),
            ("fairnes", "fairness"),
            ("troughput", THROUGHPUT),
        ] {
            let error = metric_or_list(text).unwrap_err();
            assert!(error.contains(&format!("did you mean `{expected}`?")), "{error}");
        }
        assert_eq!(metric_or_list("?").as_deref(), Ok("?"));
    }
}

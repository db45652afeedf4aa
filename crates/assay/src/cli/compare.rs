//! Parses the values of the options of `compare`.

use analysis::THROUGHPUT;
use words::METRICS;

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
    /// Returns whether it selects steps by their suffixes.
    pub fn has_suffixes(&self) -> bool {
        self.base.starts_with('.')
    }
}

impl std::str::FromStr for StepPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (base, other) = text.split_once('=').unwrap_or((text, ""));
        let is_suffix = |text: &str| text.len() > 1 && text.starts_with('.');
        match (is_suffix(base), other) {
            _ if base == other => Err("a step can't be compared with itself"),
            (true, "") => Ok(()),
            (true, other) if is_suffix(other) => Ok(()),
            (false, other) if !(base.is_empty() || other.is_empty() || other.starts_with('.')) => {
                Ok(())
            }
            _ => {
                Err("write two steps, as in `qr0=qr100`, or suffixes, as in `.pre` or `.pre=.post`")
            }
        }?;
        Ok(Self { base: base.to_owned(), other: other.to_owned() })
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
        let metric = metric.map(metric_named).transpose()?;
        let percent = percent_of(percent)?;
        if percent < 0.0 {
            return Err(format!(
                "a threshold must be 0 or above; write for example `5`, not `{percent}`"
            ));
        }
        Ok(Self { metric: metric.map(str::to_owned), percent })
    }
}

/// Returns the name of a metric of [`METRICS`], or of throughput.
pub(super) fn metric_named(text: &str) -> Result<&'static str, String> {
    let names = || METRICS.iter().map(|it| it.name).chain([THROUGHPUT]);
    let similarity = |name: &&str| strsim::normalized_damerau_levenshtein(text, name);
    names().find(|name| *name == text).ok_or_else(|| {
        let nearest = names().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
        format!(
            "unknown metric `{text}`; did you mean `{}`? `docs/metrics.md` lists all metrics",
            nearest.unwrap_or(THROUGHPUT)
        )
    })
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

//! The values of a comparison's request, as people write them.

use std::str::FromStr;

use analysis::compare::{Bound, GivenUnit, Requirement, THROUGHPUT, WORK};
use words::{Metric, OPERATION_TIMES};

/// One `--base`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The engine or build whose targets are compared with it; `None` means all targets.
    pub group: Option<String>,
    /// The target.
    pub target: String,
}

impl FromStr for Base {
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

impl FromStr for StepPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (base, other) = text.split_once('=').unwrap_or((text, ""));
        let is_suffix = |text: &str| text.len() > 1 && text.starts_with('.');
        let is_allowed = match (is_suffix(base), other) {
            _ if base == other => return Err("a step cannot be compared with itself"),
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

/// One `--threshold`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The metric; `None` means all metrics that the gate judges by default.
    pub metric: Option<String>,
    /// The largest accepted change for the worse, in percent.
    pub percent: f64,
}

impl FromStr for Threshold {
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

/// Refuses an unknown metric.
///
/// # Errors
/// The most similar metric.
pub fn check_metric(text: &str) -> Result<(), String> {
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
///
/// # Errors
/// The text is not a requirement; the error says what to write.
pub fn requirement(text: &str) -> Result<Requirement, String> {
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
    let BoundValue { in_unit_of_metric, given_unit } = bound_value(metric, value)?;

    Ok(Requirement {
        text: format!("{step} {metric} {sign} {value}"),
        step: step.to_owned(),
        metric: metric.to_owned(),
        bound,
        value: in_unit_of_metric,
        given_unit,
    })
}

/// Units of time in microseconds.
const TIMES: [(&str, f64); 6] =
    [("ns", 1e-3), ("us", 1.0), ("\u{b5}s", 1.0), ("\u{3bc}s", 1.0), ("ms", 1e3), ("s", 1e6)];

/// Powers of ten.
const POWERS: [(&str, f64); 3] = [("k", 1e3), ("M", 1e6), ("G", 1e9)];

/// The value of a bound.
struct BoundValue {
    in_unit_of_metric: f64,
    /// The unit of time in which it was given; `None` if it is the metric's.
    given_unit: Option<GivenUnit>,
}

/// Reads the value of a bound on a metric. Times need a unit.
fn bound_value(metric: &str, text: &str) -> Result<BoundValue, String> {
    let unit = Metric::named(metric).map_or("/s", |metric| metric.unit);
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, given) = text.split_at(end.unwrap_or(text.len()));

    let number: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a number with a unit, such as `5ms`"))?;
    let given = given.trim();

    let Some(size) = factor(unit, given) else {
        return Err(wrong_unit(metric, unit, given));
    };
    let given_unit = time_per(unit, given).filter(|name| name != unit);
    Ok(BoundValue {
        in_unit_of_metric: number * size,
        given_unit: given_unit.map(|name| GivenUnit { name, size }),
    })
}

/// Returns the name of a given unit of time, with what the metric's unit is per: `ms/op`; `None` if it
/// is no time.
fn time_per(unit: &str, given: &str) -> Option<String> {
    let per = &unit[unit.find('/').unwrap_or(unit.len())..];
    let time = given.strip_suffix(per).unwrap_or(given);
    let is_time = TIMES.iter().any(|(known, _)| *known == time);
    is_time.then(|| format!("{time}{per}"))
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

/// Reads a percentage, with its sign or without.
///
/// # Errors
/// It is no number.
pub fn percent_of(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() => Ok(percent),
        _ => Err(format!("invalid percentage `{text}`; write for example `5` or `2.5`")),
    }
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
    fn a_bound_in_another_unit_of_time_keeps_its_unit() {
        for (text, given) in [
            ("qr100 response_p99 < 5ms", Some(("ms", 1000.0))),
            ("qr100 response_p99 < 5000us", None),
            ("qr100 cpupq < 1ms", Some(("ms/op", 1000.0))),
            ("l.i0 throughput > 20k", None),
            ("qr100 sla >= 95%", None),
        ] {
            let read = requirement(text).unwrap();
            let unit = read.given_unit.as_ref().map(|unit| (unit.name.as_str(), unit.size));
            assert_eq!(unit, given, "{text}");
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
            let error = check_metric(text).unwrap_err();
            assert!(error.contains(&format!("did you mean `{expected}`?")), "{error}");
        }
    }
}

//! Measures programs: the resources of one, pairs that do the same work in turn, and bounds on
//! their costs.

use std::io::{Read as _, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use wait4::Wait4;

use crate::workspace::shown;

/// A program that succeeded, with the resources that it used.
///
/// CPU time includes children that the program waited for, such as a server that it started.
pub struct Finished {
    /// The stdout of the program.
    pub stdout: String,
    /// The peak memory.
    pub memory_bytes: u64,
    /// The CPU time and duration, without a number of operations.
    pub used: Sample,
}

impl Finished {
    /// Returns the number after a label at the start of a line.
    pub fn number(&self, label: &str) -> Result<f64> {
        let mut lines = self.stdout.lines();
        let after = lines.find_map(|line| line.trim_start().strip_prefix(label));
        after
            .and_then(|after| {
                let text = after.trim_start();
                let is_part = |(at, char): (usize, char)| {
                    char.is_ascii_digit() || char == '.' || (char == '-' && at == 0)
                };
                let end = text.char_indices().find(|each| !is_part(*each));
                let end = end.map_or(text.len(), |(at, _)| at);
                text[..end].parse().ok()
            })
            .with_context(|| format!("the program printed no number after `{label}`"))
    }

    /// Returns the sample of a program that did only these operations.
    pub fn sample(&self, op_count: u64) -> Sample {
        Sample { op_count, ..self.used }
    }

    /// Returns the sample of a program that reports the time of the operations.
    pub fn sample_within(&self, op_count: f64, seconds: f64) -> Sample {
        Sample { op_count: op_count as u64, elapsed_ns: (seconds * 1e9) as u64, ..self.used }
    }

    /// Returns the sample that one of our examples reports.
    pub fn own_sample(&self) -> Result<Sample> {
        let seconds = self.number("elapsed_ns:")? / 1e9;
        Ok(self.sample_within(self.number("operations:")?, seconds))
    }
}

/// The cost of a number of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The number of operations.
    pub op_count: u64,
    /// User CPU of all operations.
    pub user_ns: u64,
    /// System CPU of all operations.
    pub system_ns: u64,
    /// The time that they took.
    pub elapsed_ns: u64,
}

impl Sample {
    /// Subtracts the CPU time of a run that only started up.
    pub fn without(self, start: Sample) -> Sample {
        Sample {
            user_ns: self.user_ns.saturating_sub(start.user_ns),
            system_ns: self.system_ns.saturating_sub(start.system_ns),
            ..self
        }
    }
}

/// A figure of a sample, with its name.
pub type Figure = (&'static str, fn(&Sample) -> f64);

/// User CPU of an operation.
pub const USER: Figure = ("user_us_per_op", |sample| us_per_op(sample, sample.user_ns));
/// System CPU of an operation.
pub const SYSTEM: Figure = ("system_us_per_op", |sample| us_per_op(sample, sample.system_ns));
/// User and system CPU of an operation.
pub const CPU: Figure =
    ("cpu_us_per_op", |sample| us_per_op(sample, sample.user_ns + sample.system_ns));
/// Operations per second.
pub const THROUGHPUT: Figure =
    ("ops_per_s", |sample| sample.op_count as f64 / (sample.elapsed_ns as f64 / 1e9));

fn us_per_op(sample: &Sample, ns: u64) -> f64 {
    ns as f64 / 1e3 / sample.op_count as f64
}

/// A bound on a figure that is measured several times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The figure has no bound.
    None,
    /// The median must be at most this.
    AtMost(f64),
    /// The median must be at least this.
    AtLeast(f64),
    /// The minimum must be at most this. Other load on the machine can only slow down a loop that
    /// only computes.
    MinimumAtMost(f64),
}

/// Prints a line about a figure's values. Returns whether they are within the bound; without a
/// value they are not.
fn judge(name: &str, values: &[f64], bound: Bound) -> bool {
    let middle = median(values);
    let minimum = values.iter().copied().fold(f64::INFINITY, f64::min);
    let maximum = values.iter().copied().fold(0.0, f64::max);
    let (passed, words) = match bound {
        Bound::None => (true, String::new()),
        Bound::AtMost(limit) => (middle <= limit, format!("; must be at most {limit}")),
        Bound::AtLeast(limit) => (middle >= limit, format!("; must be at least {limit}")),
        Bound::MinimumAtMost(limit) => {
            let passed = minimum <= limit && !values.is_empty();
            (passed, format!("; the minimum must be at most {limit}"))
        }
    };
    let verdict = match (bound, passed) {
        (Bound::None, _) => "",
        (_, true) => "ok",
        (_, false) => "FAILED",
    };
    // Without CPU time of the peer there is no ratio.
    let facts = if middle.is_nan() {
        "n/a".to_owned()
    } else {
        format!("median {middle:.3}, {minimum:.3} to {maximum:.3}")
    };
    let count = values.len();
    println!("{verdict:<6} {name}: {facts} in {count} rounds{words}");
    passed
}

/// Judges figures that were measured in rounds. Returns false if one is not within its bound.
pub fn judge_all<const N: usize>(bounds: [(&str, Bound); N], rounds: &[[f64; N]]) -> bool {
    let mut passed = true;
    for (at, (name, bound)) in bounds.into_iter().enumerate() {
        let values: Vec<f64> = rounds.iter().map(|round| round[at]).collect();
        passed &= judge(name, &values, bound);
    }
    passed
}

/// Measures figures in `round_count` rounds, and judges each. Returns false if one is not within
/// its bound.
pub fn figures<const N: usize>(
    round_count: usize,
    bounds: [(&str, Bound); N],
    run: impl Fn() -> Result<[f64; N]>,
) -> Result<bool> {
    let rounds = (0..round_count).map(|_| run());
    Ok(judge_all(bounds, &rounds.collect::<Result<Vec<_>>>()?))
}

/// Returns the median; NaN without values, or if any of them is NaN.
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    f64::midpoint(values[middle], values[(values.len() - 1) / 2])
}

/// Runs two functions in each of `round_count` rounds. They take turns in going first, so that a
/// machine that slows down affects both equally.
pub fn in_turn<A, B>(
    round_count: usize,
    mut first: impl FnMut() -> Result<A>,
    mut second: impl FnMut() -> Result<B>,
) -> Result<Vec<(A, B)>> {
    let rounds = (0..round_count).map(|round| {
        if round % 2 == 0 {
            let one = first()?;
            return Ok((one, second()?));
        }
        let two = second()?;
        Ok((first()?, two))
    });
    rounds.collect()
}

/// One side of a pair: its name, and a run of it.
pub type Side<'a> = (&'a str, &'a dyn Fn() -> Result<Sample>);

/// Runs ours and a peer in turn for `round_count` rounds, and prints the figures. Each round gives
/// one ratio, and the median of the ratios is judged. Returns false if one is not within its bound.
pub fn pair(
    round_count: usize,
    ours: Side<'_>,
    peer: Side<'_>,
    bounds: &[(Figure, Bound)],
) -> Result<bool> {
    // One round that is not counted brings programs and data into memory.
    in_turn(1, || measure(ours), || measure(peer))?;
    let rounds = in_turn(round_count, || measure(ours), || measure(peer))?;

    let mut passed = true;
    for (name, figure) in [USER, SYSTEM, CPU, THROUGHPUT] {
        let (ours_of, peers): (Vec<f64>, Vec<f64>) =
            rounds.iter().map(|(ours, peer)| (figure(ours), figure(peer))).unzip();
        println!("{name:<18}{} {:.3}, {} {:.3}", ours.0, median(&ours_of), peer.0, median(&peers));

        let ratios: Vec<f64> = ours_of.iter().zip(&peers).map(|(ours, peer)| ours / peer).collect();
        let bound = bounds.iter().find(|((bound, _), _)| *bound == name);
        passed &= judge("ratio", &ratios, bound.map_or(Bound::None, |(_, bound)| *bound));
    }
    Ok(passed)
}

fn measure((name, run): Side<'_>) -> Result<Sample> {
    let sample = run().with_context(|| format!("no sample of `{name}`"))?;
    let did_work = sample.op_count > 0 && sample.elapsed_ns > 0;
    ensure!(did_work, "`{name}` did nothing: {sample:?}");
    Ok(sample)
}

/// Runs a program to its end. Keeps its stdout; the error has its stderr.
pub fn finish(mut command: Command) -> Result<Finished> {
    let shown = shown(&command);
    #[expect(
        clippy::disallowed_methods,
        reason = "the time of a whole process; xtask uses no crate of the workspace"
    )]
    let begun = Instant::now();

    let mut stderr = tempfile::tempfile()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr.try_clone()?)
        .spawn()
        .with_context(|| format!("cannot run `{shown}`"))?;

    // Reading to the end comes before waiting: a full pipe would block the program.
    let mut stdout = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut stdout)
            .with_context(|| format!("cannot read what `{shown}` printed"))?;
    }
    let ended = child.wait4().with_context(|| format!("cannot wait for `{shown}`"))?;
    let elapsed = begun.elapsed();

    if !ended.status.success() {
        let mut text = String::new();
        stderr.rewind()?;
        stderr.read_to_string(&mut text)?;
        bail!("`{shown}` failed: {}\n{}", ended.status, text.trim_end());
    }

    Ok(Finished {
        stdout,
        memory_bytes: ended.rusage.maxrss,
        used: Sample {
            op_count: 0,
            user_ns: nanoseconds(ended.rusage.utime),
            system_ns: nanoseconds(ended.rusage.stime),
            elapsed_ns: nanoseconds(elapsed),
        },
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(op_count: u64, user_ns: u64, system_ns: u64, elapsed_ns: u64) -> Sample {
        Sample { op_count, user_ns, system_ns, elapsed_ns }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn figures_are_per_operation() {
        let sample = sample(2000, 3_000_000, 1_000_000, 500_000_000);
        let figures = [USER, SYSTEM, CPU, THROUGHPUT].map(|(_, figure)| figure(&sample));
        assert_eq!(figures, [1.5, 0.5, 2.0, 4000.0]);
    }

    #[test]
    fn the_cost_of_starting_up_is_subtracted() {
        let left = sample(30, 5, 6, 40).without(sample(0, 2, 9, 1));
        assert_eq!(left, sample(30, 3, 0, 40));
    }

    #[test]
    fn numbers_are_read_by_their_labels() {
        let text = "queries performed:\n    queries:   1616   (4.5 per sec.)\ntps = 500.5 (without)\n\
                    processed: 20/30\n    total time:   4.0000s\n";
        let finished = finish(shell(&format!("printf '{text}'"))).unwrap();
        for (label, number) in
            [("queries:", 1616.0), ("tps =", 500.5), ("processed:", 20.0), ("total time:", 4.0)]
        {
            assert_eq!(finished.number(label).unwrap(), number, "{label}");
        }
        assert!(finished.number("queries performed:").is_err());
        assert!(finished.number("none").is_err());
    }

    #[test]
    fn a_bound_holds_up_to_its_limit() {
        let values = [45.0, 39.0, 42.0];
        for (bound, passed) in [
            (Bound::None, true),
            (Bound::AtMost(42.0), true),
            (Bound::AtMost(41.9), false),
            (Bound::AtLeast(42.0), true),
            (Bound::AtLeast(42.1), false),
            (Bound::MinimumAtMost(39.0), true),
            (Bound::MinimumAtMost(38.9), false),
        ] {
            assert_eq!(judge("x", &values, bound), passed, "{bound:?}");
        }
    }

    #[test]
    fn without_a_value_or_a_ratio_no_bound_holds() {
        for values in [&[][..], &[f64::NAN]] {
            assert!(!judge("x", values, Bound::AtMost(1.0)));
            assert!(!judge("x", values, Bound::AtLeast(0.0)));
            assert!(!judge("x", values, Bound::MinimumAtMost(1.0)));
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn cpu_time_of_a_program_and_its_children_is_counted() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let busy = finish(shell(&format!("sh -c '{busy}'; echo done"))).unwrap();
        let idle = finish(shell("true")).unwrap();
        assert_eq!(busy.stdout, "done\n");
        assert!(
            busy.used.user_ns > idle.used.user_ns + 10_000_000,
            "{:?} and {:?}",
            busy.used,
            idle.used
        );
        assert!(busy.used.elapsed_ns > 0 && idle.stdout.is_empty());
    }

    #[test]
    fn a_program_that_fails_or_does_nothing_gives_no_sample() {
        let script = "echo no room >&2; exit 3";
        let error = finish(shell(script)).err().unwrap().to_string();
        assert!(error.ends_with("exit status: 3\nno room"), "{error}");
        let error = measure(("lazy", &|| Ok(sample(0, 1, 1, 1)))).unwrap_err();
        assert!(error.to_string().contains("`lazy` did nothing"), "{error}");
    }

    #[test]
    fn both_sides_run_in_every_round_and_once_before_and_each_round_has_a_ratio() {
        let order = std::cell::RefCell::new(String::new());
        let side = |name: char, ns: u64| {
            order.borrow_mut().push(name);
            Ok(sample(1, ns * order.borrow().len() as u64, 0, 10))
        };
        let (ours, peer) = (|| side('a', 2), || side('b', 2));
        // Rounds: 2 * 3 to 2 * 4 and 2 * 6 to 2 * 5.
        let ratio = f64::midpoint(0.75, 1.2);
        let holds = |bounds: &[(Figure, Bound)]| {
            order.borrow_mut().clear();
            pair(2, ("a", &ours), ("b", &peer), bounds).unwrap()
        };
        assert!(holds(&[(USER, Bound::AtMost(ratio))]));
        assert_eq!(*order.borrow(), "ababba");
        assert!(!holds(&[(USER, Bound::AtMost(ratio - 0.01))]));
        // Without CPU time there is no ratio.
        assert!(!holds(&[(SYSTEM, Bound::AtMost(1.0))]));
    }
}

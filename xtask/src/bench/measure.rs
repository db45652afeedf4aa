//! What a program did and used; two programs that do the same work, run in turn; and bounds on what that cost.

use std::io::{Read as _, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use wait4::Wait4;

use crate::workspace::shown;

/// A program that ended well, and what the system says that it used.
///
/// CPU time is that of the program and of those of its children that it waited for: a server that it started itself
/// and reaped is in it.
pub struct Finished {
    /// What it wrote to stdout.
    pub stdout: String,
    /// The most memory that it had at a time.
    pub memory_bytes: u64,
    /// CPU time and time from start to end, of no operation yet.
    pub used: Sample,
}

impl Finished {
    /// The number that stands behind a label at the beginning of a line.
    pub fn number(&self, label: &str) -> Result<f64> {
        let mut lines = self.stdout.lines();
        let rest = lines.find_map(|line| line.trim_start().strip_prefix(label));
        rest.and_then(|rest| {
            let digits = |char: char| char.is_ascii_digit() || char == '.';
            let number = rest.trim_start().split(|char| !digits(char)).next();
            number?.parse().ok()
        })
        .with_context(|| format!("the program printed no number behind `{label}`"))
    }

    /// The sample of a program that did nothing but these operations.
    pub fn sample(&self, op_count: u64) -> Sample {
        Sample {
            op_count,
            ..self.used
        }
    }

    /// The sample of a program that says itself how long the operations took, without what came before.
    pub fn sample_within(&self, op_count: f64, seconds: f64) -> Sample {
        Sample {
            op_count: op_count as u64,
            elapsed_ns: (seconds * 1e9) as u64,
            ..self.used
        }
    }

    /// The sample of one of our examples, by its own account.
    pub fn own_sample(&self) -> Result<Sample> {
        let seconds = self.number("elapsed_ns:")? / 1e9;
        Ok(self.sample_within(self.number("operations:")?, seconds))
    }
}

/// What a number of operations cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Operations done.
    pub op_count: u64,
    /// User CPU of all of them.
    pub user_ns: u64,
    /// System CPU of all of them.
    pub system_ns: u64,
    /// Time that they took.
    pub elapsed_ns: u64,
}

impl Sample {
    /// Takes off the CPU time of a run that only began.
    pub fn without(self, start: Sample) -> Sample {
        Sample {
            user_ns: self.user_ns.saturating_sub(start.user_ns),
            system_ns: self.system_ns.saturating_sub(start.system_ns),
            ..self
        }
    }
}

/// A figure of a sample, by its name.
pub type Figure = (&'static str, fn(&Sample) -> f64);

pub const USER: Figure = ("user_us_per_op", |it| us_per_op(it, it.user_ns));
pub const SYSTEM: Figure = ("system_us_per_op", |it| us_per_op(it, it.system_ns));
pub const CPU: Figure = ("cpu_us_per_op", |it| {
    us_per_op(it, it.user_ns + it.system_ns)
});
pub const THROUGHPUT: Figure = ("ops_per_s", |it| {
    it.op_count as f64 / (it.elapsed_ns as f64 / 1e9)
});

fn us_per_op(sample: &Sample, ns: u64) -> f64 {
    ns as f64 / 1e3 / sample.op_count as f64
}

/// What must hold of a figure that is measured several times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// It is shown only.
    None,
    /// Its median is at most this.
    AtMost(f64),
    /// Its median is at least this.
    AtLeast(f64),
    /// Its least value is at most this: of a loop that only computes, whatever else the machine does can only add to it.
    LeastAtMost(f64),
}

/// Prints a line about a figure's values; false when the bound is not kept. Without a value none is.
fn judge(name: &str, values: &[f64], bound: Bound) -> bool {
    let middle = median(values);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let (kept, words) = match bound {
        Bound::None => (true, String::new()),
        Bound::AtMost(limit) => (middle <= limit, format!(" - at most {limit}")),
        Bound::AtLeast(limit) => (middle >= limit, format!(" - at least {limit}")),
        Bound::LeastAtMost(limit) => {
            let kept = least <= limit && !values.is_empty();
            (kept, format!(" - least at most {limit}"))
        }
    };
    let verdict = match (bound, kept) {
        (Bound::None, _) => "",
        (_, true) => "ok",
        (_, false) => "FAILED",
    };
    // Without a peer's CPU time there is no ratio: not applicable, as in every table.
    let facts = match middle.is_nan() {
        true => "n/a".to_owned(),
        false => format!("median {middle:.3}, {least:.3} to {most:.3}"),
    };
    let count = values.len();
    println!("{verdict:<6} {name} - {facts} in {count} rounds{words}");
    kept
}

/// Judges figures that were measured in rounds; false when a bound is not kept.
pub fn judge_all<const N: usize>(bounds: [(&str, Bound); N], rounds: &[[f64; N]]) -> bool {
    let mut kept = true;
    for (at, (name, bound)) in bounds.into_iter().enumerate() {
        let values: Vec<f64> = rounds.iter().map(|round| round[at]).collect();
        kept &= judge(name, &values, bound);
    }
    kept
}

/// Measures figures in so many rounds and judges each; false when a bound is not kept.
pub fn figures<const N: usize>(
    round_count: usize,
    bounds: [(&str, Bound); N],
    run: impl Fn() -> Result<[f64; N]>,
) -> Result<bool> {
    let rounds = (0..round_count).map(|_| run());
    Ok(judge_all(bounds, &rounds.collect::<Result<Vec<_>>>()?))
}

/// The middle one, or the mean of the two in the middle; NaN of none, and of any that holds a NaN.
fn median(values: &[f64]) -> f64 {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    f64::midpoint(values[middle], values[(values.len() - 1) / 2])
}

/// Does two things in each of so many rounds. Which of them begins alternates, so that a machine that gets slower or warmer
/// treats both alike.
pub fn in_turn<A, B>(
    round_count: usize,
    mut one: impl FnMut() -> Result<A>,
    mut other: impl FnMut() -> Result<B>,
) -> Result<Vec<(A, B)>> {
    let rounds = (0..round_count).map(|round| {
        if round % 2 == 0 {
            let one = one()?;
            return Ok((one, other()?));
        }
        let other = other()?;
        Ok((one()?, other))
    });
    rounds.collect()
}

/// One side of a pair: its name, and a run of it.
pub type Side<'a> = (&'a str, &'a dyn Fn() -> Result<Sample>);

/// Runs ours and a peer in turn, this many rounds, and prints the figures; false when a bound on a ratio is not kept. Each
/// round gives one ratio; the median of the ratios is judged.
pub fn pair(
    round_count: usize,
    ours: Side<'_>,
    peer: Side<'_>,
    bounds: &[(Figure, Bound)],
) -> Result<bool> {
    // One round that is not counted: programs and data come into memory.
    in_turn(1, || measure(ours), || measure(peer))?;
    let rounds = in_turn(round_count, || measure(ours), || measure(peer))?;
    let mut kept = true;
    for (name, of) in [USER, SYSTEM, CPU, THROUGHPUT] {
        let (ours_of, peers): (Vec<f64>, Vec<f64>) = rounds
            .iter()
            .map(|(ours, peer)| (of(ours), of(peer)))
            .unzip();
        println!(
            "{name:<18}{} {:.3}, {} {:.3}",
            ours.0,
            median(&ours_of),
            peer.0,
            median(&peers)
        );
        let ratios: Vec<f64> = ours_of
            .iter()
            .zip(&peers)
            .map(|(ours, peer)| ours / peer)
            .collect();
        let bound = bounds.iter().find(|((bound, _), _)| *bound == name);
        kept &= judge(
            "ratio",
            &ratios,
            bound.map_or(Bound::None, |(_, bound)| *bound),
        );
    }
    Ok(kept)
}

fn measure((name, run): Side<'_>) -> Result<Sample> {
    let sample = run().with_context(|| format!("no sample of `{name}`"))?;
    let is_something = sample.op_count > 0 && sample.elapsed_ns > 0;
    ensure!(is_something, "`{name}` did nothing - {sample:?}");
    Ok(sample)
}

/// Runs a program to its end. Its stdout is kept, its stderr is shown if it fails.
pub fn finish(mut command: Command) -> Result<Finished> {
    let shown = shown(&command);
    #[expect(
        clippy::disallowed_methods,
        reason = "the time of a whole process; no crate of the house is used here"
    )]
    let begun = Instant::now();
    let mut said = tempfile::tempfile()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(said.try_clone()?)
        .spawn()
        .with_context(|| format!("cannot run `{shown}`"))?;
    // Read to the end before waiting: a full pipe would hold the program up.
    let mut stdout = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut stdout)
            .with_context(|| format!("cannot read what `{shown}` printed"))?;
    }
    let ended = child
        .wait4()
        .with_context(|| format!("cannot wait for `{shown}`"))?;
    let elapsed = begun.elapsed();
    if !ended.status.success() {
        let mut text = String::new();
        said.rewind()?;
        said.read_to_string(&mut text)?;
        bail!("`{shown}` failed - {}\n{}", ended.status, text.trim_end());
    }
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok(Finished {
        stdout,
        memory_bytes: ended.rusage.maxrss,
        used: Sample {
            op_count: 0,
            user_ns: ns(ended.rusage.utime),
            system_ns: ns(ended.rusage.stime),
            elapsed_ns: ns(elapsed),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(op_count: u64, user_ns: u64, system_ns: u64, elapsed_ns: u64) -> Sample {
        Sample {
            op_count,
            user_ns,
            system_ns,
            elapsed_ns,
        }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn figures_are_per_operation() {
        let sample = sample(2000, 3_000_000, 1_000_000, 500_000_000);
        let figures = [USER, SYSTEM, CPU, THROUGHPUT].map(|(_, of)| of(&sample));
        assert_eq!(figures, [1.5, 0.5, 2.0, 4000.0]);
    }

    #[test]
    fn what_was_spent_before_is_taken_off() {
        let left = sample(30, 5, 6, 40).without(sample(0, 2, 9, 1));
        assert_eq!(left, sample(30, 3, 0, 40));
    }

    #[test]
    fn what_a_program_printed_is_read_by_its_label() {
        let text = "queries performed:\n    queries:   1616   (4.5 per sec.)\ntps = 500.5 (without)\n\
                    processed: 20/30\n    total time:   4.0000s\n";
        let finished = finish(shell(&format!("printf '{text}'"))).unwrap();
        for (label, number) in [
            ("queries:", 1616.0),
            ("tps =", 500.5),
            ("processed:", 20.0),
            ("total time:", 4.0),
        ] {
            assert_eq!(finished.number(label).unwrap(), number, "{label}");
        }
        assert!(finished.number("queries performed:").is_err());
        assert!(finished.number("none").is_err());
    }

    #[test]
    fn a_bound_holds_up_to_its_limit() {
        let values = [45.0, 39.0, 42.0];
        for (bound, kept) in [
            (Bound::None, true),
            (Bound::AtMost(42.0), true),
            (Bound::AtMost(41.9), false),
            (Bound::AtLeast(42.0), true),
            (Bound::AtLeast(42.1), false),
            (Bound::LeastAtMost(39.0), true),
            (Bound::LeastAtMost(38.9), false),
        ] {
            assert_eq!(judge("x", &values, bound), kept, "{bound:?}");
        }
    }

    #[test]
    fn without_a_value_or_a_ratio_no_bound_holds() {
        for values in [&[][..], &[f64::NAN]] {
            assert!(!judge("x", values, Bound::AtMost(1.0)));
            assert!(!judge("x", values, Bound::AtLeast(0.0)));
            assert!(!judge("x", values, Bound::LeastAtMost(1.0)));
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn cpu_time_of_a_program_and_of_what_it_waited_for_is_counted() {
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
    fn both_sides_run_in_every_round_and_once_before_and_ratios_are_of_rounds() {
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

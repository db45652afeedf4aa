//! Two programs that do the same work, run in turn, and the ratio of what it cost them.
//!
//! Ours and the peer alternate, and which of the two begins alternates too, so that a machine that gets slower or warmer
//! treats both alike. Each round gives one ratio; the median of the ratios is the result, and their range is shown with it.

use std::io::{Read as _, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wait4::Wait4;

use crate::workspace::shown;

/// A program that ended well, and what the system says that it used.
///
/// CPU time is that of the program and of those of its children that it waited for: a server that it started itself
/// and reaped is in it.
pub struct Finished {
    /// What it wrote to stdout.
    pub stdout: String,
    /// CPU time in its own code, ns.
    pub user_ns: u64,
    /// CPU time in the kernel on its behalf, ns.
    pub system_ns: u64,
    /// From its start to its end, ns.
    pub elapsed_ns: u64,
}

impl Finished {
    /// The last line that it printed.
    pub fn last_line(&self) -> Result<&str> {
        let line = self.stdout.lines().next_back();
        line.context("the program printed nothing")
    }

    /// The sample of a program that did nothing but these operations.
    pub fn sample(&self, op_count: u64) -> Sample {
        let Finished {
            user_ns,
            system_ns,
            elapsed_ns,
            ..
        } = *self;
        Sample {
            op_count,
            user_ns,
            system_ns,
            elapsed_ns,
        }
    }
}

/// What a number of operations cost. A program that reports its own times may have them in place of the system's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Operations done.
    pub op_count: u64,
    /// User CPU of all of them, ns.
    pub user_ns: u64,
    /// System CPU of all of them, ns.
    pub system_ns: u64,
    /// Time that they took, ns.
    pub elapsed_ns: u64,
}

/// CPU time that a program spends before it measures.
#[derive(Clone, Copy)]
pub struct Spent {
    user_ns: u64,
    system_ns: u64,
}

impl Spent {
    /// That of a run that did nothing else.
    pub fn of(finished: &Finished) -> Spent {
        Spent {
            user_ns: finished.user_ns,
            system_ns: finished.system_ns,
        }
    }

    /// What a run used beyond that.
    pub fn without(self, sample: Sample) -> Sample {
        Sample {
            user_ns: sample.user_ns.saturating_sub(self.user_ns),
            system_ns: sample.system_ns.saturating_sub(self.system_ns),
            ..sample
        }
    }
}

/// Tells what a program did.
pub type Read = dyn Fn(&Finished) -> Result<Sample>;

/// One side of a pair.
pub struct Contender<'a> {
    /// What the table calls it.
    pub name: String,
    /// How it is run. Made anew for each round; its stdout is read, its stderr is shown if it fails.
    pub command: Box<dyn Fn() -> Result<Command> + 'a>,
    /// What it did, from what it printed and used.
    pub read: Box<Read>,
}

/// A figure of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// User CPU per operation, us.
    User,
    /// System CPU per operation, us.
    System,
    /// Both together, us.
    Cpu,
    /// Operations per second.
    Throughput,
}

impl Figure {
    const ALL: [Figure; 4] = [
        Figure::User,
        Figure::System,
        Figure::Cpu,
        Figure::Throughput,
    ];

    fn name(self) -> &'static str {
        match self {
            Figure::User => "user_us_per_op",
            Figure::System => "system_us_per_op",
            Figure::Cpu => "cpu_us_per_op",
            Figure::Throughput => "ops_per_s",
        }
    }

    fn of(self, sample: &Sample) -> f64 {
        let op_count = sample.op_count as f64;
        let us_per_op = |ns: u64| ns as f64 / 1e3 / op_count;
        match self {
            Figure::User => us_per_op(sample.user_ns),
            Figure::System => us_per_op(sample.system_ns),
            Figure::Cpu => us_per_op(sample.user_ns + sample.system_ns),
            Figure::Throughput => op_count / (sample.elapsed_ns as f64 / 1e9),
        }
    }
}

/// What must hold of the medians of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Ours / peer is at most this.
    RatioAtMost(Figure, f64),
    /// Ours / peer is at least this.
    RatioAtLeast(Figure, f64),
}

/// Ours and a peer.
pub struct Pair<'a> {
    /// What is judged.
    pub ours: Contender<'a>,
    /// What it is compared to.
    pub peer: Contender<'a>,
    /// What must hold.
    pub bounds: Vec<Bound>,
}

/// What both sides cost in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    ours: Sample,
    peer: Sample,
}

impl Pair<'_> {
    /// Runs both sides in turn, this many rounds, and prints the figures; false when a bound is not kept.
    pub fn run(&self, round_count: usize) -> Result<bool> {
        // One round that is not counted: programs and data come into memory.
        measure(&self.ours)?;
        measure(&self.peer)?;
        let mut rounds = Vec::with_capacity(round_count);
        for index in 0..round_count {
            let round = if index % 2 == 0 {
                let ours = measure(&self.ours)?;
                Round {
                    ours,
                    peer: measure(&self.peer)?,
                }
            } else {
                let peer = measure(&self.peer)?;
                Round {
                    ours: measure(&self.ours)?,
                    peer,
                }
            };
            rounds.push(round);
        }
        print!("{}", table(&self.ours.name, &self.peer.name, &rounds));
        let mut kept = true;
        for bound in &self.bounds {
            let (text, holds) = judge(*bound, &rounds);
            println!("{} {text}", if holds { "ok    " } else { "FAILED" });
            kept &= holds;
        }
        Ok(kept)
    }
}

/// Runs one side once.
fn measure(contender: &Contender<'_>) -> Result<Sample> {
    let finished = finish((contender.command)()?)?;
    let sample = (contender.read)(&finished)
        .with_context(|| format!("cannot tell what `{}` did", contender.name))?;
    if sample.op_count == 0 || sample.elapsed_ns == 0 {
        bail!(
            "`{}` did nothing - {} operations in {} ns",
            contender.name,
            sample.op_count,
            sample.elapsed_ns
        );
    }
    Ok(sample)
}

/// Runs a program to its end.
pub(super) fn finish(mut command: Command) -> Result<Finished> {
    let shown = shown(&command);
    #[allow(
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
    let stdout = child.stdout.take().map(std::io::read_to_string).transpose();
    let used = child
        .wait4()
        .with_context(|| format!("cannot wait for `{shown}`"))?;
    let elapsed = begun.elapsed();
    if !used.status.success() {
        let mut text = String::new();
        said.rewind()?;
        said.read_to_string(&mut text)?;
        bail!("`{shown}` failed - {}\n{}", used.status, text.trim_end());
    }
    let stdout = stdout
        .with_context(|| format!("cannot read what `{shown}` printed"))?
        .unwrap_or_default();
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok(Finished {
        stdout,
        user_ns: nanos(used.rusage.utime),
        system_ns: nanos(used.rusage.stime),
        elapsed_ns: nanos(elapsed),
    })
}

/// The medians of every figure, and the ratio round by round.
fn table(ours: &str, peer: &str, rounds: &[Round]) -> String {
    let mut text = format!(
        "{:<18}{ours:>14}{peer:>14}{:>9}   range of {} rounds\n",
        "median",
        "ratio",
        rounds.len()
    );
    for figure in Figure::ALL {
        let (ours, peer) = (
            median(rounds.iter().map(|round| figure.of(&round.ours))),
            median_of_peer(figure, rounds),
        );
        let ratios = ratios(figure, rounds);
        let (low, high) = (
            ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratios.iter().copied().fold(0.0, f64::max),
        );
        // Without a peer's CPU time there is no ratio: not applicable, as in every table.
        let ratio = match median(ratios.into_iter()) {
            ratio if ratio.is_finite() => format!("{ratio:>9.3}   {low:.3} to {high:.3}"),
            _ => format!("{:>9}", "n/a"),
        };
        text += &format!("{:<18}{ours:>14.3}{peer:>14.3}{ratio}\n", figure.name());
    }
    text
}

fn median_of_peer(figure: Figure, rounds: &[Round]) -> f64 {
    median(rounds.iter().map(|round| figure.of(&round.peer)))
}

/// Ours / peer of each round.
fn ratios(figure: Figure, rounds: &[Round]) -> Vec<f64> {
    rounds
        .iter()
        .map(|round| figure.of(&round.ours) / figure.of(&round.peer))
        .collect()
}

/// A bound in words, and whether it holds.
fn judge(bound: Bound, rounds: &[Round]) -> (String, bool) {
    let ratio = |figure: Figure| median(ratios(figure, rounds).into_iter());
    match bound {
        Bound::RatioAtMost(figure, limit) => {
            let got = ratio(figure);
            (
                format!(
                    "ratio of {} - got {got:.3} - at most {limit}",
                    figure.name()
                ),
                got <= limit,
            )
        }
        Bound::RatioAtLeast(figure, limit) => {
            let got = ratio(figure);
            (
                format!(
                    "ratio of {} - got {got:.3} - at least {limit}",
                    figure.name()
                ),
                got >= limit,
            )
        }
    }
}

/// The middle one, or the mean of the two in the middle; NaN of none, and of any that holds a NaN.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
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

    /// Ours costs 1 + 1 us and makes 1000/s; the peer 4, 2 and 3 + 3 us in turn and makes 500/s.
    fn rounds() -> Vec<Round> {
        let ours = sample(1000, 1_000_000, 1_000_000, 1_000_000_000);
        let peer = |user_us: u64| sample(500, user_us * 500_000, 3 * 500_000, 1_000_000_000);
        [4, 2, 3]
            .map(|user_us| Round {
                ours,
                peer: peer(user_us),
            })
            .to_vec()
    }

    #[test]
    fn figures_are_per_operation() {
        let sample = sample(2000, 3_000_000, 1_000_000, 500_000_000);
        let figures = Figure::ALL.map(|figure| figure.of(&sample));
        assert_eq!(figures, [1.5, 0.5, 2.0, 4000.0]);
    }

    #[test]
    fn what_was_spent_before_is_taken_off() {
        let spent = Spent {
            user_ns: 2,
            system_ns: 9,
        };
        let left = spent.without(sample(30, 5, 6, 40));
        assert_eq!(left, sample(30, 3, 0, 40));
    }

    #[test]
    fn the_ratio_is_taken_round_by_round() {
        let ratios = ratios(Figure::User, &rounds());
        assert_eq!(ratios, [0.25, 0.5, 1.0 / 3.0]);
        let text = table("assay", "pgbench", &rounds());
        let line = text
            .lines()
            .find(|line| line.starts_with("user_us_per_op"))
            .unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "user_us_per_op",
                "1.000",
                "3.000",
                "0.333",
                "0.250",
                "to",
                "0.500"
            ]
        );
    }

    #[test]
    fn a_bound_holds_up_to_its_limit() {
        let rounds = rounds();
        let holds = |bound| judge(bound, &rounds).1;
        assert!(holds(Bound::RatioAtMost(Figure::Throughput, 2.0)));
        assert!(!holds(Bound::RatioAtMost(Figure::Throughput, 1.99)));
        assert!(holds(Bound::RatioAtLeast(Figure::Throughput, 2.0)));
        assert!(!holds(Bound::RatioAtLeast(Figure::Throughput, 2.01)));
        assert!(holds(Bound::RatioAtMost(Figure::Cpu, 1.0 / 3.0)));
        let (text, _) = judge(Bound::RatioAtMost(Figure::User, 0.5), &rounds);
        assert_eq!(text, "ratio of user_us_per_op - got 0.333 - at most 0.5");
    }

    #[test]
    fn without_cpu_time_there_is_no_ratio_and_no_bound_holds() {
        let idle = sample(1, 0, 0, 1);
        let rounds = [Round {
            ours: idle,
            peer: idle,
        }];
        assert!(!judge(Bound::RatioAtMost(Figure::User, 1.0), &rounds).1);
        assert!(!judge(Bound::RatioAtLeast(Figure::User, 0.0), &rounds).1);
        assert!(table("a", "b", &rounds).contains("n/a"));
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert!(median(std::iter::empty()).is_nan());
    }

    #[test]
    fn cpu_time_of_a_program_and_of_what_it_waited_for_is_counted() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let busy = finish(shell(&format!("sh -c '{busy}'; echo done"))).unwrap();
        let idle = finish(shell("true")).unwrap();
        assert_eq!(busy.stdout, "done\n");
        assert!(
            busy.user_ns > idle.user_ns + 10_000_000,
            "{} and {}",
            busy.user_ns,
            idle.user_ns
        );
        assert!(busy.elapsed_ns > 0 && idle.stdout.is_empty());
    }

    #[test]
    fn a_program_that_fails_or_does_nothing_gives_no_sample() {
        let script = "echo no room >&2; exit 3";
        let error = finish(shell(script)).err().unwrap().to_string();
        assert!(error.ends_with("exit status: 3\nno room"), "{error}");
        let lazy = Contender {
            name: "lazy".to_owned(),
            command: Box::new(|| Ok(shell("true"))),
            read: Box::new(|finished| Ok(finished.sample(0))),
        };
        let error = measure(&lazy).unwrap_err().to_string();
        assert!(error.contains("`lazy` did nothing"), "{error}");
    }

    #[test]
    fn both_sides_run_in_every_round_and_once_before() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let side = |name: &'static str| {
            let log = log.display().to_string();
            Contender {
                name: name.to_owned(),
                command: Box::new(move || Ok(shell(&format!("echo {name} >> '{log}'")))),
                read: Box::new(|finished| Ok(finished.sample(1))),
            }
        };
        let pair = Pair {
            ours: side("a"),
            peer: side("b"),
            bounds: vec![Bound::RatioAtLeast(Figure::Throughput, 1e9)],
        };
        assert!(!pair.run(2).unwrap());
        let order = fs_err::read_to_string(&log).unwrap();
        assert_eq!(order.split_whitespace().collect::<String>(), "ababba");
    }
}

//! What may explain the change of a step's throughput: each rule looks at one resource and says how much of the change
//! that accounts for.

mod cpu;
mod evenness;
mod fsyncs;
mod others;
mod reads;
mod stalls;
mod stolen;
mod switches;
mod writes;

pub(super) use fsyncs::waited_for;

use super::case::{Case, Pair};
use super::thresholds::EXPLAINS;
use super::words::signed_us;
use super::{FindingKind, words};

/// One explanation of one case.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    pub kind: FindingKind,
    /// The share of the change that it accounts for, from 0 to 1, less where a rule is less sure of itself.
    pub score: f64,
    /// For a title: `20% more CPU per query`.
    pub headline: String,
    /// One sentence or more.
    pub sentence: String,
    /// For a list: `CPU 9008 -> 10816 us, 1.20x`.
    pub brief: String,
}

/// What explains a case, and what else moved with it.
pub(super) struct Diagnosis {
    pub cause: Cause,
    /// In the order in which they account for it.
    pub beside: Vec<Cause>,
}

/// All rules, in the order in which they hold where two account for the same: what others wait for comes before what
/// waiting costs.
pub(super) fn diagnose(case: &Case<'_>) -> Diagnosis {
    let rules = [
        stalls::cause,
        evenness::stalled,
        evenness::shifted,
        fsyncs::cause,
        reads::size,
        reads::count,
        cpu::cause,
        others::cause,
        stolen::cause,
        writes::cause,
        switches::cause,
    ];
    let mut causes: Vec<Cause> = rules.iter().filter_map(|rule| rule(case)).collect();
    // Stable, so that equals stay in the order of the rules.
    causes.sort_by(|a, b| b.score.total_cmp(&a.score));
    let explains = causes.first().is_some_and(|first| first.score >= EXPLAINS);
    let cause = match explains {
        true => causes.remove(0),
        false => unexplained(case),
    };
    // How many reads and how large they are is one and the same.
    let reads = [FindingKind::Reads, FindingKind::ReadSize];
    let is_same_cpu = case.cpu().is_some_and(Pair::is_same);
    causes.retain(|other| {
        let is_told = reads.contains(&cause.kind) && reads.contains(&other.kind);
        let is_nothing = other.kind == FindingKind::Cpu && is_same_cpu;
        !is_told && !is_nothing
    });
    Diagnosis {
        cause,
        beside: causes,
    }
}

/// What is left where no resource accounts for a change.
fn unexplained(case: &Case<'_>) -> Cause {
    let per = case.noun();
    let unchanged: Vec<String> = [
        ("CPU", case.cpu().map(Pair::is_same)),
        ("reads", case.reads_unchanged()),
        ("writes", case.writes_unchanged()),
    ]
    .into_iter()
    .filter(|(_, same)| *same == Some(true))
    .map(|(name, _)| name.to_owned())
    .collect();
    let same = match unchanged.as_slice() {
        [] => String::new(),
        [one] if one == "CPU" => format!("{one} per {per} is unchanged; "),
        names => format!("{} per {per} are unchanged; ", words::list(names)),
    };
    let time = case.time();
    let waits = case
        .waiting()
        .filter(|waiting| waiting.grown() / time.grown() >= 0.5);
    let (kind, found, brief) = match waits {
        Some(waiting) => {
            let both = words::change_us_of(waiting.base, waiting.value, &format!("per {per}"));
            (
                FindingKind::Waiting,
                format!(
                    "what changed is the time that a client waits without CPU, {both}: for locks, for the \
                     device, or for a processor."
                ),
                format!("waiting {both}"),
            )
        }
        None => (
            FindingKind::Unexplained,
            "no figure of the host or the engine accounts for it.".to_owned(),
            "not explained".to_owned(),
        ),
    };
    let mut sentence = same + &found;
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Cause {
        kind,
        score: 0.0,
        headline: kind.headline(case.is_slower()).to_owned(),
        sentence,
        brief,
    }
}

/// How the change of a client's time per operation divides; `None` where CPU was not sampled, or threads in the
/// background use more than a client has.
pub(super) fn split(case: &Case<'_>) -> Option<String> {
    let (time, cpu, waiting) = (case.time(), case.cpu()?, case.waiting()?);
    Some(format!(
        "A client's time per {}: {}; of the difference CPU is {}, waiting {}.",
        case.noun(),
        words::change_us(time.base, time.value),
        signed_us(cpu.grown()),
        signed_us(waiting.grown()),
    ))
}

/// How much of a change a share of it is, in words.
fn accounts(share: f64) -> String {
    use super::thresholds::WHOLE;
    match share {
        share if WHOLE.contains(&share) => "which accounts for the whole change".to_owned(),
        share if share > *WHOLE.end() => {
            "which is more than the change asks for: some of it runs beside the clients".to_owned()
        }
        share => format!(
            "which accounts for about {:.0}% of the change",
            100.0 * share
        ),
    }
}

/// `more`, or `fewer` and `less` by what is counted.
fn more_or(pair: Pair, less: &str) -> &str {
    if pair.grown() > 0.0 { "more" } else { less }
}

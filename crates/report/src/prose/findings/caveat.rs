//! The words of a caveat: a part of a sentence.

use super::difference::build_or_version;
use crate::prose::numbers::{both, figure, list, percent};
use analysis::explain::statement::{
    CaseFacts, Caveat, CountedCaveat, InheritedDebt, LargeReadAhead, Pair,
};
use words::without_section;

/// Returns the words of a caveat, with the number of cases that it holds for, where these are not
/// all.
pub(super) fn text(counted: &CountedCaveat) -> String {
    let CountedCaveat { caveat, case, count, case_count } = counted;
    let text = words(caveat, case);
    if count == case_count { text } else { format!("{text} (in {count} of {case_count})") }
}

/// The doubt about targets that were not measured side by side.
const BETWEEN: &str = "the difference includes what changed on the machine in between";
/// The doubt about targets that differ in more than one way.
const WHICH: &str = "the comparison does not tell which of them causes the change";
/// The doubt about a busy client.
const CLIENTS_LIMIT: &str = "throughput shows the client's limit, not the server's";

fn words(caveat: &Caveat, case: &CaseFacts) -> String {
    match caveat {
        // How the repeats were measured.
        Caveat::WideBase { low, high } => wide_base(*low, *high, case),
        Caveat::OtherRuns => format!("base and target were measured in different runs: {BETWEEN}"),
        Caveat::NoTurns => format!("base and target did not take turns: {BETWEEN}"),
        Caveat::NothingDiffers => "no difference between the two targets is known".to_owned(),

        // The load's own limits.
        Caveat::OneConnection => format!(
            "work was counted on one connection with warm caches, and time was measured with {} clients",
            case.clients
        ),
        Caveat::BusyClient { share: Some(share) } => {
            format!("client threads are busy {} of the time: {CLIENTS_LIMIT}", percent(*share))
        }
        Caveat::BusyClient { share: None } => {
            format!("at least one client thread is busy nearly all the time: {CLIENTS_LIMIT}")
        }
        Caveat::BusyClientHost => {
            "the processors of a client host were busy nearly all the time: throughput shows the clients' limit, not the server's"
                .to_owned()
        }
        Caveat::LargeClient => {
            format!(
                "the client uses more CPU per {} than the server, on the same host",
                case.operation
            )
        }
        Caveat::MissedWrites { is_base } => format!(
            "{} missed its requested write rate in at least one repeat: fewer writes competed with its queries",
            if *is_base { &case.base } else { &case.target }
        ),

        // What the previous step left behind.
        Caveat::Debt(debt) => inherited(debt, &case.step),
        Caveat::Trees(difference) => difference.to_string(),

        // The host.
        Caveat::BusyHost { others, waiting } => busy_host(*others, *waiting),
        Caveat::Steal(percent) => format!(
            "the hypervisor took CPU time (steal): {}% with the base, {}% with the target",
            figure(percent.base),
            figure(percent.value)
        ),
        Caveat::Frequency(mhz) => format!(
            "the processors ran at {}, which makes CPU work {} in proportion",
            both(*mhz, "MHz"),
            if mhz.growth() < 0.0 { "slower" } else { "faster" }
        ),
        Caveat::FsyncBefore(us) => {
            format!("before the cells, an fsync took {}: the disk may cause the change", both(*us, "us"))
        }
        Caveat::ReadAhead(too_large) => read_ahead(too_large, case),
        Caveat::ReadSizes { kb, max_sectors_kb, read_ahead_kb } => format!(
            "{} (max_sectors_kb {}, read_ahead_kb {})",
            read_sizes(*kb),
            figure(*max_sectors_kb),
            figure(*read_ahead_kb)
        ),
        Caveat::Swap(pages) => format!("the host swapped: {}", both(*pages, "pages")),
        Caveat::MemoryPressure(percent) => {
            format!("threads waited for memory {}", both(*percent, "% of the time"))
        }

        // More than one difference between the targets.
        Caveat::OtherEngines => {
            "two engines do different work for an operation: figures per operation say where time goes, not why"
                .to_owned()
        }
        Caveat::OtherSettings { has_other_version, only } => {
            other_settings(*has_other_version, only.as_deref())
        }
        Caveat::SeveralSettings => format!("several settings differ: {WHICH}"),

        Caveat::Warnings { base, target } => warnings(base, target, case),
    }
}

/// Says that settings differ besides the build or version; `only` is the name of a single one.
fn other_settings(has_other_version: bool, only: Option<&str>) -> String {
    let what = build_or_version(has_other_version);
    match only {
        Some(setting) => {
            format!("{} differs as well as the {what}: {WHICH}", without_section(setting))
        }
        None => format!("settings differ as well as the {what}: {WHICH}"),
    }
}

/// Names the step that left work for the next one, and how to measure without it.
fn inherited(debt: &InheritedDebt, step: &str) -> String {
    let mut text = format!(
        "`{}` before it left different amounts of work, which this step pays for: {}",
        debt.step,
        both(debt.left, debt.what)
    );
    if debt.could_be_alone {
        text += &format!("; `assay run PLAN --alone {step}` also measures it right after the load");
    }
    text
}

fn wide_base(low: f64, high: f64, case: &CaseFacts) -> String {
    format!(
        "the base's repeats differ by {}: {} to {} {}",
        percent(high / low - 1.0),
        figure(low),
        figure(high),
        case.rate_unit
    )
}

fn busy_host(others: Option<f64>, waiting: Option<f64>) -> String {
    let mut reasons = Vec::new();
    if let Some(percent) = others {
        reasons.push(format!("other processes used up to {percent:.0}% of the CPU"));
    }
    if let Some(percent) = waiting {
        reasons.push(format!(
            "operations waited for a processor for up to {percent:.0}% of their time"
        ));
    }

    if reasons.is_empty() {
        return "the host was busy: processors were not free when they were needed".to_owned();
    }

    format!("the host was busy: {}", list(&reasons))
}

fn read_ahead(too_large: &LargeReadAhead, case: &CaseFacts) -> String {
    let who = match (too_large.of_base, too_large.of_target) {
        (true, true) => "both",
        (true, false) => &case.base,
        (false, _) => &case.target,
    };

    let sizes = match too_large.read_kb {
        Some(kb) => format!("; {}", read_sizes(kb)),
        None => String::new(),
    };
    format!(
        "{} of {who} is {} KB, but max_sectors_kb of the disk is {}: the kernel reads ahead less at a time, \
         so compaction may read in small pieces{sizes}",
        too_large.setting,
        figure(too_large.kb),
        figure(too_large.max_sectors_kb)
    )
}

fn read_sizes(kb: Pair) -> String {
    format!("the mean size of device reads was {}", both(kb, "KB"))
}

/// Names the warnings of each side that has any.
fn warnings(of_base: &[String], of_target: &[String], case: &CaseFacts) -> String {
    let mut texts = Vec::new();
    for (who, codes) in [(&case.base, of_base), (&case.target, of_target)] {
        if !codes.is_empty() {
            texts.push(format!("{} ({who})", list(codes)));
        }
    }
    format!("steps have warnings: {}", list(&texts))
}

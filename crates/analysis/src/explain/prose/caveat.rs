//! The words of a caveat: a part of a sentence.

use super::difference::build_or_version;
use super::numbers::{both, figure, list, percent};
use crate::explain::case::Case;
use crate::explain::caveats::Caveat;
use crate::explain::explanation::CountedCaveat;

/// Returns the words of a caveat, with the number of cases that it holds for, where these are not
/// all.
pub(in crate::explain) fn text(counted: &CountedCaveat<'_>) -> String {
    let text = words(&counted.caveat, counted.case);
    match (counted.count, counted.case_count) {
        (count, all) if count == all => text,
        (count, all) => format!("{text} (in {count} of {all})"),
    }
}

fn words(caveat: &Caveat, case: &Case<'_>) -> String {
    const BETWEEN: &str = "the difference includes what changed on the machine in between";
    const WHICH: &str = "the comparison does not tell which of them causes the change";
    let (base, target, per) = (case.base_name(), case.target(), case.noun());
    match caveat {
        Caveat::WideBase { low, high } => format!(
            "the base's repeats differ by {}: {} to {} {}",
            percent(high / low - 1.0),
            figure(*low),
            figure(*high),
            case.rate()
        ),
        Caveat::OtherRuns => {
            format!("base and target were measured in different runs: {BETWEEN}")
        }
        Caveat::NoTurns => format!("base and target did not take turns: {BETWEEN}"),
        Caveat::NothingDiffers => "no difference between the two targets is known".to_owned(),
        Caveat::BusyClient { share } => {
            let busy = match share {
                Some(share) => format!("client threads are busy {} of the time", percent(*share)),
                None => "at least one client thread is busy nearly all the time".to_owned(),
            };
            format!("{busy}: throughput shows the client's limit, not the server's")
        }
        Caveat::BusyClientHost => {
            "the processors of a client host were busy nearly all the time: throughput shows the clients' limit, not the server's"
                .to_owned()
        }
        Caveat::LargeClient => {
            format!("the client uses more CPU per {per} than the server, on the same host")
        }
        Caveat::MissedWrites { is_base } => {
            let who = if *is_base { base } else { target };
            format!(
                "{who} missed its requested write rate in at least one repeat: fewer writes competed with its queries"
            )
        }
        Caveat::Debt { what, left } => format!(
            "the previous step left different amounts of work: {}",
            both(*left, what)
        ),
        Caveat::Trees(difference) => difference.to_string(),
        Caveat::BusyHost { others, waiting } => {
            let others =
                others.map(|percent| format!("other processes used up to {percent:.0}% of the CPU"));
            let waiting = waiting.map(|percent| {
                format!("operations waited for a processor for up to {percent:.0}% of their time")
            });
            let reasons: Vec<String> = others.into_iter().chain(waiting).collect();
            if reasons.is_empty() { "the host was busy: processors were not free when they were needed".to_owned() } else { format!("the host was busy: {}", list(&reasons)) }
        }
        Caveat::Steal(percent) => format!(
            "the hypervisor took CPU time (steal): {}% with the base, {}% with the target",
            figure(percent.base),
            figure(percent.value)
        ),
        Caveat::Frequency(mhz) => format!(
            "the processors ran at {}, which makes CPU work {} by the same factor",
            both(*mhz, "MHz"),
            if mhz.growth() < 0.0 { "slower" } else { "faster" }
        ),
        Caveat::FsyncBefore(us) => format!(
            "before the cells, an fsync took {}: the disk may cause the change",
            both(*us, "us")
        ),
        Caveat::ReadAhead {
            of_base,
            of_target,
            setting,
            kb,
            max_sectors_kb,
            read_kb,
        } => {
            let who = match (of_base, of_target) {
                (true, true) => "both",
                (true, false) => base,
                (false, _) => target,
            };
            let sizes = read_kb.map(|kb| format!("; {}", read_sizes(both(kb, "KB"))));
            format!(
                "{setting} of {who} is {} KB, but max_sectors_kb of the disk is {}: the kernel reads ahead less at a time, \
                 so compaction may read in small pieces{}",
                figure(*kb),
                figure(*max_sectors_kb),
                sizes.unwrap_or_default()
            )
        }
        Caveat::ReadSizes {
            kb,
            max_sectors_kb,
            read_ahead_kb,
        } => format!(
            "{} (max_sectors_kb {}, read_ahead_kb {})",
            read_sizes(both(*kb, "KB")),
            figure(*max_sectors_kb),
            figure(*read_ahead_kb)
        ),
        Caveat::Swap(pages) => format!("the host swapped: {}", both(*pages, "pages")),
        Caveat::MemoryPressure(percent) => format!(
            "threads waited for memory {}",
            both(*percent, "% of the time")
        ),
        Caveat::OtherEngines => {
            "two engines do different work for an operation: figures per operation say where time goes, not why"
                .to_owned()
        }
        Caveat::OtherSettings { has_other_version } => {
            let what = build_or_version(*has_other_version);
            format!("settings differ as well as the {what}: {WHICH}")
        }
        Caveat::SeveralSettings => format!("several settings differ: {WHICH}"),
        Caveat::Warnings {
            base: of_base,
            target: of_target,
        } => {
            let sides = [(base, of_base), (target, of_target)].into_iter();
            let sides = sides.filter(|(_, codes)| !codes.is_empty());
            let warnings = sides.map(|(who, codes)| format!("{} ({who})", list(codes)));
            format!("steps have warnings: {}", list(&warnings.collect::<Vec<_>>()))
        }
    }
}

fn read_sizes(both: String) -> String {
    format!("the mean size of device reads was {both}")
}

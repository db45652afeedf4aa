//! What the figures stand on: the host, the builds, the settings, the plan and the method.

use std::collections::BTreeSet;

use analysis::{Comparison, DifferenceKind, Figures, Settings};
use maud::{Markup, html as markup};
use record::{Cell, Run};

use crate::differences::{heading, of_targets};
use crate::html::{Source, UPLOT_LICENCE, clean, permalink};
use crate::number::typeset;

/// Returns the sections at the end of a report.
pub(super) fn sections(sources: &[Source], figures: &Figures) -> Markup {
    let are_several = sources.len() > 1;
    markup! {
        section id="host" {
            h2 { "Host" (permalink("host")) }
            @for source in sources { (host(source, are_several)) }
        }
        section id="settings" {
            h2 { "Targets and their settings" (permalink("settings")) }
            @for source in sources { (builds(&source.run)) }
            (differences(&figures.settings))
            (settings(sources))
        }
        section id="plan" {
            h2 { "Plan" (permalink("plan")) }
            @for source in sources { (plan(source, are_several)) }
        }
        section id="method" {
            h2 { "Method" (permalink("method")) }
            (method())
        }
    }
}

/// A table of text that scrolls: heads, if there are any, and what each row is about with its cells.
fn text_table<'a>(heads: &[&str], rows: impl IntoIterator<Item = (&'a str, Markup)>) -> Markup {
    markup! {
        div.scroll tabindex="0" { table {
            @if !heads.is_empty() { thead { tr { @for head in heads { th scope="col" { (clean(head)) } } } } }
            tbody {
                @for (name, cells) in rows { tr { th scope="row" { (clean(name)) } (cells) } }
            }
        } }
    }
}

/// Names, values and where each came from, under three heads.
fn with_origins<'a>(heads: [&str; 3], rows: impl Iterator<Item = [&'a str; 3]>) -> Markup {
    let rows = rows.map(|[name, value, origin]| {
        let cells = markup! { td { code { (clean(value)) } } td.absent { (clean(origin)) } };
        (name, cells)
    });
    text_table(&heads, rows)
}

fn host(source: &Source, several: bool) -> Markup {
    let host = &source.run.host;
    let known: BTreeSet<&str> = host.facts.iter().map(|(name, _)| name.as_str()).collect();
    let mut pairs: Vec<(&str, String)> = host
        .facts
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    for (name, value) in [
        ("cpu_count", host.cpu_count.into()),
        ("memory_total_bytes", host.memory_total_bytes),
    ] {
        if value > 0 && !known.contains(name) {
            pairs.push((name, value.to_string()));
        }
    }
    if let Some(fsync) = &host.fsync {
        let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        let [p50, p99, max] = [fsync.p50_ns, fsync.p99_ns, fsync.max_ns].map(us);
        pairs.push((
            "fdatasync of 4 KiB in the data directory, \u{b5}s",
            format!("p50 {p50}, p99 {p99}, max {max} ({} timed)", fsync.count),
        ));
    }
    let pairs = pairs
        .iter()
        .map(|(name, value)| (*name, markup! { td { (clean(value)) } }));
    markup! {
        @if several { h3 { (clean(&source.run.name)) } }
        (text_table(&[], pairs))
    }
}

fn builds(run: &Run) -> Markup {
    let builds = run.builds.iter().map(|build| {
        let cells = [&build.engine, &build.version, &build.source];
        let cells = markup! { @for cell in cells { td { (clean(cell)) } } };
        (build.name.as_str(), cells)
    });
    let files = run.builds.iter().flat_map(|build| {
        build.files.iter().map(|file| {
            let cells = markup! {
                td { (clean(&file.path)) } td { (file.size_bytes) } td { code { (clean(&file.sha256)) } }
            };
            (build.name.as_str(), cells)
        })
    });
    let declared = run.targets.iter().map(|target| {
        let cells = markup! {
            td {
                @for (index, (name, value)) in target.set.iter().enumerate() {
                    @if index > 0 { br; }
                    code { (clean(name)) " = " (clean(value)) }
                }
            }
        };
        (target.name.as_str(), cells)
    });
    markup! {
        div.block { h4 { "Builds" } (text_table(&["build", "engine", "version", "source"], builds)) }
        @let count = files.clone().count();
        @if count > 0 {
            details {
                summary { "files of the builds (" (count) ")" }
                (text_table(&["build", "file", "bytes", "SHA-256"], files))
            }
        }
        @if run.targets.iter().any(|target| !target.set.is_empty()) {
            div.block { h4 { "Settings that the plan declares" } (text_table(&[], declared)) }
        }
    }
}

/// All effective settings.
fn settings(sources: &[Source]) -> Markup {
    // Cells of one target run with the same settings, unless they are of different runs.
    let mut targets: Vec<(usize, &Cell)> = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        for cell in source.cells.iter().map(|record| &record.cell) {
            let is_shown = |(other, shown): &(usize, &Cell)| {
                shown.key.target == cell.key.target
                    && (*other == number || shown.settings == cell.settings)
            };
            if !cell.settings.is_empty() && !targets.iter().any(is_shown) {
                targets.push((number, cell));
            }
        }
    }
    let several = sources.len() > 1;
    markup! {
        @if targets.is_empty() { p.soft { "No effective settings are recorded." } }
        @for (number, cell) in &targets {
            details data-of=(clean(&cell.key.target)) {
                summary {
                    "all settings of " (clean(&cell.key.target))
                    @if several { " in run " (number + 1) }
                    " (" (cell.settings.len()) ")"
                }
                (with_origins(
                    ["setting", "value", "source"],
                    cell.settings.iter().map(|setting| {
                        let source = setting.source.as_deref().unwrap_or_default();
                        [&setting.name, &setting.value, source]
                    }),
                ))
            }
        }
    }
}

/// What differs between targets: folded, since a reader looks for one pair.
fn differences(settings: &Settings) -> Markup {
    markup! {
        @if !settings.differences.is_empty() { h3 { "What differs between targets" } }
        @for comparison in &settings.differences {
            @let count = comparison.settings.len() + comparison.only_a.len() + comparison.only_b.len();
            @if count == 0 {
                p { (typeset(&clean(&heading(comparison)))) }
            } @else {
                details {
                    summary { (typeset(&clean(&heading(comparison)))) ": " (tally(comparison)) }
                    (difference_table(comparison))
                }
            }
        }
        @for block in of_targets(&settings.targets) {
            h4 { (block.heading) }
            ul.problems { @for line in &block.lines { li.warning { (clean(line)) } } }
        }
    }
}

/// How much differs, in a few words.
fn tally(comparison: &Comparison) -> String {
    let of = |mark: DifferenceKind| {
        let settings = comparison.settings.iter();
        settings.filter(|setting| setting.mark == mark).count()
    };
    let counts = [
        (of(DifferenceKind::Declared), "declared"),
        (of(DifferenceKind::Unverified), "declared and not reported"),
        (of(DifferenceKind::Undeclared), "undeclared"),
        (
            comparison.only_a.len() + comparison.only_b.len(),
            "of one side only",
        ),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let texts = counts.map(|(count, what)| format!("{count} {what}"));
    texts.collect::<Vec<_>>().join(", ")
}

fn difference_table(comparison: &Comparison) -> Markup {
    let cells = |[a, b]: [Option<&str>; 2], absent: &str, mark: DifferenceKind| {
        let declared = match mark {
            DifferenceKind::Declared => "declared",
            DifferenceKind::Undeclared => "undeclared",
            DifferenceKind::Unverified => "declared, not reported",
        };
        markup! {
            @for value in [a, b] {
                @match value {
                    Some(value) => td { code { (clean(value)) } },
                    None => td.absent { (absent) },
                }
            }
            td.absent[mark == DifferenceKind::Undeclared] { (declared) }
        }
    };
    let both = comparison.settings.iter().map(|it| {
        let values = [it.a.as_deref(), it.b.as_deref()];
        (it.name.as_str(), cells(values, "not declared", it.mark))
    });
    let only_a = comparison.only_a.iter().map(|it| (it, 0));
    let only_b = comparison.only_b.iter().map(|it| (it, 1));
    let one_sided = only_a.chain(only_b).map(|(it, side)| {
        let mut values = [None, None];
        values[side] = Some(it.value.as_str());
        (it.name.as_str(), cells(values, "not there", it.mark))
    });
    text_table(
        &["setting", &comparison.a, &comparison.b, "by the plan"],
        both.chain(one_sided),
    )
}

fn plan(source: &Source, several: bool) -> Markup {
    let plan = &source.run.plan;
    markup! {
        @if several { h3 { (clean(&source.run.name)) } }
        @if !source.run.command.is_empty() { p { code { (clean(&source.run.command.join(" "))) } } }
        @match &plan.path {
            Some(path) => p { code { (clean(path)) } ", verbatim:" },
            None => p { "The built-in default." },
        }
        @if !plan.text.is_empty() { pre tabindex="0" { (clean(&plan.text)) } }
        @for set in &plan.sets { p { code { "--set " (clean(set)) } } }
        @if !plan.resolved.is_empty() {
            details {
                summary { "every value and where it came from (" (plan.resolved.len()) ")" }
                (with_origins(
                    ["key", "value", "origin"],
                    plan.resolved.iter().map(|value| [&value.key, &value.value, value.origin.as_str()]),
                ))
            }
        }
    }
}

/// Returns the words of the glossary with their meanings.
fn glossary() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("../../../../docs/glossary.md").lines();
    let rows = lines.filter_map(|line| {
        line.strip_prefix("| ")?
            .strip_suffix(" |")?
            .split_once(" | ")
    });
    rows.skip(1)
}

fn method() -> Markup {
    markup! {
        p {
            b { "Service time" } " runs from sending an operation to its reply. " b { "Response time" } " runs from when "
            "the schedule wanted it sent, so it includes the time that an operation waited because earlier ones were "
            "slow. Where there is no rate there is no schedule, and the two are one. Percentiles and buckets come from "
            "all clients, of operations that succeeded; failures are counted apart."
        }
        p {
            b { "Invalid" } " (" code { "!" } ") means that a step ended and its figures can't be stood behind: a check "
            "of the data did not hold, or the accounting does not add up. Such a figure is grey and is compared with "
            "nothing. " b { "failed" } " means that there is no figure; " code { "n/a" } " that it does not exist for this "
            "engine, host or step; " code { "-" } " that the step was not run."
        }
        p {
            b { "A rate" } " of writes, or of a test's events, is met when at least 95% of the target was had. A step that asks for a rate and "
            "misses it shows its other figures for less work than it was to do."
        }
        p {
            b { "Colours" } " in the throughput table: the best and the worst quarter of the range of a column, or of a row where rows are tests, among "
            "targets with the same number of clients; none of the worst where the smallest is at least 80% of the "
            "largest. In the relative table: more than 5% above or below the base."
        }
        p {
            b { "Metrics" } " per operation count inserts in load steps, rows indexed in index steps, queries in query "
            "steps; with keys and values what the step is about: puts, gets, reads of several keys, or scans. " code { "cpupq" } " is CPU time of the whole host in microseconds; " code { "client_cpu_us_per_op" }
            " that of the threads of the load, which with an embedded engine do the engine's work too; " code { "server_cpu_us_per_op" } " that of the server's processes. "
            code { "p50" } " and " code { "p99" } " are rates met or exceeded in 50% and 99% of the seconds. "
            code { "maxop" } " is the longest response time in seconds. " code { "dbgb1" } " is the size of the data, "
            code { "dbgb2" } " with the logs, " code { "rss" } " the memory of the server, in units of 2^30 bytes."
        }
        p {
            b { "LSM trees: " } code { "w_amp" } " is what flushes and compactions wrote, each byte counted once, over bytes "
            "of keys and values that were put; " code { "wal_amp" } " the same of the log. " code { "r_amp" } " is blocks "
            "looked up for each key or entry that was read, " code { "s_amp" } " live files over the data that is in them. "
            code { "settled" } " means until the check of the data and the settling that follow the step were over too; " code { "~" } " that more than 5% of a figure may be rounding. "
            code { "stall%" } " is the share of the step in which writes were held up; " code { "Nstall" } " how often they "
            "were. The engine counts a stall when it ends. " code { "c_wsecs" } " and " code { "c_csecs" } " are seconds that "
            "compactions and flushes took, by the clock and of CPU."
        }
        details {
            summary { "glossary" }
            (text_table(&[], glossary().map(|(word, meaning)| (word, markup! { td { (clean(meaning)) } }))))
        }
        details {
            summary { "licence of uPlot, which draws the charts" }
            pre { (UPLOT_LICENCE) }
        }
    }
}

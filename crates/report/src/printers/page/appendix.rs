//! The basis of the figures: the host, the builds, the settings, the plan and the method.

use analysis::{
    counted,
    figures::Figures,
    settings::{Comparison, DifferenceKind, Settings},
};
use maud::{Markup, html as markup};
use record::{BuiltCommit, Cell, FileHash, Host, Run, Target};

use crate::model::names::Names;
use crate::model::number::{bytes, moment_of_seconds, typeset};
use crate::model::text::clean;
use crate::printers::page::table::table;
use crate::printers::page::{CellRecord, Source, UPLOT_LICENSE, measured_targets, permalink};
use crate::prose::settings::{heading, of_targets};
use crate::tables::disk_floor;

/// Returns the last sections of a report.
pub(super) fn sections(names: &Names<'_>, sources: &[Source], figures: &Figures) -> Markup {
    let are_several = sources.len() > 1;
    let floors = disk_floor::tables_of_runs(sources.iter().map(|source| &source.run));

    markup! {
        section id="host" {
            h2 { "Host" (permalink("host")) }
            @for source in sources { (host(source, are_several)) }
            @for floor in &floors { (table(names, floor)) }
        }

        section id="settings" {
            h2 { "Targets and their settings" (permalink("settings")) }
            @for (number, source) in sources.iter().enumerate() {
                (builds(&source.run, &measured_targets(figures, number)))
            }
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

/// Returns a table of text that scrolls, with `heads` if there are any.
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

/// Returns a table of names, values and their origins.
fn with_origins<'a>(heads: [&str; 3], rows: impl Iterator<Item = [&'a str; 3]>) -> Markup {
    let rows_of_text = rows.map(|[name, value, origin]| {
        let cells = markup! { td { code { (clean(value)) } } td.absent { (clean(origin)) } };
        (name, cells)
    });
    text_table(&heads, rows_of_text)
}

fn host(source: &Source, has_several: bool) -> Markup {
    let last = source.run.invocations.last();
    let client_hosts = last.map_or(&[][..], |last| &last.client_hosts);

    markup! {
        @if has_several { h3 { (clean(&source.run.name)) } }
        @let facts = host_facts(&source.run.host);

        p { (clean(&machine(&facts))) }
        details {
            summary { (counted(facts.len(), "fact")) " about the host" }
            (fact_table(&facts))
        }

        @for client in client_hosts {
            details {
                summary { "client host " (clean(&client.name)) }
                (fact_table(&client.host.facts))
            }
        }
    }
}

fn fact_table(facts: &[(String, String)]) -> Markup {
    let rows = facts.iter().map(|(name, value)| {
        let bytes = bytes_of(name, value);
        let exact = bytes.as_ref().map(|_| clean(value));
        let text = bytes.unwrap_or_else(|| clean(value));
        (name.as_str(), markup! { td title=[exact] { (text) } })
    });
    text_table(&[], rows)
}

/// Returns the value of a fact in bytes with a unit; `None` for other facts.
fn bytes_of(name: &str, value: &str) -> Option<String> {
    name.ends_with("_bytes").then(|| value.parse().ok().map(bytes))?
}

/// Returns the machine in a few words: `AMD EPYC, 2 CPUs, 23.5 GiB of memory, ...`.
fn machine(facts: &[(String, String)]) -> String {
    let fact = |wanted: &str| {
        let found = facts.iter().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(name, value)| bytes_of(name, value).unwrap_or_else(|| value.clone()))
    };

    let parts = [
        fact("cpu_model"),
        fact("cpu_count").map(|count| format!("{count} CPUs")),
        fact("memory_total_bytes").map(|memory| format!("{memory} of memory")),
        fact("os_name"),
        fact("kernel_release").map(|release| format!("Linux {release}")),
        fact("data_fs_type").map(|kind| format!("data on {kind}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the known facts about a host.
fn host_facts(host: &Host) -> Vec<(String, String)> {
    let mut facts = host.facts.clone();

    // The record has these even if the facts lack them.
    let counts =
        [("cpu_count", host.cpu_count.into()), ("memory_total_bytes", host.memory_total_bytes)];
    for (name, value) in counts {
        let is_known = host.facts.iter().any(|(known, _)| known == name);
        if value > 0 && !is_known {
            facts.push((name.to_owned(), value.to_string()));
        }
    }

    if let Some(fsync) = &host.fsync {
        let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        let [p50, p99, max] = [fsync.p50_ns, fsync.p99_ns, fsync.max_ns].map(us);
        facts.push((
            "fdatasync of 4 KiB in the data directory, \u{b5}s".to_owned(),
            format!("p50 {p50}, p99 {p99}, max {max} ({} timed)", fsync.count),
        ));
    }
    facts
}

/// Returns the builds of a run, and the settings of the targets that were measured.
fn builds(run: &Run, measured: &[&str]) -> Markup {
    let builds = run.builds.iter().map(|build| {
        let cells = [&build.engine, &build.version, &build.source];
        (build.name.as_str(), markup! { @for cell in cells { td { (clean(cell)) } } })
    });

    let commits: Vec<(&str, Markup)> = run
        .builds
        .iter()
        .filter_map(|build| Some((build.name.as_str(), commit_cells(build.commit.as_ref()?))))
        .collect();

    let files: Vec<(&str, Markup)> = run
        .builds
        .iter()
        .flat_map(|build| build.files.iter().map(|file| (build.name.as_str(), file_cells(file))))
        .collect();

    let mut targets: Vec<&Target> = run.targets.iter().collect();
    targets.retain(|target| !target.set.is_empty());
    targets.retain(|target| measured.is_empty() || measured.contains(&target.name.as_str()));

    let declared = targets.into_iter().map(|target| {
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
    let declared: Vec<(&str, Markup)> = declared.collect();

    markup! {
        div.block { h4 { "Builds" } (text_table(&["build", "engine", "version", "source"], builds)) }
        @if !commits.is_empty() {
            div.block {
                h4 { "Builds of commits" }
                (text_table(&["build", "commit", "committed", "recipe", "compilers and flags"], commits))
            }
        }
        @if !files.is_empty() {
            details {
                summary { "files of the builds (" (files.len()) ")" }
                (text_table(&["build", "file", "size", "SHA-256"], files))
            }
        }

        @if !declared.is_empty() {
            details {
                summary { "settings that the plan declares, of " (counted(declared.len(), "target")) }
                (text_table(&[], declared))
            }
        }
    }
}

/// Returns the commit of a build, its time, its recipe, and the compilers with their flags.
fn commit_cells(commit: &BuiltCommit) -> Markup {
    let seconds = commit.duration_ms as f64 / 1e3;

    markup! {
        td {
            (clean(&commit.name())) ": " (clean(&commit.subject)) br;
            code { (clean(&commit.hash)) } " of " (clean(&commit.repository))
            @if let Some(patch) = &commit.patch {
                br; "patch " (clean(&patch.name)) ", SHA-256 " code { (clean(&patch.sha256)) }
            }
        }

        td { (moment_of_seconds(commit.committed_unix_s)) }
        td {
            code { (clean(&commit.make)) } " gives " code { (clean(&commit.gives)) }
            br; (format!("took {seconds:.1} s"))
        }

        td {
            @for (index, (name, version)) in commit.compilers.iter().enumerate() {
                @if index > 0 { br; }
                (clean(name)) ": " (clean(version))
            }
            @for (name, value) in &commit.flags { br; code { (clean(name)) "=" (clean(value)) } }
        }
    }
}

fn file_cells(file: &FileHash) -> Markup {
    markup! {
        td { (clean(&file.path)) } td title=(file.size_bytes) { (bytes(file.size_bytes)) } td { code { (clean(&file.sha256)) } }
    }
}

/// Returns all effective settings.
fn settings(sources: &[Source]) -> Markup {
    let has_several = sources.len() > 1;
    markup! {
        @let shown = cells_with_settings(sources);
        @if shown.is_empty() { p.soft { "No effective settings are recorded." } }
        @for (number, cell) in shown {
            details data-of=(clean(&cell.key.target)) {
                summary {
                    "all settings of " (clean(&cell.key.target))
                    @if has_several { " in run " (number + 1) }
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

/// Returns a cell of each target with the number of its run. Cells of one target have the same
/// settings, except in different runs.
fn cells_with_settings(sources: &[Source]) -> Vec<(usize, &Cell)> {
    let mut shown: Vec<(usize, &Cell)> = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        for CellRecord { cell, .. } in &source.cells {
            let is_shown = shown.iter().any(|(other, known)| {
                let is_same_run = *other == number;
                known.key.target == cell.key.target
                    && (is_same_run || known.settings == cell.settings)
            });

            if !cell.settings.is_empty() && !is_shown {
                shown.push((number, cell));
            }
        }
    }
    shown
}

/// Returns the differences between targets; folded, since a reader looks for one pair.
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

/// Counts the differences by kind.
fn tally(comparison: &Comparison) -> String {
    let count = |mark: DifferenceKind| {
        comparison.settings.iter().filter(|setting| setting.mark == mark).count()
    };

    let counts = [
        (count(DifferenceKind::Declared), "declared"),
        (count(DifferenceKind::Unverified), "declared, not reported"),
        (count(DifferenceKind::Undeclared), "undeclared"),
        (comparison.only_a.len() + comparison.only_b.len(), "on one side only"),
    ];
    let texts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();

    texts.join(", ")
}

fn difference_table(comparison: &Comparison) -> Markup {
    let both = comparison.settings.iter().map(|setting| {
        let values = [setting.a.as_deref(), setting.b.as_deref()];
        (setting.name.as_str(), difference_cells(values, "not declared", setting.mark))
    });

    let only_a = comparison.only_a.iter().map(|setting| {
        let values = [Some(setting.value.as_str()), None];
        (setting.name.as_str(), difference_cells(values, "absent", setting.mark))
    });

    let only_b = comparison.only_b.iter().map(|setting| {
        let values = [None, Some(setting.value.as_str())];
        (setting.name.as_str(), difference_cells(values, "absent", setting.mark))
    });

    let heads = ["setting", &comparison.a, &comparison.b, "in the plan"];
    text_table(&heads, both.chain(only_a).chain(only_b))
}

/// Returns the cells of a setting's values on both sides, and whether the plan declares the
/// difference; `absent` stands for a value that a side lacks.
fn difference_cells(values: [Option<&str>; 2], absent: &str, mark: DifferenceKind) -> Markup {
    let declared = match mark {
        DifferenceKind::Declared => "declared",
        DifferenceKind::Undeclared => "undeclared",
        DifferenceKind::Unverified => "declared, not reported",
    };

    markup! {
        @for value in values {
            @match value {
                Some(value) => td { code { (clean(value)) } },
                None => td.absent { (absent) },
            }
        }
        td.absent[mark == DifferenceKind::Undeclared] { (declared) }
    }
}

fn plan(source: &Source, has_several: bool) -> Markup {
    let plan = &source.run.plan;
    markup! {
        @if has_several { h3 { (clean(&source.run.name)) } }

        @if !source.run.command.is_empty() { p { code { (clean(&source.run.command.join(" "))) } } }
        @match &plan.path {
            Some(path) => p { code { (clean(path)) } ", verbatim:" },
            None => p { "The built-in plan:" },
        }
        @if !plan.text.is_empty() { pre tabindex="0" { (clean(&plan.text)) } }

        @for set in &plan.sets { p { code { "--set " (clean(set)) } } }

        @if !plan.resolved.is_empty() {
            details {
                summary { "every value and its origin (" (plan.resolved.len()) ")" }
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
    let lines = include_str!("../../../../../docs/glossary.md").lines();
    let rows =
        lines.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    // The first row has the column headers.
    rows.skip(1)
}

fn method() -> Markup {
    markup! {
        // What a figure means, and when it counts.
        p {
            b { "Service time" } " is the time from sending an operation to its reply. " b { "Response time" } " begins when "
            "the schedule wanted the operation sent, so it includes waiting for slow earlier operations. Without a rate there "
            "is no schedule, and the two are equal. Percentiles and buckets cover the successful operations of all clients; "
            "failures are counted separately."
        }

        p {
            b { "Invalid" } " (" code { "!" } ") means that a step ended, but its figures cannot be trusted: a check of the data "
            "failed, or the accounting does not add up. Such figures are gray and are not compared. " b { "failed" } " means "
            "that there is no figure; " code { "n/a" } " that the figure does not exist for this engine, host or step; "
            code { "-" } " that the step was not run."
        }

        p {
            b { "A requested rate" } " of writes, or of a test's events, is met if at least 95% of it was achieved. If a step misses "
            "its rate, its other figures describe less work than was requested."
        }

        // What the tables show.
        p {
            b { "Colors" } " in the throughput table: the best and the worst quarter of the range of a column (or of a row, if rows are "
            "tests), among targets with the same number of clients. The worst quarter has no color if the smallest value is at "
            "least 80% of the largest. With several repeats, only missed rates are colored. In the relative tables: faster or "
            "slower than the base."
        }

        p {
            b { "Metrics" } " per operation count inserts in load steps, rows indexed in index steps, and queries in query "
            "steps. In key-value steps they count puts, gets, multigets or scans. " code { "cpupq" } " is the CPU time of the whole host in "
            "microseconds; " code { "client_cpu_us_per_op" } " is that of the client threads, which also do the work of an embedded engine; "
            code { "server_cpu_us_per_op" } " is that of the server's processes. "
            code { "p50" } " and " code { "p99" } " are rates met or exceeded in 50% and 99% of the seconds. "
            code { "maxop" } " is the longest response time in seconds. " code { "dbgb1" } " is the size of the data, "
            code { "dbgb2" } " with the logs, " code { "rss" } " the memory of the server, in units of 2^30 bytes."
        }

        p {
            b { "LSM trees: " } code { "w_amp" } " is the bytes that flushes and compactions wrote, divided by the bytes of keys "
            "and values put; " code { "wal_amp" } " is the same for the log. " code { "r_amp" } " is the blocks looked up for each key or entry "
            "read, " code { "s_amp" } " is the size of live files divided by that of their data. "
            code { "settled" } " includes the check of the data and the settling after the step; " code { "~" } " means that more than 5% "
            "of a figure may be rounding. " code { "stall%" } " is the share of the step in which writes were stalled; " code { "Nstall" }
            " is the number of stalls, each counted when it ends. " code { "c_wsecs" } " and " code { "c_csecs" } " are the elapsed and CPU seconds "
            "of compactions and flushes."
        }

        details {
            summary { "glossary" }
            (text_table(&[], glossary().map(|(word, meaning)| (word, markup! { td { (clean(meaning)) } }))))
        }

        details {
            summary { "license of uPlot, which draws the charts" }
            pre { (UPLOT_LICENSE) }
        }
    }
}

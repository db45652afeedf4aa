use analysis::figures::Figures;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use report::{Curves, Page, Source, html_page};
use sha2::{Digest, Sha256};

use crate::synthetic::{ALL_STEPS, SMALL, Size, add_profiles, figures, source};
use crate::written;
use crate::{check_once, html};

/// Returns the report without the library that draws its charts.
fn own(report: &str) -> String {
    let library = report.find("<script>/*! https://github.com/leeoniya/uPlot").unwrap();
    let end = library + report[library..].find("</script>").unwrap();
    format!("{}{}", &report[..library], &report[end..])
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let report = html(&[source(SMALL)], &figures(SMALL));
    assert!(report.contains("default-src 'none'"));
    let own = own(&report);
    assert!(!own.contains("://"), "{:?}", own.find("://").map(|at| &own[at - 40..at + 40]));
    for loader in ["src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!own.contains(loader), "{loader}");
    }
    let library = &report[..report.len()];
    for loader in ["fetch(", "XMLHttpRequest", "import(", "WebSocket", "sendBeacon"] {
        assert!(!library.contains(loader), "{loader}");
    }
    assert_eq!(report.matches("leeoniya/uPlot").count(), 1);
}

/// Checks that the policy of a page names its scripts, and allows no others.
#[track_caller]
fn check_script_policy(page: &str) {
    let policy = page.split("Content-Security-Policy\" content=\"").nth(1).unwrap();
    let policy = policy.split('"').next().unwrap().replace("&#39;", "'");
    let scripts = policy.split("script-src ").nth(1).unwrap().split(';').next().unwrap();
    assert!(!scripts.contains("unsafe"), "{policy}");
    let mut hashes: Vec<String> = page
        .split("<script>")
        .skip(1)
        .map(|script| {
            let script = script.split("</script>").next().unwrap();
            format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script)))
        })
        .collect();
    let mut allowed: Vec<String> = scripts.split_whitespace().map(str::to_owned).collect();
    hashes.sort();
    allowed.sort();
    assert_eq!(hashes, allowed);
}

#[test]
fn only_the_pages_own_scripts_may_run() {
    check_script_policy(&html(&[source(SMALL)], &figures(SMALL)));
    check_script_policy(&report::live_page());
}

#[test]
fn every_table_and_section_is_there_once() {
    let report = html(&[source(SMALL)], &figures(SMALL));
    let ids = [
        "results",
        "summary",
        "compared",
        "insert-rate",
        "fairness",
        "lengths",
        "problems",
        "steps",
        "step-l-i0",
        "step-l-x",
        "step-qr100",
        "metrics-qr100",
        "costs-qr100",
        "buckets-qr100",
        "percentiles-qr100",
        "operations-qr100",
        "counters-l-i0",
        "host",
        "settings",
        "plan",
        "method",
    ];
    check_once(&report, &ids);
    let links = report.split("href=\"#").skip(1);
    let links: Vec<&str> = links.map(|id| id.split('"').next().unwrap()).collect();
    check_once(&report, &links);
    let (_, glossary) = report.split_once("<summary>glossary</summary>").unwrap();
    let (glossary, _) = glossary.split_once("</table>").unwrap();
    let words = include_str!("../../../../docs/glossary.md").lines();
    let words = words.filter(|line| line.starts_with("| ")).skip(1);
    assert_eq!(glossary.matches("<tr>").count(), words.count());
}

#[test]
fn each_engine_has_an_answer_of_its_own_and_one_matrix_goes_across() {
    let size = Size { targets: 4, ..SMALL };
    let mut source = source(size);
    let targets = &mut source.run.targets;
    for target in &mut targets[2..4] {
        target.engine = "mysql".to_owned();
    }
    let bases = [("postgres", 0), ("mysql", 2)].map(|(group, index)| record::GroupBase {
        group: group.to_owned(),
        target: targets[index].name.clone(),
    });
    source.run.bases = bases.to_vec();

    let mut figures = figures(size);
    add_profiles(&mut figures);
    let report = html(&[source], &figures);
    check_once(
        &report,
        &[
            "matrix-postgres",
            "matrix-mysql",
            "matrix-across",
            "compared-postgres",
            "compared-mysql",
            "summary",
            "functions",
        ],
    );
    for part in [
        "Throughput relative to pg15.base",
        "Throughput relative to a16",
        "Throughput relative to pg15.base, all targets",
    ] {
        assert!(report.contains(part), "{part}");
    }

    // Each heading of the first screen is about the targets of one engine.
    let headings: Vec<&str> = report.split("<h1>").skip(1).collect();
    assert_eq!(headings.len(), 2);
    assert!(headings[0].contains("embedded") && headings[1].contains("big-wal"), "{headings:?}");

    let ids = report.split(" id=\"").skip(1).map(|id| id.split('"').next().unwrap());
    let ids: Vec<&str> = ids.collect();
    check_once(&report, &ids);
}

#[test]
fn functions_have_a_section_if_a_step_was_profiled() {
    let mut figures = figures(SMALL);
    let report = html(&[source(SMALL)], &figures);
    assert!(!report.contains("href=\"#functions\""));
    add_profiles(&mut figures);
    figures.profiled[1].profile.missing = Some("`perf` is not installed".to_owned());
    figures.profiled[1].stacks = words::Stacks::default();
    let report = html(&[source(SMALL)], &figures);
    check_once(&report, &["functions", "functions-1"]);
    let (_, section) = report.split_once("id=\"functions\"").unwrap();
    for part in [
        "10,004 samples of <code>cycles</code>, 10% of them in functions without a symbol; callers found by <code>fp</code>",
        "No profile: <code>perf</code> is not installed (pg15.base in l.x)",
        "\\u003ccopy2>",
    ] {
        assert!(section.contains(part), "{part}");
    }
    assert_eq!(report.matches("class=\"profile chosen\"").count(), 1);
}

#[test]
fn text_from_outside_stays_text() {
    let evil = "<script>alert(1)</script>\u{1b}[31m&\"'";
    let mut figures = figures(SMALL);
    let mut source = source(SMALL);
    for row in &mut figures.rows {
        row.step = format!("{}{evil}", row.step);
        row.reasons.push(evil.to_string());
        let ops = std::mem::take(&mut row.ops).into_iter();
        row.ops = ops.map(|(kind, op)| (kind + evil, op)).collect();
        let ops = std::mem::take(&mut row.series.ops).into_iter();
        row.series.ops = ops.map(|(kind, op)| (kind + evil, op)).collect();
        row.counters.insert(evil.to_string(), 1.0);
        row.cell.target += evil;
    }
    source.run.name = evil.to_string();
    source.run.plan.text = evil.to_string();
    source.run.plan.sets = vec![evil.to_string()];
    source.run.host.facts.push((evil.to_string(), evil.to_string()));
    source.run.warnings[0].text = evil.to_string();
    source.run.builds[0].source = evil.to_string();
    source.run.base += evil;
    for record in &mut source.cells {
        record.cell.key.target += evil;
        record.cell.settings[0].value += evil;
        record.steps[0].name = evil.to_string();
    }
    let report = html(&[source], &figures);
    assert!(!report.contains("<script>alert"));
    assert!(report.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(report.contains(r#"\u003cscript>alert"#), "the names of lines are JSON");
    assert!(report.chars().all(|letter| matches!(letter, '\n' | '\t') || !letter.is_control()));
    // Its own scripts, and one for each view of each chart: none was ended early.
    assert_eq!(report.matches("<script").count(), report.matches("</script>").count());
}

#[test]
fn a_second_without_work_is_drawn_as_zero() {
    let mut figures = figures(SMALL);
    let insert = figures.rows[0].series.ops.get_mut("insert").unwrap();
    insert.rows = vec![700, 0, 650];
    let report = html(&[source(SMALL)], &figures);
    assert!(
        report.contains("\"s\":[[0,3,[700,0,650]],"),
        "{}",
        &report[report.find("\"k\"").unwrap()..][..120]
    );
}

#[test]
fn an_empty_run_still_makes_a_report() {
    let report = html(&[], &analysis::figures::Figures::default());
    assert!(report.ends_with("</html>"));
    let report = html(&[Source::default()], &analysis::figures::Figures::default());
    assert!(report.contains("id=\"method\""));
}

#[test]
fn curves_are_thinned_until_a_report_can_be_mailed() {
    let size = Size { targets: 27, clients: 8, seconds: 2500, steps: &ALL_STEPS[5..7] };
    let report = html(&[source(size)], &figures(size));
    assert!(report.contains("\"k\":4,"), "nothing was thinned");
    assert!(report.len() < 20_000_000, "{}", report.len());
}

#[test]
fn a_report_of_a_record_that_was_read_once_has_its_curves() {
    let size = Size {
        targets: 2,
        clients: 2,
        seconds: 30,
        steps: const { &[ALL_STEPS[0], ALL_STEPS[5]] },
    };
    let folder = tempfile::tempdir().unwrap();
    let directory = written::write(folder.path(), size);
    let (figures, curves) = analysis::figures::figures_and(&[directory], Curves::take).unwrap();
    let whole: Vec<(&str, &str, bool)> = figures
        .rows
        .iter()
        .map(|row| (row.cell.target.as_str(), row.step.as_str(), row.valid))
        .collect();
    assert_eq!(
        whole,
        [
            ("pg15.base", "l.i0", true),
            ("pg15.base", "qr100", true),
            ("pg15.embedded", "l.i0", true),
            ("pg15.embedded", "qr100", true),
        ],
        "{:?}",
        figures.rows[0].reasons
    );
    assert!(figures.rows[0].series.host.is_empty(), "the host is dropped");
    assert_eq!(figures.rows[0].series.ops["insert"].ok.len(), 30);
    let page = Page {
        sources: &[source(size)],
        figures: &figures,
        curves: &curves,
        notes: &["Run 2 has the seed 7, and run 1 1.".to_owned()],
    };
    let report = html_page(&page);
    assert!(report.contains("Run 2 has the seed 7, and run 1 1."));
    for part in [
        "insert: percentiles of response time, ms",
        "table_0_bytes, MB",
        "context switches for each query",
    ] {
        assert!(report.contains(part), "{part}");
    }
}

#[test]
fn repeats_are_compared_with_intervals() {
    let once = figures(SMALL);
    let mut figures = Figures::default();
    for repeat in 1..=5 {
        for mut row in once.rows.clone() {
            row.cell.repeat = repeat;
            for value in row.metrics.values_mut().flatten() {
                *value *= 1.0 + f64::from(repeat) / 1000.0;
            }
            figures.rows.push(row);
        }
    }
    let page = html(&[source(SMALL)], &figures);
    assert!(page.contains("id=\"compared\""));
    assert!(!page.contains("measured once"));
    assert!(page.contains("Each ratio has a confidence interval"));
    // By all that `assay compare` goes by: an interval is as wide as their number asks for.
    let costs = analysis::compare::costs(&figures);
    let has = |name: &str| costs.iter().any(|cost| cost == name);
    assert!(has("rpq") && has("cpupq"));
    assert_eq!(page.matches("/base").count(), costs.len());
    let page = html(&[source(SMALL)], &once);
    assert!(page.contains("measured once: one run cannot show a change"));
}

#[test]
fn several_runs_have_different_labels() {
    let one = figures(SMALL);
    let (one_rows, one_cells) = (one.rows.len(), one.unfinished.len());
    let mut both = one.clone();
    both.rows.extend(one.rows);
    both.unfinished.extend(one.unfinished);
    both.rows[one_rows..].iter_mut().for_each(|row| row.run = 1);
    both.unfinished[one_cells..].iter_mut().for_each(|cell| cell.run = 1);
    let mut second = source(SMALL);
    second.run.name = "the second".to_string();
    second.cells[0].cell.settings[0].value = "of the second run alone".into();
    let report = html(&[source(SMALL), second], &both);
    assert!(report.contains("pg15.base #2") && report.contains("the second"));
    assert_eq!(report.matches("id=\"problems\"").count(), 1);
    assert_eq!(report.matches("312 MiB of swap").count(), 1, "what both runs say is said once");
    let (_, settings) = report.split_once("all settings of").unwrap();
    for (part, count) in [
        ("of the second run alone", 1),
        ("pg15.base in run 1", 1),
        ("pg15.base in run 2", 1),
        ("pg15.embedded in run 1", 1),
        ("pg15.embedded in run 2", 0),
    ] {
        assert_eq!(settings.matches(part).count(), count, "{part}");
    }
}

#[test]
fn what_differs_between_targets_is_there_to_be_unfolded() {
    let text = html(&[source(SMALL)], &figures(SMALL));
    let (_, section) = text.split_once("What differs between targets").unwrap();
    let (pair, _) = section.split_once("</details>").unwrap();
    for part in [
        "pg15.embedded against pg15.base: 1 undeclared",
        "autovacuum_vacuum_scale_factor",
        "<code>0.2</code>",
        "<code>0.05</code>",
    ] {
        assert!(pair.contains(part), "{part} in {pair}");
    }
}

//! Findings in the text and in the page.

use std::collections::BTreeMap;

use analysis::compare::{CompareOptions, Effects, compare};
use analysis::explain::explain;
use analysis::figures::{Figures, Row};
use record::{CellKey, Run, SettingRole, Status, StepKind};
use report::{Comparison, TableStyle, compared_json, tables};

use crate::html;
use crate::synthetic::{SMALL, Size, figures, source};

const FOUR: Size = Size { targets: 4, ..SMALL };

/// Three repeats of all targets; the second target takes twice the time of the first, on its own
/// CPU.
fn repeated() -> Figures {
    let once = figures(FOUR);
    let mut figures = Figures::default();
    for repeat in 1..=3_u32 {
        for row in &once.rows {
            let mut row =
                Row { cell: record::CellKey { repeat, ..row.cell.clone() }, ..row.clone() };
            let is_second = row.cell.target == source(FOUR).run.targets[1].name;
            let off = 1.0 + 0.001 * f64::from(repeat);
            let time = off * if is_second { 200.0 } else { 100.0 };
            for name in ["ips", "qps"] {
                row.metrics.insert(name, Some(1e6 / time));
            }
            for (name, us) in [("op_time_us", time), ("op_client_cpu_us", time - 10.0)] {
                row.metrics.insert(name, Some(us));
            }
            figures.rows.push(row);
        }
    }
    figures
}

#[test]
fn findings_stand_below_the_summary_with_their_figures() {
    let text = tables(&source(FOUR).run, &repeated(), TableStyle::default());
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part:?} in:\n{text}"));
    let (summary, findings) = (at("Throughput"), at("\nFindings\n"));
    assert!(summary < findings, "{text}");
    let first = text[findings..].lines().nth(2).unwrap();
    assert!(first.starts_with("1. ") && first.contains("2.00x slower"), "{first}");
    // The figures are in a table below the paragraph.
    let row: Vec<&str> = text[findings..]
        .lines()
        .find_map(|line| line.trim().strip_prefix("client CPU"))
        .unwrap_or_else(|| panic!("{text}"))
        .split_whitespace()
        .collect();
    assert_eq!(row, ["\u{b5}s/op", "90.2", "190", "2.11x"], "{text}");
}

#[test]
fn the_page_has_the_same_findings_and_takes_none_of_them_for_markup() {
    let mut figures = repeated();
    for row in &mut figures.rows {
        row.step = row.step.replace("l.i0", "<b>l.i0</b>");
    }
    let page = html(&[source(FOUR)], &figures);
    let from = page.find("id=\"findings\"").unwrap();
    let section = &page[from..from + page[from..].find("</section>").unwrap()];
    assert!(section.contains("&lt;b&gt;l.i0"), "{section}");
    assert!(!section.contains("<b>l.i0"), "{section}");
    let row = section.split("client CPU</th>").nth(1).unwrap();
    let row = row.split("</tr>").next().unwrap();
    for cell in [">\u{b5}s/op<", ">90.2<", ">190<", ">2.11x<"] {
        assert!(row.contains(cell), "{row}");
    }
}

#[test]
fn targets_that_were_measured_once_have_gray_ratios_and_no_cause() {
    let (run, figures) = (source(FOUR).run, figures(FOUR));
    let style = TableStyle { color: true, ..TableStyle::default() };
    let text = tables(&run, &figures, style);
    let from = text.find("Throughput relative to").unwrap();
    let (table, _) = text[from..].split_once("one repeat: no interval").unwrap();
    let is_colored = |code: &str| table.contains(&format!("\u{1b}[38;5;{code}m"));
    assert!(is_colored("8") && !is_colored("11") && !is_colored("14"), "{table:?}");
    assert!(!table.contains(['+', '\u{25b2}', '\u{25bc}']), "{table}");
    assert!(text.contains("measured once: one run cannot show a change"), "{text}");
    assert!(text.contains("assay run --resume RUN --repeats 5 adds the repeats"), "{text}");
    assert!(!text.contains("slower in") && !text.contains("faster in"), "{text}");
    let page = html(&[source(FOUR)], &figures);
    assert!(!page.contains("class=\"better\"") && !page.contains("class=\"worse\""));
    assert!(page.contains("one repeat: no interval"));
}

#[test]
fn of_many_findings_the_rest_is_counted() {
    let mut figures = figures(FOUR);
    // Each step of a workload of its own, with clients that ended apart.
    let template = figures.rows[0].clone();
    for number in 0..20 {
        let mut row = template.clone();
        row.step = format!("load{number}");
        row.fairness = Some(analysis::figures::Fairness {
            fastest_seconds: 100.0,
            slowest_seconds: 200.0 + f64::from(number),
            abs_seconds: 100.0 + f64::from(number),
            pct: 100.0 + f64::from(number),
            ..analysis::figures::Fairness::default()
        });
        figures.rows.push(row);
    }
    let text = tables(&source(FOUR).run, &figures, TableStyle::default());
    assert!(text.contains("\n12. "), "{text}");
    assert!(!text.contains("\n13. "), "{text}");
    assert!(text.contains("less important findings"), "{text}");
}

/// The metrics of the steps whose figures make no sense.
const ODD_METRICS: [&str; 11] = [
    "op_client_cpu_us",
    "op_server_cpu_us",
    "op_cpu_wait_us",
    "op_read_us",
    "op_fsync_us",
    "op_unexplained_us",
    "own_cpu_us_per_op",
    "own_read_kb_per_op",
    "stall%",
    "fsyncs_per_commit",
    "cpu_mhz",
];

/// Returns three repeats of two loads, of which the second has a third of the throughput. All other
/// metrics are 10, but one is this much in the base and in the target.
fn loads(odd: &str, of_base: f64, of_target: f64) -> Figures {
    let mut figures = Figures::default();
    for repeat in 1..=3_u32 {
        for (target, rate, value) in [("a.c", 30_000.0, of_base), ("b.c", 10_000.0, of_target)] {
            let off = 1.0 + 0.001 * f64::from(repeat % 2);
            let clients = 4;
            let time_us = f64::from(clients) * 1e6 / (rate * off);
            let mut metrics =
                BTreeMap::from([("ips", Some(rate * off)), ("op_time_us", Some(time_us))]);
            for name in ODD_METRICS {
                metrics.insert(name, Some(if name == odd { value } else { 10.0 } * off));
            }
            figures.rows.push(Row {
                cell: CellKey::new(target, None, clients, repeat),
                step: "l.i1".to_owned(),
                kind: StepKind::Load,
                main_op: Some("insert".to_owned()),
                status: Status::Complete,
                reported: true,
                valid: true,
                seconds: 100.0,
                metrics,
                ..Row::default()
            });
        }
    }

    figures.settings.differences = vec![analysis::settings::Comparison {
        a: "a.c".to_owned(),
        b: "b.c".to_owned(),
        settings: vec![analysis::settings::Difference {
            name: "sync_binlog".to_owned(),
            a: Some("0".to_owned()),
            b: Some("1".to_owned()),
            mark: analysis::settings::DifferenceKind::Declared,
            role: Some(SettingRole::Durability),
        }],
        ..analysis::settings::Comparison::default()
    }];
    figures
}

/// Returns the findings of two targets as JSON.
fn findings_json(figures: &Figures) -> serde_json::Value {
    let options = CompareOptions { base: "a.c".to_owned(), ..CompareOptions::default() };
    let compared = compare(figures, &options);
    let findings = explain(figures, &compared);
    let comparison = Comparison {
        run: &Run::default(),
        runs: &[],
        figures,
        compared: &compared,
        effects: &Effects::default(),
        findings: &findings,
    };
    compared_json(&comparison)["findings"].take()
}

#[test]
fn figures_that_make_no_sense_make_no_nonsense() {
    const ODD: [f64; 5] = [0.0, 1e-12, 1.0, 100.0, 1e12];
    for name in ODD_METRICS {
        for of_base in ODD {
            for of_target in ODD {
                let findings = findings_json(&loads(name, of_base, of_target));
                // The throughput is a third each time: that is always a finding.
                assert!(!findings.as_array().unwrap().is_empty(), "{name}");

                for finding in findings.as_array().unwrap() {
                    let [title, text] = ["title", "text"].map(|key| finding[key].as_str().unwrap());
                    let all = format!("{title}\n{text}\n{}", finding["caveats"]);
                    for nonsense in ["NaN", "inf", "-0 ", "()", " ,"] {
                        assert!(!all.contains(nonsense), "{nonsense:?} is in:\n{all}");
                    }
                }
            }
        }
    }
}

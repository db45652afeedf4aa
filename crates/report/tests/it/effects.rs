//! Effects of factors, of a matrix that was never measured: what commits wait for, and images of
//! whole pages.

use std::collections::BTreeMap;

use analysis::{
    compare::{CompareOptions, Effects, compare, effects},
    figures::{Figures, Row, StartedCell},
    settings::{Factors, Profile, ProfileSetting},
};
use record::{CellKey, Run, Status, StepKind};
use report::{
    Comparison, FactorEffects, TableStyle, compared_json, compared_markdown, effects as text_of,
    effects_csv, effects_json, effects_markdown, effects_of_matrices, factors, tables_summary,
};

use crate::synthetic::target;
use crate::{PLAIN, check_once, column, page};

/// Target, `synchronous_commit`, `full_page_writes`, rates of its two steps.
const TARGETS: [(&str, &str, &str, [f64; 2]); 4] = [
    ("pg.sync1_fpi1", "on", "on", [500.0, 800.0]),
    ("pg.sync1_fpi0", "on", "off", [505.0, 810.0]),
    ("pg.sync0_fpi1", "off", "on", [1500.0, 805.0]),
    ("pg.sync0_fpi0", "off", "off", [3000.0, 801.0]),
];

/// The factors of the repeats of a rate: each target has its own.
const NOISE: [[f64; 4]; 4] = [
    [1.0, 1.01, 0.99, 1.005],
    [0.99, 1.0, 1.01, 1.0],
    [1.01, 0.995, 1.0, 0.99],
    [1.0, 1.005, 1.0, 1.01],
];

fn figures() -> Figures {
    let mut figures = Figures::default();
    for repeat in 1..=4 {
        for (index, (name, sync, images, rates)) in TARGETS.into_iter().enumerate() {
            let cell = CellKey::new(name, None, 1, repeat);
            for (step, rate) in ["update-index", "scan"].into_iter().zip(rates) {
                let rate = rate * NOISE[index][repeat as usize - 1];
                figures.rows.push(Row {
                    cell: cell.clone(),
                    engine: "postgres".into(),
                    workload: "insert".into(),
                    step: step.into(),
                    kind: StepKind::Query,
                    reported: true,
                    status: Status::Complete,
                    valid: true,
                    seconds: 60.0,
                    metrics: BTreeMap::from([
                        ("qps", Some(rate)),
                        ("p99", Some(rate * 0.9)),
                        ("fsyncs_per_commit", Some(f64::from(u8::from(sync == "on")))),
                    ]),
                    ..Row::default()
                });
            }
            // Every second round goes the other way.
            let at = if repeat % 2 == 0 { 3 - index } else { index } as u64;
            figures.begun.push(StartedCell {
                cell,
                invocation: 1,
                started_unix_ns: (u64::from(repeat) * 1000 + 100 * at) * 1_000_000_000,
                ..StartedCell::default()
            });
            if repeat == 1 {
                let settings = [("synchronous_commit", sync), ("full_page_writes", images)];
                figures.settings.profiles.push(profile(name, settings));
            }
        }
    }
    figures
}

fn profile(target: &str, settings: [(&str, &str); 2]) -> Profile {
    let setting = |(name, value): (&str, &str)| {
        let setting =
            ProfileSetting { name: name.into(), value: value.into(), canonical: value.into() };
        (name.to_owned(), setting)
    };
    Profile {
        target: target.into(),
        engine: "postgres".into(),
        build: "pg".into(),
        is_reported: true,
        settings: settings.into_iter().map(setting).collect(),
        declared: settings.map(|(name, _)| name.to_owned()).to_vec(),
        factors: Vec::new(),
    }
}

fn run() -> Run {
    Run {
        name: "durability".into(),
        status: Status::Complete,
        targets: TARGETS.map(|names| target(names.0, "postgres")).to_vec(),
        base: TARGETS[0].0.into(),
        ..Run::default()
    }
}

fn of(figures: &Figures) -> Effects {
    let found = Factors::find(&figures.settings.profiles, &[run().base]);
    effects(figures, found.factors, &CompareOptions::default())
}

fn shown<T>(show: impl Fn(&FactorEffects<'_>) -> T) -> T {
    let (run, figures) = (run(), figures());
    let effects = of(&figures);
    show(&FactorEffects { run: &run, runs: &[], figures: &figures, effects: &effects })
}

#[test]
fn each_change_is_a_line_with_its_combinations_below() {
    insta::assert_snapshot!(shown(|it| text_of(it, PLAIN)));
}

#[test]
fn a_requested_metric_has_its_own_tables_and_values_without_a_ratio() {
    let (run, figures) = (run(), figures());
    let found = Factors::find(&figures.settings.profiles, std::slice::from_ref(&run.base));
    let options = CompareOptions {
        shown_metrics: ["p99", "fsyncs_per_commit"].map(str::to_owned).to_vec(),
        ..CompareOptions::default()
    };
    let effects = effects(&figures, found.factors, &options);
    let text = effects_markdown(&FactorEffects {
        run: &run,
        runs: &[],
        figures: &figures,
        effects: &effects,
    });
    for expected in [
        "### Effects on p99",
        "### p99 by combination of the other factors",
        "p99: rate reached in 99% of the seconds",
        "full\\_page\\_writes=on | 1.000 -\\> 0.000\\[a\\]",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn markdown_has_the_same_tables() {
    let text = shown(effects_markdown);
    let expected = [
        "### Effects on throughput",
        "| effect of | update-index | scan |",
        "| effect of | where | update-index | scan |",
    ];
    for expected in expected {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn csv_has_a_line_for_each_effect_and_for_each_of_its_combinations() {
    let csv = shown(effects_csv);
    let of = |name: &str| column(&csv, name);
    // Two factors, two steps, and the effect with two combinations of each.
    assert_eq!(of("factor").len(), 12);
    let combinations = of("combination");
    assert_eq!(combinations[..3], ["", "full_page_writes=on", "full_page_writes=off"]);
    assert_eq!(of("base")[..2], ["", "pg.sync1_fpi1"]);
    assert_eq!(of("target")[..3], ["", "pg.sync0_fpi1", "pg.sync0_fpi0"]);
    assert_eq!(of("unit")[0], "queries/s");
    // The columns of verdicts come first.
    let head = csv.lines().next().unwrap();
    assert!(head.starts_with("run_ids,"), "{head}");
    assert!(head.contains("reasons,factor,base_level,level,combination,deviation,"), "{head}");
    assert_eq!(of("differs")[..3], ["true"; 3]);
    assert_eq!(of("deviation")[0], "");
}

#[test]
fn json_has_what_csv_has() {
    let json = &shown(effects_json)["effects"];
    assert_eq!(json["factors"][0]["name"], "synchronous_commit");
    assert_eq!(json["factors"][0]["levels"][1], "off");
    let row = &json["rows"][0];
    for (key, expected) in [
        ("factor", "synchronous_commit"),
        ("base_level", "on"),
        ("level", "off"),
        ("step", "update-index"),
        ("verdict", "faster"),
    ] {
        assert_eq!(row[key], expected, "{key}");
    }
    assert_eq!(row["differs"], true);
    let combination = &row["combinations"][1];
    assert_eq!(combination["others"], "full_page_writes=off");
    assert_eq!(combination["base_target"], "pg.sync1_fpi0");
    assert_eq!(combination["deviation"]["differs"], true);
}

#[test]
fn a_report_has_the_effects_of_a_full_matrix_and_of_no_other() {
    let mut figures = figures();
    let whole = page(run(), &figures);
    check_once(&whole, &["factors", "effects", "effects-each"]);
    assert!(whole.contains(
        "synchronous_commit of postgres: on, off; in 2 combinations of the other factors"
    ));
    figures.settings.profiles.pop();
    assert!(!page(run(), &figures).contains("Effects of factors"));
}

#[test]
fn the_interval_of_an_effect_is_the_same_in_the_answer_and_in_its_matrix() {
    let whole = page(run(), &figures());
    let (_, matrix) = whole.split_once("id=\"matrix-factors\"").unwrap();
    let (matrix, _) = matrix.split_once("</table>").unwrap();
    let cells = matrix.matches("<div class=\"square\"><svg class=\"strip").count();
    let heads = matrix.matches("<span class=\"value\"></span>").count();
    assert_eq!(matrix.matches("<span class=\"bounds\">").count(), cells - heads);

    let (_, answer) = whole.split_once("<h1>").unwrap();
    let (_, interval) = answer.split_once("(interval ").unwrap();
    let (interval, _) = interval.split_once(')').unwrap();
    assert!(matrix.contains(&format!("<span class=\"bounds\"> ({interval})</span>")), "{interval}");
    assert!(matrix.contains(&format!(", {interval}: faster over ")), "{interval}");
}

#[test]
fn a_chosen_step_keeps_the_verdicts_that_it_has_beside_all_others() {
    let (run, figures) = (run(), figures());
    let verdicts = |steps: &[String]| {
        let text = tables_summary(&run, &figures, steps, PLAIN);
        let mut lines = text.lines();
        let line = lines.find(|line| line.starts_with("update-index ")).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(verdicts(&["update-index".to_owned()]), verdicts(&[]));
}

#[test]
fn a_shown_effect_heads_the_answer_of_every_printer() {
    let (run, figures) = (run(), figures());
    insta::assert_snapshot!(tables_summary(&run, &figures, &[], PLAIN));

    let head = "All else equal, synchronous_commit=off is faster than synchronous_commit=on in 1 of 2 steps: ";
    assert!(page(run.clone(), &figures).contains(&format!("<h1>{head}")));

    let options = CompareOptions { base: run.base.clone(), ..CompareOptions::default() };
    let comparison = Comparison {
        run: &run,
        runs: &[],
        figures: &figures,
        compared: &compare(&figures, &options),
        effects: &effects_of_matrices(&figures, &options),
        findings: &[],
    };
    let markdown = compared_markdown(&comparison);
    let heading = format!("### {}", head.replace('_', "\\_"));
    let first_heading = markdown.find("\n### ").map_or("", |at| &markdown[at + 1..]);
    assert!(first_heading.starts_with(&heading), "{markdown}");

    let answer = &compared_json(&comparison)["answer"];
    assert!(answer["text"].as_str().unwrap().starts_with(head));
    let factor = &answer["factors"][0];
    assert_eq!(factor["factor"], "synchronous_commit");
    assert_eq!((&factor["base_level"], &factor["level"]), (&"on".into(), &"off".into()));
    assert_eq!(factor["target"], "synchronous_commit: on -> off");
    assert_eq!(
        (&factor["faster"][0]["step"], &factor["differing"]),
        (&"update-index".into(), &1.into())
    );
}

#[test]
fn factors_are_listed_with_their_levels() {
    let found = Factors::find(&figures().settings.profiles, &[]);
    let text = factors(&found, TableStyle::default());
    assert!(text.contains("full_page_writes of postgres: on, off; in 2 combinations"), "{text}");
}

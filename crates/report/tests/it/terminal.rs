use analysis::{
    figures::Figures,
    settings::{
        Comparison, Difference, DifferenceKind, IgnoredOption, OneSidedSetting, Settings,
        TargetSettings, VaryingSetting,
    },
};
use record::OptionStatus;
use report::{
    TableStyle, csv, differences, tables, tables_brief, tables_named, tables_overview,
    tables_summary, terminal_text,
};

use crate::synthetic::{ALL_STEPS, SMALL, Size, figures, matrix_of, source};
use crate::{PLAIN, column, html};

#[test]
fn the_tables_at_the_end_of_a_run() {
    insta::assert_snapshot!(tables_brief(&source(SMALL).run, &figures(SMALL), PLAIN));
}

#[test]
fn all_tables() {
    insta::assert_snapshot!(tables(&source(SMALL).run, &figures(SMALL), PLAIN));
}

#[test]
fn lines_are_compared_with_the_base_of_their_own_clients_and_repeat() {
    let mut figures = figures(SMALL);
    figures.unfinished.clear();
    figures.rows.retain(|row| row.cell.target != "pg99.broken" && row.step == "l.i0");
    let once = figures.rows.clone();
    for (clients, repeat, ips) in [(8, 1, 100_000.0), (8, 2, 50_000.0)] {
        for row in &once {
            let mut row = row.clone();
            (row.cell.clients, row.cell.repeat) = (clients, repeat);
            row.metrics
                .insert("ips", Some(if row.cell.target == "pg15.base" { ips } else { 60_000.0 }));
            figures.rows.push(row);
        }
    }
    insta::assert_snapshot!(tables_brief(&source(SMALL).run, &figures, PLAIN));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let size = Size { targets: 9, clients: 3, seconds: 30, steps: ALL_STEPS };
    for width in [80, 100] {
        let text =
            tables(&source(size).run, &figures(size), TableStyle { width: Some(width), ..PLAIN });
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= width, "{widest}");
    }
}

/// 40 targets with two numbers of clients in two variants.
const LARGE: Size = Size { targets: 39, clients: 2, seconds: 12, steps: ALL_STEPS };

#[test]
fn a_large_matrix_is_shown_group_by_group() {
    let figures = matrix_of(LARGE, &[1, 8], &["cached", "io"]);
    let text = tables(&source(LARGE).run, &figures, PLAIN);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    // Each group has its name and its heads; what it shares takes no column.
    let summary = text.split("Throughput relative to").next().unwrap();
    for group in ["cached, 1 client:", "cached, 8 clients:", "io, 1 client:", "io, 8 clients:"] {
        let (_, after) = summary.split_once(&format!("\n{group}\n")).unwrap();
        let head = after.lines().next().unwrap();
        assert!(head.starts_with("target  ") && head.contains(" l.i0 "), "{head}");
    }
    assert!(!text.contains("variant"));
    // What is shown of each operation would be most of it: of one step it is there.
    assert!(!text.contains("percentiles in microseconds") && text.contains("--step NAME"));
    assert!(text.contains("Quality of service") && !text.contains("\nStalls: "));
    let mut one = figures;
    one.rows.retain(|row| row.step == "l.i1");
    let text = tables(&source(LARGE).run, &one, PLAIN);
    assert!(text.contains("percentiles in microseconds") && !text.contains("--step NAME"));
}

#[test]
fn a_small_matrix_stays_together() {
    let figures = matrix_of(SMALL, &[1, 8], &["cached", "io"]);
    let text = tables_brief(&source(SMALL).run, &figures, PLAIN);
    let head = "target         variant  clients";
    assert!(text.lines().any(|line| line.starts_with(head)), "{text}");
    assert!(text.lines().any(|line| line.starts_with("pg15.base      io       8")), "{text}");
}

#[test]
fn the_rates_of_a_search_are_sorted_by_size() {
    let figures = matrix_of(SMALL, &[1], &["rate-13400", "rate-8950_5", "unlimited"]);
    let text = tables_brief(&source(SMALL).run, &figures, PLAIN);
    let places =
        ["unlimited", "rate-8950_5", "rate-13400"].map(|variant| text.find(variant).unwrap());
    assert!(places.is_sorted(), "{text}");
}

fn text(text: &str) -> Option<String> {
    Some(text.to_string())
}

fn settings() -> Settings {
    let mut new_settings: Vec<OneSidedSetting> = (0..40)
        .map(|number| one_sided(format!("new_{number:02}"), "on", DifferenceKind::Undeclared))
        .collect();
    new_settings.push(one_sided("io_method".to_string(), "worker", DifferenceKind::Declared));

    Settings {
        profiles: Vec::new(),
        differences: vec![
            Comparison {
                settings: changed_settings(),
                only_b: new_settings,
                b_version: "18.1".to_string(),
                ..same_settings("pg.a", "pg.b")
            },
            Comparison { identical: true, ..same_settings("pg.a", "pg.c") },
            Comparison { b_version: "18.1".to_string(), ..same_settings("pg.a", "pg.d") },
        ],
        targets: target_settings(),
    }
}

fn one_sided(name: String, value: &str, mark: DifferenceKind) -> OneSidedSetting {
    OneSidedSetting { name, value: value.to_string(), mark, role: None }
}

fn same_settings(a: &str, b: &str) -> Comparison {
    Comparison {
        a: a.to_string(),
        b: b.to_string(),
        a_version: "17.2".to_string(),
        b_version: "17.2".to_string(),
        ..Comparison::default()
    }
}

/// Returns one difference of each kind, and more undeclared ones than are listed.
fn changed_settings() -> Vec<Difference> {
    let difference =
        |name: &str, a, b, mark| Difference { name: name.to_string(), a, b, mark, role: None };
    let switches = |mrr: &str| text(&format!("index_merge=on,mrr={mrr},a=on,b=off,c=on"));
    let mut changed = vec![
        difference("wal_compression", text("off"), text("lz4"), DifferenceKind::Declared),
        difference("switches", switches("on"), switches("off"), DifferenceKind::Declared),
        difference("foo.bar", None, text(""), DifferenceKind::Unverified),
    ];
    for number in 0..23 {
        let name = format!("derived_{number:02}");
        changed.push(difference(&name, text("1"), text("2"), DifferenceKind::Undeclared));
    }
    changed
}

/// Returns targets that lack the same options, the first of which has a varying setting.
fn target_settings() -> Vec<TargetSettings> {
    let ignored = |target: &str, name: &str, effective, status| IgnoredOption {
        target: target.to_string(),
        name: name.to_string(),
        declared: "99".to_string(),
        effective,
        status,
    };
    let mut targets =
        ["pg.a", "pg.b", "pg.c", "pg.d", "pg.e", "pg.f"].map(|target| TargetSettings {
            run: 0,
            target: target.to_string(),
            ignored: vec![
                ignored(target, "purge_threads", text("32"), OptionStatus::Changed),
                ignored(target, "loose_x", None, OptionStatus::Unknown),
            ],
            varying: Vec::new(),
        });
    targets[0].varying = vec![VaryingSetting {
        name: "max_connections".to_string(),
        values: [("c1 r1", "100"), ("c8 r1", "100"), ("c256 r1", "272")]
            .map(|(cell, value)| (cell.to_string(), text(value)))
            .to_vec(),
    }];
    targets.to_vec()
}

#[test]
fn each_difference_between_settings_is_one_line() {
    insta::assert_snapshot!(differences(&settings(), PLAIN));
}

#[test]
fn of_what_was_not_measured_nothing_is_claimed() {
    let comparison = Comparison {
        a: "pg.a".to_string(),
        b: "pg.b".to_string(),
        a_version: "17.2".to_string(),
        identical: true,
        unmeasured: vec!["pg.a".to_string(), "pg.b".to_string()],
        ..Comparison::default()
    };
    let told = |comparison: Comparison| {
        let settings = Settings { differences: vec![comparison], ..Settings::default() };
        differences(&settings, PLAIN)
    };
    assert_eq!(
        told(comparison.clone()),
        "pg.b against pg.a: not measured; the plan declares the same settings for both\n"
    );
    let one = Comparison { unmeasured: vec!["pg.b".to_string()], ..comparison.clone() };
    assert_eq!(
        told(one.clone()),
        "pg.b against pg.a: pg.b was not measured; the plan declares the same settings for both\n"
    );
    let declared = Difference {
        name: "work_mem".to_string(),
        a: text("4MB"),
        b: text("8MB"),
        mark: DifferenceKind::Unverified,
        role: None,
    };
    let differs =
        told(Comparison { identical: false, declared_only: true, settings: vec![declared], ..one });
    assert!(
        differs.starts_with("pg.b against pg.a: what the plan declares; pg.b was not measured\n"),
        "{differs}"
    );
}

#[test]
fn all_settings_are_listed_on_request() {
    let style = TableStyle { all_settings: true, ..PLAIN };
    let text = differences(&settings(), style);
    for line in [
        "  only in pg.b: new_39 = on [undeclared]",
        "  derived_22: 1 -> 2 [undeclared]",
        "  switches: index_merge=on,mrr=on,a=on,b=off,c=on -> index_merge=on,mrr=off,a=on,b=off,c=on",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[test]
fn without_a_width_a_table_stays_one_table() {
    let size = Size { targets: 3, clients: 3, seconds: 30, steps: ALL_STEPS };
    let (run, figures) = (source(size).run, figures(size));
    let heads = |width| {
        let text = tables(&run, &figures, TableStyle { width, ..PLAIN });
        let heads = text.lines().filter(|line| line.starts_with("target  "));
        heads.map(str::to_string).collect::<Vec<_>>()
    };
    let whole = heads(None);
    assert!(whole.len() < heads(Some(80)).len());
    // The metrics of the field, from the first to the last.
    let metrics = |head: &&String| head.contains(" rkbpq ") && head.ends_with(" p99");
    assert_eq!(whole.iter().filter(metrics).count(), 10, "{whole:#?}");
}

#[test]
fn color_changes_nothing_but_color() {
    let (run, figures) = (source(SMALL).run, figures(SMALL));
    let colored = tables(&run, &figures, TableStyle { color: true, ..PLAIN });
    let mut bare = String::new();
    for (index, part) in colored.split('\u{1b}').enumerate() {
        bare += if index == 0 { part } else { part.split_once('m').unwrap().1 };
    }
    assert!(colored.contains('\u{1b}'));
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&bare), trimmed(&tables(&run, &figures, PLAIN)));
}

#[test]
fn a_name_cannot_command_the_terminal() {
    let mut figures = figures(SMALL);
    let mut run = source(SMALL).run;
    run.name = "evil\u{1b}]0;title\u{7}".to_string();
    for row in figures.rows.iter_mut().filter(|row| row.cell.target == run.base) {
        row.cell.target = "pg\u{1b}[31m\r\u{9b}2J\u{202e}.base".to_string();
        row.valid = false;
        row.reasons = vec!["server says \u{1b}[2J\nbye".to_string()];
    }
    let text = tables(&run, &figures, PLAIN);
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text}");
    assert!(!text.contains('\u{202e}'));
    assert!(text.contains("pg[31m2J.base") && text.contains("server says [2J bye"), "{text}");
}

#[test]
fn terminal_text_leaves_what_only_shows() {
    assert_eq!(terminal_text("größe\t1\u{0}2 \u{1f600}"), "größe 12 \u{1f600}");
}

#[test]
fn csv_has_a_line_for_each_step_and_units_in_its_head() {
    let mut figures = figures(SMALL);
    figures.rows[0].reasons = vec!["a, \"b\"\nc".to_string()];
    let text = csv(&source(SMALL).run, &figures);
    for name in [
        "elapsed_s",
        "ips_rows_per_s",
        "cpupq_us_per_op",
        "dbgb2_gib",
        "main_service_us_p99_9",
        "main_per_s",
    ] {
        assert_eq!(column(&text, name).len(), figures.rows.len());
    }
    assert_eq!(column(&text, "reasons")[0], "a, \"b\"\nc");
    let empty = csv(&source(SMALL).run, &Figures::default());
    assert_eq!(text.lines().next(), empty.lines().next());
    // What is not applicable is empty.
    assert_eq!(column(&text, "rss_gib"), ["0.751", "0.751", "0.751", "", "", "", "0.751", "0.751"]);
}

/// Returns the head of a report with this use of the processors by other programs, as text and as
/// HTML.
fn heads(others: impl Fn(&str) -> f64) -> [String; 2] {
    let mut figures = figures(SMALL);
    figures.unfinished.clear();
    figures.rows.retain(|row| row.cell.target != "pg99.broken");
    for row in &mut figures.rows {
        (row.valid, row.reasons) = (true, Vec::new());
        row.metrics.insert("others%", Some(others(&row.cell.target)));
    }
    let colored = TableStyle { color: true, width: None, ..PLAIN };
    let text = tables_brief(&source(SMALL).run, &figures, colored);
    let page = html(&[source(SMALL)], &figures);
    let (_, status) = page.split_once("class=\"status ").unwrap();
    let first = text.lines().next().unwrap().to_owned();
    [first, status.split_once("</").unwrap().0.to_owned()]
}

#[test]
fn a_busy_or_unevenly_busy_host_is_reported_at_the_top_in_another_color() {
    let [text, page] = heads(|_| 20.0);
    assert!(text.starts_with("\u{1b}[1m"), "{text:?}");
    assert!(text.ends_with("step results are valid\u{1b}[0m"), "{text:?}");
    assert!(page.starts_with("good\""), "{page}");

    for (others, says) in [
        (
            (|_: &str| 90.4) as fn(&str) -> f64,
            "are valid, but other programs used up to 90% of the processors: on an idle machine, smaller differences would show",
        ),
        (
            |target: &str| if target == "pg15.base" { 3.0 } else { 14.0 },
            "are valid, but other programs used 11 percentage points more of the processors while one target ran than while another did: small \
             differences may come from that",
        ),
    ] {
        let [text, page] = heads(others);
        assert!(text.starts_with("\u{1b}[1;33m"), "{text:?}");
        assert!(text.contains(says), "{text:?}");
        assert!(page.starts_with("doubt\""), "{page}");
        assert!(page.contains(says), "{page}");
    }
}

#[test]
fn tables_are_shown_by_name_also_those_that_are_not_by_default() {
    let mut figures = figures(SMALL);
    for row in &mut figures.rows {
        row.metrics.insert("rawait", Some(0.435));
        row.metrics.insert("us%", Some(64.25));
    }
    let run = source(SMALL).run;
    let named = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
        tables_named(&run, &figures, &names, PLAIN)
    };
    let text = named(&["iostat", "vmstat"]).unwrap();
    assert!(text.starts_with("\n\n━━ l.i0 ━"), "{text}");
    for line in [
        "target           rps  rMBps  rawait    wps  wMBps",
        "pg15.base      1,043   18.2    0.43  5,120  101.9",
        "pg15.base      61,200  64.2",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(text.matches("rawait: time of a read").count(), 1, "{text}");
    assert!(!tables(&run, &figures, PLAIN).contains("rawait"));
    let (unknown, known) = named(&["iostat", "iosta"]).unwrap_err();
    assert_eq!(unknown, "iosta");
    assert!(known.iter().any(|name| name == "costs"), "{known:?}");
}

#[test]
fn a_terminal_that_has_them_shows_microseconds_and_arrows() {
    let style = TableStyle { unicode: true, ..PLAIN };
    let text = tables(&source(SMALL).run, &figures(SMALL), style);
    assert!(text.contains("\u{b5}s/op") && !text.contains("us/op"), "{text}");
    assert!(text.contains("0.2 \u{2192} 0.05 [undeclared]"), "{text}");
}

#[test]
fn a_run_is_shown_in_brief_with_a_list_of_all_its_tables() {
    let figures = figures(SMALL);
    let run = source(SMALL).run;
    let text = tables_overview(&run, &figures, PLAIN);
    let all = tables(&run, &figures, PLAIN);
    assert!(text.lines().count() * 2 < all.lines().count(), "{text}");
    assert!(text.contains("--all everything"), "{text}");
    // The answer is last, where it stays in view.
    let answer = tables_summary(&run, &figures, &[], PLAIN);
    assert!(text.ends_with(answer.trim_start()), "{text}");
    for name in ["summary", "metrics"] {
        let table = tables_named(&run, &figures, &[name.to_owned()], PLAIN).unwrap();
        assert!(!table.is_empty() && text.contains(&format!("\n{name} ")), "{name}");
    }
}

#[test]
fn microseconds_have_one_sign_everywhere() {
    let figures = figures(SMALL);
    let text = tables(&source(SMALL).run, &figures, PLAIN);
    assert!(text.contains("\u{b5}s/op"), "{text}");
    let is_ascii = |word: &str| word == "us" || word.starts_with("us/");
    let line = text.lines().find(|line| line.split([' ', ',', '(', ')']).any(is_ascii));
    assert_eq!(line, None);
}

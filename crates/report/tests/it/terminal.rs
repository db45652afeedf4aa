use report::{TableStyle, csv, tables, tables_brief, terminal_text};

use crate::synthetic::{ALL_STEPS, SMALL, Size, figures, source};

const PLAIN: TableStyle = TableStyle {
    colour: false,
    width: Some(100),
};

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
    figures
        .rows
        .retain(|row| row.target != "pg99.broken" && row.step == "l.i0");
    let once = figures.rows.clone();
    for (clients, repeat, ips) in [(8, 1, 100_000.0), (8, 2, 50_000.0)] {
        for row in &once {
            let mut row = row.clone();
            (row.clients, row.repeat) = (clients, repeat);
            row.metrics.insert(
                "ips",
                Some(if row.target == "pg15.base" {
                    ips
                } else {
                    60_000.0
                }),
            );
            figures.rows.push(row);
        }
    }
    insta::assert_snapshot!(tables_brief(&source(SMALL).run, &figures, PLAIN));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let size = Size {
        targets: 9,
        clients: 3,
        seconds: 30,
        steps: ALL_STEPS,
    };
    for width in [80, 100] {
        let text = tables(
            &source(size).run,
            &figures(size),
            TableStyle {
                colour: false,
                width: Some(width),
            },
        );
        let widest = text
            .lines()
            .max_by_key(|line| line.chars().count())
            .unwrap();
        assert!(widest.chars().count() <= width, "{widest}");
    }
}

#[test]
fn without_a_width_a_table_stays_one_table() {
    let size = Size {
        targets: 3,
        clients: 3,
        seconds: 30,
        steps: ALL_STEPS,
    };
    let (run, figures) = (source(size).run, figures(size));
    let heads = |width| {
        let style = TableStyle {
            colour: false,
            width,
        };
        let text = tables(&run, &figures, style);
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
fn colour_changes_nothing_but_colour() {
    let (run, figures) = (source(SMALL).run, figures(SMALL));
    let coloured = tables(
        &run,
        &figures,
        TableStyle {
            colour: true,
            ..PLAIN
        },
    );
    let mut bare = String::new();
    for (index, part) in coloured.split('\u{1b}').enumerate() {
        bare += if index == 0 {
            part
        } else {
            part.split_once('m').unwrap().1
        };
    }
    assert!(coloured.contains('\u{1b}'));
    let trimmed = |text: &str| {
        text.lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(trimmed(&bare), trimmed(&tables(&run, &figures, PLAIN)));
}

#[test]
fn a_name_cannot_command_the_terminal() {
    let mut figures = figures(SMALL);
    let mut run = source(SMALL).run;
    run.name = "evil\u{1b}]0;title\u{7}".to_string();
    for row in figures.rows.iter_mut().filter(|row| row.target == run.base) {
        row.target = "pg\u{1b}[31m\r\u{9b}2J\u{202e}.base".to_string();
        row.valid = false;
        row.reasons = vec!["server says \u{1b}[2J\nbye".to_string()];
    }
    let text = tables(&run, &figures, PLAIN);
    assert!(
        text.chars()
            .all(|letter| letter == '\n' || !letter.is_control()),
        "{text}"
    );
    assert!(!text.contains('\u{202e}'));
    assert!(
        text.contains("pg[31m2J.base") && text.contains("server says [2J bye"),
        "{text}"
    );
}

#[test]
fn terminal_text_leaves_what_only_shows() {
    assert_eq!(
        terminal_text("größe\t1\u{0}2 \u{1f600}"),
        "größe 12 \u{1f600}"
    );
}

#[test]
fn csv_has_a_line_for_each_step_and_units_in_its_head() {
    let figures = figures(SMALL);
    let text = csv(&figures);
    let head = text.lines().next().unwrap();
    for name in [
        "elapsed_s",
        "ips_rows_per_s",
        "cpupq_us_per_op",
        "dbgb2_gib",
        "insert_service_us_p99_9",
        "query_per_s",
    ] {
        assert!(
            head.split(',').any(|column| column == name),
            "{name} in {head}"
        );
    }
    // The reader refuses lines that differ in their length.
    let lines = ::csv::Reader::from_reader(text.as_bytes())
        .into_records()
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    assert_eq!(lines.len(), figures.rows.len());
}

#[test]
fn csv_quotes_what_would_break_a_line() {
    let mut figures = figures(SMALL);
    figures.rows[0].reasons = vec!["a, \"b\"\nc".to_string()];
    assert!(csv(&figures).contains("\"a, \"\"b\"\"\nc\""));
}

#[test]
fn csv_leaves_empty_what_is_not_applicable() {
    let text = csv(&figures(SMALL));
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let column = reader
        .headers()
        .unwrap()
        .iter()
        .position(|name| name == "rss_gib")
        .unwrap();
    let values: Vec<String> = reader
        .records()
        .map(|line| line.unwrap()[column].to_string())
        .collect();
    assert_eq!(
        values,
        ["0.751", "0.751", "0.751", "", "", "", "0.751", "0.751"]
    );
}

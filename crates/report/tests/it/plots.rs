//! Plots as files: one of each.

use analysis::figures::Figures;
use report::{PlotFiles, plots};

use crate::html;
use crate::synthetic::{ALL_STEPS, SMALL, Size, matrix_of, noise, source, target_names};

/// Five repeats that differ a little, with each of these numbers of clients.
pub fn repeated(size: Size, clients: &[u32]) -> Figures {
    let mut figures = Figures::default();
    for repeat in 1..=5 {
        let rows = matrix_of(size, clients, &[""]).rows.into_iter();
        for mut row in rows.filter(|row| row.cell.target != "pg99.broken") {
            row.cell.variant = None;
            row.cell.repeat = repeat;
            let seed = u64::from(repeat) * 1000 + figures.rows.len() as u64;
            for value in row.metrics.values_mut().flatten() {
                *value *= 0.99 + 0.02 * noise(seed);
            }
            figures.rows.push(row);
        }
    }
    figures
}

/// Returns the plots of a report of this size.
fn drawn(size: Size, clients: &[u32]) -> Vec<(String, String)> {
    plots(&source(size).run, &repeated(size, clients), PlotFiles::default())
}

#[track_caller]
fn named<'p>(plots: &'p [(String, String)], name: &str) -> &'p str {
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    let at = names.iter().position(|known| *known == name);
    &plots[at.unwrap_or_else(|| panic!("no {name} in {names:?}"))].1
}

/// Returns an SVG file, an element a line.
fn lines(svg: &str) -> String {
    let (_, drawn) = svg.split_once("</style>").unwrap();
    drawn.replace("><", ">\n<")
}

#[test]
fn a_few_targets_have_forest_plots() {
    let plots = drawn(SMALL, &[2]);
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["forest", "seconds-l.i0", "seconds-qr100"], "two targets are compared");
    insta::assert_snapshot!("forest", lines(named(&plots, "forest")));
}

#[test]
fn many_targets_have_a_heat_map_with_all_of_them() {
    let size = Size { targets: 6, ..SMALL };
    let plots = drawn(size, &[2]);
    let map = named(&plots, "heat-map");
    for target in target_names(6).iter().skip(1) {
        let (_, config) = target.split_once('.').unwrap();
        assert!(map.contains(&format!(">{config}<")), "{target}");
    }
    insta::assert_snapshot!("heat-map", lines(map));
    insta::assert_snapshot!("over-targets", lines(named(&plots, "over-targets")));
}

#[test]
fn one_target_alone_is_drawn_over_clients_and_rates() {
    let size = Size { targets: 1, steps: const { &[ALL_STEPS[5], ALL_STEPS[7]] }, ..SMALL };
    let plots = drawn(size, &[1, 2, 8]);
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "throughput-over-clients",
        "cost-over-clients",
        "scale-up",
        "latency-over-rate",
        "seconds-qr100",
        "seconds-qr500",
    ];
    assert_eq!(names, expected);
    insta::assert_snapshot!("scale-up", lines(named(&plots, "scale-up")));
    insta::assert_snapshot!(
        "throughput-over-clients",
        lines(named(&plots, "throughput-over-clients"))
    );
    let one_count = drawn(size, &[2]);
    insta::assert_snapshot!("latency-over-rate", lines(named(&one_count, "latency-over-rate")));
}

#[test]
fn a_file_needs_nothing_else_and_a_page_has_it_as_a_link() {
    for (name, svg) in drawn(Size { targets: 3, ..SMALL }, &[1, 4]) {
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
        assert_eq!(svg.matches("://").count(), 1, "{name}: its name space alone");
        assert!(svg.contains(">postgres-round-6, build pg15: "), "{name}");
        assert!(!svg.contains("var(") && !svg.contains("url("), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
    let figures = repeated(Size { targets: 3, ..SMALL }, &[1, 4]);
    let page = html(&[source(SMALL)], &figures);
    assert!(page.contains("id=\"plots-over-targets\""));
    assert!(page.contains("id=\"plots-over-clients\""));
    let (_, link) = page.split_once("download=\"scale-up.svg\" href=\"").unwrap();
    assert!(link.starts_with("data:image/svg+xml,%3Csvg "), "{}", &link[..60]);
}

#[test]
fn text_from_outside_stays_text_in_plots() {
    let evil = "<script>alert(1)</script>\u{1b}[31m&\"'";
    let mut figures = repeated(SMALL, &[2]);
    let mut source = source(SMALL);
    source.run.name = evil.to_string();
    source.run.base += evil;
    for row in &mut figures.rows {
        row.step += evil;
        row.cell.target += evil;
    }
    let plots = plots(&source.run, &figures, PlotFiles::default());
    assert!(!plots.is_empty());
    for (_, svg) in plots {
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"));
        assert!(svg.chars().all(|letter| letter == '\n' || !letter.is_control()));
    }
}

/// Three targets and the base, with repeats under two loads.
const SEVERAL: Size = Size { targets: 4, ..SMALL };

#[test]
fn files_have_the_width_that_was_asked_for() {
    let files = PlotFiles { width: Some(600.0), ..PlotFiles::default() };
    let plots = plots(&source(SEVERAL).run, &repeated(SEVERAL, &[1, 4]), files);
    assert!(plots.len() > 4);
    for (name, svg) in plots {
        assert!(svg.contains(" width=\"600\" "), "{name}: {}", &svg[..200]);
        // A drawing that begins in the right half would end outside if it were not narrower.
        let beginnings = svg.split("<g transform=\"translate(").skip(1);
        let farthest = beginnings
            .filter(|drawing| drawing.contains("class=\"name\""))
            .filter_map(|drawing| drawing.split(' ').next()?.parse::<f64>().ok())
            .fold(0.0, f64::max);
        assert!(farthest < 400.0, "{name}: {farthest}");
    }
}

#[test]
fn a_file_of_one_step_has_the_verdict_that_the_step_has_among_all() {
    let (run, figures) = (source(SEVERAL).run, repeated(SEVERAL, &[2]));
    let steps = ["qr100".to_owned()];
    let some = plots(&run, &figures, PlotFiles { steps: &steps, ..PlotFiles::default() });
    let all = plots(&run, &figures, PlotFiles::default());

    let forest = named(&some, "forest");
    assert!(!forest.contains(">l.i0<") && forest.contains(">qr100<"));
    let intervals = |svg: &str| -> Vec<String> {
        let texts = svg.split("<text ").filter_map(|text| text.split(['>', '<']).nth(1));
        texts.filter(|text| text.contains(" (")).map(str::to_owned).collect()
    };
    let (of_step, of_all) = (intervals(forest), intervals(named(&all, "forest")));
    // One target's `l.x` is invalid.
    assert_eq!((of_step.len(), of_all.len()), (3, 8));
    assert!(of_step.iter().all(|interval| of_all.contains(interval)), "{of_step:?} {of_all:?}");
}

#[test]
fn all_targets_stand_in_one_chart_over_the_steps() {
    let plots = drawn(SEVERAL, &[2]);
    let svg = named(&plots, "over-steps");
    insta::assert_snapshot!("over-steps", lines(svg));
}

//! Charts of targets that were repeated, and of short steps.

use analysis::figures::{Figures, HalfBlock};
use serde_json::json;
use tempfile::TempDir;

use super::chromium::{Chromium, Page, page_or_test_is_skipped};
use super::{FIRST, to_first_chart};
use crate::html;
use crate::synthetic::{ALL_STEPS, Size, figures, source};

/// Two targets besides the broken one, in a step of three seconds.
const SHORT: Size =
    Size { targets: 2, clients: 1, seconds: 3, steps: &[ALL_STEPS[0], ALL_STEPS[1]] };

/// Returns repeats of the figures of this size: each second of repeat number `n` has `n` times as
/// many rows as in the first.
fn repeated(size: Size, repeats: u32) -> Figures {
    let mut all = Figures::default();
    for repeat in 1..=repeats {
        for mut row in figures(size).rows {
            row.cell.repeat = repeat;
            for op in row.series.ops.values_mut() {
                op.rows.iter_mut().for_each(|rows| *rows *= u64::from(repeat));
            }
            all.rows.push(row);
        }
    }
    all
}

/// Returns a browser that shows a report with its first charts drawn, and the folder of the report.
fn shown(figures: &Figures, size: Size) -> Option<(Page, TempDir)> {
    let mut browser = page_or_test_is_skipped()?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs_err::write(&file, html(&[source(size)], figures)).unwrap();
    browser.open(&file);
    to_first_chart(&mut browser);
    Some((browser, folder))
}

/// The curves of a target in the first chart: color without opacity, width, and the first value.
fn curves_of(browser: &mut Chromium, entry: usize) -> serde_json::Value {
    browser.value(&format!(
        "(() => {{
            const {{curves, series, data}} = {FIRST}.chart;
            return curves.flatMap((curve, at) => curve.entry !== {entry} ? [] :
                [[series[at + 1]._stroke.slice(0, 7), series[at + 1].width, data[at + 1][0]]]);
        }})()"
    ))
}

#[test]
fn a_color_is_a_target_and_its_bold_line_is_the_median_of_its_repeats() {
    let figures = repeated(SHORT, 3);
    let Some((mut browser, _folder)) = shown(&figures, SHORT) else {
        return;
    };
    let first = figures.rows[0].series.ops["insert"].rows[0];
    let buttons = "[...document.querySelectorAll('#step-l-i0 .lines button[data-entry]')]";
    let labels = browser.value(&format!("{buttons}.map((button) => button.textContent)"));
    assert_eq!(labels.as_array().unwrap().len(), 3, "{labels}");

    let curves = curves_of(&mut browser, 0);
    let color = curves[0][0].clone();
    let thin = |times: u64| json!([color, 0.75, first * times]);
    let bold = json!([color, 2.25, first * 2]);
    assert_eq!(curves, json!([thin(1), thin(2), thin(3), bold]));
    assert_ne!(curves_of(&mut browser, 1)[0][0], color);

    // A target is hidden with all its repeats.
    browser.value(&format!("{buttons}[0].click()"));
    let shown = format!(
        "{FIRST}.chart.curves.filter((curve, at) => curve.entry === 0 && {FIRST}.chart.series[at + 1].show).length"
    );
    assert_eq!(browser.value(&shown), 0);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_step_of_three_seconds_has_lines_and_an_axis_with_its_unit() {
    let Some((mut browser, _folder)) = shown(&figures(SHORT), SHORT) else {
        return;
    };
    let path = browser
        .value(&format!("{FIRST}.chart.series.slice(1).every((series) => series._paths !== null)"));
    assert_eq!(path, true);
    let marks = browser.value(&format!("{FIRST}.chart.axes[0]._values.filter(Boolean)"));
    assert_eq!(marks, json!(["0 s", "1 s", "2 s", "3 s"]));

    // The last mark is as far from the edge as half of it needs.
    let room = browser.value(&format!(
        "{FIRST}.chart.width - {FIRST}.chart.over.offsetLeft - {FIRST}.chart.over.offsetWidth"
    ));
    assert!(room.as_f64().unwrap() >= 20.0, "{room}");
}

/// The chart of the ratios over the turns.
const RATIOS: &str = "document.querySelector('#step-l-i0 .charts figure')";

#[test]
fn a_jump_within_a_step_shows_in_the_chart_of_its_turns() {
    let mut figures = repeated(SHORT, 2);
    let base = source(SHORT).run.base;
    for row in &mut figures.rows {
        let late = if row.cell.target == base { 100 } else { 50 };
        row.half_blocks = (0..60)
            .map(|block| HalfBlock {
                block,
                half: 0,
                seconds: 0.05,
                operations: if block < 30 { 100 } else { late },
                cpu_seconds: None,
            })
            .collect();
    }
    let Some((mut browser, _folder)) = shown(&figures, SHORT) else {
        return;
    };
    let title = browser.value(&format!("{RATIOS}.querySelector('figcaption').textContent"));
    assert!(title.as_str().unwrap().contains("turn by turn"), "{title}");

    // The median of both repeats: half as fast in the second half of the step.
    browser.wait_for(&format!("{RATIOS}.chart && {RATIOS}.chart.ready"));
    let medians = browser.value(&format!(
        "{RATIOS}.chart.curves.flatMap((curve, at) => curve.isMedian ? [{RATIOS}.chart.data[at + 1]] : [])"
    ));
    let medians = medians.as_array().unwrap();
    assert!(!medians.is_empty());
    for median in medians {
        let ratios: Vec<f64> = serde_json::from_value(median.clone()).unwrap();
        assert_eq!(ratios, [vec![1.0; 30], vec![0.5; 30]].concat());
    }

    // All charts of a step have the same seconds, so that they are zoomed together.
    let other = "document.querySelectorAll('#step-l-i0 figure')[1]";
    browser.wait_for(&format!("{other}.chart && {other}.chart.ready"));
    let ends = browser.value(&format!("[{RATIOS}.chart.end, {other}.chart.end]"));
    assert_eq!(ends[0].as_f64().unwrap().round(), ends[1].as_f64().unwrap(), "{ends}");
    assert_eq!(browser.complaints(), [""; 0]);
}

//! The HTML report in a real browser. Without Chromium these tests say that they are skipped; where
//! `chromium` is named in `ASSAY_REQUIRE_ENGINES` they fail instead.

mod charts;
mod chromium;
mod flame;
mod live;
mod navigation;

use analysis::figures::StepEvents;
use record::LogEvent;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::html;
use crate::plots::repeated;
use crate::synthetic::{ALL_STEPS, Size, figures, source};
use chromium::{Chromium, Page, page_or_test_is_skipped};

/// A load, an index step, and queries with concurrent scheduled writes, long enough to zoom.
const SIZE: Size = Size {
    targets: 3,
    clients: 3,
    seconds: 200,
    steps: &[ALL_STEPS[0], ALL_STEPS[1], ALL_STEPS[5]],
};

/// The chart that the tests handle.
const FIRST: &str = "document.querySelector('#step-l-i0 figure')";

/// Returns a browser that shows a report with its first charts drawn, and the folder of the report.
fn shown(size: Size) -> Option<(Page, TempDir)> {
    let mut browser = page_or_test_is_skipped()?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs_err::write(&file, html(&[source(size)], &figures(size))).unwrap();
    browser.open(&file);
    to_first_chart(&mut browser);
    Some((browser, folder))
}

fn to_first_chart(browser: &mut Chromium) {
    browser.value("document.querySelector('#step-l-i0 > details').open = true");
    browser.value(&format!("{FIRST}.scrollIntoView({{block: 'center'}})"));
    browser.wait_for(&format!("{FIRST}.chart && {FIRST}.chart.ready"));
}

/// Returns a place of the window: so much of the first chart's width and half of its height.
fn place(browser: &mut Chromium, share: f64) -> (f64, f64) {
    let of = browser.value(&format!(
        "(() => {{ const {{left, top, width, height}} = {FIRST}.chart.over.getBoundingClientRect();
           return [left + width * {share}, top + height / 2]; }})()"
    ));
    (of[0].as_f64().unwrap(), of[1].as_f64().unwrap())
}

/// Returns the first and the last second that the first chart shows.
fn seconds_shown(browser: &mut Chromium) -> (f64, f64) {
    let shown = browser.value(&format!("[{FIRST}.chart.scales.x.min, {FIRST}.chart.scales.x.max]"));
    (shown[0].as_f64().unwrap(), shown[1].as_f64().unwrap())
}

/// The number of points of the first chart's canvas that have a color that no axis or grid has.
const COLORED: &str = "(() => {
    const canvas = document.querySelector('#step-l-i0 figure canvas');
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
        const [red, green, blue, alpha] = data.slice(at, at + 4);
        if (alpha > 128 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) count++;
    }
    return count;
})()";

#[test]
fn it_opens_from_a_file_without_the_network_and_without_an_error() {
    let Some((mut browser, folder)) = shown(SIZE) else {
        return;
    };
    // Everything is drawn once: charts that are folded away too.
    browser.value(
        "document.querySelectorAll('details').forEach((details) => { details.open = true; })",
    );
    let count = browser.value("document.querySelectorAll('section.step figure').length");
    assert!(count.as_u64().unwrap() > 30, "{count}");
    for at in 0..count.as_u64().unwrap() {
        let figure = format!("document.querySelectorAll('section.step figure')[{at}]");
        browser.value(&format!("{figure}.scrollIntoView()"));
        browser.wait_for(&format!("{figure}.chart && {figure}.chart.ready"));
    }
    let own = format!("file://{}/report.html", folder.path().display());
    assert_eq!(browser.requested(), [own.as_str()]);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn plots_fit_a_phone_and_a_desk_and_what_is_saved_is_svg() {
    let Some(mut browser) = page_or_test_is_skipped() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for targets in [3, 8] {
        let size = Size {
            targets,
            seconds: 3,
            steps: const { &[ALL_STEPS[0], ALL_STEPS[5], ALL_STEPS[7]] },
            ..SIZE
        };
        let file = folder.path().join(format!("{targets}.html"));
        fs_err::write(&file, html(&[source(size)], &repeated(size, &[1, 2, 8]))).unwrap();
        browser.open(&file);
        for width in [390, 1400] {
            let device =
                json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
            browser.ask("Emulation.setDeviceMetricsOverride", device);
            let over = browser.value("document.documentElement.scrollWidth - innerWidth");
            assert!(over.as_i64().unwrap() <= 0, "{over} at {width}");
            // No word of a head is broken, and no two ticks overlap.
            let broken = browser.value(
                "[...document.querySelectorAll('.overview thead tr:first-child th')].filter((head) => {
                    const range = document.createRange();
                    return [...head.childNodes].filter((node) => node.nodeType === 3).some((node) => {
                        range.selectNodeContents(node);
                        return range.getClientRects().length > 1 && !/[ -]/.test(node.textContent.trim());
                    });
                }).map((head) => head.textContent)",
            );
            assert_eq!(broken, json!([]), "broken at {width}");
            let overlapping = browser.value(
                "[...document.querySelectorAll('.overview tr.axis svg')].filter((svg) => svg.checkVisibility()).filter((svg) => {
                    const ticks = [...svg.querySelectorAll('text')].map((text) => text.getBoundingClientRect());
                    return ticks.some((tick, at) => at > 0 && ticks[at - 1].right > tick.left);
                }).length",
            );
            assert_eq!(overlapping, 0, "at {width}");
            let outside = browser.value(
                "[...document.querySelectorAll('.panels svg')].filter((svg) => svg.checkVisibility()).flatMap((svg) => {
                    const frame = svg.getBoundingClientRect();
                    const texts = [...svg.querySelectorAll('text')].filter((text) => {
                        const {left, right, top, bottom} = text.getBoundingClientRect();
                        return left < frame.left - 2 || right > frame.right + 2 || top < frame.top - 2 || bottom > frame.bottom + 2;
                    });
                    const isWide = frame.right > innerWidth ? ['a drawing'] : [];
                    return [...isWide, ...texts.map((text) => text.textContent)];
                })",
            );
            assert_eq!(outside, json!([]), "outside at {width}");
        }
        let saved = browser.value(
            "[...document.querySelectorAll('.save')].map((link) => {
                const text = decodeURIComponent(link.href.slice(link.href.indexOf(',') + 1));
                return new DOMParser().parseFromString(text, 'image/svg+xml').documentElement.localName;
            })",
        );
        let saved = saved.as_array().unwrap();
        assert_eq!(saved.len(), 6);
        assert!(saved.iter().all(|name| name == "svg"), "{saved:?}");
    }
    browser.ask("Emulation.clearDeviceMetricsOverride", json!({}));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn charts_have_lines_in_color_and_are_forgotten_when_they_are_far_away() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    let colored = browser.value(COLORED).as_u64().unwrap();
    assert!(colored > 500, "{colored}");
    let drawn = "document.querySelectorAll('.uplot').length";
    let all = "document.querySelectorAll('section.step figure').length";
    let (drawn, all) = (browser.value(drawn), browser.value(all));
    assert!(drawn.as_u64() < all.as_u64(), "{drawn} of {all}");
    browser.value("scrollTo(0, document.body.scrollHeight)");
    browser.wait_for(&format!("!{FIRST}.chart"));
}

#[test]
fn a_line_is_hidden_by_its_button_in_all_charts_of_its_step() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    let shows =
        "[...document.querySelectorAll('#step-l-i0 figure')].filter((figure) => figure.chart)
        .map((figure) => figure.chart.series.slice(1).map((series) => series.show))";
    // They are drawn one after the other.
    browser.wait_for(&format!("{shows}.length > 1"));
    let before = browser.value(shows);
    assert_eq!(before[0], json!([true, true, true, true]), "{before}");
    let colored = browser.value(COLORED).as_u64().unwrap();

    let button = "document.querySelector('#step-l-i0 .lines button[data-entry=\"1\"]')";
    browser.value(&format!("{button}.click()"));
    let hidden = browser.value(shows);
    for chart in hidden.as_array().unwrap().iter().take(2) {
        assert_eq!(chart[1], false, "{hidden}");
        assert_eq!(chart[0], true, "{hidden}");
    }
    assert_eq!(browser.value(&format!("{button}.getAttribute('aria-pressed')")), "false");
    browser.wait_for(&format!("{COLORED} < {colored}"));

    // With Ctrl the others are; and all come back by one button.
    browser.value(&format!(
        "{button}.dispatchEvent(new MouseEvent('click', {{bubbles: true, ctrlKey: true}}))"
    ));
    assert_eq!(browser.value(shows)[0], json!([false, true, false, false]));
    browser.value("document.querySelector('#step-l-i0 .lines .all').click()");
    assert_eq!(browser.value(shows)[0], json!([true, true, true, true]));
}

#[test]
fn dragging_zooms_all_charts_of_a_step_and_a_double_click_shows_all_again() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    let whole = seconds_shown(&mut browser);
    assert_eq!(whole, (0.0, 200.0));
    let (from, to) = (place(&mut browser, 0.25), place(&mut browser, 0.5));
    browser.mouse("mouseMoved", from, 0);
    browser.mouse("mousePressed", from, 1);
    browser.mouse("mouseMoved", to, 1);
    browser.mouse("mouseReleased", to, 1);
    browser.wait_for(&format!("{FIRST}.chart.scales.x.max < 150"));
    let (least, most) = seconds_shown(&mut browser);
    assert!((least - 50.0).abs() < 5.0 && (most - 100.0).abs() < 5.0, "{least} {most}");
    let others = "[...document.querySelectorAll('#step-l-i0 figure')]
        .filter((figure) => figure.chart && figure.chart.kind === 'seconds')";
    browser.wait_for(&format!(
        "{others}.length > 1 && {others}.every((figure) => figure.chart.scales.x.max < 150)"
    ));
    assert_eq!(browser.value("document.querySelector('#step-l-i0 .whole').hidden"), false);

    for clicks in [1, 2] {
        browser.mouse("mousePressed", to, clicks);
        browser.mouse("mouseReleased", to, clicks);
    }
    browser.wait_for(&format!(
        "{others}.every((figure) => figure.chart.scales.x.min === 0 && figure.chart.scales.x.max === 200)"
    ));
    assert_eq!(browser.value("document.querySelector('#step-l-i0 .whole').hidden"), true);
}

#[test]
fn the_tooltip_lists_the_log_events_at_the_pointer() {
    let Some(mut browser) = page_or_test_is_skipped() else {
        return;
    };
    let event = |second: i64, kind: &str, duration_ns, text: &str| LogEvent {
        unix_ns: second * 1_000_000_000,
        kind: kind.into(),
        duration_ns,
        text: text.into(),
        ..LogEvent::default()
    };
    let mut figures = figures(SIZE);
    figures.rows[0].events = Some(StepEvents {
        all: vec![
            event(50, "checkpoint", Some(4_500_000_000), "wrote <b>7</b> buffers"),
            event(51, "warning", None, "too often"),
        ],
        ..StepEvents::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs_err::write(&file, html(&[source(SIZE)], &figures)).unwrap();
    browser.open(&file);
    to_first_chart(&mut browser);
    let tip = format!("{FIRST}.querySelector('.tip')");
    let mut told_at = |second: f64| {
        let at = place(&mut browser, (second + 0.5) / 200.0);
        browser.mouse("mouseMoved", at, 0);
        browser.wait_for(&format!(
            "{tip} && {tip}.querySelector('b').textContent === 'second {second}'"
        ));
        let rows = "[...document.querySelectorAll('#step-l-i0 figure .tip div')]";
        browser.value(&format!(
            "{rows}.map((row) => row.textContent).filter((text) => text.includes(': '))"
        ))
    };
    let [checkpoint, warning] = ["checkpoint 4.5 s: wrote <b>7</b> buffers", "warning: too often"];
    assert_eq!(told_at(51.0), json!([warning, checkpoint]));
    assert_eq!(told_at(54.0), json!([checkpoint]));
    assert_eq!(told_at(56.0), json!([]));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_chart_can_be_read_and_zoomed_with_the_keyboard_alone() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    // From the last button of the chart's caption, Tab leads to the chart.
    browser.value(&format!("{FIRST}.querySelector('figcaption button.log').focus()"));
    browser.key("Tab");
    browser.wait_for(&format!("document.activeElement === {FIRST}.querySelector('.plot')"));
    for _ in 0..3 {
        browser.key("ArrowRight");
    }
    let tip = format!("{FIRST}.querySelector('.tip')");
    // It follows the keys when the page is next drawn.
    browser
        .wait_for(&format!("{tip} && !{tip}.hidden && {tip}.textContent.startsWith('second 2')"));
    let told = browser.value(&format!("{tip}.textContent"));
    assert!(told.as_str().unwrap().contains("pg15.base"), "{told}");
    browser.key("+");
    browser.wait_for(&format!("{FIRST}.chart.scales.x.max < 150"));
    browser.key("Escape");
    browser.wait_for(&format!("{FIRST}.chart.scales.x.max === 200 && {tip}.hidden"));

    // The buttons of the lines are one stop; arrows lead from one to the next.
    browser.value("document.querySelector('#step-l-i0 .lines button').focus()");
    browser.key("ArrowRight");
    let on = "document.activeElement";
    assert_eq!(browser.value(&format!("{on}.dataset.entry")), "1");
    browser.key("Enter");
    browser.wait_for(&format!("{on}.getAttribute('aria-pressed') === 'false'"));
    assert_eq!(browser.value(&format!("{FIRST}.chart.series[2].show")), false);
    let stops =
        browser.value("document.querySelectorAll('#step-l-i0 .lines [tabindex=\"0\"]').length");
    assert_eq!(stops, 1);
}

#[test]
fn clients_and_the_scale_are_switched_in_each_chart() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    browser.value(&format!("{FIRST}.querySelector('button.parts').click()"));
    let labels =
        browser.value(&format!("{FIRST}.chart.series.slice(1).map((series) => series.label)"));
    assert_eq!(labels.as_array().unwrap().len(), 4 * 3, "{labels}");
    assert_eq!(labels[1], "pg15.base client 2");
    browser.value(&format!("{FIRST}.querySelector('button.log').click()"));
    assert_eq!(browser.value(&format!("{FIRST}.chart.scales.y.distr")), 3);
    let value = browser.value(&format!("{FIRST}.chart.data[1][0]"));
    assert!(value.as_f64().unwrap() > 1000.0, "{value}");
}

#[test]
fn on_a_phone_the_page_does_not_scroll_sideways() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    let phone = json!({"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true});
    browser.ask("Emulation.setDeviceMetricsOverride", phone);
    browser.value(
        "document.querySelectorAll('details').forEach((details) => { details.open = true; })",
    );
    to_first_chart(&mut browser);
    // Charts that were there before follow when the page is next laid out.
    browser.wait_for(
        "[...document.querySelectorAll('section.step figure')]
         .every((figure) => !figure.chart || figure.chart.width <= 360)",
    );
    let widths = browser.value("[document.documentElement.scrollWidth, innerWidth]");
    assert_eq!(widths, json!([360, 360]));
}

#[test]
fn in_the_dark_page_and_charts_have_other_colors() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    let paper = "getComputedStyle(document.body).backgroundColor";
    let line = format!("{FIRST}.chart.series[1]._stroke");
    let light = (browser.value(paper), browser.value(&line));
    let dark = json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    browser.ask("Emulation.setEmulatedMedia", dark);
    browser.wait_for(&format!("{paper} !== {}", light.0));
    browser.wait_for(&format!("{FIRST}.chart && {FIRST}.chart.ready && {line} !== {}", light.1));
    assert!(browser.value(COLORED).as_u64().unwrap() > 500);
    // On paper it is light again.
    browser.value("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.value(paper), light.0);
}

#[test]
fn before_it_is_printed_all_charts_that_are_unfolded_are_drawn() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    browser.value(
        "addEventListener('beforeprint', () => {
            const figures = [...document.querySelectorAll('section.step figure')].filter((figure) => !figure.closest('details:not([open])'));
            window.printed = [figures.filter((figure) => figure.chart).length, figures.length];
        })",
    );
    let document = browser.ask("Page.printToPDF", json!({"printBackground": false}));
    let printed = browser.value("window.printed");
    assert!(printed[0].as_u64() > Some(5), "{printed}");
    assert_eq!(printed[0], printed[1]);
    let data = document["data"].as_str().unwrap_or_default();
    // `%PDF` in base 64.
    assert!(data.starts_with("JVBER"), "{}", &data[..data.len().min(20)]);
    browser.wait_for(&format!("{FIRST}.chart"));
}

#[test]
fn a_report_of_many_lines_is_quick_to_open() {
    const MANY: Size = Size {
        targets: 27,
        clients: 4,
        seconds: 150,
        steps: &[ALL_STEPS[0], ALL_STEPS[2], ALL_STEPS[5], ALL_STEPS[6]],
    };
    let Some((mut browser, _folder)) = shown(MANY) else {
        return;
    };
    // Of the processor: the machine may be slow to give it.
    let taken = browser.processor_time();
    assert!(taken < 10.0, "{taken} s to the first chart");
    let lines = browser.value(&format!("{FIRST}.chart.curves.length"));
    assert_eq!(lines, Value::from(28));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn bars_of_events_stay_above_the_top_grid_line() {
    let Some(mut browser) = page_or_test_is_skipped() else {
        return;
    };
    let event = |kind: &str| LogEvent {
        unix_ns: 50_000_000_000,
        kind: kind.into(),
        duration_ns: Some(20_000_000_000),
        ..LogEvent::default()
    };
    let mut figures = figures(SIZE);
    figures.rows[0].events = Some(StepEvents {
        all: vec![event("checkpoint"), event("flush")],
        ..StepEvents::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs_err::write(&file, html(&[source(SIZE)], &figures)).unwrap();
    browser.open(&file);
    to_first_chart(&mut browser);
    // Two rows of bars are higher than ten pixels.
    let above = browser.value(&format!("{FIRST}.chart.over.offsetTop"));
    assert!(above.as_f64().unwrap() >= 12.0, "{above}");
}

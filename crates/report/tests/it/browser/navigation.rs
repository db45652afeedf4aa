//! Finding one's way in the page: folds, contents, the filter, sorted tables, and the address that
//! remembers all of it.

use serde_json::json;

use super::chromium::page_or_test_is_skipped;
use super::{FIRST, SIZE, shown, to_first_chart};
use crate::html;
use crate::plots::repeated;
use crate::synthetic::{ALL_STEPS, Size, source};

/// A long report: its steps are folded at first.
const LONG: Size = Size {
    targets: 15,
    clients: 1,
    seconds: 12,
    steps: &[ALL_STEPS[0], ALL_STEPS[1], ALL_STEPS[2], ALL_STEPS[5], ALL_STEPS[6]],
};

/// Types into the filter.
fn filter(text: &str) -> String {
    format!(
        "{{ const box = document.querySelector('.filter input'); box.value = '{text}'; box.dispatchEvent(new Event('input')); }}"
    )
}

#[test]
fn a_link_unfolds_its_step_and_the_address_keeps_what_was_done() {
    let Some((mut browser, folder)) = shown(LONG) else {
        return;
    };
    let file = folder.path().join("report.html");
    let open =
        "[...document.querySelectorAll('.step > details[open]')].map((it) => it.parentElement.id)";
    browser.open(&file);
    assert_eq!(browser.value(open), json!([]));
    browser.value("document.querySelector('nav a[href=\"#step-l-x\"]').click()");
    assert_eq!(browser.value("location.hash"), "#step-l-x");
    browser.wait_for(&format!("{open}.join() === 'step-l-x'"));
    browser.wait_for("document.querySelector('nav .steps [aria-current]').textContent === 'l.x'");

    browser.value(&filter("pg15.* l.*"));
    let said = "document.querySelector('.filter output').textContent";
    assert_eq!(browser.value(said), "7 of 16 targets, 3 of 5 steps");
    let rows = "[...document.querySelectorAll('#metrics-l-x tbody tr')].filter((row) => row.checkVisibility()).length";
    assert_eq!(browser.value(rows), 7);
    browser.wait_for("location.hash === '#step-l-x&filter=pg15.*+l.*'");
    // The same again after a reload; and Back takes the filter back.
    browser.value("history.replaceState({}, '', location.hash)");
    let loaded = browser.value("performance.timeOrigin");
    browser.ask("Page.reload", json!({}));
    browser.wait_for(&format!(
        "performance.timeOrigin !== {loaded} && document.readyState === 'complete' && {said} !== ''"
    ));
    assert_eq!(browser.value(said), "7 of 16 targets, 3 of 5 steps");
    assert_eq!(browser.value(open), json!(["step-l-x"]));
    browser.value("history.back()");
    browser.wait_for(&format!("{said} === '' && location.hash === '#step-l-x'"));

    browser.value(&filter("nothing-like-it"));
    assert_eq!(browser.value(said), "nothing matches: all is shown");
    browser.value("document.querySelector('.filter input').focus()");
    browser.key("Escape");
    assert_eq!(browser.value(said), "");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn of_many_lines_three_have_colors_and_a_click_gives_one_to_another() {
    let Some((mut browser, _folder)) = shown(LONG) else {
        return;
    };
    let faint =
        format!("{FIRST}.chart.series.slice(1).filter((series) => series.width < 1).length");
    assert_eq!(browser.value(&faint), 13);
    browser.value("document.querySelector('#step-l-i0 .line[aria-pressed=false]').click()");
    assert_eq!(browser.value(&faint), 12);
    browser.wait_for("location.hash.includes('color.step-l-i0=')");
    browser.value(&filter("pg15.*"));
    let shown = format!("{FIRST}.chart.series.slice(1).filter((series) => series.show).length");
    assert_eq!(browser.value(&shown), 7);
    // Of few that are left one at least has a color.
    let gray = browser.value(
        "[...document.querySelectorAll('#step-l-i0 .line[aria-pressed=false]')].pop().dataset.of",
    );
    browser.value(&filter(gray.as_str().unwrap()));
    assert_eq!(browser.value(&shown), 1);
    assert_eq!(browser.value(&faint), 0);
    browser.value(&filter(""));
    assert_eq!(browser.value(&faint), 12);
}

#[test]
fn tables_are_sorted_by_mouse_and_keyboard_and_what_has_no_figure_comes_last() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    let table = "document.querySelector('#metrics-qr100 table')";
    browser.value("document.querySelector('#step-qr100 > details').open = true");
    let column = format!("[...{table}.tBodies[0].rows].map((row) => row.cells[0].textContent)");
    let before = browser.value(&column);
    browser.value(&format!("{table}.tHead.rows[0].cells[0].focus()"));
    browser.key("ArrowRight");
    browser.key("Enter");
    let sorted = format!("{table}.tHead.rows[0].cells[1].getAttribute('aria-sort')");
    assert_eq!(browser.value(&sorted), "descending");
    let largest = browser.value(&column);
    browser.key("Enter");
    assert_eq!(browser.value(&sorted), "ascending");
    assert_ne!(browser.value(&column), largest);
    browser.value(&format!("{table}.tHead.rows[0].cells[1].click()"));
    assert_eq!(browser.value(&column), before);
}

#[test]
fn the_matrix_is_filtered_sorted_and_ranked() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    let table = "document.querySelector('#matrix table')";
    let steps = format!(
        "[...{table}.tBodies[0].rows].filter((row) => row.checkVisibility()).map((row) => row.cells[0].dataset.of)"
    );
    let targets = format!(
        "[...{table}.tHead.rows[0].cells].slice(1).filter((head) => head.checkVisibility()).map((head) => head.dataset.of)"
    );
    let planned = browser.value(&steps);
    let all = browser.value(&targets);

    // By the ratios of a target, and back to the plan's order.
    let values =
        format!("[...{table}.tBodies[0].rows].map((row) => Number(row.cells[2].dataset.value))");
    let head = format!("{table}.tHead.rows[0].cells[2]");
    browser.value(&format!("{head}.click()"));
    let sorted = browser.value(&values);
    let sorted: Vec<f64> = sorted.as_array().unwrap().iter().filter_map(|it| it.as_f64()).collect();
    assert!(sorted.len() > 1 && sorted.windows(2).all(|pair| pair[0] >= pair[1]), "{sorted:?}");
    browser.value(&format!("{head}.click(); {head}.click()"));
    assert_eq!(browser.value(&steps), planned);

    // The button orders the targets, with the keyboard too.
    browser.value("document.querySelector('#matrix button.rank').focus()");
    browser.key("Enter");
    let ranks = format!(
        "[...{table}.tHead.rows[0].cells].map((head) => head.dataset.rank).filter(Boolean)"
    );
    let ranked = browser.value(&ranks);
    let mut expected: Vec<String> =
        ranked.as_array().unwrap().iter().filter_map(|it| it.as_str().map(str::to_owned)).collect();
    expected.sort();
    assert_eq!(ranked, json!(expected));
    browser.wait_for("location.hash.includes('rank=1')");
    browser.value("document.querySelector('#matrix button.rank').click()");
    assert_eq!(browser.value(&targets), all);

    browser.value(&filter("qr100"));
    assert_eq!(browser.value(&steps), json!(["qr100"]));
    browser.value(&filter(all[1].as_str().unwrap()));
    assert_eq!(browser.value(&targets), json!([all[1]]));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn repeats_are_shown_on_demand() {
    let Some(mut browser) = page_or_test_is_skipped() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let size = Size { seconds: 3, ..SIZE };
    fs_err::write(&file, html(&[source(size)], &repeated(size, &[2]))).unwrap();
    browser.open(&file);
    let rows = "[...document.querySelectorAll('#summary tbody tr')].filter((row) => row.checkVisibility()).length";
    assert_eq!(browser.value(rows), 3);
    browser.value("document.querySelector('#summary button.repeats').focus()");
    browser.key("Enter");
    assert_eq!(browser.value(rows), 3 + 15);
}

#[test]
fn paper_has_the_answer_the_matrix_tables_of_throughput_and_unfolded_steps() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    browser.value("document.querySelector('#step-l-x > details').open = false");
    browser.ask("Emulation.setEmulatedMedia", json!({"media": "print"}));
    let seen = |part: &str| format!("document.querySelector('{part}').checkVisibility()");
    for part in ["h1", "#matrix .strip", "#summary table", "#step-l-i0 figure", "#step-l-x h3"] {
        assert_eq!(browser.value(&seen(part)), true, "{part}");
    }
    for part in ["nav", ".skip", "#host details", "#steps > .note", "button.rank"] {
        assert_eq!(browser.value(&seen(part)), false, "{part}");
    }
    browser.ask("Emulation.setEmulatedMedia", json!({"media": ""}));
}

#[test]
fn the_first_stop_of_the_keyboard_leads_past_the_contents() {
    let Some((mut browser, _folder)) = shown(SIZE) else {
        return;
    };
    browser.value("scrollTo(0, 0)");
    browser.value("document.querySelector('.skip').focus()");
    let top = "document.querySelector('.skip').getBoundingClientRect().top";
    assert!(browser.value(top).as_f64().unwrap() >= 0.0, "it is seen where it has the focus");
    browser.key("Enter");
    browser.wait_for("document.activeElement.id === 'answer'");
}

#[test]
fn on_a_phone_the_matrix_keeps_its_intervals_and_explains_no_strips() {
    let Some(mut browser) = page_or_test_is_skipped() else {
        return;
    };
    let size = Size { seconds: 6, targets: 6, ..SIZE };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs_err::write(&file, html(&[source(size)], &repeated(size, &[3]))).unwrap();
    let phone = json!({"width": 390, "height": 740, "deviceScaleFactor": 1, "mobile": false});
    browser.ask("Emulation.setDeviceMetricsOverride", phone);
    browser.open(&file);

    let seen = |what: &str| {
        let all = format!("[...document.querySelectorAll('#matrix {what}')]");
        format!("{all}.filter((part) => part.checkVisibility()).length")
    };
    assert_eq!(browser.value(&seen(".strip")), 0);
    assert_eq!(browser.value(&seen(".of-strips")), 0);
    assert_eq!(browser.value(&seen(".key svg")), 0);
    let bounds = browser.value(&seen(".bounds"));
    assert!(bounds.as_u64().unwrap() > 0, "{bounds}");
    // The matrix is wider than the phone: its box scrolls, and the page does not.
    browser.wait_for("document.querySelector('#matrix .scroll').classList.contains('cut')");
    let page = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(browser.value(page), true);
    browser.value("document.querySelector('#matrix .scroll').scrollLeft = 9999");
    browser.wait_for("!document.querySelector('#matrix .scroll').classList.contains('cut')");
    browser.ask("Emulation.clearDeviceMetricsOverride", json!({}));
}

#[test]
fn the_contents_fit_a_phone() {
    let few = Size { seconds: 6, ..SIZE };
    let Some((mut browser, _folder)) = shown(few) else {
        return;
    };
    let phone = json!({"width": 390, "height": 740, "deviceScaleFactor": 1, "mobile": false});
    browser.ask("Emulation.setDeviceMetricsOverride", phone);
    to_first_chart(&mut browser);
    let links = "document.querySelector('nav a').checkVisibility()";
    assert_eq!(browser.value(links), false);
    browser.value("document.querySelector('.here').click()");
    assert_eq!(browser.value(links), true);
    browser.ask("Emulation.clearDeviceMetricsOverride", json!({}));
    // A heading's link is seen where it has the focus.
    browser.value("document.querySelector('#steps .permalink').focus({focusVisible: true})");
    let opacity = "getComputedStyle(document.querySelector('#steps .permalink')).opacity";
    assert_eq!(browser.value(opacity), "1");
}

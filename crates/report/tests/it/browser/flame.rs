//! Flame graphs: drawn in view, zoomed, searched, and read from the keyboard.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::SIZE;
use super::chromium::{Chromium, Page, page_or_test_is_skipped};
use crate::html;
use crate::synthetic::{Size, add_profiles, figures, source};

/// The frames that are drawn.
const FRAMES: &str = "[...document.querySelectorAll('#functions .frame')]";

/// Returns a browser that shows the top of a report with profiles, and the folder of the report.
fn shown() -> Option<(Page, TempDir)> {
    let mut browser = page_or_test_is_skipped()?;
    let size = Size { targets: 2, seconds: 3, ..SIZE };
    let mut figures = figures(size);
    add_profiles(&mut figures);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs_err::write(&file, html(&[source(size)], &figures)).unwrap();
    browser.open(&file);
    Some((browser, folder))
}

fn to_functions(browser: &mut Chromium) {
    browser.value("document.getElementById('functions').scrollIntoView()");
    browser.wait_for(&format!("{FRAMES}.length > 0"));
}

/// Returns the name of the frame that has the focus.
fn focused(browser: &mut Chromium) -> Value {
    browser.value("document.activeElement.getAttribute('aria-label').split(':')[0]")
}

fn choose(list: &str, value: &str) -> String {
    format!(
        "{{ const list = document.querySelector('.pick .{list}'); list.value = '{value}';
            list.dispatchEvent(new Event('change')); }}"
    )
}

#[test]
fn a_graph_is_drawn_when_it_is_near_and_colors_what_grew_and_what_shrank() {
    let Some((mut browser, folder)) = shown() else {
        return;
    };
    assert_eq!(browser.value(&format!("{FRAMES}.length")), 0);
    to_functions(&mut browser);
    let named = |name: &str| format!("{FRAMES}.find((frame) => frame.textContent === '{name}')");
    let has = |name: &str, class: &str| format!("{}.classList.contains('{class}')", named(name));
    // The target needs 60 us for it, and the base 8.3 us.
    assert_eq!(browser.value(&has("estimate", "grew")), true);
    assert_eq!(browser.value(&has("write_[k]", "kernel")), true);
    let widths = browser.value(&format!(
        "['all', 'plan', 'estimate', '<copy2>'].map((name) => {FRAMES}.find((frame) => frame.textContent === name))
         .map((frame) => Math.round(parseFloat(frame.style.width)))"
    ));
    assert_eq!(widths, json!([100, 40, 40, 27]));
    // A function that only the target has counts for its caller.
    assert_eq!(browser.value(&has("<copy2>", "alone")), true);
    // `rare` has too few samples.
    let count = browser.value(&format!("{FRAMES}.length"));
    assert_eq!(count, 9);

    browser.value("document.querySelector('.pick .widths').click()");
    let copy = browser.value(&format!("parseFloat({}.style.width)", named("copy")));
    assert_eq!(copy.as_f64().unwrap().round(), 40.0);
    browser.value("document.querySelector('.pick .widths').click()");

    // The base is compared with nothing.
    browser.value(&choose("target", "pg15.base"));
    browser.wait_for("document.querySelector('.pick .change').hidden");
    browser.wait_for(&format!("{FRAMES}.length > 0"));
    let drawn =
        "[...document.querySelectorAll('.flame')].filter((graph) => graph.hasChildNodes()).length";
    assert_eq!(browser.value(drawn), 1);
    assert_eq!(
        browser
            .value(&format!("{FRAMES}.some((frame) => frame.matches('.grew, .shrank, .alone'))")),
        false
    );
    let own = format!("file://{}/report.html", folder.path().display());
    assert_eq!(browser.requested(), [own.as_str()]);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_graph_is_read_zoomed_and_searched_with_the_keyboard_alone() {
    let Some((mut browser, _folder)) = shown() else {
        return;
    };
    to_functions(&mut browser);
    // The graph is one stop of Tab, after the search.
    browser.value("document.querySelector('.pick input').focus()");
    browser.key("Tab");
    assert_eq!(focused(&mut browser), "all");
    for (key, name) in [
        ("ArrowDown", "postgres"),
        ("ArrowDown", "main"),
        ("ArrowDown", "execute"),
        ("ArrowRight", "plan"),
        ("ArrowRight", "plan"),
        ("ArrowDown", "estimate"),
        ("ArrowUp", "plan"),
    ] {
        browser.key(key);
        assert_eq!(focused(&mut browser), name, "after {key}");
    }
    let label = browser.value("document.activeElement.getAttribute('aria-label')");
    assert_eq!(
        label,
        "plan: with callees 60 \u{b5}s per row, 40%; own 0 \u{b5}s per row, 0%; base 10 \u{b5}s per row, 10%; \
         change +50 \u{b5}s (\u{b1}1.9 \u{b5}s); samples 6,000"
    );
    browser.wait_for("!document.querySelector('.tip.of-frame').hidden");
    let before = browser.value(&format!("{FRAMES}.length"));
    browser.key("Enter");
    assert_eq!(focused(&mut browser), "plan");
    let width = browser.value("parseFloat(document.activeElement.style.width)");
    assert_eq!(width, 100.0);
    // Those around it, and its callee.
    assert_eq!(browser.value(&format!("{FRAMES}.length")), 5);
    browser.wait_for("location.hash.includes('flame.zoom=')");
    browser.key("Escape");
    assert_eq!(browser.value(&format!("{FRAMES}.length")), before);

    browser.key("/");
    for key in ["W", "r", "i", "t", "e", "|", "^", "p", "l", "a"] {
        browser.key(key);
    }
    let said = "document.querySelector('.pick output').textContent";
    assert_eq!(browser.value(said), "2 frames, 80 \u{b5}s, 53.3% of the CPU time");
    let matched = browser.value(&format!(
        "{FRAMES}.filter((frame) => frame.matches('.match')).map((frame) => frame.textContent)"
    ));
    assert_eq!(matched, json!(["write_[k]", "plan"]));
    browser.key("(");
    assert_eq!(browser.value(said), "not a regular expression");
    browser.key("Escape");
    assert_eq!(browser.value(said), "");
    assert_eq!(browser.complaints(), [""; 0]);
}

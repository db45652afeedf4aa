//! Opens a report in Chromium, for benchmarks: `open FILE` prints the milliseconds from when the
//! browser began to read it until its first screen is painted, and until its first chart is drawn
//! with all steps unfolded; those until a chart in the middle of the page is drawn after a jump
//! there; and the megabytes of the page as a PDF.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the tests use all of it, and an example may end with a panic"
)]

#[path = "../tests/it/browser/chromium.rs"]
mod chromium;

use serde_json::json;

fn main() {
    let file = std::env::args_os().nth(1).unwrap();
    let Some(mut browser) = chromium::page_or_test_is_skipped() else {
        return;
    };
    let file = std::path::absolute(file).unwrap();
    browser.open(&file);
    browser.wait_for("performance.getEntriesByName('first-contentful-paint').length");
    let screen =
        browser.value("performance.getEntriesByName('first-contentful-paint')[0].startTime");
    // The screen shows the answer and its plot.
    let shown = browser
        .value("document.querySelector('main svg').getBoundingClientRect().top < innerHeight");
    assert_eq!(shown, true);
    // Steps of a long report are folded at first.
    browser.value(
        "document.querySelectorAll('.step > details').forEach((step) => { step.open = true; })",
    );
    let jump = |browser: &mut chromium::Chromium, share: f64| {
        let figures = "document.querySelectorAll('section.step figure')";
        browser.value("window.begun = performance.now()");
        browser.value(&format!(
            "window.aim = [...{figures}].filter((figure) => !figure.closest('details:not([open])'));
             window.aim = aim[Math.floor(aim.length * {share})]; aim.scrollIntoView()"
        ));
        browser.wait_for("aim.chart && aim.chart.ready");
        browser.value("[performance.now(), performance.now() - begun]")
    };
    let first = jump(&mut browser, 0.0);
    let later = jump(&mut browser, 0.5);
    // Last, so that no other time includes it, and with folded steps.
    browser.open(&file);
    let printed = browser.ask("Page.printToPDF", json!({ "printBackground": true }));
    let printed = printed["data"].as_str().unwrap();
    // Three bytes are four characters of Base64.
    let pdf_mb = printed.len() as f64 * 0.75 / 1e6;
    println!("screen_ms: {:.0}", screen.as_f64().unwrap());
    println!("pdf_mb: {pdf_mb:.2}");
    println!("first_ms: {:.0}", first[0].as_f64().unwrap());
    println!("middle_ms: {:.0}", later[1].as_f64().unwrap());
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

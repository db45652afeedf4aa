//! Opens a report in Chromium, for benchmarks: `open FILE` prints the milliseconds until its first chart is drawn, from when the
//! browser began to read it, and those until a chart in the middle of the page is drawn after a jump there.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the tests use all of it, and an example may end with a panic"
)]

#[path = "../tests/it/browser/chromium.rs"]
mod chromium;

fn main() {
    let file = std::env::args_os().nth(1).unwrap();
    let Some(mut browser) = chromium::page_or_test_is_skipped() else {
        return;
    };
    browser.open(&std::path::absolute(file).unwrap());
    // Those of a long report are folded at first.
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
    println!("first_ms: {:.0}", first[0].as_f64().unwrap());
    println!("middle_ms: {:.0}", later[1].as_f64().unwrap());
    assert!(
        browser.complaints().is_empty(),
        "{:?}",
        browser.complaints()
    );
}

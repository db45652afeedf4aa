//! The live page of a run, with the answers of `assay run --listen`.

use tempfile::TempDir;

use super::chromium::{Page, page_or_test_is_skipped};

/// The first answer; a test of `assay` uses the same.
const TOLD: &str = include_str!("live.json");

/// Returns a browser that shows the live page, which gets no answer, and the folder of the page.
fn shown() -> Option<(Page, TempDir)> {
    let mut browser = page_or_test_is_skipped()?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("live.html");
    fs_err::write(&file, report::live_page()).unwrap();
    browser.open(&file);
    Some((browser, folder))
}

#[test]
fn it_draws_what_it_receives_and_reports_a_missing_answer() {
    let Some((mut browser, _folder)) = shown() else {
        return;
    };
    let state = "document.getElementById('state').textContent";
    browser.wait_for(&format!("{state}.startsWith('no answer')"));

    browser.value(&format!(
        "{{ const told = {TOLD};
            window.asked = [];
            window.fetch = async (url) => {{
                asked.push(url);
                const from = +new URL(url, 'http://a').searchParams.get('from');
                const now = structuredClone(told);
                now.step.from = from;
                const more = new Array(10 * asked.length);
                for (const kind of now.step.kinds) for (const [name, values] of Object.entries(kind))
                    if (Array.isArray(values)) kind[name] = [...values, ...more.fill(values[1])].slice(from);
                return {{ json: async () => now }};
            }}; }}"
    ));
    browser.wait_for("document.querySelectorAll('.uplot').length === 4 && asked.length > 2");
    // The browser may report a refused request later than the page does.
    let refused = browser.complaints().len();
    assert_eq!(
        browser.value(state),
        "pg.\"base\"\\, 4 clients, repeat 1, qr100: measuring, 5 s, about 56 s left, replica lags 350 ms"
    );
    assert_eq!(
        browser.value("document.getElementById('cells').textContent"),
        "2 of 10 cells complete, 1 failed; about 5 min left"
    );
    // It requests new seconds, and again those of which some connection may report late: after 22
    // seconds.
    assert_eq!(browser.value("asked[1]"), "live.json?step=2&from=0&seen=1");
    assert_eq!(browser.value("asked[2]"), "live.json?step=2&from=7&seen=1");
    assert_eq!(
        browser.value("document.querySelector('#kinds tr').innerText.split('\\t')"),
        serde_json::json!([
            "query",
            "query",
            "44",
            "4,400",
            "150 \u{b5}s",
            "190 \u{b5}s",
            "195 \u{b5}s",
            "85",
            "1",
            "0"
        ])
    );
    // It draws an unknown step from its beginning.
    browser.value("told_before = asked.length; { const old = window.fetch; window.fetch = async (url) => { \
                   const now = await (await old(url.replace(/from=\\d+/, 'from=0'))).json(); now.step.number = 3; \
                   now.step.kinds.length = 1; return { json: async () => now }; }; }");
    browser.wait_for("document.querySelectorAll('.uplot').length === 2");
    browser.value("window.fetch = async () => { throw new TypeError('gone'); }");
    browser.wait_for(&format!("{state}.startsWith('no answer')"));
    let complaints = browser.complaints();
    let is_exception = |complaint: &String| complaint.contains("exceptionDetails");
    assert!(complaints.len() == refused && !complaints.iter().any(is_exception), "{complaints:?}");
    let wide = "document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.value(wide), true);
}

#[test]
fn cells_that_have_ended_are_listed_between_steps_as_well() {
    let Some((mut browser, _folder)) = shown() else {
        return;
    };
    browser.value(&format!(
        "{{ const told = {TOLD};
            told.step = null;
            window.fetch = async () => ({{ json: async () => told }}); }}"
    ));
    browser.wait_for("!document.getElementById('ended').hidden");
    assert_eq!(browser.value("document.getElementById('running').hidden"), true);
    let texts = |id: &str| {
        format!(
            "[...document.querySelectorAll('#{id} tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
        )
    };
    assert_eq!(
        browser.value(&texts("compared")),
        serde_json::json!([
            ["relative to pg.base", "repeats", "mean", "l.i0", "qr100"],
            ["pg.\"base\"\\, 4 clients", "1", "0.500", "0.250", "1.00"]
        ])
    );
    assert_eq!(
        browser.value(&texts("ended")),
        serde_json::json!([
            ["cell", "repeat", "", "l.i0", "qr100"],
            ["pg.\"base\"\\, 4 clients", "1", "failed", "1,000", ""],
            ["pg.base, 4 clients", "1", "complete", "4,000", "50.3"]
        ])
    );
}

//! Findings in the text and in the page.

use report::{TableStyle, html, tables};

use crate::synthetic::{SMALL, Size, figures, source};

const FOUR: Size = Size {
    targets: 4,
    ..SMALL
};

#[test]
fn findings_stand_below_the_summary_with_what_speaks_against_them() {
    let text = tables(&source(FOUR).run, &figures(FOUR), TableStyle::default());
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("no {part:?} in:\n{text}"))
    };
    let (summary, findings) = (at("Throughput"), at("\nFindings\n"));
    assert!(summary < findings, "{text}");
    let first = text[findings..].lines().nth(2).unwrap();
    assert!(first.starts_with("1. "), "{first}");
    assert!(text[findings..].contains("Against it: a single run has no interval"));
}

#[test]
fn the_page_has_the_same_findings_and_takes_none_of_them_for_markup() {
    let mut figures = figures(FOUR);
    for row in &mut figures.rows {
        row.step = row.step.replace("l.i0", "<b>l.i0</b>");
    }
    let page = html(&[source(FOUR)], &figures);
    let from = page.find("id=\"findings\"").unwrap();
    let section = &page[from..from + page[from..].find("</section>").unwrap()];
    assert!(section.contains("&lt;b&gt;l.i0"), "{section}");
    assert!(!section.contains("<b>l.i0"), "{section}");
    assert!(section.contains("Against it: a single run has no interval"));
}

#[test]
fn of_many_findings_the_rest_is_counted() {
    let mut figures = figures(FOUR);
    // Each step of a workload of its own, with clients that ended apart.
    let template = figures.rows[0].clone();
    for number in 0..20 {
        let mut row = template.clone();
        row.step = format!("load{number}");
        row.fairness = Some(analysis::Fairness {
            fastest_seconds: 100.0,
            slowest_seconds: 200.0 + f64::from(number),
            abs_seconds: 100.0 + f64::from(number),
            pct: 100.0 + f64::from(number),
            ..analysis::Fairness::default()
        });
        figures.rows.push(row);
    }
    let text = tables(&source(FOUR).run, &figures, TableStyle::default());
    assert!(text.contains("\n12. "), "{text}");
    assert!(!text.contains("\n13. "), "{text}");
    assert!(text.contains("more matter less"), "{text}");
}

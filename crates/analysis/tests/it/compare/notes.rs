//! Notes on comparisons that are less sure than they look.

use analysis::compare::{CompareOptions, Verdict, compare};
use analysis::figures::{Figures, Row};

use super::machine::BASE;
use super::verdicts::{compared, in_turns, notes, of};

#[test]
fn a_small_change_between_builds_has_a_note_on_the_layout_of_code() {
    let slower = |ratio: f64| -> bool {
        let values = [100.0, 100.1, 99.9, 100.05, 99.95];
        let noise = [1.0, 1.0005, 0.9995, 1.0002, 0.9998];
        let pairs: Vec<(f64, f64)> = values
            .into_iter()
            .zip(noise)
            .map(|(base, noise)| (base, base * ratio * noise))
            .collect();
        let compared = compared(in_turns(&pairs));
        assert_eq!(of(&compared, "throughput").verdict, Verdict::Slower);
        notes(&compared, "their code lies elsewhere")
    };
    assert_eq!([0.99, 0.97].map(slower), [true, false]);
}

#[test]
fn fewer_than_five_repeats_have_a_note() {
    let few = |count: usize| -> bool {
        let compared = compared(in_turns(
            &[(10.0, 11.0), (11.0, 12.0), (10.5, 12.0), (10.0, 11.5), (11.0, 12.5)][..count],
        ));
        notes(&compared, &format!("with {count} repeats, a few bursts"))
    };
    assert_eq!([1, 2, 4, 5].map(few), [false, true, true, false]);
}

#[test]
fn comparisons_with_few_repeats_are_named_where_others_have_enough() {
    let mut rows =
        in_turns(&[(10.0, 11.0), (11.0, 12.0), (10.5, 12.0), (10.0, 11.5), (11.0, 12.5)]);
    let mut of_point = rows[..6].to_vec();
    for row in &mut of_point {
        row.step = "point".to_owned();
    }
    rows.extend(of_point);

    let compared = compared(rows);
    assert!(
        notes(
            &compared,
            "with 3 repeats (throughput in point and 1 more comparison), a few bursts"
        ),
        "{:?}",
        compared.notes
    );
}

#[test]
fn of_comparisons_with_few_repeats_the_one_with_the_fewest_is_named() {
    let all = in_turns(&[(10.0, 11.0), (11.0, 12.0), (10.5, 12.0), (10.0, 11.5), (11.0, 12.5)]);
    let mut rows = all.clone();
    for (step, repeats) in [("point", 4), ("update", 2)] {
        for row in &all[..2 * repeats] {
            rows.push(Row { step: step.to_owned(), ..row.clone() });
        }
    }

    let compared = compared(rows);
    let note = "with 2 to 4 repeats (throughput in update and 3 more comparisons), a few bursts";
    assert!(notes(&compared, note), "{:?}", compared.notes);
}

#[test]
fn a_column_of_disks_that_shows_no_change_has_no_note_on_its_repeats() {
    let mut rows =
        in_turns(&[(10.0, 11.0), (11.0, 12.0), (10.5, 12.0), (10.0, 11.5), (11.0, 12.5)]);
    // Disks read in two of five repeats.
    for (row, kb) in rows.iter_mut().zip([4.0, 5.0, 5.0, 4.0]) {
        row.metrics.insert("rareqsz", Some(kb));
    }

    let figures = Figures { rows, ..Figures::default() };
    let compared = compare(
        &figures,
        &CompareOptions {
            base: BASE.to_owned(),
            metrics: vec!["rareqsz".to_owned()],
            ..CompareOptions::default()
        },
    );
    assert_eq!(of(&compared, "rareqsz").values.len(), 2);
    assert!(!notes(&compared, "a few bursts"), "{:?}", compared.notes);
}

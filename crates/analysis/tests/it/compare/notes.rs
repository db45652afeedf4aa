//! Notes on comparisons that are less sure than they look.

use analysis::compare::Verdict;

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

//! Reads of trees that were not alike.

use super::*;

fn of_trees(base: f64, other: f64) -> Finding {
    let mut figures = reads([("a.c", 30_000.0, 100.0), ("b.c", 20_000.0, 150.0)]);
    for row in &mut figures.rows {
        let files = if row.target == "a.c" { base } else { other };
        row.metrics.insert("l0_files_begin", Some(files));
        row.metrics.insert("levels_begin", Some(4.0));
    }
    let mut findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    findings.remove(0)
}

#[test]
fn another_tree_at_the_begin_of_reads_speaks_against_what_explains_them() {
    says(
        &of_trees(0.0, 3.0),
        &[
            "the trees were not alike when it began, 4 levels with 0 L0 files -> 4 levels with 3 L0 files",
        ],
    );
    says_not(&of_trees(3.0, 3.0), &["the trees"]);
}

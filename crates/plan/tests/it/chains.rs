//! Long chains of configs are merged in linear time, and bounded.

use std::fmt::Write as _;

/// A chain that must be read at once. Walking up from each config would take minutes.
const LENGTH: usize = 10_000;

/// Returns a plan whose configs extend each other, `extends` has the index of the one that each
/// extends, and `option` the option that each sets.
fn chain(extends: impl Fn(usize) -> Option<usize>, option: impl Fn(usize) -> String) -> String {
    let mut text = String::from("[workload.insert]\n[build.a]\nsqlite = \"bundled\"\n");
    for index in 0..LENGTH {
        let _ = writeln!(text, "[config.sqlite.c{index}]\nset.{} = {index}", option(index));
        if let Some(parent) = extends(index) {
            let _ = writeln!(text, "extends = \"c{parent}\"");
        }
    }
    text
}

fn errors_of(text: &str) -> Vec<plan::Diagnostic> {
    plan::parse("p.toml", text, &[]).expect_err("the plan is accepted")
}

#[test]
fn a_chain_of_ten_thousand_configs_is_merged() {
    // From the last config to the first, and from the first to the last.
    let upward = chain(|index| index.checked_sub(1), |index| format!("o{}", index % 2));
    let downward =
        chain(|index| (index + 1 < LENGTH).then_some(index + 1), |index| format!("o{}", index % 2));
    for (text, last, expected) in [
        (upward, LENGTH - 1, [("o0", LENGTH - 2), ("o1", LENGTH - 1)]),
        (downward, 0, [("o1", 1), ("o0", 0)]),
    ] {
        let (plan, warnings) = plan::parse("p.toml", &text, &[]).expect("the plan is refused");
        assert_eq!(warnings.len(), 0);
        let expected = expected.map(|(option, value)| (option.to_owned(), value.to_string()));
        assert_eq!(plan.configs[last].set, expected);
        assert_eq!(plan.configs.len(), LENGTH);
        assert_eq!(plan.targets.len(), LENGTH);
    }
}

#[test]
fn a_cycle_of_ten_thousand_configs_is_reported_once_with_its_first_ones() {
    let text = chain(|index| Some((index + 1) % LENGTH), |_| "o".into());
    let errors = errors_of(&text);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(
        errors[0].message,
        "config `c0` extends itself: `c0 -> c1 -> c2 -> c3 -> c4 -> c5 -> c6 -> c7 -> c8 -> c9 -> ...`"
    );
    plan::render(&errors, "p.toml", &text, &[], false);
}

#[test]
fn a_chain_whose_configs_all_add_an_option_is_refused_before_it_fills_the_memory() {
    let text = chain(|index| index.checked_sub(1), |index| format!("o{index}"));
    let errors = errors_of(&text);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].code, "plan::too-many-options");
    // 1 + 2 + ... + 1414 is more than a million.
    let line = text.lines().position(|line| line == "[config.sqlite.c1413]").unwrap_or_default();
    assert_eq!(errors[0].place.position(&text).map(|(line, _)| line as usize), Some(line + 1));
}

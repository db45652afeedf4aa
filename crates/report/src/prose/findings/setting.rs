//! Settings that differ, in words.

use super::wording::{Wording, place};
use crate::prose::numbers::{figure, list, list_any, times};
use analysis::counted;
use analysis::explain::Finding;
use analysis::explain::statement::NoEffect;
use analysis::settings::{Difference, DifferenceKind};
use words::without_section;

/// Returns the words of a setting that differs and shows no effect.
pub(super) fn without_effect(no_effect: &NoEffect, about: &Finding) -> Wording {
    let base = about.base.as_deref().unwrap_or_default();

    let mut differ = Vec::new();
    for changed in &no_effect.settings {
        differ.push(format!("{} in {}", setting_text(&changed.setting), changed.who));
    }

    let sentences = vec![
        format!(
            "No change in throughput is shown in any of {}: the ratios are {} to {}, within {}%.",
            counted(no_effect.comparison_count, "comparison"),
            times(no_effect.ratio_min),
            times(no_effect.ratio_max),
            figure(100.0 * no_effect.effect)
        ),
        format!("Only one setting is known to differ from {base}: {}.", list(&differ)),
        "This holds for what was measured, and may not for other loads or machines.".to_owned(),
    ];

    let name = without_section(&no_effect.settings[0].setting.name);
    Wording { title: format!("{name} shows no effect in {}", place(about)), sentences }
}

/// Lists settings with both values, and says which of them the plan does not declare: `log_bin (OFF
/// -> ON), which the plan does not declare`.
pub(super) fn settings_text(settings: &[Difference]) -> String {
    let mut declared = Vec::new();
    let mut implicit = Vec::new();
    for setting in settings {
        if setting.mark == DifferenceKind::Undeclared {
            implicit.push(setting_text(setting));
        } else {
            declared.push(setting_text(setting));
        }
    }

    let mut both = Vec::new();
    both.extend(list_any(declared));
    if let Some(implicit) = list_any(implicit) {
        both.push(format!("{implicit}, which the plan does not declare"));
    }
    both.join(", and from ")
}

/// Returns both values of a setting: `innodb_doublewrite (ON -> OFF)`.
pub(super) fn setting_text(setting: &Difference) -> String {
    let (base, target) = (value_text(setting.a.as_deref()), value_text(setting.b.as_deref()));
    format!("{} ({base} -> {target})", without_section(&setting.name))
}

fn value_text(value: Option<&str>) -> &str {
    value.unwrap_or("not set")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_rocksdb_is_named_without_its_section() {
        let setting = Difference {
            name: "[CFOptions] compression".to_owned(),
            a: Some("kLZ4Compression".to_owned()),
            b: None,
            mark: DifferenceKind::Declared,
            role: None,
        };
        assert_eq!(setting_text(&setting), "compression (kLZ4Compression -> not set)");
    }
}

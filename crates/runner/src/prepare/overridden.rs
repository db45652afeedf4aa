//! Finds options of configs that have no effect, since Assay sets them itself.

use std::collections::BTreeMap;

use plan::BuildSource;

use super::plan_file::PlanFile;

/// The code of the warning about such options.
pub const OVERRIDDEN_CODE: &str = "server::config";

/// Returns a warning for each set of options of the `targets` that Assay overrides: one for all
/// targets that have the same. Servers that Assay does not start keep their own.
///
/// # Errors
/// A file of a config cannot be read.
pub fn overridden_options(
    file: &PlanFile,
    targets: impl Iterator<Item = usize>,
) -> anyhow::Result<Vec<String>> {
    let plan = &file.plan;

    let mut by_options: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
    for target in targets.map(|target| &plan.targets[target]) {
        let build = &plan.builds[target.build];
        if matches!(build.source, BuildSource::Url(_)) {
            continue;
        }

        let notation = engine::notation_of(build.engine.name());
        let config = &plan.configs[target.config];
        let texts = file.config_texts(config)?;
        let of_files = texts.iter().flat_map(|text| notation.options(text)).map(|(name, _)| name);
        let of_set = config.set.iter().map(|(name, _)| name.clone());
        let mut options: Vec<String> = Vec::new();
        for name in of_files.chain(of_set) {
            if notation.is_reserved(&notation.key(&name)) && !options.contains(&name) {
                options.push(name);
            }
        }
        if !options.is_empty() {
            let targets = by_options.entry(options).or_default();
            if !targets.contains(&target.name.as_str()) {
                targets.push(&target.name);
            }
        }
    }

    let warnings = by_options.into_iter().map(|(options, targets)| {
        let word = if targets.len() == 1 { "target" } else { "targets" };
        let (options, have) = match options.as_slice() {
            [one] => (format!("option `{one}`"), "has"),
            several => (format!("options `{}`", several.join("`, `")), "have"),
        };
        format!(
            "{word} `{}`: {options} {have} no effect: Assay sets addresses, logins, TLS, logs and paths of its servers",
            targets.join("`, `")
        )
    });
    Ok(warnings.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::plan_file;

    #[test]
    fn options_of_all_targets_that_assay_overrides_are_one_warning() {
        let text = r#"
[workload.insert]
[build.pg]
postgres = "17"
[build.my]
mysql = "8.0"
[build.far]
url = "postgresql://db/x"
[config.postgres.mine]
set = { port = "1", Data_Directory = "/x", work_mem = "8MB" }
[config.postgres.same]
extends = "mine"
[config.mysql.mine]
set.log-error = "/x"
[config.mysql.plain]
[[target]]
builds = ["pg", "my"]
[[target]]
builds = ["far"]
configs = ["mine"]
"#;
        let nothing = record::Plan::default();
        let file = plan_file::recorded(&nothing, text.into(), Vec::new(), &crate::Silent).unwrap();
        let warnings = overridden_options(&file, 0..file.plan.targets.len()).unwrap();
        let effect = "no effect: Assay sets addresses, logins, TLS, logs and paths of its servers";
        assert_eq!(
            warnings,
            [
                format!("target `my.mine`: option `log-error` has {effect}"),
                format!(
                    "targets `pg.mine`, `pg.same`: options `port`, `Data_Directory` have {effect}"
                ),
            ]
        );
    }
}

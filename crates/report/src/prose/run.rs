//! The work, the time and the end of a run.

use std::collections::BTreeSet;

use record::{Run, Status, Target};

use crate::model::number::duration;

/// Returns the outcome of a run, in a few words.
pub(crate) fn ended(run: &Run) -> &'static str {
    match run.status {
        Status::Complete => "complete",
        Status::Failed => "failed",
        Status::Interrupted => "interrupted: only a part was measured",
        Status::Incomplete if run.is_running => "in progress",
        Status::Incomplete => match run.invocations.last() {
            Some(last) if last.ended_unix_ns.is_some() => "incomplete: only a part was measured",
            _ => "incomplete: it was killed, or runs on another host",
        },
    }
}

/// Returns the duration of a run without the pauses between its invocations, if it has ended. A
/// record without the durations of all invocations has only the times of its start and end.
pub(crate) fn took(run: &Run) -> Option<String> {
    let ended_unix_ns = run.ended_unix_ns?;
    let durations = run.invocations.iter().map(|invocation| invocation.elapsed_ns);
    let measured: Option<u64> = durations.sum::<Option<u64>>().filter(|&total| total > 0);
    let ns = measured.unwrap_or_else(|| ended_unix_ns.saturating_sub(run.started_unix_ns));
    Some(duration(ns as f64 / 1e9))
}

/// The properties of a target, or those that all targets of an engine share.
pub(crate) struct TargetLine {
    pub name: String,
    pub text: String,
}

/// Returns the properties that distinguish the targets of a run: the build's version and the
/// settings that not all targets of the engine declare. Then, for each engine, what all its targets
/// declare.
pub(crate) fn targets(run: &Run) -> Vec<TargetLine> {
    let mut lines: Vec<TargetLine> = run
        .targets
        .iter()
        .map(|target| TargetLine { name: target.name.clone(), text: own_properties(run, target) })
        .collect();

    let engines: BTreeSet<&str> = run.targets.iter().map(|target| target.engine.as_str()).collect();
    for engine in engines {
        let text = shared_settings(run, engine);
        if !text.is_empty() {
            lines.push(TargetLine { name: format!("all {engine} targets"), text });
        }
    }
    lines
}

/// Returns the version and the commit of a target, the settings that other targets lack, and its
/// limits.
fn own_properties(run: &Run, target: &Target) -> String {
    let build = run.builds.iter().find(|build| build.name == target.build);
    let mut parts = vec![match build {
        Some(build) => format!("{} {}", build.engine, build.version),
        None => target.engine.clone(),
    }];

    if let Some(commit) = build.and_then(|build| build.commit.as_ref()) {
        parts.push(format!("built from {}", commit.name()));
    }

    let own = target.set.iter().filter(|setting| !is_shared(run, &target.engine, setting));
    let own = assignments(own);
    if !own.is_empty() {
        parts.push(own);
    }

    for what in ["memory", "cpus", "cpu-quota"] {
        if let Some(value) = limit(run, target, what) {
            parts.push(format!("{what} limited to {value}"));
        }
    }
    parts.join("; ")
}

/// Returns the settings that all targets of an engine declare.
fn shared_settings(run: &Run, engine: &str) -> String {
    let first = run.targets.iter().find(|target| target.engine == engine);
    let settings = first.into_iter().flat_map(|target| &target.set);
    assignments(settings.filter(|setting| is_shared(run, engine, setting)))
}

/// Returns true if all targets of an engine declare this setting.
fn is_shared(run: &Run, engine: &str, setting: &(String, String)) -> bool {
    let mut of_engine = run.targets.iter().filter(|target| target.engine == engine);
    of_engine.all(|target| target.set.contains(setting))
}

fn assignments<'s>(settings: impl Iterator<Item = &'s (String, String)>) -> String {
    let texts: Vec<String> = settings.map(|(name, value)| format!("{name} = {value}")).collect();
    texts.join(", ")
}

/// Returns a limit of a target's server, from its config or a config that this extends.
fn limit(run: &Run, target: &Target, what: &str) -> Option<String> {
    let mut config = target.config.clone();
    // The chain of configs cannot be longer than the plan.
    for _ in 0..run.plan.resolved.len() {
        if let Some(limit) = config_value(run, &target.engine, &config, what) {
            return Some(limit);
        }

        config = config_value(run, &target.engine, &config, "extends")?;
    }
    None
}

/// Returns a key of an engine's config, as the plan resolved it.
fn config_value(run: &Run, engine: &str, config: &str, key: &str) -> Option<String> {
    let name = format!("config.{engine}.{config}.{key}");
    let resolved = run.plan.resolved.iter().find(|value| value.key == name)?;
    Some(resolved.value.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use record::Invocation;

    use super::*;

    #[test]
    fn the_time_of_a_run_has_neither_pauses_nor_jumps_of_the_clock() {
        const SECOND_NS: u64 = 1_000_000_000;

        let invocation = |seconds: u64| Invocation {
            elapsed_ns: Some(seconds * SECOND_NS),
            ..Invocation::default()
        };
        // By the wall clock, an hour passed between its start and its end.
        let mut run = Run {
            started_unix_ns: 0,
            ended_unix_ns: Some(3600 * SECOND_NS),
            invocations: vec![invocation(8), invocation(5)],
            ..Run::default()
        };
        assert_eq!(took(&run), Some(duration(13.0)));

        run.ended_unix_ns = None;
        assert_eq!(took(&run), None);
    }
}

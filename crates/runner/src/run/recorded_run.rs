//! A recorded run that is to be resumed: whether it may be, and its plan.

use std::path::Path;

use analysis::compat::{Facts, build_differences, differences, differences_text};
use record::{Build, Invocation, RecordError, Run, RunDir};

use crate::ground::events::Events;
use crate::ground::failure::UsageError;
use crate::ground::lock::{self, Lock};
use crate::ground::request::PlanRequest;
use crate::prepare::plan_file::{self, PlanFile};
use crate::prepare::trust;

/// A run that this process has locked.
pub struct LockedRun {
    pub directory: RunDir,
    pub run: Run,
    pub lock: Lock,
}

/// Opens and locks the directory of a run to resume it. Refuses the record of another user, unless
/// it `is_trusted`.
pub fn open(path: &Path, is_trusted: bool) -> anyhow::Result<LockedRun> {
    // Resolves links once, so that what is checked is what is resumed.
    let path = &fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = RunDir::open(path)?;
    if !is_trusted {
        trust::refuse_foreign_record(path)?;
    }

    let run = directory.read_run()?;
    // Another format may lack what the new cells need, or mean something else by it.
    if run.format != record::FORMAT {
        let message = format!(
            "cannot resume `{}`: its record has format {}, and this assay writes format {}",
            path.display(),
            run.format,
            record::FORMAT
        );
        let help = format!("resume it with assay {}, or start a new run", run.assay);
        return Err(UsageError::new(message, Some(help)).into());
    }

    let lock = lock::run_directory(path)?;
    // Read again: the previous owner of the lock may have written it. This process has the lock
    // now.
    let run = Run { is_running: false, ..directory.read_run()? };

    Ok(LockedRun { run, directory, lock })
}

/// Notes how long the last invocation ran if it was killed: until its last cell ended, as far as
/// its record tells.
pub fn note_elapsed(directory: &RunDir, run: &mut Run) -> Result<(), RecordError> {
    let number = run.invocations.len() as u32;
    let Some(last) = run.invocations.last_mut().filter(|last| last.elapsed_ns.is_none()) else {
        return Ok(());
    };

    let mut ended_unix_ns = last.ended_unix_ns;
    if ended_unix_ns.is_none() {
        for cell in directory.started_cells()? {
            // A record that cannot be read is measured again.
            let Ok(cell) = cell.read() else { continue };
            if cell.invocation == number {
                ended_unix_ns = ended_unix_ns.max(cell.ended_unix_ns);
            }
        }
    }

    let ended_unix_ns = ended_unix_ns.unwrap_or(last.started_unix_ns);
    last.elapsed_ns = Some(ended_unix_ns.saturating_sub(last.started_unix_ns));
    Ok(())
}

/// Refuses a plan on the command line if the record has the complete plan.
pub fn refuse_redundant_plan(
    recorded: &record::Plan,
    args: &PlanRequest,
) -> Result<(), UsageError> {
    if recorded.password_removed || !is_given(args) {
        return Ok(());
    }

    Err(UsageError::new(
        "`--resume` uses the recorded plan: it cannot be combined with PLAN or `--set`",
        Some("remove them, or start a new run with another plan".into()),
    ))
}

fn is_given(args: &PlanRequest) -> bool {
    args.plan.is_some() || !args.sets.is_empty()
}

/// Returns the recorded plan. A plan with a password, which is not recorded, must be given again in
/// `args`.
pub fn plan(
    recorded: &record::Plan,
    args: &PlanRequest,
    events: &dyn Events,
) -> anyhow::Result<PlanFile> {
    refuse_redundant_plan(recorded, args)?;
    if !recorded.password_removed {
        return same_plan(recorded, recorded.text.clone(), recorded.sets.clone(), events);
    }

    // The record lacks the password, so the plan must come with it, and be the same otherwise.
    let refused = |message: String| UsageError::new(message, Some(help_to_pass(recorded)));
    if !is_given(args) {
        let message = "the plan of this run has a password, which is not recorded";
        return Err(refused(message.into()).into());
    }

    let text = match &args.plan {
        Some(path) => plan_file::read_text(path)?,
        None => recorded.text.clone(),
    };

    let sets = args.sets.clone();
    if let Some(what) = difference(recorded, &text, &sets) {
        return Err(refused(format!("the plan differs from the recorded one: {what}")).into());
    }

    let file = same_plan(recorded, text, sets, events)?;
    if !file.to_record().password_removed {
        let message = "the plan contains no password, but the recorded plan contained one";
        return Err(refused(message.into()).into());
    }
    Ok(file)
}

/// Says which plan must be passed with its password.
fn help_to_pass(recorded: &record::Plan) -> String {
    let path = recorded.path.as_deref().unwrap_or("none: it was the built-in plan");
    let sets = if recorded.sets.is_empty() {
        String::new()
    } else {
        format!(", with `--set {}`", recorded.sets.join("` `--set "))
    };

    format!("pass PLAN and `--set` as before, including the password: PLAN was {path}{sets}")
}

/// Returns the differences of a plan from the recorded one, ignoring passwords.
fn difference(recorded: &record::Plan, text: &str, sets: &[String]) -> Option<String> {
    let text = words::redact(text);

    if text != recorded.text {
        let lines = recorded.text.lines().zip(text.lines());
        let alike = lines.take_while(|(was, is)| was == is).count();
        // Lines that end differently can be alike.
        let [was, is] = [&recorded.text, &text].map(|text| text.lines().nth(alike));
        if was == is {
            return Some("its end differs".into());
        }

        let number = alike + 1;
        let (was, is) = (shown_line(was), shown_line(is));
        return Some(format!("line {number} was {was} and is now {is}"));
    }

    let sets: Vec<String> = sets.iter().map(|set| words::redact(set)).collect();
    if sets == recorded.sets {
        return None;
    }

    let (was, is) = (shown_sets(&recorded.sets), shown_sets(&sets));
    Some(format!("`--set` was {was} and is now {is}"))
}

fn shown_line(line: Option<&str>) -> String {
    match line {
        Some(line) => format!("`{}`", line.trim()),
        None => "missing".into(),
    }
}

fn shown_sets(sets: &[String]) -> String {
    if sets.is_empty() { "none".into() } else { format!("`{}`", sets.join("`, `")) }
}

/// Returns the values of a plan by their keys.
fn facts_of(plan: &record::Plan) -> Facts {
    plan.resolved.iter().map(|value| (value.key.clone(), value.value.clone())).collect()
}

/// Parses the plan and compares its resolved values with the recorded ones: another version of
/// assay may have other defaults.
fn same_plan(
    recorded: &record::Plan,
    text: String,
    sets: Vec<String>,
    events: &dyn Events,
) -> anyhow::Result<PlanFile> {
    let file = plan_file::recorded(recorded, text, sets, events)?;
    let differences = differences(&facts_of(recorded), &facts_of(&file.to_record()));

    if !differences.is_empty() {
        let message = format!(
            "this version of assay resolves the run's plan differently: {}",
            differences_text(&differences, "none")
        );
        let help = "resume it with the assay that started it, or start a new run";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    Ok(file)
}

/// Refuses builds that have changed since the run began.
pub fn refuse_other_builds(recorded: &[Build], found: &[Build]) -> Result<(), UsageError> {
    for build in found {
        let Some(was) = recorded.iter().find(|was| was.name == build.name) else {
            // The run has not recorded such a build, so there is nothing to compare.
            continue;
        };

        let differences = build_differences(was, build);
        if !differences.is_empty() {
            let message = format!(
                "build `{}` has changed since the run began: {}",
                build.name,
                differences_text(&differences, "none")
            );
            let help = "restore it, or start a new run";
            return Err(UsageError::new(message, Some(help.into())));
        }
    }

    Ok(())
}

/// Returns the changes of the machine since the run began, as text; `last` is the invocation before
/// `invocation`.
pub fn other_machine(last: Option<&Invocation>, invocation: &Invocation) -> Option<String> {
    let differences = &invocation.host_differences;
    let mut parts: Vec<String> = Vec::new();
    if !differences.is_empty() {
        parts.push(differences_text(differences, "unknown"));
    }

    let boot_id = last.and_then(|last| last.boot_id.as_ref());
    if let (Some(before), Some(now)) = (boot_id, &invocation.boot_id)
        && before != now
    {
        parts.push("it was rebooted".into());
    }

    if parts.is_empty() { None } else { Some(parts.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::events::Silent;

    const TEXT: &str = "[workload.insert]\n[build.far]\nurl = \"postgres://joe:secret@db/x\"\n";

    fn recorded(text: &str, sets: &[&str]) -> record::Plan {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let nothing = record::Plan::default();
        plan_file::recorded(&nothing, text.to_owned(), sets, &Silent).unwrap().to_record()
    }

    fn refusal(recorded: &record::Plan, args: &PlanRequest) -> String {
        let error = plan(recorded, args, &Silent).err().expect("it is refused");
        assert!(error.is::<UsageError>(), "{error:?}");
        format!("{error}\n{}", crate::ground::failure::help_of(&error).unwrap_or_default())
    }

    fn given(text: Option<&str>, sets: &[&str]) -> (tempfile::TempDir, PlanRequest) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("plan.toml");
        let args = PlanRequest {
            plan: text.map(|text| {
                fs_err::write(&path, text).unwrap();
                path
            }),
            sets: sets.iter().map(|&set| set.to_owned()).collect(),
        };
        (place, args)
    }

    #[test]
    fn a_plan_without_a_password_is_not_given_again() {
        let recorded = recorded("[workload.insert]\n[build.a]\nsqlite = \"bundled\"\n", &[]);
        let (_place, nothing) = given(None, &[]);
        assert_eq!(plan(&recorded, &nothing, &Silent).unwrap().to_record(), recorded);
        for args in [given(Some(TEXT), &[]).1, given(None, &["repeats=2"]).1] {
            assert!(refusal(&recorded, &args).contains("cannot be combined with PLAN or `--set`"));
        }
    }

    #[test]
    fn a_plan_with_a_password_is_given_again_and_must_be_the_same() {
        let recorded = recorded(TEXT, &["repeats=2"]);
        assert!(recorded.password_removed && !recorded.text.contains("secret"));
        let refused = |text: Option<&str>, sets: &[&str]| {
            let (_place, args) = given(text, sets);
            refusal(&recorded, &args)
        };
        assert!(refused(None, &[]).contains("has a password, which is not recorded"));
        let other = TEXT.replace("db/x", "db/y");
        let text = refused(Some(&other), &["repeats=2"]);
        assert!(text.contains("line 3 was `url = \"postgres://joe:***@db/x\"` and is now `url = \"postgres://joe:***@db/y\"`"), "{text}");
        let longer = format!("{TEXT}[config.postgres.a]\n");
        assert!(
            refused(Some(&longer), &["repeats=2"])
                .contains("line 4 was missing and is now `[config.postgres.a]`")
        );
        let text = refused(Some(TEXT), &[]);
        assert!(text.contains("`--set` was `repeats=2` and is now none"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        let as_recorded = refused(Some(&recorded.text), &["repeats=2"]);
        assert!(as_recorded.contains("the recorded plan contained one"), "{as_recorded}");

        let (_place, args) = given(Some(&TEXT.replace("secret", "changed since")), &["repeats=2"]);
        let file = plan(&recorded, &args, &Silent).unwrap();
        assert!(file.text.contains("changed since"));
        assert_eq!(file.to_record(), recorded);
    }

    #[test]
    fn a_build_is_what_is_in_its_files() {
        let file = |path: &str, sha256: &str| record::FileHash {
            path: path.into(),
            size_bytes: 1,
            sha256: sha256.into(),
        };
        let build = |version: &str, files: &[record::FileHash]| Build {
            name: "pg".into(),
            engine: "postgres".into(),
            version: version.into(),
            source: "/opt/pg".into(),
            files: files.to_vec(),
            commit: None,
        };
        let was = build("17.2", &[file("/opt/a", "1")]);
        let refused = |is: Build| {
            let result = refuse_other_builds(std::slice::from_ref(&was), &[is]);
            result.err().map(|error| error.to_string())
        };
        assert_eq!(refused(was.clone()), None);
        assert_eq!(refused(build("17.2", &[file("/usr/a", "1")])), None, "it has moved");
        let version = refused(build("17.3", &[file("/opt/a", "1")])).unwrap();
        assert!(version.contains("`version` 17.2 -> 17.3"), "{version}");
        let changed = refused(build("17.2", &[file("/opt/a", "2")])).unwrap();
        assert!(changed.contains("build `pg`") && changed.contains("`/opt/a` 1 -> 2"), "{changed}");
        let fewer = refused(build("17.2", &[])).unwrap();
        assert!(fewer.contains("`/opt/a` "), "{fewer}");
    }
}

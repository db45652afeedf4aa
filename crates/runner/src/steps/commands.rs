//! Runs the plan's commands before and after a step, outside of measured time.
//!
//! A command runs under a guard, so that it and all that it starts end with this process, and at
//! the latest when the command itself has ended.

use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use engine::SetupError;
use engine::guard::{Ending, Guarded, ProgramEnd, Spawn};
use load::Clock as _;
use record::{Step, StepCommand};

use super::StepRunner;

/// The most bytes of a command's output that the record has.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;
/// The most lines of it in an error.
const TAIL_LINES: usize = 20;
/// The time that a command has to end once it is asked to.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(20);

/// When a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before a step.
    Before,
    /// After a step, however that ended.
    After,
}

impl Moment {
    /// Returns the key of the plan.
    fn key(self) -> &'static str {
        match self {
            Self::Before => "before-step",
            Self::After => "after-step",
        }
    }
}

/// The commands around the steps of a cell.
pub struct Commands {
    before: Option<String>,
    after: Option<String>,
    timeout: Duration,
    /// The variables about the cell.
    env: Vec<(OsString, OsString)>,
    /// The file for the output.
    log: PathBuf,
}

impl Commands {
    /// Returns the commands of a plan. `variables` tell them about the cell, whose record is in
    /// `folder`.
    pub fn new(
        planned: &plan::StepCommands,
        folder: &Path,
        variables: Vec<(OsString, OsString)>,
    ) -> Self {
        Self {
            before: planned.before.clone(),
            after: planned.after.clone(),
            timeout: planned.timeout,
            env: variables,
            log: folder.join("step-command.log"),
        }
    }

    fn at(&self, moment: Moment) -> Option<&str> {
        match moment {
            Moment::Before => self.before.as_deref(),
            Moment::After => self.after.as_deref(),
        }
    }
}

impl StepRunner<'_> {
    /// Runs the command of the plan before or after the step, and records how it ended.
    ///
    /// # Errors
    /// The command fails, or takes too long.
    pub(super) fn run_command(&self, moment: Moment, record: &mut Step) -> anyhow::Result<()> {
        let Some(commands) = &self.commands else {
            return Ok(());
        };
        let Some(command) = commands.at(moment) else {
            return Ok(());
        };

        remove(&commands.log)?;

        let began_ns = self.session.clock.now();
        let mut guarded = self.spawn_command(commands, command, &record.name)?;
        let ended = self.wait_for_command(&mut guarded, commands.timeout)?;
        let took_ns = self.session.clock.now().saturating_sub(began_ns);

        // The output goes into the record, and its file is gone before the next command.
        let printed = Printed::read(&commands.log)?;
        remove(&commands.log)?;

        let failure = match ended {
            Some(ended) if ended.is_success() => None,
            Some(ended) => Some(ended.to_string()),
            None => Some(format!(
                "it did not end within {} s: raise `step-command-timeout`, or shorten the command",
                commands.timeout.as_secs()
            )),
        };

        record.commands.push(StepCommand {
            key: moment.key().to_owned(),
            command: command.to_owned(),
            exit_code: ended.and_then(ProgramEnd::code),
            ended: failure.clone().unwrap_or_else(|| "exit status: 0".to_owned()),
            took_ns,
            output: printed.text.clone(),
            output_bytes: printed.bytes,
        });

        match failure {
            None => Ok(()),
            Some(status) => Err(SetupError::Command {
                command: moment.key().to_owned(),
                status,
                tail: printed.last_lines(),
                log: None,
            }
            .into()),
        }
    }

    fn spawn_command(
        &self,
        commands: &Commands,
        command: &str,
        step: &str,
    ) -> anyhow::Result<Guarded> {
        let here = std::env::current_dir().context("the working directory cannot be found")?;
        let mut env = commands.env.clone();
        env.push(("ASSAY_STEP".into(), step.into()));
        if let Some(process_id) = self.engine.engine().process_id() {
            env.push(("ASSAY_PID".into(), process_id.to_string().into()));
        }

        // A guard ends the command if Assay is killed.
        Ok(Guarded::spawn(&Spawn {
            guard_exe: &self.session.executable,
            program: Path::new("/bin/sh"),
            args: vec!["-c".into(), command.into()],
            env,
            program_env: &[],
            env_remove: Vec::new(),
            input: None,
            directory: Some(&here),
            user: None,
            log: Some(&commands.log),
            orphaned: Ending::Kill,
            remove_directory: None,
            confinement: None,
        })?)
    }

    /// Waits until a command has ended. Returns `None` if it took too long, after it was ended.
    fn wait_for_command(
        &self,
        guarded: &mut Guarded,
        timeout: Duration,
    ) -> anyhow::Result<Option<ProgramEnd>> {
        let began_ns = self.session.clock.now();
        let timeout_ns = timeout.as_nanos() as u64;
        loop {
            if let Some(ended) = guarded.wait(TICK) {
                return Ok(Some(ended));
            }

            if self.session.is_stopped() {
                guarded.stop(&[(Ending::Terminate, END_TIMEOUT)])?;
                bail!("the run was interrupted");
            }

            let took_ns = self.session.clock.now().saturating_sub(began_ns);
            if took_ns > timeout_ns {
                guarded.stop(&[(Ending::Terminate, END_TIMEOUT)])?;
                return Ok(None);
            }
        }
    }
}

/// The output of a command.
struct Printed {
    /// All of it, or its end.
    text: String,
    /// The size of all.
    bytes: u64,
}

impl Printed {
    fn read(log: &Path) -> anyhow::Result<Self> {
        let mut file = record::open_regular(log).context("the output of a command is lost")?;
        let bytes = file.metadata()?.len();
        // A command may print without end, and the end of its output says most.
        file.seek(SeekFrom::Start(bytes.saturating_sub(OUTPUT_BYTES_MAX)))?;

        let mut end = Vec::new();
        file.take(OUTPUT_BYTES_MAX).read_to_end(&mut end)?;

        Ok(Self { text: String::from_utf8_lossy(&end).into_owned(), bytes })
    }

    fn last_lines(&self) -> Vec<String> {
        let lines: Vec<&str> = self.text.lines().collect();
        let start = lines.len().saturating_sub(TAIL_LINES);
        lines[start..].iter().map(|line| (*line).to_owned()).collect()
    }
}

/// Removes the file with the output of an earlier command.
fn remove(log: &Path) -> std::io::Result<()> {
    match fs_err::remove_file(log) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

//! Compiles the tests. All commands of the suite compile alike, so that each uses what another made.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::binaries::Binary;
use crate::prepare;
use crate::workspace::{Workspace, output};

/// The choices of a compilation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// Assay is compiled with load ranks.
    has_mpi: bool,
    /// The compiler that also lints. Without it, `tidy` lints, which compiles all again.
    linter: Option<PathBuf>,
}

/// The results of a compilation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// The binaries with tests.
    pub binaries: Vec<Binary>,
    /// The number of warnings.
    pub warnings: usize,
}

impl Compilation {
    /// Chooses clippy as the compiler where `CI` is set: that saves a third of the compilation.
    /// Elsewhere, `cargo test` of one crate would compile again what clippy had compiled.
    ///
    /// # Errors
    ///
    /// Fails if there is no `rustc`.
    pub fn choose(has_mpi: bool) -> Result<Self> {
        let mut linter = None;
        if std::env::var_os("CI").is_some() {
            let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
            let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
            linter = Some(driver).filter(|driver| driver.exists());
        }
        Ok(Self { has_mpi, linter })
    }

    /// Returns whether compiling shows what clippy finds.
    pub fn lints(&self) -> bool {
        self.linter.is_some()
    }

    /// Returns a command of cargo that compiles so.
    pub fn cargo(&self, workspace: &Workspace, arguments: &str) -> Command {
        let mut command = workspace.cargo(arguments);
        if self.has_mpi {
            command.args(prepare::MPI_FEATURE);
        }
        if let Some(linter) = &self.linter {
            // As `cargo clippy` does; without options, it only warns.
            command.env("RUSTC_WORKSPACE_WRAPPER", linter).env("CLIPPY_ARGS", "");
        }
        command
    }

    /// Compiles all tests, and the programs that they run. Prints warnings and errors. Returns
    /// `None` if there are errors.
    ///
    /// # Errors
    ///
    /// Fails if cargo cannot run, or says what is not known.
    pub fn run(&self, workspace: &Workspace) -> Result<Option<Compiled>> {
        let format = if self.lints() { "json" } else { "json-render-diagnostics" };
        let arguments = format!("test --workspace --no-run --timings --message-format={format}");
        let output =
            self.cargo(workspace, &arguments).stderr(std::process::Stdio::inherit()).output();
        let output = output.context("cannot run `cargo test`")?;

        let mut compiled = Compiled::default();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            compiled.read(line)?;
        }
        Ok(output.status.success().then_some(compiled))
    }
}

impl Compiled {
    /// Reads a message of cargo.
    fn read(&mut self, message: &str) -> Result<()> {
        let message: Value =
            serde_json::from_str(message).context("cannot read cargo's messages")?;
        if message["reason"] == "compiler-message" {
            self.warnings += usize::from(message["message"]["level"] == "warning");
            print!("{}", message["message"]["rendered"].as_str().unwrap_or_default());
        }
        self.binaries.extend(Binary::in_message(&message)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_are_counted_and_binaries_are_found() {
        let warning = |level: &str| json!({"reason": "compiler-message", "message": {"level": level, "rendered": ""}});
        let binary = json!({
            "reason": "compiler-artifact",
            "manifest_path": "/x/crates/load/Cargo.toml",
            "executable": "/t/it-1",
            "target": {"name": "it", "kind": ["test"]},
            "profile": {"test": true},
        });
        let mut compiled = Compiled::default();
        for message in [warning("warning"), warning("failure-note"), binary] {
            compiled.read(&message.to_string()).unwrap();
        }
        assert_eq!((compiled.warnings, compiled.binaries.len()), (1, 1));
        assert!(compiled.read("not JSON").is_err());
    }
}

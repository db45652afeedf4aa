//! Compares RocksDB by its own binding with the same library by an adapter: what the C interface
//! for engines of others costs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Setup;
use super::measure::{Bound, figures, finish};
use super::run::fetch;
use crate::workspace::succeeds;

/// The version of RocksDB.
const ROCKSDB: &str = "rocksdb@10.2.1";
/// The most that the interface may add to an operation, in ns.
const BOUND: Bound = Bound::AtMost(15.0);

/// Measures both in each round.
pub fn run(setup: &Setup) -> Result<bool> {
    let program = setup.build("engine", "--example adapter")?.join("examples/adapter");
    let library = fetch(setup, ROCKSDB)?;
    // Of a build in the store, the path is that of the library.
    let library = Path::new(&library);
    let place = tempfile::tempdir()?;
    let adapter = place.path().join("librocksdb-assay.so");
    compile(setup, library, &adapter)?;

    let bounds = [
        ("binding_read_ns", Bound::None),
        ("binding_entry_ns", Bound::None),
        ("binding_write_ns", Bound::None),
        ("adapter_adds_to_read_ns", BOUND),
        ("adapter_adds_to_entry_ns", BOUND),
        ("adapter_adds_to_write_ns", BOUND),
    ];
    figures(setup.round_count, bounds, || {
        let mut command = Command::new(&program);
        command.arg(library).arg(&adapter);
        let finished = finish(command)?;
        Ok([
            finished.number("read ")?,
            finished.number("entry ")?,
            finished.number("write ")?,
            finished.number("added_to_read ")?,
            finished.number("added_to_entry ")?,
            finished.number("added_to_write ")?,
        ])
    })
}

/// Compiles the adapter of RocksDB against a library.
fn compile(setup: &Setup, library: &Path, adapter: &Path) -> Result<()> {
    let folder = library.parent().context("the library is in no directory")?;
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    let mut compile = setup.workspace.command("cc");
    compile.args(["-O2", "-shared", "-fPIC", "adapters/rocksdb.c", "-o"]).arg(adapter);
    compile.arg(format!("-L{}", folder.display())).arg(format!("-l:{name}"));
    compile.arg(format!("-Wl,-rpath,{}", folder.display()));
    anyhow::ensure!(succeeds(&mut compile)?, "the adapter does not compile, see above");
    Ok(())
}

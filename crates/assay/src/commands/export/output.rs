//! Files and directories that an export writes, or stdout.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use report::Form;
use runner::failure::UsageError;

use super::new_file::NewFile;
use crate::output::print;

/// The destination of a table.
pub(super) type Sink = Box<dyn Write + Send>;

/// Calls `write` with a file to write, or with stdout if `output` is `None`. In a directory the
/// file is called `name`.
pub(super) fn write_to(
    output: Option<&Path>,
    name: &str,
    is_binary: bool,
    write: impl FnOnce(Sink) -> anyhow::Result<Sink>,
) -> anyhow::Result<()> {
    let Some(output) = output else {
        if is_binary && io::stdout().is_terminal() {
            return Err(UsageError::new(
                "this is a binary format, which cannot be written to a terminal",
                Some("name a file: `-o FILE`".into()),
            )
            .into());
        }

        let written =
            write(Box::new(BufWriter::new(io::stdout()))).and_then(|mut sink| Ok(sink.flush()?));
        return match written {
            // A closed pipe is not an error.
            Err(error) if is_broken_pipe(&error) => Ok(()),
            // Other errors say what failed.
            Err(error) if error.is::<io::Error>() => Err(error.context("cannot write to stdout")),
            written => written,
        };
    };

    let path = if is_directory(output) {
        fs_err::create_dir_all(output)?;
        output.join(name)
    } else {
        output.to_owned()
    };

    // A device or a pipe stays what it is.
    let is_special = path.metadata().is_ok_and(|facts| !facts.is_file());
    if is_special {
        let sink = fs_err::OpenOptions::new().write(true).open(&path)?;
        write(Box::new(BufWriter::new(sink)))?.flush()?;
    } else {
        write_file(&path, write)?;
    }
    print(&format!("{}\n", path.display()))
}

/// Returns whether an output is a directory, or shall be one.
pub(super) fn is_directory(output: &Path) -> bool {
    output.is_dir() || output.to_string_lossy().ends_with('/')
}

/// Lets `write` write a file, which has its name when all of it is there.
pub(super) fn write_file(
    path: &Path,
    write: impl FnOnce(Sink) -> anyhow::Result<Sink>,
) -> anyhow::Result<()> {
    let file = NewFile::new(path);
    write(Box::new(BufWriter::new(file.create()?)))?.flush()?;
    Ok(file.keep()?)
}

/// Returns the name of a file that is written in this form.
pub(super) fn file_name(name: &str, form: Form) -> String {
    let ending = match form {
        Form::Csv => "csv",
        Form::Parquet => "parquet",
    };
    format!("{name}.{ending}")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}

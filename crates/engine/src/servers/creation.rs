//! Makes the database of a new server as its config says: extensions, statements, and the format of
//! tables.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use fs_err as fs;
use words::Limits;

use super::sql_kind::SqlKind;
use super::sql_server::{SqlServer, connect_alone};
use crate::contract::{Column, ColumnType, Dialect, Session, SqlEngine, Table};
use crate::error::{Error, SetupError};
use crate::local::start_options::StartOptions;
use crate::safety::{trial, user};

/// The table that a trial creates.
const TRIAL_TABLE: &str = "assay_trial";

/// Creates the extensions of a new database, and runs the statements of the config in it.
pub(super) fn set_up<K: SqlKind>(
    options: &StartOptions<'_>,
    session: &mut K::Session,
) -> Result<(), SetupError> {
    let creation = options.creation;
    let has_work = !creation.extensions.is_empty() || !creation.setup_sql.is_empty();
    if !has_work {
        return Ok(());
    }

    if let Some(sql) = K::USUAL_FORMAT {
        session.query(sql).map_err(|error| refused("setup-sql", sql, &error))?;
    }

    for extension in &creation.extensions {
        let name = extension.replace('"', "\"\"");
        let sql = format!("create extension if not exists \"{name}\" cascade");
        session.query(&sql).map_err(|error| {
            SetupError::option(
                "extensions",
                format!("the server cannot create the extension `{extension}`: {error}"),
                "name one that the build has (`select name from pg_available_extensions`); some also need `set.shared_preload_libraries`",
            )
        })?;
    }

    for sql in &creation.setup_sql {
        session.query(sql).map_err(|error| refused("setup-sql", sql, &error))?;
    }
    Ok(())
}

fn refused(option: &str, sql: &str, error: &Error) -> SetupError {
    let what = format!("the server refuses `{sql}`: {error}");
    SetupError::option(option, what, format!("correct `{option}` in the config"))
}

/// Refuses a server that lacks the format of tables that its config selects.
pub(super) fn check_format<K: SqlKind>(session: &mut K::Session) -> Result<(), SetupError> {
    let failed = |source| SetupError::Server {
        server: "the formats of tables".to_owned(),
        help: None,
        source,
    };

    let chosen = session.query_column(K::CHOSEN_FORMAT).map_err(failed)?.concat();
    let available = session.query_column(K::FORMATS).map_err(failed)?;
    if available.iter().any(|format| format.eq_ignore_ascii_case(&chosen)) {
        return Ok(());
    }

    let what = format!(
        "the server does not support table format `{chosen}`; it supports `{}`",
        available.join("`, `")
    );
    Err(missing_format::<K>(what))
}

/// Returns the error for a table format that a server lacks.
pub(super) fn missing_format<K: SqlKind>(what: String) -> SetupError {
    SetupError::option(K::FORMAT_OPTION, what, K::FORMAT_HELP)
}

/// Refuses arguments of the program that creates the data which are assay's own, or which put files
/// elsewhere. The program also accepts the beginning of an argument's name.
pub(crate) fn check_init_arguments(
    options: &StartOptions<'_>,
    reserved: &[&str],
) -> Result<(), SetupError> {
    for argument in &options.creation.init_arguments {
        let name = argument.split('=').next().unwrap_or_default();
        let Some(long) = name.strip_prefix("--").filter(|long| !long.is_empty()) else {
            return Err(SetupError::option(
                "init-arguments",
                format!("`{argument}` is not an argument in its long form"),
                "write each argument as one text: `--name=value` or `--name`",
            ));
        };

        let long = long.replace('_', "-");
        if let Some(known) = reserved.iter().find(|known| known.starts_with(&long)) {
            return Err(SetupError::option(
                "init-arguments",
                format!("assay itself decides on `--{known}`"),
                format!("remove `{argument}` from `init-arguments`"),
            ));
        }
    }
    Ok(())
}

/// Turns the failure of the program that creates the data into one of its arguments, if the config
/// has some.
pub(crate) fn about_init_arguments(options: &StartOptions<'_>, error: SetupError) -> SetupError {
    let SetupError::Command { command, tail, .. } = &error else {
        return error;
    };

    if options.creation.init_arguments.is_empty() {
        return error;
    }

    let is_about_error =
        |line: &&String| line.to_ascii_lowercase().contains("error") || line.contains("--");
    let reason = tail.iter().find(is_about_error).or(tail.last());
    let program = command.split(' ').next().unwrap_or_default();
    let reason = reason.map_or("it printed no reason", |line| line.trim());

    SetupError::option(
        "init-arguments",
        format!("`{program}` fails with `init-arguments`: {reason}"),
        "correct `init-arguments` in the config",
    )
}

impl<K: SqlKind> SqlServer<K> {
    /// Starts a server with the config in a temporary directory, makes its database as the config
    /// says, and creates a table. Nothing is left.
    ///
    /// # Errors
    /// [`SetupError::Config`] for what the server refuses, and those of [`Self::start`].
    pub fn try_creation(options: &StartOptions<'_>) -> Result<(), SetupError> {
        let kind = K::KIND;
        let user = user::server_user(kind.name, options.user, kind.user, options.data_dir)?;
        let directory = trial::Directory::create()?;

        // The server's user must be able to enter it.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o711))?;

        let (name, value) = K::SMALL_CACHE;
        let small_cache = (name.to_owned(), value.to_owned());
        let started = Self::start(&StartOptions {
            set: &[options.set, &[small_cache]].concat(),
            data_dir: &directory.path().join("data"),
            user: user.as_ref().map(|user| user.name.as_str()),
            log: &directory.path().join("log"),
            limits: &Limits::default(),
            network: None,
            replicas: None,
            wrapper: None,
            ..*options
        })?;
        create_trial_table(&started)
    }
}

/// Creates a table in the format of the config.
fn create_trial_table<K: SqlKind>(server: &SqlServer<K>) -> Result<(), SetupError> {
    let table = Table {
        name: TRIAL_TABLE.to_owned(),
        columns: vec![
            Column { name: "id", kind: ColumnType::AutoKey },
            Column { name: "k", kind: ColumnType::Int4 },
        ],
        indexes: Vec::new(),
        partitions: None,
    };

    let refused = |error: Error| {
        SetupError::option(
            "table-options",
            format!("the server cannot create a table: {error}"),
            "correct `table-options` in the config, or choose another `table-format`",
        )
    };

    let mut session = connect_alone::<K>(server.address()).map_err(refused)?;
    let dialect: &dyn Dialect = server.dialect();

    for sql in dialect.create_table(&table) {
        session.query(&sql).map_err(refused)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::config::tests::with_options;

    #[test]
    fn arguments_that_are_assays_own_or_move_files_are_refused() {
        let check = |argument: &str| {
            let creation = words::Creation {
                init_arguments: vec![argument.to_owned()],
                ..words::Creation::default()
            };
            with_options(&[], &[], 1, |options| {
                let options = StartOptions { creation: &creation, ..*options };
                check_init_arguments(&options, &["pgdata", "waldir", "username"])
            })
        };
        for allowed in ["--wal-segsize=64", "--data-checksums", "--locale=de_DE.UTF-8"] {
            check(allowed).unwrap();
        }
        for refused in ["--pgdata=/x", "--wald=/x", "--waldir", "-D/x", "/x", "--", "--user=me"] {
            check(refused).unwrap_err();
        }
    }
}

//! SQLite's library of the system, beside the bundled one in the same process. Assay itself never
//! does that; here it shows that each has its own functions.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::sqlite::{Library, Sqlite};
use engine::{
    Column, ColumnType, Engine as _, ErrorClass, Index, IndexRows, IndexStatements, ParamType,
    Session as _, SettleLimits, SqlEngine as _, Table,
};

use crate::say_skipped;

const FOLDERS: [&str; 3] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];

/// Returns the path of the system's library; `None` if there is none: the test is skipped.
fn path_of_system() -> Option<PathBuf> {
    let mut paths = FOLDERS.iter().map(|folder| PathBuf::from(folder).join("libsqlite3.so.0"));
    let found = paths.find(|path| path.is_file());
    if found.is_none() {
        let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
        assert!(!required.split(',').any(|engine| engine == "sqlite"), "no libsqlite3.so.0");
        say_skipped("the system has no libsqlite3.so.0");
    }
    found
}

fn table() -> Table {
    let columns =
        [("id", ColumnType::AutoKey), ("k", ColumnType::Int4), ("pad", ColumnType::Text(100))];
    Table {
        name: "t".into(),
        columns: columns.map(|(name, kind)| Column { name, kind }).into(),
        indexes: vec![Index { name: "k", columns: vec!["k"] }],
        partitions: None,
    }
}

#[test]
fn a_library_of_the_system_does_what_the_bundled_one_does() {
    let Some(path) = path_of_system() else {
        return;
    };
    for library in [Library::bundled(), Library::open(&path).unwrap()] {
        let directory = tempfile::tempdir().unwrap();
        let set = [("journal_mode".to_owned(), "wal".to_owned())];
        let sqlite = Sqlite::start(library, directory.path(), &set).unwrap();
        let mut session = sqlite.connect().unwrap();
        assert_eq!(
            session.query("select sqlite_version()").unwrap()[0][0].as_deref(),
            Some(sqlite.version())
        );

        let (dialect, table) = (sqlite.dialect(), table());
        for sql in dialect.create_table(&table) {
            session.query(&sql).unwrap();
        }
        let types = [ParamType::Int4, ParamType::Text];
        let insert = session.prepare(&dialect.insert(&table, 1), &types).unwrap();
        for row in 0..1000 {
            session.start(insert);
            session.int4(row);
            session.text("text");
            assert_eq!(session.execute().unwrap().rows, 1);
        }
        for sql in dialect.create_indexes(&table, IndexStatements::Usual) {
            session.query(&sql).unwrap();
        }
        let facts = sqlite.inspect(&table, true).unwrap();
        let counted = ("k".to_owned(), IndexRows::Counted(1000));
        assert_eq!((facts.rows, facts.key_max), (1000, Some(1000)));
        assert_eq!(facts.index_rows, [counted]);

        let error = session.query("insert into t values (1, 1, '')").unwrap_err();
        assert_eq!(error.class, ErrorClass::DuplicateKey, "{error}");
        let limits = SettleLimits { at_least: Duration::ZERO, at_most: Duration::from_secs(60) };
        let settled = sqlite.settle(&[table], limits, &AtomicBool::new(false)).unwrap();
        assert_eq!(settled.pending_after[0].value, 0.0);
    }
}

#[test]
fn each_option_of_the_compilation_is_a_setting() {
    let Some(path) = path_of_system() else {
        return;
    };
    for library in [Library::bundled(), Library::open(&path).unwrap()] {
        let directory = tempfile::tempdir().unwrap();
        let sqlite = Sqlite::start(library, directory.path(), &[]).unwrap();
        let settings = sqlite.settings().unwrap();
        let compiled = |name: &str| {
            let name = format!("compile_option.{name}");
            let found = settings.iter().find(|setting| setting.name == name);
            found.map(|setting| (setting.value.as_str(), setting.source.as_deref().unwrap()))
        };
        let (_, source) = compiled("COMPILER").unwrap();
        assert_eq!(source, "build");
        assert_eq!(compiled("THREADSAFE"), Some(("1", "build")));
        assert_eq!(compiled("SYSTEM_MALLOC"), Some(("on", "build")), "an option without a value");
    }
}

#[test]
fn a_process_loads_only_one_library() {
    let Some(path) = path_of_system() else {
        return;
    };
    let first = Library::open(&path).unwrap();
    assert_eq!(Library::open(&path).unwrap().version(), first.version());

    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("libsqlite3.so.0");
    fs_err::copy(&path, &copy).unwrap();
    let error = Library::open(&copy).unwrap_err();
    assert!(error.to_string().contains("this process has already loaded"), "{error}");
}

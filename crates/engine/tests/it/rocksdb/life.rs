//! Opening and closing databases, options, and errors.

use std::path::Path;

use engine::Engine as _;
use engine::rocksdb::{Library, RocksDb};
use engine::{
    DataDir, KeyValueEngine as _, KeyValueLibrary as _, KeyValueSession, LibraryConfig, SetupError,
    UnknownOption,
};
use fs_err as fs;
use memchr::memmem;

use super::{LIBRARY, LIMITS, SMALL, alone, config, key, libraries, on_each, small, value};

#[test]
fn a_library_tells_what_it_is() {
    on_each(|library| {
        let version = library.version();
        assert!((6..=10).contains(&version.major), "{version}");
        let text = library.version_text();
        assert!(text.contains(&version.to_string()), "{text}");
        if library.path().to_string_lossy().contains("speedb") {
            assert!(text.starts_with("Speedb "), "{text}");
        }
        // It is the library of this process, and the only one.
        let again = Library::open(library.path()).unwrap();
        assert!(std::sync::Arc::ptr_eq(&again, library));
        let other = Library::open(&std::env::current_exe().unwrap()).unwrap_err();
        assert!(other.to_string().contains("already loaded"), "{other}");
    });
}

#[test]
fn what_was_written_is_there_when_opened_again() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let directory = DataDir::create(place.path(), "cell").unwrap();
        let database = small(library, directory.path());
        let mut session = database.connect();
        for n in 0..3000 {
            session.put(&key(n), &value(n)).unwrap();
        }
        drop(session);
        let storage = database.storage();
        assert!(storage.data[0].join("CURRENT").exists());
        let logs = fs::read_dir(&storage.logs[0]).unwrap();
        assert!(logs.count() > 0, "the log has its own folder");
        assert!(database.log_path().unwrap().exists());
        assert!(!database.log_tail(5).is_empty());
        database.stop().unwrap();
        // A new one is not made where one is.
        assert!(RocksDb::create(library, directory.path(), &config(&SMALL)).is_err());
        let database = RocksDb::open(library, directory.path(), &config(&SMALL)).unwrap();
        assert_eq!(database.inspect().unwrap().keys, 3000);
        let session = database.connect();
        let busy = database.stop().unwrap_err();
        assert!(busy.to_string().contains("1 sessions"), "{busy}");
        drop(session);
        directory.wipe().unwrap();
        small(library, directory.path()).stop().unwrap();
        directory.remove().unwrap();
    });
}

#[test]
fn options_are_read_back_as_the_library_has_them() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let database = small(library, place.path());
        let settings = database.settings().unwrap();

        let get = |name: &str| {
            let found = settings.iter().find(|setting| setting.name == name);
            let setting = found.unwrap_or_else(|| panic!("no `{name}` in {settings:#?}"));
            (setting.value.clone(), setting.source.clone().unwrap_or_default())
        };

        assert_eq!(get("[CFOptions] write_buffer_size"), ("65536".into(), "config".into()));
        assert_eq!(get("[DBOptions] max_background_jobs").1, "config");
        assert_eq!(get("[DBOptions] use_direct_reads"), ("false".into(), "default".into()));
        assert_eq!(get("[TableOptions/BlockBasedTable] block_size").0, "4096");
        assert_eq!(get("block_cache_capacity_bytes").0, (1 << 20).to_string());
        assert_eq!(get("perf_level"), ("disable".into(), "assay".into()));
        let filter = get("[TableOptions/BlockBasedTable] filter_policy").0;
        assert!(!filter.contains("nullptr"), "{filter}");
        database.stop().unwrap();

        // The file that the library wrote is a config.
        let written = fs::read_dir(place.path().join("db")).unwrap();
        let file = written
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().contains("OPTIONS-"))
            .max()
            .unwrap();

        let other = tempfile::tempdir().unwrap();
        let from_file = LibraryConfig {
            file: Some(fs::read_to_string(file).unwrap()),
            set: vec![
                ("block_size".into(), "8K".into()),
                // Versions before 6.20 write it as a name alone, which nothing can be made from.
                ("filter_policy".into(), "bloomfilter:10:false".into()),
            ],
            ..LibraryConfig::default()
        };

        let database = RocksDb::create(library, other.path(), &from_file).unwrap();
        let again = database.settings().unwrap();

        let mut compared = 0;
        for setting in &settings {
            let value = &again.iter().find(|it| it.name == setting.name);
            match setting.name.as_str() {
                "[TableOptions/BlockBasedTable] block_size" => {
                    assert_eq!(value.unwrap().value, "8192");
                }
                name if name.contains("cache")
                    || name.contains("wal_dir")
                    || name.contains("filter_policy") => {}
                _ => {
                    assert_eq!(value.unwrap().value, setting.value, "{}", setting.name);
                    compared += 1;
                }
            }
        }
        assert!(compared > 100, "{compared}");
    });
}

#[test]
fn an_unknown_option_is_refused_or_left_out() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let mut unknown = config(&[
            ("write_buffer_size", "64K"),
            ("no_such_option", "1"),
            ("block_based_table_factory.no_such_either", "1"),
        ]);
        let refused = RocksDb::create(library, place.path(), &unknown).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("`no_such_option`"), "{text}");
        assert!(text.contains("`block_based_table_factory.no_such_either`"), "{text}");
        assert!(text.contains(&library.version().to_string()), "{text}");
        assert!(!text.contains("write_buffer_size"), "{text}");
        assert!(refused.help().is_some());
        unknown.unknown = UnknownOption::Skip;
        let database = RocksDb::create(library, place.path(), &unknown).unwrap();
        assert_eq!(
            database.left_out_options(),
            ["no_such_option", "block_based_table_factory.no_such_either"]
        );
        // A value that cannot be is refused in either case.
        let other = tempfile::tempdir().unwrap();
        let mut wrong = config(&[("write_buffer_size", "much"), ("compression", "kNoCompression")]);
        wrong.unknown = UnknownOption::Skip;
        let text = RocksDb::create(library, other.path(), &wrong).unwrap_err().to_string();
        assert!(text.contains("`write_buffer_size = much`"), "{text}");
        assert!(!text.contains("`compression"), "{text}");
    });
}

#[test]
fn a_config_is_tried_without_a_database_and_all_errors_are_reported() {
    on_each(|library| {
        let mut tried = config(&SMALL);
        tried.set.extend(config(&[("use_direct_reads", "true")]).set);
        assert_eq!(library.try_config(&tried).unwrap(), [""; 0]);
        tried.set.extend(config(&[("no_such_option", "1")]).set);
        tried.unknown = UnknownOption::Skip;
        assert_eq!(library.try_config(&tried).unwrap(), ["no_such_option"]);
        tried.unknown = UnknownOption::Refuse;
        let wrong = config(&[
            ("write_buffer_size", "much"),
            ("use_direct_reads", "perhaps"),
            ("block_cache", "{id=HyperClockCache;capacity=8M;estimated_entry_charge=4K}"),
        ]);
        tried.set.extend(wrong.set);
        let text = library.try_config(&tried).unwrap_err().to_string();
        for part in
            ["`write_buffer_size = much`", "`use_direct_reads = perhaps`", "`no_such_option`"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let lacks = text.contains("does not support the cache");
        assert_eq!(lacks, !library.has_clock_cache(false), "{text}");
        // What the library takes and cannot open.
        let contradiction = config(&[
            ("use_direct_reads", "false"),
            ("allow_mmap_reads", "true"),
            ("allow_concurrent_memtable_write", "true"),
            ("inplace_update_support", "true"),
        ]);
        assert!(library.try_config(&contradiction).is_err());
    });
}

#[test]
fn caches_without_locks_are_there_or_not_applicable() {
    on_each(|library| {
        for (cache, is_there) in [
            (
                "{id=HyperClockCache;capacity=8M;estimated_entry_charge=4K}",
                library.has_clock_cache(false),
            ),
            ("{id=AutoHyperClockCache;capacity=8M}", library.has_clock_cache(true)),
        ] {
            let place = tempfile::tempdir().unwrap();
            let mut with_cache = config(&[("block_cache", cache), ("block_size", "8192")]);
            let opened = RocksDb::create(library, place.path(), &with_cache);
            if !is_there {
                let text = opened.unwrap_err().to_string();
                assert!(text.contains("does not support the cache"), "{text}");
                with_cache.unknown = UnknownOption::Skip;
                let database = RocksDb::create(library, place.path(), &with_cache).unwrap();
                assert_eq!(database.left_out_options().len(), 1);
                continue;
            }

            let database = opened.unwrap();
            let mut session = database.connect();
            for n in 0..2000 {
                session.put(&key(n), &value(n)).unwrap();
            }
            database.settle(false, LIMITS, &super::GO_ON).unwrap();
            for n in 0..2000 {
                assert_eq!(session.get(&key(n)).unwrap(), Some(&value(n)[..]));
            }

            // The cache does not reset other options of tables.
            let settings = database.settings().unwrap();
            let block = settings.iter().find(|it| it.name.ends_with("] block_size")).unwrap();
            assert_eq!(block.value, "8192");
            let log = fs::read_to_string(database.log_path().unwrap()).unwrap();
            assert!(log.contains("HyperClockCache"), "{cache}");
        }
    });
}

#[test]
fn a_database_of_a_newer_version_is_refused() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        small(library, place.path()).stop().unwrap();
        for entry in fs::read_dir(place.path().join("db")).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains("OPTIONS-") {
                let own = format!("rocksdb_version={}", library.version());
                let text = fs::read_to_string(&path).unwrap();
                assert!(text.contains(&own));
                fs::write(&path, text.replace(&own, "rocksdb_version=99.1.0")).unwrap();
            }
        }
        let refused = RocksDb::open(library, place.path(), &config(&SMALL)).unwrap_err();
        assert!(matches!(refused, SetupError::Directory { .. }));
        let text = refused.to_string();
        assert!(text.contains("99.1.0") && text.contains(library.version_text()), "{text}");
    });
}

/// The directory of a test in which several libraries take part.
const SHARED: &str = "ASSAY_TEST_ROCKSDB_SHARED";

#[test]
fn a_database_goes_to_newer_libraries_and_not_back() {
    let name = "rocksdb::life::a_database_goes_to_newer_libraries_and_not_back";
    if let Some(shared) = std::env::var_os(SHARED) {
        let shared = Path::new(&shared);
        let library = Library::open(Path::new(&std::env::var_os(LIBRARY).unwrap())).unwrap();
        let path = shared.join("version");
        let written = fs::read_to_string(&path)
            .ok()
            .map(|text| text.parse::<engine::rocksdb::Version>().unwrap());
        match written {
            None => small(&library, shared).stop().unwrap(),
            Some(written) => {
                let opened = RocksDb::open(&library, shared, &config(&SMALL));
                assert_eq!(opened.is_ok(), written <= *library.version(), "{written}: {opened:?}");
                if opened.is_err() {
                    return;
                }
            }
        }
        fs::write(path, library.version().to_string()).unwrap();
        return;
    }
    let libraries = libraries();
    let shared = tempfile::tempdir().unwrap();
    for library in libraries.iter().chain(&libraries) {
        alone(name, library, &[(SHARED, shared.path())]);
    }
}

#[test]
fn a_library_without_a_function_is_refused_with_its_name() {
    let name = "rocksdb::life::a_library_without_a_function_is_refused_with_its_name";
    if let Some(path) = std::env::var_os(LIBRARY) {
        let place = tempfile::tempdir().unwrap();
        let mut bytes = fs::read(path).unwrap();
        let symbol = b"\0rocksdb_get_pinned\0";
        let at = memmem::find(&bytes, symbol).unwrap();
        bytes[at + symbol.len() - 2] = b'X';
        let lacking = place.path().join("lacking.so");
        fs::write(&lacking, bytes).unwrap();
        let text = Library::open(&lacking).unwrap_err().to_string();
        assert!(text.contains("API: rocksdb_get_pinned"), "{text}");
        assert!(!text.contains(','), "only that one: {text}");
        return;
    }
    for library in libraries().iter().take(1) {
        alone(name, library, &[]);
    }
}

#[test]
fn a_directory_without_a_database_is_not_opened() {
    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let error = RocksDb::open(library, place.path(), &config(&[])).unwrap_err();
        assert!(error.to_string().contains("has no database"), "{error}");
    });
}

#[test]
fn a_number_that_the_library_would_take_for_another_is_refused() {
    on_each(|library| {
        let wrong = [
            ("write_buffer_size", "-5Q", "an integer below 2^64"),
            ("ttl", "-5", "non-negative"),
            ("max_write_buffer_number", "4abc", "an integer below 2^64"),
            ("stats_history_buffer_size", "99999999999T", "below 2^64"),
            ("max_bytes_for_level_multiplier", "10K", "a decimal number"),
            ("block_based_table_factory.block_size", "4KB", "an integer below 2^64"),
            ("block_based_table_factory.block_cache", "4abc", "expected a number"),
        ];

        let all = wrong.map(|(name, value, _)| (name, value));
        let text = library.try_config(&config(&all)).unwrap_err().to_string();
        for (name, value, expected) in wrong {
            let said = text.split("; ").find(|part| part.contains(name));
            let said = said.unwrap_or_else(|| panic!("{name}: {text}"));
            assert!(said.contains(&format!("`{name} = {value}`")), "{said}");
            assert!(said.contains(expected), "{said}");
        }

        for (name, value, part) in [
            ("compaction_options_fifo", "{max_table_files_size=-1}", "max_table_files_size = -1"),
            (
                "block_based_table_factory.block_cache",
                "{capacity=1M;num_shard_bits=4abc}",
                "num_shard_bits = 4abc",
            ),
        ] {
            let text = library.try_config(&config(&[(name, value)])).unwrap_err();
            let part = format!("`{name}.{part}`");
            assert!(text.to_string().contains(&part), "{text}");
        }

        let right = config(&[
            ("max_open_files", "-1"),
            ("write_buffer_size", "1m"),
            ("max_bytes_for_level_multiplier", "8"),
            ("compression_opts", "{window_bits=-13}"),
            ("block_cache", "{capacity=1M;num_shard_bits=-1}"),
        ]);
        assert_eq!(library.try_config(&right).unwrap(), [""; 0]);
    });
}

#[test]
fn a_cache_that_the_library_does_not_make_is_refused() {
    on_each(|library| {
        for what in ["num_shard_bits=30", "high_pri_pool_ratio=7"] {
            let cache = format!("{{capacity=1M;{what}}}");
            let refused = library.try_config(&config(&[("block_cache", &cache)])).unwrap_err();
            let text = refused.to_string();
            assert!(text.contains("block_cache = {capacity=1M;"), "{text}");
            assert!(text.contains("made no block cache"), "{text}");
            assert!(refused.help().unwrap().contains("`num_shard_bits`"));
        }
        // A config may turn off the cache of the one that it extends: then no cache is recorded.
        let off = config(&[("block_cache", "1M"), ("no_block_cache", "true")]);
        let place = tempfile::tempdir().unwrap();
        let database = RocksDb::create(library, place.path(), &off).unwrap();
        let settings = database.settings().unwrap();
        assert!(!settings.iter().any(|it| it.name.ends_with("] block_cache")));
    });
}

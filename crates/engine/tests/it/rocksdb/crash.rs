//! A process that is killed while it writes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use engine::rocksdb::{Library, RocksDb};
use engine::{Durability, KeyValueEngine as _, KeyValueSession};

use super::{LIBRARY, SMALL, config, key, on_each, small, value};

/// Set in the process that writes and is killed: its directory.
const WRITER: &str = "ASSAY_TEST_ROCKSDB_WRITER";
/// So many writes are known to be done before the kill.
const SAMPLED: u64 = 5000;

#[test]
fn what_was_written_before_a_kill_is_there_after_it() {
    let name = "rocksdb::crash::what_was_written_before_a_kill_is_there_after_it";
    if let Some(directory) = std::env::var_os(WRITER) {
        write_until_killed(Path::new(&directory));
    }

    on_each(|library| {
        let place = tempfile::tempdir().unwrap();
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(WRITER, place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();

        let mut said = 0;
        for line in BufReader::new(writer.stderr.take().unwrap()).lines() {
            if let Some(count) = line.unwrap().strip_prefix("written ") {
                said = count.parse::<u64>().unwrap();
            }
            if said >= SAMPLED {
                break;
            }
        }

        writer.kill().unwrap();
        writer.wait().unwrap();
        assert!(said >= SAMPLED, "the writer ended by itself after {said}");

        let database = RocksDb::open(library, place.path(), &config(&SMALL)).unwrap();
        // No gap: what the log lost could only be its end.
        let facts = database.inspect().unwrap();
        assert!(facts.keys >= said, "{} of {said}", facts.keys);
        assert_eq!(facts.last.as_deref(), Some(&key(facts.keys - 1)[..]));

        let mut session = database.connect();
        for n in (0..facts.keys).step_by(97) {
            assert_eq!(session.get(&key(n)).unwrap(), Some(&value(n)[..]));
        }
        session.put(&key(facts.keys), b"goes on").unwrap();
    });
}

fn write_until_killed(directory: &Path) -> ! {
    let library = Library::open(Path::new(&std::env::var_os(LIBRARY).unwrap())).unwrap();
    let database = small(&library, directory);
    let mut session = database.connect();
    session.set_durability(Durability::Process);
    for n in 0.. {
        session.put(&key(n), &value(n)).unwrap();
        if (n + 1) % 500 == 0 {
            let said = format!("written {}\n", n + 1);
            std::io::stderr().write_all(said.as_bytes()).unwrap();
        }
    }
    unreachable!("it is killed")
}

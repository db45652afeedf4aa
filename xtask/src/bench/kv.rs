//! The key-value sequence against RocksDB's own `db_bench`: one library file, one set of options, as many keys of the
//! same size. And what an operation costs outside of the library, on an engine that does nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::Value;
use tempfile::TempDir;

use super::Setup;
use super::limit::{Limit, Pick};
use super::pair::{Bound, Contender, Figure, Finished, Pair, Sample, Spent, finish};
use crate::prepare;
use crate::workspace::{Workspace, output, succeeds};

/// Keys of the database that is read and overwritten: 8 MB, so that the library has little to wait for and what is around
/// it shows.
const KEY_COUNT: u64 = 20_000;
/// Keys that `fillseq` writes: three files, too few for a compaction, for whose end only one side would wait.
const FILL_COUNT: u64 = 800_000;
const SECONDS: u64 = 2;
/// What the writer beside readers writes.
const WRITE_BYTES_PER_S: u64 = 2 << 20;

/// What both sides are opened with: neither waits for a flush, reads are from the cache, and nothing is compressed.
const FLAGS: [&str; 11] = [
    "--key_size=20",
    "--value_size=400",
    "--compression_type=none",
    "--write_buffer_size=134217728",
    "--max_write_buffer_number=8",
    "--bloom_bits=10",
    "--cache_size=536870912",
    "--cache_numshardbits=6",
    "--histogram=1",
    "--seek_nexts=10",
    "--seed=1",
];
/// The options file that `db_bench` leaves says all of it but for this.
const CACHE: &str = "{capacity=536870912;num_shard_bits=6}";
/// What differs between the files that both sides leave: `db_bench` listens for errors; where the log is, and whether a
/// database is made.
const MAY_DIFFER: [&str; 5] = [
    "listeners",
    "wal_dir",
    "create_if_missing",
    "create_missing_column_families",
    "error_if_exists",
];

/// Read by `db_bench` before it measures, so that the cache is filled.
const WARM: &str = "readtocache";

/// The database that `fillseq` makes.
const FILLED: &str = "filled";

/// One test, as both sides call it.
struct Test {
    ours: &'static str,
    peer: &'static str,
    /// It changes the database: each run has a copy.
    writes: bool,
}

const TESTS: [Test; 4] = [
    Test {
        ours: "readrandom",
        peer: "readrandom",
        writes: false,
    },
    Test {
        ours: "fwdrange",
        peer: "seekrandom",
        writes: false,
    },
    Test {
        ours: "overwrite",
        peer: "overwrite",
        writes: true,
    },
    Test {
        ours: "readwhilewriting",
        peer: "readwhilewriting",
        writes: true,
    },
];

/// Keys of the engine that does nothing: all of them in the nearest cache.
const NOTHING_KEY_COUNT: u64 = 500;
const NOTHING_SECONDS: u64 = 1;
/// ns of CPU, clock and histogram included.
const OUTSIDE_AT_MOST: f64 = 100.0;
/// A step, what its operation is called in the table, and whether the bound is for it.
const OUTSIDE: [(&str, &str, bool); 4] = [
    ("overwrite", "outside_put_cpu_ns", true),
    ("readrandom", "outside_get_cpu_ns", true),
    ("fwdrange", "outside_scan_of_10_cpu_ns", true),
    ("multireadrandom", "outside_multiget_of_10_cpu_ns", false),
];

/// Runs all tests, then measures what is outside of the library.
pub fn run(setup: &Setup) -> Result<bool> {
    if !prepare::program("db_bench", "rocksdb-tools")? {
        bail!("no `db_bench` - install what Debian calls: rocksdb-tools");
    }
    let sides = Sides::load(build(&Workspace::here())?)?;
    println!("library: {}", sides.library);
    println!("fillseq, clients: 1");
    let mut kept = sides.fill(sides.start()?).run(setup.round_count)?;
    for test in &TESTS {
        let warm = sides.warm()?;
        for clients in [1, 2] {
            println!("{}, clients: {clients}", test.ours);
            kept &= sides.pair(test, clients, warm).run(setup.round_count)?;
        }
    }
    Ok(kept & outside(&sides.program, setup.round_count)?)
}

fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = workspace.cargo();
    command.args(["build", "--release", "--package", "load", "--example", "kv"]);
    if !succeeds(&mut command)? {
        bail!("the example could not be built, see above");
    }
    Ok(workspace.target_directory()?.join("release/examples/kv"))
}

/// Both programs, and a database of each.
struct Sides {
    program: PathBuf,
    /// The file that both use.
    library: String,
    home: TempDir,
}

impl Sides {
    /// Makes both databases, ours with the options that `db_bench` left, and holds the options against each other.
    fn load(program: PathBuf) -> Result<Sides> {
        let sides = Sides {
            program,
            library: library()?,
            home: home()?,
        };
        let mut command = sides.peer("peer", KEY_COUNT, "fillseq,flush");
        command.arg("--disable_wal=1");
        output(&mut command)?;
        let options = newest_options(&sides.at("peer"))?;
        let ours: Vec<&str> = options.lines().filter(|line| !may_differ(line)).collect();
        fs::write(sides.at("options"), ours.join("\n"))?;
        output(sides.ours("ours", "fillseq").arg(KEY_COUNT.to_string()))?;
        let differences = differences(&options, &newest_options(&sides.at("ours/db"))?);
        if !differences.is_empty() {
            bail!("the options differ - {}", differences.join("; "));
        }
        Ok(sides)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Our program, on a database of that name.
    fn ours(&self, name: &str, step: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(&self.library);
        command.args([self.at(name), self.at("options")]);
        command.args([CACHE, step]);
        command
    }

    /// `db_bench`, on a database of that name.
    fn peer(&self, name: &str, key_count: u64, tests: &str) -> Command {
        let mut command = Command::new("db_bench");
        command.args(FLAGS);
        command.arg(format!("--db={}", self.at(name).display()));
        command.arg(format!("--num={key_count}"));
        command.arg(format!("--benchmarks={tests}"));
        command
    }

    /// A copy of a database, to be changed.
    fn copy(&self, name: &str) -> Result<&'static str> {
        const COPY: &str = "copy";
        self.remove(COPY)?;
        copy(&self.at(name), &self.at(COPY))?;
        Ok(COPY)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let folder = self.at(name);
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        Ok(())
    }

    /// Our program, which makes a database of so many keys.
    fn our_fill(&self, key_count: u64) -> Result<Command> {
        self.remove(FILLED)?;
        let mut command = self.ours(FILLED, "fillseq");
        command.arg(key_count.to_string());
        Ok(command)
    }

    /// `db_bench`, which makes a database of so many keys without a log, to its end in files.
    fn peer_fill(&self, key_count: u64) -> Result<Command> {
        self.remove(FILLED)?;
        let mut command = self.peer(FILLED, key_count, "fillseq,flush");
        command.arg("--disable_wal=1");
        Ok(command)
    }

    /// What both sides spend on a database of one key.
    fn start(&self) -> Result<[Spent; 2]> {
        let ours = Spent::of(&finish(self.our_fill(1)?)?);
        Ok([ours, Spent::of(&finish(self.peer_fill(1)?)?)])
    }

    /// `fillseq` on both sides.
    fn fill(&self, start: [Spent; 2]) -> Pair<'_> {
        let [ours, peer] = start;
        Pair {
            ours: Contender {
                name: "assay".to_owned(),
                command: Box::new(|| self.our_fill(FILL_COUNT)),
                read: Box::new(move |finished| Ok(ours.without(sample(finished)?))),
            },
            peer: Contender {
                name: "db_bench".to_owned(),
                command: Box::new(|| self.peer_fill(FILL_COUNT)),
                read: Box::new(move |finished| {
                    Ok(peer.without(sample_of_peer("fillseq", finished)?))
                }),
            },
            bounds: vec![Bound::RatioAtLeast(Figure::Throughput, 1.0)],
        }
    }

    /// What both sides spend before they measure.
    fn warm(&self) -> Result<[Spent; 2]> {
        let once = || -> Result<[Spent; 2]> {
            let mut ours = self.ours("ours", "warm");
            ours.arg(KEY_COUNT.to_string());
            let mut peer = self.peer("peer", KEY_COUNT, WARM);
            peer.arg("--use_existing_db=1");
            Ok([Spent::of(&finish(ours)?), Spent::of(&finish(peer)?)])
        };
        // The first time brings the files into memory.
        once()?;
        once()
    }

    /// A test on the databases that are there.
    fn pair<'a>(&'a self, test: &'a Test, clients: u32, warm: [Spent; 2]) -> Pair<'a> {
        let place = |name: &'static str| match test.writes {
            true => self.copy(name),
            false => Ok(name),
        };
        let [ours, peer] = warm;
        let peer_test = test.peer;
        Pair {
            ours: Contender {
                name: "assay".to_owned(),
                command: Box::new(move || {
                    let mut command = self.ours(place("ours")?, test.ours);
                    let numbers = [KEY_COUNT, clients.into(), SECONDS, WRITE_BYTES_PER_S];
                    command.args(numbers.map(|number| number.to_string()));
                    Ok(command)
                }),
                read: Box::new(move |finished| Ok(ours.without(sample(finished)?))),
            },
            peer: Contender {
                name: "db_bench".to_owned(),
                command: Box::new(move || {
                    let tests = format!("{WARM},{}", test.peer);
                    let mut command = self.peer(place("peer")?, KEY_COUNT, &tests);
                    command.arg("--use_existing_db=1");
                    command.arg(format!("--threads={clients}"));
                    command.arg(format!("--duration={SECONDS}"));
                    if test.peer == "readwhilewriting" {
                        command.arg(format!("--benchmark_write_rate_limit={WRITE_BYTES_PER_S}"));
                    }
                    Ok(command)
                }),
                read: Box::new(move |finished| {
                    Ok(peer.without(sample_of_peer(peer_test, finished)?))
                }),
            },
            bounds: vec![Bound::RatioAtLeast(Figure::Throughput, 1.0)],
        }
    }
}

/// The library that `db_bench` is linked with, as the dynamic linker finds it.
fn library() -> Result<String> {
    let linked = output(Command::new("sh").args(["-c", "ldd \"$(command -v db_bench)\""]))?;
    linked_library(&linked).with_context(|| {
        format!("`db_bench` is not linked with a shared library of RocksDB:\n{linked}")
    })
}

fn linked_library(linked: &str) -> Option<String> {
    let line = linked
        .lines()
        .find(|line| line.trim_start().starts_with("librocksdb.so"))?;
    let path = line.split_once("=>")?.1.split_whitespace().next()?;
    path.starts_with('/').then(|| path.to_owned())
}

/// A folder in memory where there is one: what is measured is a client, and the library shall not wait for a disk.
fn home() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    match tempfile::tempdir_in(memory) {
        Ok(home) => Ok(home),
        Err(_) => tempfile::tempdir().context("cannot make a folder for the databases"),
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The options that the library wrote last into a database's folder.
fn newest_options(folder: &Path) -> Result<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix("OPTIONS-")?.parse::<u64>().ok());
        files.extend(number.map(|number| (number, path)));
    }
    let newest = files.into_iter().max();
    let (_, path) = newest.with_context(|| format!("no options file in `{}`", folder.display()))?;
    Ok(fs::read_to_string(path)?)
}

fn may_differ(line: &str) -> bool {
    let name = line.split('=').next().unwrap_or(line).trim();
    MAY_DIFFER.contains(&name)
}

/// The lines that only one of the two files has.
fn differences(one: &str, other: &str) -> Vec<String> {
    let lines = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.starts_with('#') && !may_differ(line))
            .collect()
    };
    let (one, other) = (lines(one), lines(other));
    let only = |here: &[String], there: &[String]| -> Vec<String> {
        let missing = here.iter().filter(|line| !there.contains(line));
        missing.cloned().collect()
    };
    [only(&one, &other), only(&other, &one)].concat()
}

/// What our program did, by its own account, which leaves opening and warming out.
fn sample(finished: &Finished) -> Result<Sample> {
    let came = Came::read(finished)?;
    Ok(Sample {
        elapsed_ns: came.elapsed_ns,
        ..finished.sample(came.op_count)
    })
}

/// What our program printed.
struct Came {
    op_count: u64,
    elapsed_ns: u64,
    /// CPU time of the threads that did them.
    client_cpu_ns: u64,
}

impl Came {
    fn read(finished: &Finished) -> Result<Came> {
        let came: Value = serde_json::from_str(&finished.stdout)
            .context("cannot read what the example printed")?;
        let number = |name: &str| {
            came[name]
                .as_u64()
                .with_context(|| format!("the example printed no `{name}`"))
        };
        Ok(Came {
            op_count: number("operations")?,
            elapsed_ns: number("elapsed_ns")?,
            client_cpu_ns: number("client_cpu_ns")?,
        })
    }
}

/// What `db_bench` did in that test, by its own account: of `readwhilewriting` the reads.
fn sample_of_peer(test: &str, finished: &Finished) -> Result<Sample> {
    let of_test = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        (name.trim() == test).then(|| rest.to_owned())
    };
    let result = finished.stdout.lines().find_map(of_test);
    let result = result.with_context(|| format!("`db_bench` printed no result of `{test}`"))?;
    let words: Vec<&str> = result.split_whitespace().collect();
    let before = |unit: &str| -> Option<f64> {
        let at = words.iter().position(|word| *word == unit)?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    let (Some(per_second), Some(op_count)) = (before("ops/sec"), before("operations;")) else {
        bail!("`db_bench` printed no rate of `{test}`: {result}");
    };
    Ok(Sample {
        elapsed_ns: (op_count / per_second * 1e9) as u64,
        ..finished.sample(op_count as u64)
    })
}

/// Runs steps on the engine that does nothing, and judges what an operation costs.
fn outside(program: &Path, round_count: usize) -> Result<bool> {
    println!("outside of the library");
    let mut kept = true;
    for (step, name, is_bound) in OUTSIDE {
        let mut values = Vec::with_capacity(round_count);
        for _ in 0..round_count {
            let mut command = Command::new(program);
            command.args(["nothing", step]);
            let numbers = [NOTHING_KEY_COUNT, 1, NOTHING_SECONDS];
            command.args(numbers.map(|number| number.to_string()));
            let came = Came::read(&finish(command)?)?;
            values.push(came.client_cpu_ns as f64 / came.op_count as f64);
        }
        let limit = Limit {
            name,
            at_most: is_bound.then_some(OUTSIDE_AT_MOST),
            pick: Pick::Least,
        };
        let (line, holds) = limit.judge(&values);
        println!("{line}");
        kept &= holds;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(stdout: &str) -> Finished {
        Finished {
            stdout: stdout.to_owned(),
            user_ns: 5,
            system_ns: 6,
            elapsed_ns: 7,
        }
    }

    #[test]
    fn what_db_bench_printed_of_the_test_is_read() {
        let text = "Keys:       20 bytes each\n\
                    readtocache  :  1.772 micros/op 564382 ops/sec 0.886 seconds 500000 operations; 226.1 MB/s\n\
                    readrandom   :  4.854 micros/op 200000 ops/sec 4.854 seconds 1000000 operations;   82.5 MB/s \
                    (1000000 of 1000000 found)\n";
        let read = sample_of_peer("readrandom", &finished(text)).unwrap();
        assert_eq!((read.op_count, read.elapsed_ns), (1_000_000, 5_000_000_000));
        assert_eq!((read.user_ns, read.system_ns), (5, 6));
        assert!(sample_of_peer("overwrite", &finished(text)).is_err());
        assert!(sample_of_peer("overwrite", &finished("overwrite : failed\n")).is_err());
    }

    #[test]
    fn what_the_example_printed_is_read() {
        let text = r#"{"operations": 30, "elapsed_ns": 40, "client_cpu_ns": 50, "beside": 0}"#;
        let read = sample(&finished(text)).unwrap();
        assert_eq!((read.op_count, read.elapsed_ns), (30, 40));
        assert!(sample(&finished("{}")).is_err());
    }

    #[test]
    fn the_library_is_the_one_that_is_linked() {
        let linked = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                      \tlibrocksdb.so.7.8 => /lib/x/librocksdb.so.7.8 (0x00007fee)\n";
        assert_eq!(
            linked_library(linked).as_deref(),
            Some("/lib/x/librocksdb.so.7.8")
        );
        assert_eq!(
            linked_library("\tlibc.so.6 => /lib/libc.so.6 (0x1)\n"),
            None
        );
        assert_eq!(linked_library("\tlibrocksdb.so.7.8 => not found\n"), None);
    }

    #[test]
    fn options_differ_in_what_matters() {
        let one = "# a\n[DBOptions]\n  wal_dir=/a\n  max_open_files=-1\n  listeners={X}\n";
        let other = "# b\n[DBOptions]\n  max_open_files=-1\n  wal_dir=/b\n";
        assert!(differences(one, other).is_empty());
        let changed = other.replace("-1", "7");
        assert_eq!(
            differences(one, &changed),
            ["max_open_files=-1", "max_open_files=7"]
        );
    }

    #[test]
    fn the_newest_options_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert!(newest_options(folder.path()).is_err());
        for (name, text) in [
            ("OPTIONS-000009", "old"),
            ("OPTIONS-000010", "new"),
            ("OPTIONS-000011.dbtmp", "half"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(newest_options(folder.path()).unwrap(), "new");
    }

    #[test]
    fn a_database_is_copied_with_its_folders() {
        let home = tempfile::tempdir().unwrap();
        let from = home.path().join("from");
        fs::create_dir_all(from.join("wal")).unwrap();
        fs::write(from.join("wal/1.log"), "text").unwrap();
        copy(&from, &home.path().join("to")).unwrap();
        let copied = fs::read_to_string(home.path().join("to/wal/1.log")).unwrap();
        assert_eq!(copied, "text");
    }
}

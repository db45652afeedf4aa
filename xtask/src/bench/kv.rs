//! The key-value sequence against RocksDB's own `db_bench`: one library file, one set of options, as many keys of the
//! same size. And what an operation costs outside of the library, on an engine that does nothing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use tempfile::TempDir;

use super::measure::{Bound, Finished, Sample, THROUGHPUT, figures, finish, pair};
use super::{Setup, need};
use crate::workspace::{output, typed};

/// Keys of the database that is read and overwritten: 8 MB, so that the library has little to wait for and what is around
/// it shows.
const KEY_COUNT: u64 = 20_000;
/// Keys that `fillseq` writes: three files, too few for a compaction, for whose end only one side would wait.
const FILL_COUNT: u64 = 800_000;
const SECONDS: u64 = 2;
/// What the writer beside readers writes.
const WRITE_BYTES_PER_S: u64 = 2 << 20;

/// What both sides are opened with: neither waits for a flush, reads are from the cache, and nothing is compressed.
const FLAGS: &str = "--key_size=20 --value_size=400 --compression_type=none \
                     --write_buffer_size=134217728 --max_write_buffer_number=8 --bloom_bits=10 \
                     --cache_size=536870912 --cache_numshardbits=6 \
                     --histogram=1 --seek_nexts=10 --seed=1";
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

/// The database that `fillseq` makes, and the copy of a loaded one that is written to.
const FILLED: &str = "filled";
const COPY: &str = "copy";

/// Our name of a test, the peer's, and whether it changes the database, so that each run has a copy.
const TESTS: [(&str, &str, bool); 4] = [
    ("readrandom", "readrandom", false),
    ("fwdrange", "seekrandom", false),
    ("overwrite", "overwrite", true),
    ("readwhilewriting", "readwhilewriting", true),
];

/// Steps on the engine that does nothing, with 500 keys, all of them in the nearest cache; what their operation is called,
/// and bounds in ns of CPU, clock and histogram included.
const OUTSIDE: [(&str, &str, Bound); 4] = [
    ("overwrite", "outside_put_cpu_ns", OUTSIDE_BOUND),
    ("readrandom", "outside_get_cpu_ns", OUTSIDE_BOUND),
    ("fwdrange", "outside_scan_of_10_cpu_ns", OUTSIDE_BOUND),
    (
        "multireadrandom",
        "outside_multiget_of_10_cpu_ns",
        Bound::None,
    ),
];
const OUTSIDE_BOUND: Bound = Bound::LeastAtMost(100.0);

/// Runs all tests, then measures what is outside of the library.
pub fn run(setup: &Setup) -> Result<bool> {
    need("rocksdb-tools")?;
    let program = setup.build("load", "--example kv")?.join("examples/kv");
    let sides = Sides::load(program)?;
    println!("library: {}", sides.library);
    println!("fillseq, clients: 1");
    let mut kept = sides.fill(setup)?;
    for (ours, peer, writes) in TESTS {
        let start = sides.warm()?;
        for clients in [1, 2] {
            println!("{ours}, clients: {clients}");
            kept &= sides.test(setup, (ours, peer, writes), clients, start)?;
        }
    }
    println!("outside of the library");
    for (step, name, bound) in OUTSIDE {
        kept &= figures(setup.round_count, [(name, bound)], || {
            let finished = finish(typed(&sides.program, &format!("nothing {step} 500 1 1")))?;
            Ok([finished.number("client_cpu_ns:")? / finished.number("operations:")?])
        })?;
    }
    Ok(kept)
}

/// Both programs, and a folder for a database of each.
struct Sides {
    program: PathBuf,
    /// The file that both use.
    library: String,
    home: TempDir,
}

impl Sides {
    /// Makes both databases, ours with the options that `db_bench` left, and holds the options against each other.
    fn load(program: PathBuf) -> Result<Sides> {
        // In memory where it can be: what is measured is a client, and the library shall not wait for a disk.
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let sides = Sides {
            program,
            library: library()?,
            home,
        };
        output(&mut sides.peer_fill("peer", KEY_COUNT)?)?;
        let options = newest_options(&sides.home.path().join("peer"))?;
        fs::write(sides.home.path().join("options"), options.join("\n"))?;
        output(&mut sides.our_fill("ours", KEY_COUNT)?)?;
        let ours = newest_options(&sides.home.path().join("ours/db"))?;
        let differing = |line: &&String| !(options.contains(line) && ours.contains(line));
        let differences: Vec<&String> = options.iter().chain(&ours).filter(differing).collect();
        ensure!(
            differences.is_empty(),
            "the options differ - {differences:?}"
        );
        Ok(sides)
    }

    /// A program in the folder of the databases, which it calls by their names.
    fn command(&self, program: impl AsRef<OsStr>, arguments: &str) -> Command {
        let mut command = typed(program, arguments);
        command.current_dir(&self.home);
        command
    }

    /// Our program, on a database of that name.
    fn ours(&self, name: &str, step: &str) -> Command {
        let arguments = format!("{} {name} options {CACHE} {step}", self.library);
        self.command(&self.program, &arguments)
    }

    /// `db_bench`, on a database of that name.
    fn peer(&self, name: &str, arguments: &str) -> Command {
        self.command("db_bench", &format!("{FLAGS} --db={name} {arguments}"))
    }

    /// Our program, which makes a database of so many keys.
    fn our_fill(&self, name: &str, key_count: u64) -> Result<Command> {
        self.remove(name)?;
        Ok(self.ours(name, &format!("fillseq {key_count}")))
    }

    /// `db_bench`, which makes a database of so many keys without a log, to its end in files.
    fn peer_fill(&self, name: &str, key_count: u64) -> Result<Command> {
        self.remove(name)?;
        let arguments = format!("--benchmarks=fillseq,flush --num={key_count} --disable_wal=1");
        Ok(self.peer(name, &arguments))
    }

    /// `db_bench` on a database that is there, which it reads once before the tests, so that the cache is filled.
    fn peer_read(&self, name: &str, tests: &str, more: &str) -> Command {
        let tests = format!("--benchmarks=readtocache{tests} --num={KEY_COUNT}");
        self.peer(name, &format!("{tests} --use_existing_db=1 {more}"))
    }

    /// The database of that name, or a copy of it if it is written to.
    fn place<'a>(&self, name: &'a str, writes: bool) -> Result<&'a str> {
        if !writes {
            return Ok(name);
        }
        self.remove(COPY)?;
        output(&mut self.command("cp", &format!("-r {name} {COPY}")))?;
        Ok(COPY)
    }

    fn remove(&self, name: &str) -> Result<String> {
        output(&mut self.command("rm", &format!("-rf {name}")))
    }

    /// `fillseq` on both sides, without what they spend on a database of one key.
    fn fill(&self, setup: &Setup) -> Result<bool> {
        let start = [
            finish(self.our_fill(FILLED, 1)?)?.used,
            finish(self.peer_fill(FILLED, 1)?)?.used,
        ];
        let ours = || self.our_fill(FILLED, FILL_COUNT);
        let peer = || self.peer_fill(FILLED, FILL_COUNT);
        compare(setup, "fillseq", start, &ours, &peer)
    }

    /// What both sides spend before they measure.
    fn warm(&self) -> Result<[Sample; 2]> {
        let ours = || self.ours("ours", &format!("warm {KEY_COUNT}"));
        // The first time brings the files into memory.
        finish(ours())?;
        finish(self.peer_read("peer", "", ""))?;
        Ok([
            finish(ours())?.used,
            finish(self.peer_read("peer", "", ""))?.used,
        ])
    }

    /// A test on the databases that are there.
    fn test(
        &self,
        setup: &Setup,
        (our_test, peer_test, writes): (&str, &str, bool),
        clients: u64,
        start: [Sample; 2],
    ) -> Result<bool> {
        let ours = || {
            let step = format!("{our_test} {KEY_COUNT} {clients} {SECONDS} {WRITE_BYTES_PER_S}");
            Ok(self.ours(self.place("ours", writes)?, &step))
        };
        let peer = || {
            let mut more = format!("--threads={clients} --duration={SECONDS}");
            if peer_test == "readwhilewriting" {
                more += &format!(" --benchmark_write_rate_limit={WRITE_BYTES_PER_S}");
            }
            let test = format!(",{peer_test}");
            Ok(self.peer_read(self.place("peer", writes)?, &test, &more))
        };
        compare(setup, peer_test, start, &ours, &peer)
    }
}

/// Compares the commands of both sides, without what they spend before they measure.
fn compare(
    setup: &Setup,
    peer_test: &str,
    [our_start, peer_start]: [Sample; 2],
    ours: &dyn Fn() -> Result<Command>,
    peer: &dyn Fn() -> Result<Command>,
) -> Result<bool> {
    let ours = || Ok(finish(ours()?)?.own_sample()?.without(our_start));
    let peer = || Ok(peer_sample(peer_test, &finish(peer()?)?)?.without(peer_start));
    let bounds = [(THROUGHPUT, Bound::AtLeast(1.0))];
    pair(
        setup.round_count,
        ("assay", &ours),
        ("db_bench", &peer),
        &bounds,
    )
}

/// The library that `db_bench` is linked with, as the dynamic linker finds it.
fn library() -> Result<String> {
    let linked = output(Command::new("sh").args(["-c", "ldd \"$(command -v db_bench)\""]))?;
    let mut words = linked
        .split_whitespace()
        .skip_while(|word| !word.starts_with("librocksdb.so"));
    // `NAME => PATH (ADDRESS)`
    let path = words.nth(2).filter(|path| path.starts_with('/'));
    Ok(path
        .with_context(|| {
            format!("`db_bench` is linked with no shared library of RocksDB:\n{linked}")
        })?
        .to_owned())
}

/// The options that the library wrote last into a database's folder, but for those that may differ.
fn newest_options(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // A file that is being written has an extension. The number has leading zeros.
        if path.extension().is_none() && path.display().to_string().contains("/OPTIONS-") {
            files.push(path);
        }
    }
    let newest = files.iter().max();
    let newest = newest.with_context(|| format!("no options file in `{}`", folder.display()))?;
    let text = fs::read_to_string(newest)?;
    let lines = text.lines().map(str::trim).filter(|line| {
        let name = line.split('=').next().unwrap_or(line).trim();
        !line.starts_with('#') && !MAY_DIFFER.contains(&name)
    });
    Ok(lines.map(str::to_owned).collect())
}

/// What `db_bench` did in that test, by its own account: of `readwhilewriting` the reads.
fn peer_sample(test: &str, finished: &Finished) -> Result<Sample> {
    let result = finished.stdout.lines().find_map(|line| {
        let (name, result) = line.split_once(':')?;
        (name.trim() == test).then_some(result)
    });
    let result = result.with_context(|| format!("`db_bench` printed no result of `{test}`"))?;
    let words: Vec<&str> = result.split_whitespace().collect();
    let before = |unit: &str| -> Option<f64> {
        let pair = words.windows(2).find(|pair| pair[1] == unit)?;
        pair[0].parse().ok()
    };
    let (Some(per_second), Some(op_count)) = (before("ops/sec"), before("operations;")) else {
        bail!("`db_bench` printed no rate of `{test}`: {result}");
    };
    Ok(finished.sample_within(op_count, op_count / per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_db_bench_printed_of_the_test_is_read() {
        let finished = |stdout: &str| Finished {
            stdout: stdout.to_owned(),
            memory_bytes: 0,
            used: Sample {
                op_count: 0,
                user_ns: 5,
                system_ns: 6,
                elapsed_ns: 7,
            },
        };
        let text = "Keys:       20 bytes each\n\
                    readtocache  :  1.772 micros/op 564382 ops/sec 0.886 seconds 500000 operations; 226.1 MB/s\n\
                    readrandom   :  4.854 micros/op 200000 ops/sec 4.854 seconds 1000000 operations;   82.5 MB/s \
                    (1000000 of 1000000 found)\n";
        let read = peer_sample("readrandom", &finished(text)).unwrap();
        assert_eq!((read.op_count, read.elapsed_ns), (1_000_000, 5_000_000_000));
        assert_eq!((read.user_ns, read.system_ns), (5, 6));
        assert!(peer_sample("overwrite", &finished(text)).is_err());
        assert!(peer_sample("overwrite", &finished("overwrite : failed\n")).is_err());
    }

    #[test]
    fn the_newest_options_are_read_but_for_what_may_differ() {
        let folder = tempfile::tempdir().unwrap();
        assert!(newest_options(folder.path()).is_err());
        for (name, text) in [
            ("OPTIONS-000009", "old"),
            (
                "OPTIONS-000010",
                "# a\n[DBOptions]\n  wal_dir=/a\n  max_open_files=-1\n",
            ),
            ("OPTIONS-000011.dbtmp", "half"),
            ("other", "other"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let options = newest_options(folder.path()).unwrap();
        assert_eq!(options, ["[DBOptions]", "max_open_files=-1"]);
    }
}

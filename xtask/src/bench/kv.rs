//! Compares the key-value sequence with RocksDB's own `db_bench`: the same library file, options,
//! and keys. Also measures what an operation costs outside of the library, on an engine that does
//! nothing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use tempfile::TempDir;

use super::measure::{Bound, Finished, Sample, THROUGHPUT, figures, finish, pair};
use super::{Setup, need};
use crate::workspace::{output, typed};

/// Keys of the database for reads and overwrites. Its 8 MB keep the library from waiting, so that
/// the cost around it shows.
const KEY_COUNT: u64 = 20_000;
/// Keys that `fillseq` writes: three files, too few for a compaction, which only one side would
/// wait for.
const FILL_COUNT: u64 = 800_000;
const SECONDS: u64 = 2;
/// The rate of the writer in `readwhilewriting`.
const WRITE_BYTES_PER_S: u64 = 2 << 20;

/// The options of both sides: neither waits for a flush, reads come from the cache, and nothing is
/// compressed.
const FLAGS: &str = "--key_size=20 --value_size=400 --compression_type=none \
                     --write_buffer_size=134217728 --max_write_buffer_number=8 --bloom_bits=10 \
                     --cache_size=536870912 --cache_numshardbits=6 \
                     --histogram=1 --seek_nexts=10 --seed=1";
/// The block cache, the only option that is not in the options file of `db_bench`.
const CACHE: &str = "{capacity=536870912;num_shard_bits=6}";
/// Options that may differ between both sides: `db_bench` listens for errors, and the path of the
/// log and the creation of the database differ.
const MAY_DIFFER: [&str; 5] = [
    "listeners",
    "wal_dir",
    "create_if_missing",
    "create_missing_column_families",
    "error_if_exists",
];

/// The database that `fillseq` makes, and the copy of a loaded one for tests that write.
const FILLED: &str = "filled";
const COPY: &str = "copy";

/// Our name of a test, the peer's name, and whether it changes the database, so that each run needs
/// a copy.
const TESTS: [(&str, &str, bool); 4] = [
    ("readrandom", "readrandom", false),
    ("fwdrange", "seekrandom", false),
    ("overwrite", "overwrite", true),
    ("readwhilewriting", "readwhilewriting", true),
];

/// Steps on the engine that does nothing, with 500 keys, which fit in the first cache; the name of
/// each figure, and its bound in ns of CPU, including clock and histogram.
const OUTSIDE: [(&str, &str, Bound); 4] = [
    ("overwrite", "outside_put_cpu_ns", OUTSIDE_BOUND),
    ("readrandom", "outside_get_cpu_ns", OUTSIDE_BOUND),
    ("fwdrange", "outside_scan_of_10_cpu_ns", OUTSIDE_BOUND),
    ("multireadrandom", "outside_multiget_of_10_cpu_ns", Bound::None),
];
const OUTSIDE_BOUND: Bound = Bound::MinimumAtMost(100.0);

/// Runs all tests, then measures the cost outside of the library.
pub fn run(setup: &Setup) -> Result<bool> {
    need("rocksdb-tools")?;
    let program = setup.build("load", "--example kv")?.join("examples/kv");
    let sides = Sides::load(program)?;
    println!("library: {}", sides.library);
    println!("fillseq, clients: 1");
    let mut passed = sides.fill(setup)?;
    for (ours, peer, writes) in TESTS {
        let start = sides.warm()?;
        for clients in [1, 2] {
            println!("{ours}, clients: {clients}");
            passed &= sides.test(setup, (ours, peer, writes), clients, start)?;
        }
    }
    println!("outside of the library");
    for (step, name, bound) in OUTSIDE {
        passed &= figures(setup.round_count, [(name, bound)], || {
            let finished = finish(typed(&sides.program, &format!("nothing {step} 500 1 1")))?;
            Ok([finished.number("client_cpu_ns:")? / finished.number("operations:")?])
        })?;
    }
    Ok(passed)
}

/// Both programs, and a folder for a database of each.
struct Sides {
    program: PathBuf,
    /// The path of the library that both use.
    library: String,
    home: TempDir,
}

impl Sides {
    /// Creates both databases, ours with the options file of `db_bench`, and checks that the
    /// options are equal.
    fn load(program: PathBuf) -> Result<Sides> {
        // In memory if possible: the benchmark measures a client, so the library should not wait
        // for a disk.
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let sides = Sides { program, library: library()?, home };
        output(&mut sides.peer_fill("peer", KEY_COUNT)?)?;
        let options = newest_options(&sides.home.path().join("peer"))?;
        fs::write(sides.home.path().join("options"), options.join("\n"))?;
        output(&mut sides.our_fill("ours", KEY_COUNT)?)?;
        let ours = newest_options(&sides.home.path().join("ours/db"))?;
        let differing = |line: &&String| !(options.contains(line) && ours.contains(line));
        let differences: Vec<&String> = options.iter().chain(&ours).filter(differing).collect();
        ensure!(differences.is_empty(), "the options of both sides differ: {differences:?}");
        Ok(sides)
    }

    /// Returns a command that runs in the folder of the databases.
    fn command(&self, program: impl AsRef<OsStr>, arguments: &str) -> Command {
        let mut command = typed(program, arguments);
        command.current_dir(&self.home);
        command
    }

    /// Returns the command of our program on a database.
    fn ours(&self, name: &str, step: &str) -> Command {
        let arguments = format!("{} {name} options {CACHE} {step}", self.library);
        self.command(&self.program, &arguments)
    }

    /// Returns the command of `db_bench` on a database.
    fn peer(&self, name: &str, arguments: &str) -> Command {
        self.command("db_bench", &format!("{FLAGS} --db={name} {arguments}"))
    }

    /// Returns the command of our program that creates a database of `key_count` keys.
    fn our_fill(&self, name: &str, key_count: u64) -> Result<Command> {
        self.remove(name)?;
        Ok(self.ours(name, &format!("fillseq {key_count}")))
    }

    /// Returns the command of `db_bench` that creates a database of `key_count` keys without a log,
    /// and flushes it.
    fn peer_fill(&self, name: &str, key_count: u64) -> Result<Command> {
        self.remove(name)?;
        let arguments = format!("--benchmarks=fillseq,flush --num={key_count} --disable_wal=1");
        Ok(self.peer(name, &arguments))
    }

    /// Returns the command of `db_bench` on an existing database, which it first reads once to fill
    /// the cache.
    fn peer_read(&self, name: &str, tests: &str, options: &str) -> Command {
        let tests = format!("--benchmarks=readtocache{tests} --num={KEY_COUNT}");
        self.peer(name, &format!("{tests} --use_existing_db=1 {options}"))
    }

    /// Returns the name of the database, or of a new copy of it for a test that writes.
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

    /// Compares `fillseq`, without what each side spends on a database of one key.
    fn fill(&self, setup: &Setup) -> Result<bool> {
        let start =
            [finish(self.our_fill(FILLED, 1)?)?.used, finish(self.peer_fill(FILLED, 1)?)?.used];
        let ours = || self.our_fill(FILLED, FILL_COUNT);
        let peer = || self.peer_fill(FILLED, FILL_COUNT);
        compare(setup, "fillseq", start, &ours, &peer)
    }

    /// Measures the resources that both sides use before they measure.
    fn warm(&self) -> Result<[Sample; 2]> {
        let ours = || self.ours("ours", &format!("warm {KEY_COUNT}"));
        // The first run brings the files into memory.
        finish(ours())?;
        finish(self.peer_read("peer", "", ""))?;
        Ok([finish(ours())?.used, finish(self.peer_read("peer", "", ""))?.used])
    }

    /// Compares a test on the existing databases.
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
            let mut options = format!("--threads={clients} --duration={SECONDS}");
            if peer_test == "readwhilewriting" {
                options += &format!(" --benchmark_write_rate_limit={WRITE_BYTES_PER_S}");
            }
            let test = format!(",{peer_test}");
            Ok(self.peer_read(self.place("peer", writes)?, &test, &options))
        };
        compare(setup, peer_test, start, &ours, &peer)
    }
}

/// Compares the commands of both sides, without what each spends before it measures.
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
    pair(setup.round_count, ("assay", &ours), ("db_bench", &peer), &bounds)
}

/// Returns the path of the library that `db_bench` is linked with.
fn library() -> Result<String> {
    let linked = output(Command::new("sh").args(["-c", "ldd \"$(command -v db_bench)\""]))?;
    let mut words = linked.split_whitespace().skip_while(|word| !word.starts_with("librocksdb.so"));
    // `NAME => PATH (ADDRESS)`
    let path = words.nth(2).filter(|path| path.starts_with('/'));
    Ok(path
        .with_context(|| {
            format!("`db_bench` is not linked with a shared library of RocksDB:\n{linked}")
        })?
        .to_owned())
}

/// Reads the newest options file in a database's folder, without the options that may differ.
fn newest_options(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // An unfinished file has an extension. Numbers have leading zeros.
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

/// Reads the report of `db_bench` about a test; for `readwhilewriting` only the reads.
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
    fn the_output_of_db_bench_is_read() {
        let finished = |stdout: &str| Finished {
            stdout: stdout.to_owned(),
            memory_bytes: 0,
            used: Sample { op_count: 0, user_ns: 5, system_ns: 6, elapsed_ns: 7 },
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
    fn the_newest_options_are_read_without_those_that_may_differ() {
        let folder = tempfile::tempdir().unwrap();
        assert!(newest_options(folder.path()).is_err());
        for (name, text) in [
            ("OPTIONS-000009", "old"),
            ("OPTIONS-000010", "# a\n[DBOptions]\n  wal_dir=/a\n  max_open_files=-1\n"),
            ("OPTIONS-000011.dbtmp", "half"),
            ("other", "other"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let options = newest_options(folder.path()).unwrap();
        assert_eq!(options, ["[DBOptions]", "max_open_files=-1"]);
    }
}

//! Decides which tests run in which lane, and in which order.

use anyhow::{Result, ensure};

use super::binaries::{Binary, Chosen, Job};
use super::changed::{Changed, Scope};
use super::lanes::{Lane, Task};
use super::options::Options;
use super::times::Times;
use crate::builds::ASSAY_TEST_OTHER_POSTGRES;

/// Chooses the build that the tests of the PostgreSQL engine run on.
const TEST_POSTGRES: &str = "ASSAY_TEST_POSTGRES";

/// The tests that start Assay: each has a process of its own.
const OF_ASSAY: &str = "assay it";
/// The tests of servers, which share some servers and therefore a process.
const OF_ENGINES: &str = "engine it";
/// Tests in modules of this name measure the load of the machine, so nothing else may run at the
/// same time.
const ALONE: &str = "alone::";
/// The tests that the second PostgreSQL gets: statements and counters differ between versions,
/// starting and stopping a server does not.
const OTHER_POSTGRES: &[&str] =
    &["statements::postgres::", "postgres::statements::", "postgres::upkeep::"];
/// The tests that it gets with `--all`.
const OTHER_POSTGRES_ALL: &[&str] = &["postgres::"];

/// Parts of the names of tests that begin first where no times are known: had they begun last, all
/// others would have ended long before.
const BEGIN_FIRST: &[&str] = &["bisect::", "exact::", "conform::", "commits::"];

/// A test that took longer is not quick.
const QUICK_SECONDS: f64 = 2.0;

/// All that decides which tests run.
pub struct Selection<'a> {
    /// The options of the command line.
    pub options: &'a Options,
    /// The crates that have changed, if only their tests are to run.
    pub changed: Option<&'a Changed>,
    /// The times of the last run.
    pub times: &'a Times,
    /// Environment variables of tests.
    pub variables: &'a [(&'static str, String)],
}

/// The tests to run.
pub struct Jobs<'a> {
    /// The lanes that run side by side.
    pub lanes: Vec<Lane<'a>>,
    /// Tests that run after all others, one at a time.
    pub alone: Lane<'a>,
    /// The number of tests of the cross product that do not run, as far as no binary counts them.
    pub left_out: usize,
    /// The number of tests of crates that depend on a changed one, and that are not quick.
    pub slow_left_out: usize,
}

impl<'a> Jobs<'a> {
    /// Chooses among the tests of all binaries.
    ///
    /// # Errors
    ///
    /// Fails if a binary cannot list its tests.
    pub fn choose(binaries: &'a [Binary], selection: &Selection<'_>) -> Result<Self> {
        let mut jobs = Self {
            lanes: Vec::new(),
            alone: Lane { name: "alone", workers: 1, tasks: Vec::new() },
            left_out: 0,
            slow_left_out: 0,
        };
        let mut of_assay = Vec::new();
        let mut of_engines = Vec::new();
        let mut busy = Vec::new();
        for binary in binaries {
            match binary.name.as_str() {
                OF_ASSAY => jobs.add_each_test(&mut of_assay, binary, selection)?,
                OF_ENGINES => jobs.add_engines(&mut of_engines, binary, selection)?,
                _ => busy.extend(jobs.whole(binary, selection)?),
            }
        }

        // Integration tests take longer.
        busy.sort_by_key(|job| !job.binary.has_integration_tests());
        let part = selection.options.part;
        jobs.lanes = vec![
            lane("assay", 2 * processor_count(), part.of(of_assay)),
            lane("engines", 1, part.of(of_engines)),
            lane("others", 1, part.of(busy)),
        ];
        jobs.alone.tasks = part.of(std::mem::take(&mut jobs.alone.tasks));
        Ok(jobs)
    }

    /// Adds the tests of a binary one by one, the longest first.
    fn add_each_test(
        &mut self,
        jobs: &mut Vec<Job<'a>>,
        binary: &'a Binary,
        selection: &Selection<'_>,
    ) -> Result<()> {
        let mut names = self.chosen(binary, selection)?;
        // Renamed, they would run beside others without a word.
        ensure!(
            selection.scope(binary) != Scope::All
                || names.iter().any(|name| name.starts_with(ALONE)),
            "`{}` has no test with `{ALONE}` in its name",
            binary.name
        );
        names.sort_by(|a, b| {
            let [a, b] = [a, b].map(|name| selection.expected_seconds(binary, name));
            b.total_cmp(&a)
        });

        for name in names {
            let is_alone = name.starts_with(ALONE);
            let job = selection.job(binary, Chosen::One(name));
            if is_alone {
                self.alone.tasks.push(Task::Tests(job));
            } else {
                jobs.push(job);
            }
        }
        Ok(())
    }

    /// Adds the tests of servers, and some of them with a second PostgreSQL.
    fn add_engines(
        &mut self,
        jobs: &mut Vec<Job<'a>>,
        binary: &'a Binary,
        selection: &Selection<'_>,
    ) -> Result<()> {
        // About half of them wait at any time.
        let threads = format!("--test-threads={}", 2 * processor_count());
        let Some(mut main) = self.whole(binary, selection)? else { return Ok(()) };
        main.is_nice = false;
        main.arguments.push(threads.clone());
        let has_all_tests = matches!(main.tests, Chosen::Containing(_));
        jobs.push(main);

        let mut variables = selection.variables.iter();
        let other = variables.find(|(name, _)| *name == ASSAY_TEST_OTHER_POSTGRES);
        if let Some((_, build)) = other
            && has_all_tests
        {
            let tests = if selection.options.all { OTHER_POSTGRES_ALL } else { OTHER_POSTGRES };
            let mut job = selection.job(binary, Chosen::Containing(tests));
            job.name += " on other PostgreSQL";
            job.arguments.push(threads);
            job.variables.push((TEST_POSTGRES, build.clone()));
            jobs.push(job);
        }
        Ok(())
    }

    /// Returns a run of all chosen tests of a binary in one process, at a low priority; `None` if
    /// there is none.
    fn whole(&mut self, binary: &'a Binary, selection: &Selection<'_>) -> Result<Option<Job<'a>>> {
        let tests = match selection.scope(binary) {
            Scope::All => Chosen::Containing(&[]),
            Scope::Quick => Chosen::These(self.chosen(binary, selection)?),
            Scope::Nothing => return Ok(None),
        };
        if matches!(&tests, Chosen::These(names) if names.is_empty()) {
            return Ok(None);
        }
        let mut job = selection.job(binary, tests);
        job.is_nice = true;
        Ok(Some(job))
    }

    /// Returns the names of the tests to run, and counts those that are left out.
    fn chosen(&mut self, binary: &Binary, selection: &Selection<'_>) -> Result<Vec<String>> {
        let scope = selection.scope(binary);
        if scope == Scope::Nothing {
            return Ok(Vec::new());
        }

        let listed = binary.tests()?;
        let mut names = listed.usual;
        if selection.options.all {
            names.extend(listed.of_all);
        } else {
            self.left_out += listed.of_all.len();
        }

        if scope == Scope::Quick {
            let all = names.len();
            names.retain(|name| selection.is_quick(binary, name));
            self.slow_left_out += all - names.len();
        }
        Ok(names)
    }
}

impl Selection<'_> {
    fn scope(&self, binary: &Binary) -> Scope {
        self.changed.map_or(Scope::All, |changed| changed.scope_of(binary.package()))
    }

    /// Returns whether a test is quick. One that never ran here is so unless it is an integration
    /// test.
    fn is_quick(&self, binary: &Binary, name: &str) -> bool {
        match self.times.of(&binary.name, name) {
            Some(seconds) => seconds <= QUICK_SECONDS,
            None => !binary.has_integration_tests(),
        }
    }

    /// Returns the seconds that a test will take, as far as is known.
    fn expected_seconds(&self, binary: &Binary, name: &str) -> f64 {
        if let Some(seconds) = self.times.of(&binary.name, name) {
            return seconds;
        }
        let is_first = BEGIN_FIRST.iter().any(|part| name.starts_with(part));
        if is_first { f64::INFINITY } else { 0.0 }
    }

    fn job<'a>(&self, binary: &'a Binary, tests: Chosen) -> Job<'a> {
        Job {
            name: binary.name.clone(),
            binary,
            tests,
            arguments: if self.options.all { vec!["--include-ignored".to_owned()] } else { vec![] },
            variables: self.variables.to_vec(),
            is_nice: false,
        }
    }
}

fn lane<'a>(name: &'static str, workers: usize, jobs: Vec<Job<'a>>) -> Lane<'a> {
    Lane { name, workers, tasks: jobs.into_iter().map(Task::Tests).collect() }
}

fn processor_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a binary whose program lists these tests, the last of which only `--all` runs.
    fn binary(folder: &std::path::Path, name: &str, tests: &[&str]) -> Binary {
        let lines: String = tests.iter().map(|test| format!("{test}: test\n")).collect();
        let last = tests.last().map_or(String::new(), |test| format!("{test}: test\n"));
        let file = folder.join(name.replace(' ', "-"));
        fs_err::write(&file, lines).unwrap();
        fs_err::write(file.with_extension("all"), last).unwrap();
        Binary::listing(name, &file)
    }

    fn names<'a>(lane: &'a Lane<'_>) -> Vec<&'a str> {
        let jobs = lane.tasks.iter().map(|task| match task {
            Task::Tests(job) => job,
            _ => panic!("only tests are expected"),
        });
        jobs.map(|job| match &job.tests {
            Chosen::One(test) => test.as_str(),
            _ => job.name.as_str(),
        })
        .collect()
    }

    fn binaries(folder: &std::path::Path) -> Vec<Binary> {
        vec![
            binary(folder, "load", &["a", "b"]),
            binary(folder, "engine it", &["statements::x", "y"]),
            binary(folder, "plan it", &["c", "d"]),
            binary(folder, "assay it", &["run::a", "alone::b", "bisect::c", "run::d"]),
        ]
    }

    #[test]
    fn long_tests_begin_first_and_tests_that_need_the_machine_come_last() {
        let folder = tempfile::tempdir().unwrap();
        let binaries = binaries(folder.path());
        let variables = [(ASSAY_TEST_OTHER_POSTGRES, "/there".to_owned())];
        let (options, times) = (Options::default(), Times::default());
        let mut selection =
            Selection { options: &options, changed: None, times: &times, variables: &variables };
        let jobs = Jobs::choose(&binaries, &selection).unwrap();
        let [assay, engines, others] = jobs.lanes.as_slice() else { panic!("three lanes") };
        assert_eq!(names(assay), ["bisect::c", "run::a"]);
        assert_eq!(names(engines), ["engine it", "engine it on other PostgreSQL"]);
        assert_eq!(names(others), ["plan it", "load"]);
        assert_eq!(names(&jobs.alone), ["alone::b"]);
        assert_eq!(jobs.left_out, 1);

        let options = Options { all: true, ..Options::default() };
        selection.options = &options;
        let jobs = Jobs::choose(&binaries, &selection).unwrap();
        assert_eq!(names(&jobs.lanes[0]), ["bisect::c", "run::a", "run::d"]);
        assert_eq!(jobs.left_out, 0);
    }

    #[test]
    fn parts_have_all_tests_between_them() {
        let folder = tempfile::tempdir().unwrap();
        let binaries = binaries(folder.path());
        let times = Times::default();
        let mut found = Vec::new();
        for part in ["1/2", "2/2"] {
            let options = Options::parse(&["--part".to_owned(), part.to_owned()]).unwrap();
            let selection =
                Selection { options: &options, changed: None, times: &times, variables: &[] };
            let jobs = Jobs::choose(&binaries, &selection).unwrap();
            let lanes = jobs.lanes.iter().chain([&jobs.alone]);
            found.extend(lanes.flat_map(names).map(str::to_owned));
        }
        found.sort();
        assert_eq!(found, ["alone::b", "bisect::c", "engine it", "load", "plan it", "run::a"]);
    }

    #[test]
    fn slow_tests_of_crates_that_only_depend_on_a_change_are_left_out_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let binaries = binaries(folder.path());
        let used = |name: &str| json!({"name": name, "path": "/x"});
        let metadata = json!({"packages": [
            {"name": "load", "dependencies": []},
            {"name": "engine", "dependencies": []},
            {"name": "plan", "dependencies": [used("load")]},
            {"name": "assay", "dependencies": [used("load")]},
        ]});
        let files = ["crates/load/src/lib.rs"];
        let changed = Changed::by_files(files.into_iter(), &metadata).unwrap();
        let file = folder.path().join("times.csv");
        fs_err::write(&file, "binary,test,seconds,cpu_seconds,programs\nassay it,run::a,0.5,,\n")
            .unwrap();
        let (options, times) = (Options::default(), Times::read(&file).unwrap());
        let selection =
            Selection { options: &options, changed: Some(&changed), times: &times, variables: &[] };
        let jobs = Jobs::choose(&binaries, &selection).unwrap();
        assert_eq!(names(&jobs.lanes[0]), ["run::a"]);
        assert_eq!(names(&jobs.lanes[1]), Vec::<&str>::new());
        assert_eq!(names(&jobs.lanes[2]), ["load"]);
        assert_eq!(names(&jobs.alone), Vec::<&str>::new());
        assert_eq!(jobs.slow_left_out, 3);
    }
}

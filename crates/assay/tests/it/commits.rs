//! Plans with builds of commits, of a repository that each test makes.
//!
//! The library of a commit has RocksDB's C API from a real RocksDB, to which it is linked.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{ASSAY, Ended, Place, Running, entries, eventually, send};
use crate::rocksdb_or_test_is_skipped;

/// A place with a repository, and a store of builds of its own.
pub(crate) struct CommitPlace {
    place: Place,
}

/// The script of the plan's recipe. It notes each of its runs.
const SCRIPT: &str = "set -e\necho ran >> ../../../noted/runs\n\
    cc -shared -fPIC -o librocksdb.so.9.9.3 library.c -Wl,--no-as-needed \"$1\" \
    -Wl,-rpath,\"$(dirname \"$1\")\"\nln -s librocksdb.so.9.9.3 librocksdb.so\n";

const MAKE: &str = "sh build.sh";

impl CommitPlace {
    /// Returns a place whose repository has one commit with the tag `v1`.
    pub(crate) fn new() -> Self {
        let place = Self { place: Place::new() };
        for name in ["repository", "noted"] {
            fs_err::create_dir(place.join(name)).unwrap();
        }
        // Another user runs recipes for root.
        set_mode(&place.join("noted"), 0o777);
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        place.commit("first", &[("build.sh", SCRIPT), ("library.c", "int level = 1;\n")]);
        place.git(&["tag", "v1"]);
        place
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    /// Runs git in the repository. Returns what it printed.
    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.join("repository")).args(arguments);
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "A. U. Thor");
            command.env(format!("GIT_{who}_EMAIL"), "author@example.com");
        }
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits files, and returns the commit's hash.
    pub(crate) fn commit(&self, subject: &str, files: &[(&str, &str)]) -> String {
        for (name, text) in files {
            fs_err::write(self.join("repository").join(name), text).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        let mut command = Command::new(ASSAY);
        command.env("ASSAY_BUILDS", self.join("builds"));
        self.place.spawn_as(command, args)
    }

    pub(crate) fn assay(&self, args: &[&str]) -> Ended {
        self.spawn(args).wait()
    }

    fn write_plan(&self, builds: &str) {
        let plan = format!("[workload.kv]\nkeys = 100\nsteps = [\"fillseq\"]\n{builds}");
        self.place.write("plan.toml", &plan);
    }

    fn run(&self) -> Ended {
        self.assay(&["run", "plan.toml"])
    }

    /// Returns how often a recipe ran.
    fn runs_of_recipes(&self) -> usize {
        let noted = fs_err::read_to_string(self.join("noted/runs"));
        noted.unwrap_or_default().lines().count()
    }

    /// Returns the names of all that is in the store but downloads and the lock.
    fn stored(&self) -> Vec<String> {
        let entries = entries(&self.join("builds")).into_iter();
        let names = entries.map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
        names.filter(|name| name != "downloads" && name != ".lock").collect()
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs_err::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Returns a build of the commit `reference`, made by the shell command `make`.
fn build(name: &str, reference: &str, make: &str) -> String {
    format!(
        "[build.{name}]\ngit = \"repository\"\nengine = \"rocksdb\"\nref = \"{reference}\"\n\
         make = '''{make}'''\ngives = \"librocksdb.so\"\n"
    )
}

/// Returns the record of the plan's build `name`.
fn recorded_build(run: &Path, name: &str) -> Value {
    let run: Value = serde_json::from_slice(&fs_err::read(run.join("run.json")).unwrap()).unwrap();
    let builds = run["builds"].as_array().unwrap();
    builds.iter().find(|build| build["name"] == name).unwrap().clone()
}

#[test]
fn commits_are_built_once_before_the_run_and_the_record_says_how() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };
    let place = CommitPlace::new();
    fs_err::write(place.join("repository/library.c"), "int level = 2;\n").unwrap();
    fs_err::write(place.join("fix.diff"), place.git(&["diff"]) + "\n").unwrap();
    place.git(&["checkout", "--quiet", "."]);
    let hash = place.commit("second", &[("more.c", "")]);

    let make = format!("{MAKE} '{}'", libraries[0].display());
    let extended = "[build.new]\nextends = \"old\"\nref = \"main\"\npatch = \"fix.diff\"\n";
    place.write_plan(&(build("old", "v1", &make) + extended));

    let told = place.assay(&["check", "plan.toml"]).expect_code(0);
    let told = told.expect_in_stdout(&["old: rocksdb, a run builds it first: commit", "(first)"]);
    assert!(told.stdout.contains("nothing was built by this recipe yet"), "{told}");
    assert_eq!(place.runs_of_recipes(), 0);

    let ended = place.run().expect_code(0);
    let progress = ["building `new`, commit", "(second)", "build `new`: running its recipe"];
    let ended = ended.expect_in_stderr(&progress);
    let run = place.join(ended.stdout.trim_end().rsplit('\n').next().unwrap());
    let recorded = recorded_build(&run, "new");
    let commit = &recorded["commit"];
    assert_eq!(commit["hash"], hash.as_str());
    assert_eq!(commit["subject"], "second");
    assert_eq!(commit["described"], format!("v1-1-g{}", &hash[..12]));
    assert_eq!(commit["patch"]["name"], "fix.diff");
    assert_eq!(commit["make"], make.as_str());
    assert!(commit["compilers"]["cc"].as_str().unwrap().contains("cc"), "{commit}");
    let report = fs_err::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains(&hash) && report.contains("fix.diff"));

    let name = format!("built from v1-1-g{} + fix.diff", &hash[..12]);
    place.assay(&["show", run.to_str().unwrap(), "--all"]).expect_in_stdout(&[&name]);
    place.assay(&["check", "plan.toml"]).expect_code(0).expect_in_stdout(&[&name]);
    place.assay(&["builds"]).expect_code(0).expect_in_stdout(&["git:/", "+ fix.diff", "ok"]);

    let stored = commit["stored"].as_str().unwrap();
    let texts = [hash.as_str(), "second", "UTC", &make, "fix.diff", "cc", "librocksdb.so.9.9.3"];
    place.assay(&["builds", stored]).expect_code(0).expect_in_stdout(&texts);

    let again = place.run().expect_code(0);
    assert!(!again.stderr.contains("building"), "{again}");
    assert_eq!(place.runs_of_recipes(), 2);
}

#[test]
fn a_resumed_run_keeps_its_commits_and_builds_nothing() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };
    let place = CommitPlace::new();
    let make = format!("{MAKE} '{}'", libraries[0].display());

    place.write_plan(&build("x", "main", &make));
    let ended = place.run().expect_code(0);
    let run = place.join(ended.stdout.trim_end().rsplit('\n').next().unwrap());
    let run_text = run.to_str().unwrap();
    let before = recorded_build(&run, "x");

    // The branch moves on, and the run does not.
    place.commit("second", &[("library.c", "int level = 2;\n")]);
    place.assay(&["run", "--resume", run_text, "--repeats", "2"]).expect_code(0);
    assert_eq!(recorded_build(&run, "x"), before);

    let stored = before["commit"]["stored"].as_str().unwrap();
    place.assay(&["builds", "--remove", stored]).expect_code(0);

    for more in [&[][..], &["--trust"]] {
        let refused =
            place.assay(&[&["run", "--resume", run_text, "--repeats", "3"], more].concat());
        refused.expect_code(2).expect_in_stderr(&[
            "is not in the store of builds",
            "resuming a run never builds what a record names",
        ]);
    }

    assert_eq!(place.runs_of_recipes(), 1);
    let gone = place.assay(&["builds", stored]).expect_code(2);
    gone.expect_in_stderr(&["there is no build", "`assay builds` lists the builds"]);
}

#[test]
fn a_commit_that_does_not_build_ends_the_run_with_the_end_of_its_log() {
    let place = CommitPlace::new();
    place.commit("broken", &[("library.c", "not C;\n")]);
    place.write_plan(&(build("good", "v1", MAKE) + &build("bad", "main", MAKE)));
    let script = "cc -shared -o librocksdb.so library.c\n";
    place.commit("broken", &[("build.sh", script)]);
    let told = place.run().expect_code(1).expect_in_stderr(&["the last lines of the log", "help:"]);
    let has_log = told.stderr.contains("does not build: its recipe failed with exit status: 1");
    assert!(has_log, "{told}");
    assert!(!place.join("results").join("data").exists());
    assert!(entries(&place.join("results")).is_empty());
}

#[test]
fn a_plan_whose_commits_are_not_there_is_refused_at_its_line() {
    let place = CommitPlace::new();
    let missing = "[build.patched]\nextends = \"good\"\npatch = \"missing.diff\"\n";
    let elsewhere = build("elsewhere", "main", MAKE).replace("\"repository\"", "\"noted\"");
    let builds = build("good", "v1", MAKE)
        + &build("unknown", "missing", MAKE)
        + &build("option", "--output=x", MAKE)
        + missing
        + &elsewhere;

    place.write_plan(&builds);

    for command in ["check", "run"] {
        place.assay(&[command, "plan.toml"]).expect_code(2).expect_in_stderr(&[
            "build `unknown`: `missing` is not a commit of",
            "build `option`: `--output=x` is not a commit of",
            "a reference does not begin with `-`",
            "missing.diff",
            "is not a git repository",
            "error: 4 errors in `plan.toml`; nothing was run",
        ]);
    }
    assert_eq!(place.runs_of_recipes(), 0);
}

#[test]
fn a_build_ends_with_assay_however_that_ends() {
    let place = CommitPlace::new();
    let endless = "echo $$ > ../../../noted/new; mv ../../../noted/new ../../../noted/begun\n\
                   exec tail -f /dev/null";
    place.write_plan(&build("x", "v1", endless));

    let begun = place.join("noted/begun");
    for signal in [Signal::KILL, Signal::TERM, Signal::INT] {
        let running = place.spawn(&["run", "plan.toml"]);
        eventually("the recipe begins", || begun.exists());
        let pid: u32 = fs_err::read_to_string(&begun).unwrap().trim().parse().unwrap();
        send(running.id(), signal);
        running.wait();

        eventually("the recipe ends", || {
            let stat = fs_err::read_to_string(format!("/proc/{pid}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z") || stat.contains(") X"))
        });
        assert!(!place.stored().iter().any(|name| name.starts_with("rocksdb")));
        fs_err::remove_file(&begun).unwrap();
    }

    // The next build removes what was left.
    place.write_plan(&build("x", "v1", "exit 3"));
    place.run().expect_code(1);
    assert!(place.stored().is_empty(), "{:?}", place.stored());
}

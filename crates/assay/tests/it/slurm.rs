//! A plan on several machines: the job script of `plans/slurm`, under a Slurm that the test starts.
//! Three `slurmd` on this host act as three machines.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::not_here;
use crate::place::{
    ASSAY, Ended, LONGEST_S, Place, Running, SQLITE, any_below, comes_about, entries, eventually,
    send, workload,
};
use crate::show_json::Shown;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/slurm/repeats.sh");

const PROGRAMS: [&str; 4] = ["munged", "slurmctld", "slurmd", "sbatch"];

/// Debian has the daemons in `/usr/sbin`, and jobs find `assay` by its name.
fn path() -> String {
    let own = Path::new(ASSAY).parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{own}:{path}:/usr/sbin")
}

fn slurm_is_here_or_test_is_skipped() -> bool {
    let path = path();
    let is_missing = |program: &&str| {
        let mut folders = std::env::split_paths(&path);
        !folders.any(|folder| folder.join(program).is_file())
    };
    let Some(program) = PROGRAMS.into_iter().find(is_missing) else {
        return true;
    };
    not_here("slurm", &format!("there is no `{program}`"));
    false
}

/// A Slurm of three nodes. Dropping it kills all that belongs to it.
struct Cluster {
    daemons: Vec<Running>,
    place: Place,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The daemons, their jobs, and what these started have their working directory there. What
        // one of them starts in between is found the next time.
        let has_ended = comes_about(60, || {
            let left = self.place.processes();
            left.iter().for_each(|pid| send(*pid, Signal::KILL));
            left.is_empty()
        });
        assert!(has_ended || std::thread::panicking(), "Slurm has not ended");
    }
}

impl Cluster {
    fn start() -> Self {
        let mut cluster = Self { daemons: Vec::new(), place: Place::new() };
        let place = &cluster.place;
        // Held until all are known, so that they differ.
        let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [controller, nodes @ ..] = listeners.map(|it| it.local_addr().unwrap().port());
        let here = place.path().display();
        let user = output(Command::new("id").arg("-un"));
        let host = fs_err::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().split('.').next().unwrap();
        let mut config = format!(
            "ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={here}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
SchedulerType=sched/builtin
MpiDefault=none
SwitchType=switch/none
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool-%n
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/%n.pid
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"
        );

        for (number, port) in (1..).zip(nodes) {
            config +=
                &format!("NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}\n");
        }

        place.write("slurm.conf", &config);
        let key = place.write("munge.key", &"a key that nobody else has ".repeat(4));
        let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o400);
        fs_err::set_permissions(key, only_owner).unwrap();
        fs_err::create_dir(place.join("state")).unwrap();
        let munge = ["socket", "key-file", "log-file", "pid-file", "seed-file"];
        let files = ["munge.socket", "munge.key", "munged.log", "munged.pid", "munged.seed"];
        let munge =
            munge.iter().zip(files).map(|(option, file)| format!("--{option}={here}/{file}"));
        let mut munged = vec!["-F".to_owned()];
        munged.extend(munge);
        let socket = place.join("munge.socket");
        cluster.daemon("munged", &munged);
        eventually("munged listens", || socket.exists());
        let config = format!("{}/slurm.conf", cluster.place.path().display());
        let daemon = |node: &str| ["-D", "-f", &config, "-N", node].map(str::to_owned);
        cluster.daemon("slurmctld", &daemon("")[..3]);
        for node in ["n1", "n2", "n3"] {
            cluster.daemon("slurmd", &daemon(node));
        }

        eventually("all nodes are idle", || {
            cluster.daemons.iter_mut().for_each(|it| it.must_run("the nodes are idle"));
            let ended = cluster.slurm("sinfo", &["-h", "-o", "%t %D"]);
            ended.stdout.trim() == "idle 3"
        });

        cluster
    }

    fn command(program: &str, place: &Place) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", path()).env("SLURM_CONF", place.join("slurm.conf"));
        command
    }

    fn daemon(&mut self, program: &str, args: &[String]) {
        let command = Self::command(program, &self.place);
        self.daemons.push(self.place.spawn_as(command, args));
    }

    fn slurm(&self, program: &str, args: &[&str]) -> Ended {
        let command = Self::command(program, &self.place);
        self.place.spawn_as(command, args).wait()
    }

    /// Submits tasks of the job script, with more options of `sbatch`, and returns the job's
    /// number.
    fn submit(&self, options: &[&str], results: &str) -> String {
        let data = self.place.join("data");
        let script = [SCRIPT, "plan.toml", results, data.to_str().unwrap()];
        let args = [&["--parsable"], options, &script].concat();
        let ended = self.slurm("sbatch", &args).expect_code(0);
        ended.stdout.trim().to_owned()
    }

    /// Waits until no task is pending or running.
    fn wait_for_tasks(&self) {
        let have_ended = comes_about(LONGEST_S, || {
            let ended = self.slurm("squeue", &["-h"]);
            ended.code == Some(0) && ended.stdout.is_empty()
        });
        assert!(have_ended, "tasks did not end within {LONGEST_S} s");
    }

    /// Waits until a repeat is in the midst of its first query step, and returns its process.
    fn wait_for_repeat(&self, results: &str, repeat: &str) -> u32 {
        let results = self.place.join(results);
        let filter = format!("**/{repeat}");
        let is_of_repeat = |pid: &u32| {
            let command = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut args = command.split(|byte| *byte == 0);
            args.next() == Some(b"assay".as_slice()) && args.any(|arg| arg == filter.as_bytes())
        };

        let mut process = None;
        eventually(&format!("{repeat} is being measured"), || {
            process = self.place.processes().into_iter().find(is_of_repeat);
            let run = run_of(&results, repeat);
            process.is_some() && run.is_some_and(|run| any_below(&run, "03-qr100.partial"))
        });

        process.unwrap()
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the one run of a repeat.
fn run_of(results: &Path, repeat: &str) -> Option<PathBuf> {
    let mut runs = entries(results);
    runs.retain(|run| run.to_str().unwrap().ends_with(&format!("-{repeat}")));
    assert!(runs.len() <= 1, "{runs:?}");
    runs.pop()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
}

fn status(run: &Path) -> Value {
    json(&run.join("run.json"))["status"].clone()
}

fn machine(run: &Path) -> String {
    let run = json(&run.join("run.json"));
    let facts = run["host"]["facts"].as_array().unwrap();
    let fact = facts.iter().find(|fact| fact[0] == "host_id").unwrap();
    fact[1].as_str().unwrap().to_owned()
}

/// Makes steps valid that are not because a busy machine held up assay: three tasks share this
/// host.
fn forget_stalls(run: &Path) {
    for target in entries(&run.join("cells")) {
        for cell in entries(&target.join("c1")) {
            for step in entries(&cell.join("steps")) {
                let path = step.join("step.json");
                if !path.is_file() {
                    continue;
                }
                let mut step = json(&path);
                let reasons = step["reasons"].as_array_mut().unwrap();
                let is_stall =
                    |it: &Value| it.as_str().unwrap().starts_with("assay itself was stalled");
                reasons.retain(|it| !is_stall(it));
                step["valid"] = reasons.is_empty().into();
                fs_err::write(&path, step.to_string()).unwrap();
            }
        }
    }
}

/// The throughput of base and target in a step, of each run.
fn pairs(place: &Place, runs: &[PathBuf], step: &str) -> Vec<[f64; 2]> {
    let of_run = |run: &PathBuf| {
        let shown = Shown::read(place, run);
        shown.assert_all_valid();
        ["lite.base", "lite.next"].map(|target| {
            let metrics = &shown.row(target, step)["metrics"];
            let metric = ["qps", "ips"].into_iter().find_map(|name| metrics[name].as_f64());
            metric.unwrap_or_else(|| panic!("{metrics}")).ln()
        })
    };
    runs.iter().map(of_run).collect()
}

fn assert_near(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("no {what}: {found}"));
    assert!(
        (found - expected).abs() <= 1e-6 * expected.abs().max(1e-3),
        "{what}: {found}, by hand {expected}"
    );
}

/// Compares a row of `assay compare` with figures that are computed from the records of three runs,
/// one pair each.
fn assert_pooled(row: &Value, pairs: &[[f64; 2]]) {
    let mean = |values: &dyn Fn(&[f64; 2]) -> f64| pairs.iter().map(values).sum::<f64>() / 3.0;
    let variance = |values: &dyn Fn(&[f64; 2]) -> f64| {
        let mean = mean(values);
        pairs.iter().map(|pair| (values(pair) - mean).powi(2)).sum::<f64>() / 2.0
    };

    let ratio = |[base, target]: &[f64; 2]| target - base;
    let level = |[base, target]: &[f64; 2]| f64::midpoint(*base, *target);
    assert_eq!(
        (&row["pairing"], &row["machines"]["count"]),
        (&"paired".into(), &3.into()),
        "{row}"
    );

    assert_near(&row["ratio"], mean(&ratio).exp(), "ratio");
    assert_near(&row["spread"], variance(&ratio).sqrt(), "spread");

    // Student's t with two degrees of freedom has a closed form.
    let t = mean(&ratio).abs() / (variance(&ratio) / 3.0).sqrt();
    assert_near(&row["p_value"], 1.0 - t / (2.0 + t * t).sqrt(), "p");

    // Mean squares of the analysis of variance, two values of each machine.
    let (between, residual) = (2.0 * variance(&level), variance(&ratio) / 2.0);
    let share = ((between - residual) / (between + residual)).max(0.0);
    assert_near(&row["machines"]["variance_share"]["share"], share, "share");
}

#[test]
#[ignore = "Slurm's daemons are a part of the cross product"]
fn each_repeat_of_a_plan_has_a_machine_of_its_own_and_goes_on_after_a_kill() {
    if !slurm_is_here_or_test_is_skipped() {
        return;
    }

    let cluster = Cluster::start();
    let place = &cluster.place;
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\"]";
    let next = "[config.sqlite.next]\nextends = \"base\"\n";
    let plan = workload(600, 200, "5s", steps) + SQLITE + next;
    place.write("plan.toml", &format!("repeats = 3\n{plan}"));

    cluster.submit(&["--array=1-3"], "results");
    send(cluster.wait_for_repeat("results", "r2"), Signal::KILL);
    cluster.wait_for_tasks();
    let results = place.join("results");
    let runs = ["r1", "r2", "r3"].map(|repeat| run_of(&results, repeat).unwrap());
    assert_eq!(runs.each_ref().map(|run| status(run)), ["complete", "incomplete", "complete"]);
    let mut machines = runs.each_ref().map(|run| machine(run));
    let node = format!("--nodelist={}", machines[1]);
    machines.sort();
    assert_eq!(machines, ["n1", "n2", "n3"]);

    // The task that was killed continues its run, and then the whole array has nothing to do.
    cluster.submit(&["--array=2", &node], "results");
    cluster.wait_for_tasks();
    let complete = runs.each_ref().map(|run| json(&run.join("run.json")));
    assert_eq!(complete[1]["status"], "complete");
    assert_eq!(complete[1]["invocations"].as_array().unwrap().len(), 2);
    cluster.submit(&["--array=1-3"], "results");
    cluster.wait_for_tasks();
    assert_eq!(runs.each_ref().map(|run| json(&run.join("run.json"))), complete);
    assert_eq!(entries(&results), runs);

    runs.iter().for_each(|run| forget_stalls(run));
    let paths = runs.each_ref().map(|run| run.to_str().unwrap());
    let compared =
        place.assay(&[&["compare"], &paths[..], &["--format", "json"]].concat()).expect_code(0);
    let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
    let rows = compared["compared"]["rows"].as_array().unwrap().iter();
    let rows: Vec<&Value> = rows.filter(|row| row["metric"] == "throughput").collect();
    let steps: Vec<&Value> = rows.iter().map(|row| &row["step"]).collect();
    assert_eq!(steps, ["l.i0", "l.x", "qr100"]);
    for row in rows {
        assert_pooled(row, &pairs(place, &runs, row["step"].as_str().unwrap()));
    }

    let of_machines = |finding: &&Value| finding["kind"] == "machines";
    assert!(
        compared["findings"].as_array().unwrap().iter().any(|it| of_machines(&it)),
        "{compared}"
    );

    let said = "3 repeats of each target and of the base, in pairs, from 3 machines";
    let text = place.assay(&[&["compare"], &paths[..]].concat()).expect_code(0);
    text.expect_in_stdout(&[said, "3 machines measured the repeats: "]);
    place.assay(&[&["report"], &paths[..], &["-o", "report.html"]].concat()).expect_code(0);
    assert!(fs_err::read_to_string(place.join("report.html")).unwrap().contains(said));

    // `scancel` ends a task in order.
    let job = cluster.submit(&["--array=1"], "cancelled");
    cluster.wait_for_repeat("cancelled", "r1");
    cluster.slurm("scancel", &[&job]).expect_code(0);
    cluster.wait_for_tasks();
    let run = run_of(&place.join("cancelled"), "r1").unwrap();
    eventually("its end is recorded", || status(&run) == "interrupted");
    cluster.submit(&["--array=1"], "cancelled");
    cluster.wait_for_tasks();
    assert_eq!(status(&run), "complete");
}

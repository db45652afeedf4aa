//! `assay run --listen`: what somebody sees who watches a run.

use std::fs::Permissions;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::http::{answer_of, page_address, refuses_strangers};
use crate::place::{NULL, Place, QUICK, Running, SQLITE, eventually, workload};
use crate::show_json::Shown;
use crate::{not_here, rocksdb_or_test_is_skipped};

/// Where a run says that it answers.
pub(crate) struct Watched {
    address: SocketAddr,
    /// The key is between the slashes.
    path: String,
}

impl Watched {
    /// Waits until a run says where it answers.
    pub(crate) fn find(running: &mut Running) -> Self {
        let mut watched = None;
        eventually("it says where it listens", || {
            running.must_run("it said where it listens");
            let said = running.said();
            let found =
                said.lines().find_map(|line| line.strip_prefix("live: ")?.split(' ').next());
            watched = found.map(|url| {
                let (address, path) = page_address(url);
                Self { address, path }
            });
            watched.is_some()
        });

        watched.unwrap()
    }

    /// Returns the page at a path that the live view links to; `None` without an answer.
    fn answered(&self, page: &str) -> Option<String> {
        answered(self.address, &format!("{}{page}", self.path))
    }

    fn get(&self, page: &str) -> String {
        self.answered(page).unwrap()
    }

    /// Waits until a metric of the samples whose labels have `text` is larger than `least`.
    pub(crate) fn wait_for_more(&self, name: &str, text: &str, least: f64) {
        eventually(&format!("{name} of {text}"), || sum(&self.get("metrics"), name, text) > least);
    }
}

/// Returns the page at `path`; `None` without an answer.
fn answered(address: SocketAddr, path: &str) -> Option<String> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}");
    let answer = answer_of(TcpStream::connect(address).ok()?, &request);
    (answer.status == "200 OK").then_some(answer.body)
}

/// Returns the sum of a metric over all samples whose labels have `text`.
fn sum(metrics: &str, name: &str, text: &str) -> f64 {
    let begin = format!("{name}{{");
    let samples = metrics.lines().filter(|line| line.starts_with(&begin) && line.contains(text));
    let values = samples.map(|line| line.rsplit(' ').next().unwrap());
    values.map(|value| value.parse::<f64>().unwrap()).sum()
}

fn ops(shown: &Shown, target: &str, step: &str, kind: &str) -> f64 {
    shown.row(target, step)["ops"][kind]["count"].as_f64().unwrap()
}

#[test]
fn a_run_is_watched_from_its_first_step_to_its_last_whoever_else_is_connected() {
    let place = Place::new();
    // The first is long enough to be seen several times, and the last one is interrupted.
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\", \"qp100\"]\nstep.\"qp100\".time = \"60s\"";
    let plan = workload(2_000, 1_000, "6s", steps) + SQLITE;
    let mut running = place.spawn_run(&plan, &["--listen", "127.0.0.1:0"]);
    let watched = Watched::find(&mut running);

    // They ask for nothing, and more of them than are kept.
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(watched.address).unwrap()).collect();
    assert!(watched.get("").contains("live.json"));
    watched.wait_for_more("assay_operations_total", r#"step="l.i0""#, 0.0);
    watched.wait_for_more("assay_operations_total", r#"step="qr100",role="query""#, 0.0);
    let metrics = watched.get("metrics");
    let queries = r#"step="qr100",role="query",kind="query""#;
    let before = sum(&metrics, "assay_operations_total", queries);
    watched.wait_for_more("assay_operations_total", queries, before);
    watched.wait_for_more("assay_service_time_seconds_bucket", queries, 0.0);
    let inserts = r#"step="qr100",role="insert""#;
    watched.wait_for_more("assay_response_time_seconds_count", inserts, 0.0);
    let told: Value = serde_json::from_str(&watched.get("live.json")).unwrap();
    assert_eq!(told["step"]["cell"]["target"], "lite.base");
    watched.wait_for_more("assay_operations_total", r#"step="qp100""#, 0.0);
    let metrics = watched.get("metrics");
    drop(silent);
    running.must_run("it was stopped");
    let measured = sum(&metrics, "assay_operations_total", queries);
    let timed = sum(&metrics, "assay_service_time_seconds_count", queries);
    assert_eq!(measured, timed);
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    let shown = Shown::read(&place, &place.only_run());
    assert_eq!(ops(&shown, "lite.base", "qr100", "query"), measured);
}

#[test]
fn between_cells_a_run_compares_what_it_has_measured_so_far() {
    let place = Place::new();
    // More repeats than are waited for.
    let plan = format!(
        "base = \"lite.base\"\nrepeats = 10\n{}{SQLITE}[config.sqlite.other]\n",
        workload(2_000, 1_000, "2s", "steps = [\"l.i0\", \"l.x\", \"qr100\"]")
    );

    let mut running = place.spawn_run(&plan, &["--listen", "127.0.0.1:0"]);
    let watched = Watched::find(&mut running);

    // Both targets of a repeat have ended before the next repeat begins.
    let mut so_far = Value::Null;
    eventually("the page has the first repeat", || {
        running.must_run("it was seen");
        let Some(told) = watched.answered("live.json") else {
            return false;
        };
        so_far = serde_json::from_str::<Value>(&told).unwrap()["so_far"].take();
        so_far["relative"][0]["steps"].as_array().is_some_and(|steps| steps.len() == 3)
    });

    assert_eq!(so_far["base"], "lite.base");
    assert_eq!(so_far["relative"][0]["cell"]["target"], "lite.other");
    assert!(so_far["cells"].as_array().unwrap().len() >= 2, "{so_far}");

    running.signal(Signal::INT);
    let ended = running.wait().expect_code(130);
    let line = "so far, throughput relative to lite.base: lite.other ";
    ended.expect_in_stderr(&[line, "mean of 3 steps, 1 repeat; no verdict yet"]);
}

#[test]
fn a_library_in_a_process_of_its_own_is_watched_as_well() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };

    let place = Place::new();
    let plan = format!(
        "name = \"test\"\n[workload.kv]\nkeys = 2000\nread-time = \"60s\"\nsteps = [\"fillseq\", \"readrandom\"]\n\
         [build.rocks]\nrocksdb = '{}'\n",
        libraries[0].display()
    );

    let mut running = place.spawn_run(&plan, &["--listen", "127.0.0.1:0"]);
    let watched = Watched::find(&mut running);
    eventually("reads are seen", || {
        running.must_run("it was seen");
        sum(&watched.get("metrics"), "assay_operations_total", r#"kind="get""#) > 0.0
    });

    let metrics = watched.get("metrics");
    assert_eq!(sum(&metrics, "assay_operations_total", r#"kind="put""#), 2000.0);
    assert!(metrics.contains(r#"step="readrandom",state="measuring"} 1"#), "{metrics}");
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    place.assert_nothing_is_left();
}

#[test]
fn another_user_of_the_machine_does_not_see_a_run() {
    let place = Place::new();
    let plan = workload(2_000, 1_000, "60s", "") + SQLITE;
    let arguments = ["--quiet", "--listen", "127.0.0.1:0", "--listen-key-file", "key"];
    let mut running = place.spawn_run(&plan, &arguments);
    let watched = Watched::find(&mut running);

    let key = watched.path.trim_matches('/');
    refuses_strangers(watched.address, key, &["/", "/metrics", "/live.json", "/nothing"]);
    assert_eq!(fs_err::read_to_string(place.join("key")).unwrap().trim(), key);
    let mode = fs_err::metadata(place.join("key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(watched.get("metrics").contains("assay_cells"));

    running.signal(Signal::INT);
    running.wait().expect_code(130);
}

#[test]
fn a_key_is_not_written_where_another_user_could_read_it() {
    let place = Place::new();
    for (name, mode) in [("open", 0o644), ("closed", 0o640)] {
        let path = place.write(name, "what was there before, which is longer than a key");
        fs_err::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }

    std::os::unix::fs::symlink(place.join("closed"), place.join("linked")).unwrap();
    let plan = workload(200, 1, QUICK, "steps = [\"l.i0\"]") + SQLITE;
    let run_with =
        |file: &str| place.run(&plan, &["--listen", "127.0.0.1:0", "--listen-key-file", file]);

    let refused = run_with("open").expect_code(2);
    refused.expect_in_stderr(&["`open` is not a file of yours that only you", "help: "]);
    let linked = run_with("linked").expect_code(1);
    linked.expect_in_stderr(&["cannot write the key to `linked`"]);
    let unchanged = fs_err::read_to_string(place.join("closed")).unwrap();
    assert!(unchanged.starts_with("what was there before"));

    run_with("closed").expect_code(0);
    assert_eq!(fs_err::read_to_string(place.join("closed")).unwrap().trim().len(), 32);
}

#[test]
fn an_address_that_cannot_be_listened_at_ends_it_before_anything_starts() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (address, what) in [
        (taken.as_str(), "cannot listen on `127.0.0.1:"),
        ("0.0.0.0:0", "other machines could reach `0.0.0.0:0`"),
        ("[::]:0", "other machines could reach `[::]:0`"),
        ("9187", "invalid address `9187` for `--listen`"),
        ("127.0.0.1:99999", "invalid address `127.0.0.1:99999` for `--listen`"),
    ] {
        let ended = place.run(NULL, &["--listen", address]).expect_code(2);
        let ended = ended.expect_in_stderr(&[what, "help: "]);
        assert!(ended.stdout.is_empty(), "{ended}");
    }

    assert_eq!(fs_err::read_dir(place.join("results")).unwrap().count(), 0);
    assert_eq!(fs_err::read_dir(place.join("data")).unwrap().count(), 0);
}

/// A program that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the answer of Prometheus to a query: the value of each series.
fn query(prometheus: SocketAddr, text: &str) -> Vec<f64> {
    let escaped: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let answer = answered(prometheus, &format!("/api/v1/query?query={escaped}")).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["status"], "success", "{answer}");
    let series = answer["data"]["result"].as_array().unwrap().iter();
    let value = |one: &Value| one["value"][1].as_str().unwrap().parse().unwrap();
    series.map(value).collect()
}

/// Starts Prometheus as the documentation says, with the key in a file.
fn start_prometheus(
    program: &Path,
    place: &Place,
    target: SocketAddr,
    key_file: &Path,
) -> (Killed, SocketAddr) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = free.local_addr().unwrap();
    drop(free);
    let config = format!(
        "global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}\n\
         scrape_configs: [{{job_name: assay, static_configs: [{{targets: [\"{target}\"]}}],\n\
         \x20   authorization: {{credentials_file: \"{}\"}}}}]\n",
        key_file.display()
    );

    let config = place.write("prometheus.yml", &config);
    let mut command = Command::new(program);
    command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", place.join("tmp/tsdb").display()))
        .arg(format!("--web.listen-address={own}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs_err::File::create(place.join("prometheus.log")).unwrap().into_file());
    (Killed(command.spawn().unwrap()), own)
}

#[test]
fn prometheus_scrapes_it() {
    let Some(program) = std::env::var_os("ASSAY_TEST_PROMETHEUS") else {
        not_here("prometheus", "ASSAY_TEST_PROMETHEUS names none");
        return;
    };

    let place = Place::new();
    let plan = workload(2_000, 1_000, "60s", "") + SQLITE;
    let arguments = ["--listen", "127.0.0.1:0", "--listen-key-file", "key"];
    let mut running = place.spawn_run(&plan, &arguments);
    let target = Watched::find(&mut running).address;
    let (_prometheus, own) =
        start_prometheus(Path::new(&program), &place, target, &place.join("key"));
    eventually("Prometheus is ready", || answered(own, "/-/ready").is_some());
    for text in [
        "up == 1",
        "assay_cells == 1",
        r#"assay_run_info{name="test"} == 1"#,
        r#"assay_step_running{target="lite.base",step="qr100",state="measuring"} == 1"#,
        r#"rate(assay_operations_total{step="qr100",kind="query"}[5s]) > 0"#,
        r#"histogram_quantile(0.99, sum by (le) (rate(assay_service_time_seconds_bucket{kind="query"}[5s]))) > 0"#,
        r#"histogram_quantile(0.99, sum by (le) (rate(assay_response_time_seconds_bucket{kind="insert"}[5s]))) > 0"#,
    ] {
        eventually(text, || {
            running.must_run(text);
            !query(own, text).is_empty()
        });
    }

    // It knows what is a counter and what a histogram, with their units.
    let known = answered(own, "/api/v1/metadata").unwrap();
    for text in [
        r#""assay_operations_total":[{"type":"counter""#,
        r#""assay_service_time_seconds":[{"type":"histogram""#,
    ] {
        let is_known = known.contains(text) || known.contains(&text.replace("_total", ""));
        assert!(is_known, "{known}");
    }

    running.signal(Signal::INT);
    running.wait().expect_code(130);
}

//! `assay run --listen`: what somebody sees who watches a run.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{NULL, Place, Running, SQLITE, eventually, workload};
use crate::show_json::Shown;
use crate::{not_here, rocksdb_or_test_is_skipped};

/// Returns the address at which a run says that it answers.
fn address(running: &mut Running) -> SocketAddr {
    let mut address = None;
    eventually("it says where it listens", || {
        running.must_run("it said where it listens");
        let said = running.said();
        let lines = said.lines();
        let mut places =
            lines.filter_map(|line| line.strip_prefix("live: http://")?.split_once('/'));
        address = places.next().map(|(address, _)| address.parse().unwrap());
        address.is_some()
    });
    address.unwrap()
}

/// Returns the answer to a request for `path`; `None` without an answer.
fn answered(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let status = head.split_once(' ').unwrap().1;
    status.starts_with("200 OK\r\n").then(|| body.to_owned())
}

fn get(address: SocketAddr, path: &str) -> String {
    answered(address, path).unwrap()
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
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\", \"qp100\"]";
    let plan = workload(2_000, 1_000, "3s", steps) + SQLITE;
    let mut running = place.spawn_run(&plan, &["--listen", "127.0.0.1:0"]);
    let address = address(&mut running);
    // They ask for nothing, and more of them than are kept.
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(get(address, "/").contains("live.json"));
    let is_seen = |name: &str, text: &str, least: f64| {
        eventually(&format!("{name} of {text}"), || {
            sum(&get(address, "/metrics"), name, text) > least
        });
    };
    is_seen("assay_operations_total", r#"step="l.i0""#, 0.0);
    is_seen("assay_operations_total", r#"step="qr100",role="query""#, 0.0);
    let metrics = get(address, "/metrics");
    let queries = r#"step="qr100",role="query",kind="query""#;
    let before = sum(&metrics, "assay_operations_total", queries);
    is_seen("assay_operations_total", queries, before);
    is_seen("assay_service_time_seconds_bucket", queries, 0.0);
    is_seen("assay_response_time_seconds_count", r#"step="qr100",role="insert""#, 0.0);
    let told: Value = serde_json::from_str(&get(address, "/live.json")).unwrap();
    assert_eq!(told["step"]["cell"]["target"], "lite.base");
    is_seen("assay_operations_total", r#"step="qp100""#, 0.0);
    let metrics = get(address, "/metrics");
    drop(silent);
    running.must_run("it was stopped");
    let measured = sum(&metrics, "assay_operations_total", queries);
    let timed = sum(&metrics, "assay_service_time_seconds_count", queries);
    assert_eq!(measured, timed);
    let ended = running.wait().expect_code(0);
    let shown = Shown::read(&place, &place.join(ended.stdout.lines().last().unwrap()));
    assert_eq!(ops(&shown, "lite.base", "qr100", "query"), measured);
}

#[test]
fn between_cells_a_run_compares_what_it_has_measured_so_far() {
    let place = Place::new();
    let plan = format!(
        "base = \"lite.base\"\nrepeats = 2\n{}{SQLITE}[config.sqlite.other]\n",
        workload(2_000, 1_000, "2s", "steps = [\"l.i0\", \"l.x\", \"qr100\"]")
    );
    let mut running = place.spawn_run(&plan, &["--listen", "127.0.0.1:0"]);
    let address = address(&mut running);

    // Both targets of a repeat have ended before the next repeat begins.
    let mut so_far = Value::Null;
    eventually("the page has the first repeat", || {
        running.must_run("it was seen");
        let Some(told) = answered(address, "/live.json") else {
            return false;
        };
        so_far = serde_json::from_str::<Value>(&told).unwrap()["so_far"].take();
        so_far["relative"][0]["steps"].as_array().is_some_and(|steps| steps.len() == 3)
    });
    assert_eq!(so_far["base"], "lite.base");
    assert_eq!(so_far["relative"][0]["cell"]["target"], "lite.other");
    assert!(so_far["cells"].as_array().unwrap().len() >= 2, "{so_far}");

    let ended = running.wait().expect_code(0);
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
    let address = address(&mut running);
    eventually("reads are seen", || {
        running.must_run("it was seen");
        sum(&get(address, "/metrics"), "assay_operations_total", r#"kind="get""#) > 0.0
    });
    let metrics = get(address, "/metrics");
    assert_eq!(sum(&metrics, "assay_operations_total", r#"kind="put""#), 2000.0);
    assert!(metrics.contains(r#"step="readrandom",state="measuring"} 1"#), "{metrics}");
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    place.assert_nothing_is_left();
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
    let answer = get(prometheus, &format!("/api/v1/query?query={escaped}"));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["status"], "success", "{answer}");
    let series = answer["data"]["result"].as_array().unwrap().iter();
    let value = |one: &Value| one["value"][1].as_str().unwrap().parse().unwrap();
    series.map(value).collect()
}

fn start_prometheus(program: &Path, place: &Place, target: SocketAddr) -> (Killed, SocketAddr) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = free.local_addr().unwrap();
    drop(free);
    let config = format!(
        "global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}\n\
         scrape_configs: [{{job_name: assay, static_configs: [{{targets: [\"{target}\"]}}]}}]\n"
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
    let mut running = place.spawn_run(&plan, &["--listen", "127.0.0.1:0"]);
    let (_prometheus, own) = start_prometheus(Path::new(&program), &place, address(&mut running));
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
    let known = get(own, "/api/v1/metadata");
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

//! `assay serve`: what a browser sees of many runs, and what it must not see.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use crate::forged::change_json;
use crate::http::{Answered, answer_of, page_address, refuses_strangers};
use crate::place::{Place, QUICK, Running, SQLITE, eventually, workload};

/// Two targets.
const TWICE: &str = "[config.sqlite.next]\nextends = \"base\"\n";

/// A server of pages, with its address.
struct Served {
    running: Running,
    address: SocketAddr,
    /// The path of the first page, which has the key between its slashes.
    root: String,
}

impl Served {
    fn start(place: &Place) -> Self {
        let mut running = place.spawn(&["serve", "results", "--listen", "127.0.0.1:0"]);
        let mut url = None;
        eventually("it says where it listens", || {
            running.must_run("it said where it listens");
            let said = running.said();
            url = said.lines().find_map(|line| line.strip_prefix("runs: ")).map(str::to_owned);
            url.is_some()
        });
        let (address, root) = page_address(&url.unwrap());
        Self { running, address, root }
    }

    fn request(&self, head: &str) -> Answered {
        answer_of(TcpStream::connect(self.address).unwrap(), head)
    }

    /// Requests a page by its path without the key.
    fn get(&self, path: &str) -> Answered {
        let path = format!("{}{}", self.root.trim_end_matches('/'), path);
        self.request(&format!("GET {path} HTTP/1.1\r\nHost: {}", self.address))
    }

    /// Returns a page that must be there.
    fn page(&self, path: &str) -> String {
        let answered = self.get(path);
        assert_eq!(answered.status, "200 OK", "{path}: {}", answered.body);
        answered.body
    }

    /// Returns the page of this address once it has a text.
    fn page_with(&mut self, path: &str, text: &str) -> String {
        let mut page = String::new();
        eventually(&format!("`{text}` is in {path}"), || {
            self.running.must_run("the page was complete");
            page = self.page(path);
            page.contains(text)
        });
        page
    }
}

fn measured(place: &Place, repeats: u32) -> String {
    let steps = "steps = [\"l.i0\"]";
    let plan = format!("repeats = {repeats}\n{}{SQLITE}{TWICE}", workload(200, 1, QUICK, steps));
    let run = place.run(&plan, &["--quiet"]).expect_code(0).run_directory();
    run.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn runs_are_listed_compared_and_have_a_history() {
    let place = Place::new();
    let (first, second) = (measured(&place, 2), measured(&place, 2));
    let mut served = Served::start(&place);

    let mut list = String::new();
    eventually("both runs have been read", || {
        list = served.page("/");
        list.matches(">complete<").count() >= 2
    });
    assert!(list.contains(&first) && list.contains(&second), "{list}");
    let filtered = served.page(&format!("/?q={second}+complete"));

    // One name may begin with the other.
    let link = |run: &str| format!("\"./run?name={run}\"");
    assert!(filtered.contains(&link(&second)) && !filtered.contains(&link(&first)), "{filtered}");
    assert!(served.page("/?q=postgres").contains("No run has all of these words"));

    // Targets are chosen if none is: those of the same name in both runs, and two of one run.
    let both = served.page(&format!("/compare?base={first}&other={second}"));
    assert!(both.contains("lite.base of run 1") && both.contains("lite.base of run 2"), "{both}");
    let of_one = served.page(&format!("/compare?base={first}&other={first}"));
    assert!(of_one.contains("lite.next") && !of_one.contains("of run 1"), "{of_one}");
    let crossed = format!("/compare?base={first}&base_target=lite.next&other={second}");
    assert!(served.page(&crossed).contains("lite.next of run 1"));
    let itself = format!("/compare?base={first}&other={first}&other_target=lite.base");
    assert!(served.page(&itself).contains("both sides are the target"));

    let history = format!("/history?name={first}&step=l.i0");
    let run = served.page_with(&format!("/run?name={first}"), "/history?");
    let link = format!("\".{}#", history.replace('&', "&amp;"));
    let (_, after) = run.split_once(&link).unwrap_or_else(|| panic!("no {link} in {run}"));
    let (anchor, _) = after.split_once('"').unwrap();

    // Both targets are shown over both runs, and the link opens one of them.
    let history = served.page_with(&history, "over 2 runs");
    assert!(history.contains(&format!("id=\"{anchor}\"")), "no {anchor} in {history}");
    assert!(history.contains(&first) && history.contains(&second), "{history}");
    assert!(history.contains("lite.next") && history.contains("\"served\":true"), "{history}");
    let kept = place.join("results").join(&second).join("history.json");
    assert!(kept.is_file(), "the next reading would take as long");

    let report = served.page(&format!("/report?name={second}"));
    assert!(report.contains("id=\"results\""), "it is no report");
    served.running.must_run("the last page was read");
}

#[test]
fn a_page_from_elsewhere_and_a_writer_are_refused() {
    let place = Place::new();
    measured(&place, 1);
    let served = Served::start(&place);
    let port = served.address.port();
    let evil = served.request(&format!("GET / HTTP/1.1\r\nHost: evil.example:{port}"));
    assert_eq!(evil.status, "421 Misdirected Request");
    let post = format!("POST {} HTTP/1.1\r\nHost: localhost:{port}", served.root);
    let post = served.request(&post);
    assert_eq!(post.status, "405 Method Not Allowed");
    let head = served.get("/").head;
    for header in ["frame-ancestors 'none'", "Referrer-Policy: no-referrer", "nosniff"] {
        assert!(head.contains(header), "{head}");
    }

    place.assay(&["serve", "results", "--listen", "0.0.0.0:0"]).expect_code(2);
    place.assay(&["serve", "nowhere"]).expect_code(2);
}

#[test]
fn another_user_of_the_machine_sees_no_page() {
    let place = Place::new();
    let name = measured(&place, 1);
    let served = Served::start(&place);
    let report = format!("/report?name={name}");
    let key = served.root.trim_matches('/');
    refuses_strangers(served.address, key, &["/", "/run", &report, "/compare", "/nothing"]);
    assert_eq!(served.get(&report).status, "200 OK");
}

#[test]
fn every_link_and_form_of_a_page_keeps_the_key() {
    let place = Place::new();
    let (first, second) = (measured(&place, 1), measured(&place, 1));
    let mut served = Served::start(&place);
    served.page_with("/", ">complete<");
    for path in [
        "/".to_owned(),
        format!("/run?name={first}"),
        format!("/compare?base={first}&other={second}"),
        format!("/history?name={first}&step=l.i0"),
    ] {
        let page = served.page(&path);
        let targets = page.split(" href=\"").chain(page.split(" action=\"")).skip(1);
        let targets: Vec<_> = targets.filter_map(|rest| rest.split('"').next()).collect();
        assert!(targets.iter().any(|target| target.starts_with("./")), "{path}: {targets:?}");
        assert!(!targets.iter().any(|target| target.starts_with('/')), "{path}: {targets:?}");
    }
}

#[test]
fn nothing_but_runs_of_the_folder_can_be_asked_for() {
    let place = Place::new();
    let name = measured(&place, 1);
    let outside = place.join("outside");
    fs_err::rename(place.join("results").join(&name), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, place.join("results/linked")).unwrap();
    let name = measured(&place, 1);
    let mut served = Served::start(&place);

    let list = served.page_with("/", ">complete<");
    assert!(!list.contains("linked"), "{list}");
    for run in ["linked", "..%2Foutside", "../outside", "%2Fetc", ""] {
        for page in ["run?name", "report?name", "history?name", "compare?base"] {
            assert_eq!(served.get(&format!("/{page}={run}")).status, "404 Not Found", "{page}");
        }
    }

    for path in [format!("/{name}/run.json"), format!("/results/{name}/report.html")] {
        assert_eq!(served.get(&path).status, "404 Not Found");
    }
}

#[test]
fn what_a_stranger_put_into_a_run_is_text() {
    let place = Place::new();
    let name = measured(&place, 1);
    let run = place.join("results").join(&name);
    let script = "<script>alert(1)</script>";
    change_json(&run.join("run.json"), |run| run["name"] = script.into());
    fs_err::write(run.join("report.html"), script).unwrap();
    let damaged = place.join("results/20990101T000000Z-damaged");
    fs_err::create_dir(&damaged).unwrap();
    fs_err::write(damaged.join("run.json"), script).unwrap();

    let mut served = Served::start(&place);
    let list = served.page_with("/", "unreadable");
    let of_run = served.page(&format!("/run?name={name}"));
    let report = served.page(&format!("/report?name={name}"));
    for page in [list, of_run, report] {
        assert!(!page.contains(script), "it is no text");
        assert!(page.contains("default-src 'none'"), "it has no policy");
    }

    let unreadable = served.get("/report?name=20990101T000000Z-damaged");
    assert_eq!(unreadable.status, "422 Unprocessable Content");
    assert!(!Path::new(&run).join("index.html").exists());
}

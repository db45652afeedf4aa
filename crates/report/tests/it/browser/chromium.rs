//! Chromium without a window, driven over a pipe by its DevTools protocol: no port, no other
//! program, no crate.

use std::io::{BufRead, BufReader, Write};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than any request to the browser takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Longer than a page takes until something that it does by itself is done; it gives up before who
/// asks it does.
const PATIENCE_IN_PAGE: Duration = Duration::from_secs(120);

/// Names under which distributions have it.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The program that is here, which all tests ask for once.
static PROGRAM: LazyLock<Option<&str>> =
    LazyLock::new(|| PROGRAMS.into_iter().find(|program| answers(program)));

/// The browser of all tests, which have it one after the other.
static BROWSER: Mutex<Option<Chromium>> = Mutex::new(None);

/// Tests that have the browser or wait for it.
static WANTED: AtomicUsize = AtomicUsize::new(0);

/// A new page of the browser. Dropping it closes the page, and the last one the browser.
pub struct Page {
    browser: MutexGuard<'static, Option<Chromium>>,
}

/// A browser, and the page of it that is shown.
pub struct Chromium {
    child: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    request_count: u64,
    session: String,
    target: Value,
    /// Events that it sent: network requests, errors.
    events: Vec<Value>,
    /// Its profile, and its output in the file `said`.
    folder: tempfile::TempDir,
}

/// Returns an empty page, or none: then the test that asks has been called skipped, or fails where
/// a browser is required.
pub fn page_or_test_is_skipped() -> Option<Page> {
    let Some(program) = *PROGRAM else {
        let why = "no Chromium here: install what Debian calls `chromium`";
        let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
        let is_required = required.split(',').any(|name| name == "chromium");
        assert!(!is_required, "chromium is required: {why}");
        say_skipped(why);
        return None;
    };
    WANTED.fetch_add(1, Ordering::Relaxed);
    let mut browser = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    browser.get_or_insert_with(|| Chromium::start(program)).begin_page();
    Some(Page { browser })
}

/// Returns whether a program is a browser that starts.
fn answers(program: &str) -> bool {
    let mut version = Command::new(program);
    version.arg("--version").stdin(Stdio::null());
    let version = version.stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

impl Deref for Page {
    type Target = Chromium;

    fn deref(&self) -> &Chromium {
        self.browser.as_ref().unwrap()
    }
}

impl DerefMut for Page {
    fn deref_mut(&mut self) -> &mut Chromium {
        self.browser.as_mut().unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let is_last = WANTED.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last || std::thread::panicking() {
            *self.browser = None;
        } else {
            self.end_page();
        }
    }
}

/// Says that the test that calls it does not run: past the capture of a test's output, and in the
/// file that `ASSAY_SKIP_LOG` names, where such tests are counted.
fn say_skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("SKIPPED {test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(log) = std::env::var_os("ASSAY_SKIP_LOG") {
        let mut log = fs_err::OpenOptions::new().create(true).append(true).open(log).unwrap();
        log.write_all(line.as_bytes()).unwrap();
    }
}

impl Chromium {
    fn start(program: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The protocol is spoken on descriptors 3 and 4; the shell makes them of its input and
        // output.
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >"$0" 2>&1"#])
            .arg(folder.path().join("said"))
            .arg(program)
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                // It is started as root in containers, which have little shared memory and no
                // graphics.
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--window-size=1280,900",
                "--force-color-profile=srgb",
            ])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg("about:blank")
            // What it makes there stays when it is killed.
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        let mut child = command.spawn().unwrap();
        let requests = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        // Ends when the browser does.
        std::thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).unwrap();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            requests,
            messages,
            request_count: 0,
            session: String::new(),
            target: Value::Null,
            events: Vec::new(),
            folder,
        }
    }

    fn begin_page(&mut self) {
        let mut created = self.ask("Target.createTarget", json!({"url": "about:blank"}));
        self.target = created["targetId"].take();
        let attached =
            self.ask("Target.attachToTarget", json!({"targetId": self.target, "flatten": true}));
        self.session = attached["sessionId"].as_str().unwrap().to_string();
        for domain in ["Page", "Runtime", "Log", "Network", "Performance"] {
            self.ask(&format!("{domain}.enable"), json!({}));
        }
        let on = json!({"enabled": true});
        self.ask("Page.setLifecycleEventsEnabled", on.clone());
        // Whatever else has the focus: keys and `:focus-within` are of this page.
        self.ask("Emulation.setFocusEmulationEnabled", on);
    }

    fn end_page(&mut self) {
        self.session.clear();
        let target = json!({"targetId": self.target});
        self.ask("Target.closeTarget", target);
        self.events.clear();
    }

    /// Calls a method of the protocol and waits for its answer.
    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.request_count += 1;
        let mut request = json!({"id": self.request_count, "method": method, "params": parameters});
        if !self.session.is_empty() {
            request["sessionId"] = Value::from(self.session.as_str());
        }
        let mut bytes = request.to_string().into_bytes();
        bytes.push(0);
        if let Err(error) = self.requests.write_all(&bytes) {
            panic!("Chromium does not hear `{method}`: {error}{}", self.said());
        }
        loop {
            let mut message = self.next(method);
            if message["id"] == self.request_count {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn next(&self, waiting_for: &str) -> Value {
        match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(error) => {
                panic!("Chromium does not answer `{waiting_for}`: {error}{}", self.said())
            }
        }
    }

    /// Returns the last lines of its output, for the message of a failure.
    fn said(&self) -> String {
        let said = fs_err::read(self.folder.path().join("said")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().collect();
        let last = &lines[lines.len().saturating_sub(20)..];
        format!("; it said:\n{}", last.join("\n"))
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        let navigated =
            self.ask("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        assert!(navigated["errorText"].is_null(), "{navigated}");
        // Of this document: the empty page before it may tell as late as now that it is loaded.
        let loader = &navigated["loaderId"];
        let is_load = |event: &Value| {
            let told = &event["params"];
            event["method"] == "Page.lifecycleEvent"
                && told["name"] == "load"
                && told["loaderId"] == *loader
        };
        while !self.events.iter().any(is_load) {
            let event = self.next("Page.lifecycleEvent");
            self.events.push(event);
        }
    }

    /// Returns the value of an expression of JavaScript; a promise's when it is kept.
    pub fn value(&mut self, expression: &str) -> Value {
        let mut answer = self.ask(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true; fails after a while. What it asks about may not exist yet.
    pub fn wait_for(&mut self, expression: &str) {
        let held = self.value(&format!(
            "new Promise((done) => {{
               const end = performance.now() + {};
               const look = () => {{
                 let held = false;
                 try {{ held = Boolean({expression}); }} catch (error) {{ held = String(error); }}
                 if (held === true || performance.now() > end) done(held);
                 else setTimeout(look, 10);
               }};
               look();
             }})",
            PATIENCE_IN_PAGE.as_millis()
        ));
        assert_eq!(
            held,
            true,
            "it does not become true: {expression}; complaints: {:?}",
            self.complaints()
        );
    }

    /// Returns seconds of processor time that the page's process has used.
    pub fn processor_time(&mut self) -> f64 {
        let answer = self.ask("Performance.getMetrics", json!({}));
        let metrics = answer["metrics"].as_array().unwrap();
        let used = metrics.iter().find(|metric| metric["name"] == "ProcessTime");
        let used = used.unwrap_or_else(|| panic!("no ProcessTime: {answer}"));
        used["value"].as_f64().unwrap()
    }

    /// An event of the mouse at a place of the window.
    pub fn mouse(&mut self, kind: &str, (x, y): (f64, f64), clicks: u32) {
        let button = if clicks > 0 { "left" } else { "none" };
        self.ask(
            "Input.dispatchMouseEvent",
            json!({
                "type": kind, "x": x, "y": y, "button": button, "clickCount": clicks,
                "buttons": u32::from(kind != "mouseReleased" && clicks > 0),
            }),
        );
    }

    /// Presses a key and lets it go.
    pub fn key(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            key if key.chars().count() == 1 => key,
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = Value::from(text);
            }
            self.ask("Input.dispatchKeyEvent", event);
        }
    }

    /// Returns the requested addresses so far.
    pub fn requested(&self) -> Vec<&str> {
        let requests = self.events.iter();
        requests
            .filter(|event| event["method"] == "Network.requestWillBeSent")
            .filter_map(|event| event["params"]["request"]["url"].as_str())
            .collect()
    }

    /// Errors and warnings so far, of scripts and of the browser.
    pub fn complaints(&self) -> Vec<String> {
        let events = self.events.iter();
        let complaints = events.filter(|event| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Log.entryAdded") => true,
            Some("Runtime.consoleAPICalled") => event["params"]["type"] != "log",
            _ => false,
        });
        complaints.map(|event| event["params"].to_string()).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Its own children are in its group. Every shell has this command; as a program it may be
        // missing.
        let group = format!("kill -s KILL -- -{}", self.child.id());
        let _ = Command::new("sh").args(["-c", &group]).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Where a test's server keeps its files, for every kind of server.

use std::ffi::OsString;
use std::fs::Metadata;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::SetupError;
use engine::StartOptions;
use engine::guard::{Ending, Guarded, Spawn};
use engine::limits::Limits;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use crate::guard::{guard_exe, within};
use crate::script::write_script;

pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// A kind of server that tests start.
pub(crate) trait Startable: Sized {
    /// What it is configured with. Small, and not durable: what a test waits for is not the disk.
    const CONFIG: &'static str;

    /// The build that is tested.
    fn build() -> String;

    /// Starts it.
    fn start(options: &StartOptions<'_>) -> Result<Self, SetupError>;

    /// Has the build read its configuration.
    fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError>;
}

/// A directory that the server's user may enter.
pub(crate) struct Place<S> {
    directory: tempfile::TempDir,
    guard_exe: PathBuf,
    kind: PhantomData<fn() -> S>,
}

impl<S: Startable> Place<S> {
    pub(crate) fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        fs_err::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            directory,
            guard_exe: guard_exe(),
            kind: PhantomData,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path().join("server.log")
    }

    pub(crate) fn start(&self, set: &[(&str, &str)]) -> Result<S, SetupError> {
        self.start_build(&S::build(), set)
    }

    pub(crate) fn start_build(&self, build: &str, set: &[(&str, &str)]) -> Result<S, SetupError> {
        self.start_in(&self.path().join("data"), build, set, 120)
    }

    pub(crate) fn start_in(
        &self,
        data_dir: &Path,
        build: &str,
        set: &[(&str, &str)],
        timeout_s: u64,
    ) -> Result<S, SetupError> {
        self.with_options(data_dir, build, set, timeout_s, S::start)
    }

    /// Has the build read a configuration, of which nothing is left.
    pub(crate) fn try_config(&self, set: &[(&str, &str)]) -> Result<(), SetupError> {
        self.try_config_of(&S::build(), &self.path().join("data"), set)
    }

    pub(crate) fn try_config_of(
        &self,
        build: &str,
        data_dir: &Path,
        set: &[(&str, &str)],
    ) -> Result<(), SetupError> {
        let tried = self.with_options(data_dir, build, set, 120, S::try_config);
        assert!(!data_dir.exists() && !self.log().exists());
        tried
    }

    fn with_options<T>(
        &self,
        data_dir: &Path,
        build: &str,
        set: &[(&str, &str)],
        timeout_s: u64,
        use_them: impl FnOnce(&StartOptions<'_>) -> T,
    ) -> T {
        let set: Vec<(String, String)> = set
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        use_them(&StartOptions {
            build,
            data_dir,
            config_files: &[S::CONFIG.to_string()],
            set: &set,
            user: None,
            guard_exe: &self.guard_exe,
            log: &self.log(),
            connections: 10,
            limits: &Limits::default(),
            timeout: Duration::from_secs(timeout_s),
            stop: &GO_ON,
        })
    }

    /// Begins a start that is to stop at once: it says so, and nothing of it is left.
    pub(crate) fn start_and_stop(&self) {
        let result = S::start(&StartOptions {
            build: &S::build(),
            data_dir: &self.path().join("data"),
            config_files: &[],
            set: &[],
            user: None,
            guard_exe: &self.guard_exe,
            log: &self.log(),
            connections: 1,
            limits: &Limits::default(),
            timeout: Duration::from_secs(60),
            stop: &AtomicBool::new(true),
        });
        let error = result.err().expect("it must not start");
        assert!(error.to_string().contains("stopped"), "{error}");
        let here = self.path().to_str().unwrap();
        let is_left = |entry: std::io::Result<fs_err::DirEntry>| {
            let command = fs_err::read(entry.ok()?.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&command).contains(here))
        };
        let mut left = fs_err::read_dir("/proc").unwrap().filter_map(is_left);
        assert!(!left.any(|left| left));
    }

    /// Makes a build of scripts, by name and text; where it is.
    pub(crate) fn fake_build(&self, programs: &[(&str, &str)]) -> String {
        let build = self.path().join("fake");
        let bin = build.join("bin");
        fs_err::create_dir_all(&bin).unwrap();
        for (name, text) in programs {
            write_script(&bin.join(name), text);
        }
        build.display().to_string()
    }
}

/// Starts a server as `owner` with `args`, by which it listens on a port of TCP, and waits for its `answer`.
pub(crate) fn on_a_port<T>(
    log: &Path,
    program: &Path,
    owner: &Metadata,
    args: impl Fn(u16) -> Vec<OsString>,
    answer: impl Fn(u16) -> Option<T>,
) -> (Guarded, u16, T) {
    let is_root = rustix::process::geteuid().is_root();
    // The kernel gives the port to nobody while this has it, and to a server that asks for it by its number.
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let held = net::socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    // Both have to allow it: the servers do.
    net::sockopt::set_socket_reuseaddr(&held, true).unwrap();
    net::bind(&held, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = SocketAddrV4::try_from(net::getsockname(&held).unwrap()).unwrap();
    let port = address.port();
    let mut guarded = Guarded::spawn(&Spawn {
        guard_exe: &guard_exe(),
        program,
        args: args(port),
        env: Vec::new(),
        env_remove: Vec::new(),
        input: None,
        directory: None,
        user: Some((owner.uid(), owner.gid())).filter(|_| is_root),
        log: Some(log),
        orphaned: Ending::Kill,
        remove_directory: None,
    })
    .unwrap();
    let mut found = None;
    // It may make a key first, which some builds take long for.
    within(300, "it answers or ends", || {
        found = answer(port);
        found.is_some() || !guarded.is_alive()
    });
    let said = || fs_err::read_to_string(log).unwrap_or_default();
    let found = found.unwrap_or_else(|| panic!("it ended: {}", said()));
    (guarded, port, found)
}

/// The build that was found; where none was, says so aloud. A build that was asked for by name, by
/// `variable`, has to be there, and so has `engine` where it is required.
pub(crate) fn is_there<T>(found: Result<T, SetupError>, variable: &str, engine: &str) -> Option<T> {
    let error = match found {
        Ok(found) => return Some(found),
        Err(error) => error,
    };
    assert!(
        std::env::var_os(variable).is_none(),
        "{variable} names no build: {error}"
    );
    assert!(!is_required(engine), "`{engine}` is required: {error}");
    crate::say_skipped(&error.to_string());
    None
}

/// Whether the tests of an engine must not be skipped.
pub(crate) fn is_required(engine: &str) -> bool {
    let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
    required.split(',').any(|required| required == engine)
}

//! SQL servers that tests start: what differs between them, and where they keep their files.

use std::ffi::OsString;
use std::fs::Metadata;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use engine::guard::{Ending, Guarded, Spawn};
use engine::limits::Limits;
use engine::{ServerEngine, SetupError, StartOptions};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use crate::guard::{guard_exe, within};
use crate::script::write_script;

pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// A kind of SQL server that tests start, and what differs between them in words alone.
pub(crate) trait TestServer: ServerEngine + Sized + 'static {
    /// As `ASSAY_REQUIRE_ENGINES` and data directories call it.
    const NAME: &'static str;
    /// The variable that names the build that is tested.
    const VARIABLE: &'static str;
    /// What it is configured with. Small, and not durable: what a test waits for is not the disk.
    const CONFIG: &'static str;
    /// What statements of tests are in its SQL.
    const SQL: Sql;
    /// What its life is told by.
    const LIFE: Life;

    /// Returns whether a build is here.
    fn find(build: &str) -> Result<(), SetupError>;

    /// Starts it.
    fn start(options: &StartOptions<'_>) -> Result<Self, SetupError>;

    /// Has the build read its configuration.
    fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError>;

    /// Uses one that runs.
    fn attach(url: &str) -> Result<Self, SetupError>;

    /// The variants of it that tests run on: the storage engines of the build.
    fn variants() -> Vec<&'static str>;

    /// The options by which it is of a variant.
    fn options_of(variant: &'static str) -> Vec<(&'static str, &'static str)>;

    /// The shared servers of all variants that there may be.
    fn pool() -> &'static [Mutex<Weak<Shared<Self>>>];

    /// The socket that it listens on, or its directory.
    fn socket(&self) -> PathBuf;

    /// Looks at what is its own after a start.
    fn look_at_start(&self);

    /// Looks at what is its own of a table.
    fn look_at_table(_session: &mut Self::Session, _table: &str, _variant: &str) {}

    /// Has a session wait for locks of others for a moment only, or until a deadlock is found.
    fn wait_for_locks(session: &mut Self::Session, is_short: bool);

    /// The build that is tested.
    fn build() -> String {
        std::env::var(Self::VARIABLE).unwrap_or_else(|_| "distribution".into())
    }

    /// Returns whether it is here; says so aloud when it is not.
    fn is_installed() -> bool {
        is_there(Self::find(&Self::build()), Self::VARIABLE, Self::NAME).is_some()
    }

    /// The shared servers, one for each variant; none when no server is here.
    fn shared() -> Vec<Arc<Shared<Self>>> {
        let start = |(variant, known): (&'static str, &Mutex<Weak<Shared<Self>>>)| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            known.upgrade().unwrap_or_else(|| {
                let place = Place::new();
                let shared = Arc::new(Shared {
                    server: place.start(&Self::options_of(variant)).unwrap(),
                    variant,
                    _place: place,
                });
                *known = Arc::downgrade(&shared);
                shared
            })
        };
        let variants = Self::variants().into_iter();
        variants.zip(Self::pool()).map(start).collect()
    }
}

/// A server that tests share while one of them is running.
pub(crate) struct Shared<S> {
    pub(crate) server: S,
    pub(crate) variant: &'static str,
    _place: Place<S>,
}

/// Statements, and parts of them, that tests of every server need.
pub(crate) struct Sql {
    /// Makes a table `t` that goes with the session, of these columns.
    pub(crate) temporary: fn(&str) -> String,
    /// An integer, a larger one, a point in time and text.
    pub(crate) types: [&'static str; 4],
    /// How a point in time ends that is at a whole second.
    pub(crate) whole_second: &'static str,
    /// Lengths of texts that fit no buffer or packet.
    pub(crate) large: &'static [usize],
    /// The code of an error of syntax, and that of a table that is not there.
    pub(crate) codes: [&'static str; 2],
    /// What a message says of a key that is there.
    pub(crate) duplicate: &'static str,
    /// Sleeps for long, and counts the sessions that do.
    pub(crate) sleep: [&'static str; 2],
    /// Works for tens of milliseconds, and for hours.
    pub(crate) work: [&'static str; 2],
    /// What a session is called, ends one of that name, and counts those.
    pub(crate) session: [&'static str; 3],
    /// Of those, the ones that are at a statement.
    pub(crate) is_active: &'static str,
    /// What a session is told that was ended.
    pub(crate) ended: &'static str,
    /// The key that a second session gives, after a first has given 8.
    pub(crate) next_key: i64,
}

/// What goes in and out when a server starts and stops.
pub(crate) struct Life {
    /// Options to start with, of which one is found in the text of the configuration so, and these are told in notes.
    pub(crate) set: &'static [(&'static str, &'static str)],
    pub(crate) config: &'static str,
    pub(crate) notes: &'static [&'static str],
    /// What its log says at its end, in lower case.
    pub(crate) last_words: &'static str,
    /// A file that is in every data directory.
    pub(crate) file: &'static str,
    /// Options that it refuses when it starts, with what it says: one of these.
    pub(crate) refused: &'static [(&'static str, &'static str, &'static [&'static str])],
    /// An option that it takes, and those that it refuses without a start, with what it says.
    pub(crate) taken: (&'static str, &'static str),
    pub(crate) refused_at_once: &'static [(&'static str, &'static str, &'static str)],
    /// Programs of a version that is too old, and which that is.
    pub(crate) old: (&'static [(&'static str, &'static str)], &'static str),
    /// Programs that can't make a data directory, but `say so`.
    pub(crate) broken: &'static [(&'static str, &'static str)],
    /// The URL of a server that is not there, in `/nowhere`, with a password.
    pub(crate) nowhere: &'static str,
}

/// Makes a test for each kind of server of each of these functions.
macro_rules! on_each_server {
    ($($test:ident),+ $(,)?) => {
        mod postgres {
            $(#[test]
            fn $test() {
                super::$test::<engine::postgres::Postgres>();
            })+
        }
        mod mysql {
            $(#[test]
            fn $test() {
                super::$test::<engine::mysql::Mysql>();
            })+
        }
    };
}
pub(crate) use on_each_server;

/// A directory that the server's user may enter.
pub(crate) struct Place<S> {
    directory: tempfile::TempDir,
    guard_exe: PathBuf,
    kind: PhantomData<fn() -> S>,
}

impl<S: TestServer> Place<S> {
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
        let timeout = Duration::from_secs(timeout_s);
        self.with_options(data_dir, build, set, |options| {
            S::start(&StartOptions { timeout, ..options })
        })
    }

    pub(crate) fn start_limited(
        &self,
        limits: &Limits,
        set: &[(&str, &str)],
    ) -> Result<S, SetupError> {
        self.with_options(&self.path().join("data"), &S::build(), set, |options| {
            S::start(&StartOptions { limits, ..options })
        })
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
        let tried = self.with_options(data_dir, build, set, |options| S::try_config(&options));
        assert!(!data_dir.exists() && !self.log().exists());
        tried
    }

    fn with_options<T>(
        &self,
        data_dir: &Path,
        build: &str,
        set: &[(&str, &str)],
        use_them: impl FnOnce(StartOptions<'_>) -> T,
    ) -> T {
        let set: Vec<(String, String)> = set
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        use_them(StartOptions {
            build,
            data_dir,
            config_files: &[S::CONFIG.to_string()],
            set: &set,
            user: None,
            guard_exe: &self.guard_exe,
            log: &self.log(),
            connections: 10,
            limits: &Limits::default(),
            timeout: Duration::from_secs(120),
            stop: &GO_ON,
        })
    }

    /// Begins a start that is to stop at once: it says so, and nothing of it is left.
    pub(crate) fn start_and_stop(&self) {
        let stop = &AtomicBool::new(true);
        let data_dir = self.path().join("data");
        let result = self.with_options(&data_dir, &S::build(), &[], |options| {
            S::start(&StartOptions { stop, ..options })
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
        confinement: None,
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

/// Returns whether the tests of an engine must not be skipped.
pub(crate) fn is_required(engine: &str) -> bool {
    let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
    required.split(',').any(|required| required == engine)
}

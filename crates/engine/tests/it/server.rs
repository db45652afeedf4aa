//! The SQL servers that tests start: their differences, and the directories of their files.

use std::ffi::OsString;
use std::fs::Metadata;
use std::marker::PhantomData;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use engine::guard::{Ending, Guarded, Spawn};
use engine::limits::Limits;
use engine::mysql::Address;
use engine::{Network, Port, ServerEngine, SetupError, StartOptions};

use crate::guard::{guard_exe, within};
use crate::script::write_script;

pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// A kind of SQL server that tests start, and its texts and options.
pub(crate) trait TestServer: ServerEngine + Sized + 'static {
    /// The engine's name in `ASSAY_REQUIRE_ENGINES` and in data directories.
    const NAME: &'static str;
    /// The environment variable with the build to test.
    const VARIABLE: &'static str;
    /// The options of its config: small caches, and no durability, so that tests don't wait for the
    /// disk.
    const CONFIG: &'static str;
    /// The tests' statements in its SQL.
    const SQL: Sql;
    /// The texts about its start and stop.
    const LIFE: Life;
    /// The texts about those who may log in.
    const ACCESS: Access;

    /// Returns true when a build is installed.
    fn find(build: &str) -> Result<(), SetupError>;

    /// Starts the server.
    fn start(options: &StartOptions<'_>) -> Result<Self, SetupError>;

    /// Makes the build read its configuration.
    fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError>;

    /// Connects to a running server.
    fn attach(url: &str) -> Result<Self, SetupError>;

    /// Logs in.
    fn log_in(address: &Address) -> Result<Self::Session, engine::Error>;

    /// Returns the address to which clients connect.
    fn client_address(&self) -> &Address;

    /// Returns the variants to test, which are the build's storage engines.
    fn variants() -> Vec<&'static str>;

    /// Returns the options that select a variant.
    fn options_of(variant: &'static str) -> Vec<(&'static str, &'static str)>;

    /// Returns the shared servers of all possible variants.
    fn pool() -> &'static [Mutex<Weak<Shared<Self>>>];

    /// Returns the server's socket, or the socket's directory.
    fn socket(&self) -> PathBuf;

    /// Checks engine-specific facts after a start.
    fn look_at_start(&self);

    /// Checks engine-specific facts of a table.
    fn look_at_table(_session: &mut Self::Session, _table: &str, _variant: &str) {}

    /// Returns true when the server says that a session is encrypted.
    fn is_encrypted(session: &mut Self::Session) -> bool;

    /// Returns true when a server with TLS accepts no connections by TCP without.
    fn refuses_plain(&self) -> bool {
        true
    }

    /// Returns true when the build's TLS may be too old for assay.
    fn has_old_tls() -> bool {
        false
    }

    /// Limits a session's lock waits to a moment, or until a deadlock is detected.
    fn wait_for_locks(session: &mut Self::Session, is_short: bool);

    /// Returns the build to test.
    fn build() -> String {
        std::env::var(Self::VARIABLE).unwrap_or_else(|_| "distribution".into())
    }

    /// Returns true when the build is installed; reports the test as skipped otherwise.
    fn is_installed() -> bool {
        is_there(Self::find(&Self::build()), Self::VARIABLE, Self::NAME).is_some()
    }

    /// Returns the shared servers, one for each variant; none without a build.
    fn shared() -> Vec<Arc<Shared<Self>>> {
        let start = |(variant, known): (&'static str, &Mutex<Weak<Shared<Self>>>)| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            known.upgrade().unwrap_or_else(|| {
                let place = ServerDir::new();
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

/// A server that lives while any of the tests that share it runs.
pub(crate) struct Shared<S> {
    pub(crate) server: S,
    pub(crate) variant: &'static str,
    _place: ServerDir<S>,
}

/// Statements and fragments that the tests of every server need.
pub(crate) struct Sql {
    /// Creates a temporary table `t` with these columns.
    pub(crate) temporary: fn(&str) -> String,
    /// Columns with an integer, a larger integer, a timestamp and a text.
    pub(crate) types: [&'static str; 4],
    /// The end of a timestamp without fractions of a second.
    pub(crate) whole_second: &'static str,
    /// Lengths of texts that exceed any buffer or packet.
    pub(crate) large: &'static [usize],
    /// The codes of a syntax error, and of a missing table.
    pub(crate) codes: [&'static str; 2],
    /// The text of a duplicate-key message.
    pub(crate) duplicate: &'static str,
    /// A statement that sleeps, and one that counts the sessions that do.
    pub(crate) sleep: [&'static str; 2],
    /// Statements that take tens of milliseconds, and hours.
    pub(crate) work: [&'static str; 2],
    /// Statements that return a session's ID, end the session with an ID, and count such sessions.
    pub(crate) session: [&'static str; 3],
    /// A statement that counts those that run a statement.
    pub(crate) is_active: &'static str,
    /// The error message of a session that was ended.
    pub(crate) ended: &'static str,
    /// The key that a second session assigns after a first one assigned 8.
    pub(crate) next_key: i64,
}

/// The queries and options about those who may log in.
pub(crate) struct Access {
    /// A query for the names of all accounts.
    pub(crate) accounts: &'static str,
    /// Options that would let others in.
    pub(crate) careless: &'static [(&'static str, &'static str)],
    /// Options with which the server logs all statements.
    pub(crate) talkative: &'static [(&'static str, &'static str)],
    /// The file with the logged statements, below the place of the server.
    pub(crate) statement_log: &'static str,
    /// An option whose value contains a password, here `hunter2`.
    pub(crate) secret: (&'static str, &'static str),
    /// True if replicas connect to their primary by TCP.
    pub(crate) replicas_use_tcp: bool,
}

/// The options, files and texts of a server's start and stop.
pub(crate) struct Life {
    /// Options of a start, the line of one of them in the configuration, and the port of another.
    pub(crate) set: &'static [(&'static str, &'static str)],
    pub(crate) config: &'static str,
    pub(crate) port: &'static str,
    /// The text at the end of its log, in lower case.
    pub(crate) last_words: &'static str,
    /// A file in every data directory.
    pub(crate) file: &'static str,
    /// Options that it refuses at a start, and its possible messages.
    pub(crate) refused: &'static [(&'static str, &'static str, &'static [&'static str])],
    /// An option that it accepts, and options that it refuses without a start, with its messages.
    pub(crate) taken: (&'static str, &'static str),
    pub(crate) refused_at_once: &'static [(&'static str, &'static str, &'static str)],
    /// Programs of a version that is too old, and that version.
    pub(crate) old: (&'static [(&'static str, &'static str)], &'static str),
    /// Programs that cannot make a data directory, but `say so`.
    pub(crate) broken: &'static [(&'static str, &'static str)],
    /// The URL, with a password, of a server in `/nowhere` that does not exist.
    pub(crate) nowhere: &'static str,
}

/// Generates a test of each function for each kind of server.
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

/// A directory that the server's user can enter.
pub(crate) struct ServerDir<S> {
    directory: tempfile::TempDir,
    guard_exe: PathBuf,
    kind: PhantomData<fn() -> S>,
}

impl<S: TestServer> ServerDir<S> {
    pub(crate) fn new() -> Self {
        Self::made_in(&std::env::temp_dir())
    }

    /// Returns a directory for a test that looks at the work of a disk, or limits the memory of its
    /// server. The suite gives the others memory, which counts toward such a limit.
    pub(crate) fn on_disk() -> Self {
        let folder =
            std::env::var_os("ASSAY_TEST_DISK").map_or_else(std::env::temp_dir, Into::into);
        Self::made_in(&folder)
    }

    fn made_in(folder: &Path) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir_in(folder).unwrap();
        fs_err::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory, guard_exe: guard_exe(), kind: PhantomData }
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

    pub(crate) fn start_on(&self, network: &Network) -> Result<S, SetupError> {
        let network = Some(network);
        self.with_options(&self.path().join("data"), &S::build(), &[], |options| {
            S::start(&StartOptions { network, ..options })
        })
    }

    /// Makes the build read a configuration, and checks that nothing is left behind.
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

    pub(crate) fn with_options<T>(
        &self,
        data_dir: &Path,
        build: &str,
        set: &[(&str, &str)],
        use_them: impl FnOnce(StartOptions<'_>) -> T,
    ) -> T {
        let set: Vec<(String, String)> =
            set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        use_them(StartOptions {
            build,
            data_dir,
            config_files: &[S::CONFIG.to_string()],
            set: &set,
            guard_exe: &self.guard_exe,
            log: &self.log(),
            connections: 10,
            ..StartOptions::default()
        })
    }

    /// Begins a start with a stop request. Checks its error, and that nothing is left behind.
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

    /// Creates a build from scripts, and returns its directory.
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

/// Starts a server as `owner` with `args`, so that it listens on a TCP port, and waits for its
/// `answer`.
pub(crate) fn on_a_port<T>(
    log: &Path,
    program: &Path,
    owner: &Metadata,
    args: impl Fn(u16) -> Vec<OsString>,
    answer: impl Fn(u16) -> Option<T>,
) -> (Guarded, u16, T) {
    let is_root = rustix::process::geteuid().is_root();
    // The server gets it by its number.
    let held = Port::reserve(Ipv4Addr::LOCALHOST.into()).unwrap();
    let port = held.number();
    let mut guarded = Guarded::spawn(&Spawn {
        guard_exe: &guard_exe(),
        program,
        args: args(port),
        env: Vec::new(),
        program_env: &[],
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
    // The server may first create a key, which takes long in some builds.
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
    assert!(std::env::var_os(variable).is_none(), "{variable} names no build: {error}");
    assert!(!is_required(engine), "`{engine}` is required: {error}");
    crate::say_skipped(&error.to_string());
    None
}

/// Returns true when the tests of an engine must not be skipped.
pub(crate) fn is_required(engine: &str) -> bool {
    let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
    required.split(',').any(|required| required == engine)
}

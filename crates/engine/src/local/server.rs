//! The life of a server that assay starts on this host, as far as it is the same for all kinds of
//! servers.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use super::socket::{SOCKETS_PREFIX, SocketDirectory, socket_parent};
use super::start_options::{StartOptions, Wrapper};
use crate::error::SetupError;
use crate::net::address::Address;
use crate::safety::copying::{Copied, CopyOptions, Owner, copy_database};
use crate::safety::data_dir::{DataDir, read_start};
use crate::safety::freeze::Freezer;
use crate::safety::guard::{Ending, Guarded, is_alive};
use crate::safety::limits::{Enforced, Limits};
use crate::safety::trial;
use crate::safety::user::{self, SystemUser};

/// More than the path of a socket directory has.
const PATH_BYTES_MAX: u64 = 4096;
/// More than a file with a process ID has.
const PID_FILE_BYTES_MAX: u64 = 4096;

/// The file with the path of the socket directory.
const SOCKET_NOTE: &str = "socket-directory";

/// A tool that was asked for, with its directory.
pub(crate) struct WrappedIn {
    pub(crate) folder: PathBuf,
    /// The words before the server's program.
    pub(crate) command: Vec<OsString>,
}

impl WrappedIn {
    /// Creates the directory of a tool, in that of the server.
    fn create(
        wrapper: &dyn Wrapper,
        data_dir: &Path,
        user: Option<&SystemUser>,
    ) -> Result<Self, SetupError> {
        let folder = data_dir.join(wrapper.folder());
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
        hand_over(&folder, user)?;
        Ok(Self { command: wrapper.command(&folder), folder })
    }
}

/// The time that a server takes to start under a tool, as a multiple of its usual time.
const SLOWER_UNDER_WRAPPER: u32 = 10;

/// The time to stop cleanly that a server gets whose data nobody needs. After the loss of a backend,
/// PostgreSQL may wait forever: it has begun a recovery, and the request to stop comes during that.
const ABANDON_TIMEOUT: Duration = Duration::from_secs(5);

/// The properties in which kinds of servers differ.
#[derive(Debug)]
pub struct ServerKind {
    /// The server's name in messages.
    pub(crate) name: &'static str,
    /// The user that its packages create, and the name of the directory that assay creates.
    pub(crate) user: &'static str,
    /// The directory of its data within that directory.
    pub(crate) data: &'static str,
    /// The name of its socket, with `{port}` for the port.
    pub(crate) socket: &'static str,
    /// Environment variables that affect its programs.
    pub(crate) environment: &'static [&'static str],
    /// The way to stop the server cleanly.
    pub(crate) ending: Ending,
    /// The way in which the kernel ends it when its guard is killed.
    pub(crate) orphaned: Ending,
    /// Returns the server process that uses a data directory.
    pub(crate) live: fn(&Path) -> Option<u32>,
    /// Returns the message about the configuration in the log of a server that did not start, if
    /// there is one.
    pub(crate) config_error: fn(&[String]) -> Option<String>,
    /// Parses a URL, completed from the sources that the server's own clients read.
    pub(crate) parse_url: fn(&str) -> Result<Address, SetupError>,
}

impl ServerKind {
    /// Returns the name of the socket of a server with this port.
    fn socket_name(&self, port: u16) -> String {
        self.socket.replace("{port}", &port.to_string())
    }
}

/// The directories, user and limits that a server needs before it starts.
pub struct ServerPlace {
    pub(super) kind: &'static ServerKind,
    pub(crate) data_dir: DataDir,
    /// Removed with its contents when the server has ended.
    pub(crate) socket_dir: SocketDirectory,
    socket_name: String,
    pub(crate) user: Option<SystemUser>,
    pub(super) enforced: Enforced,
    pub(super) guard_exe: PathBuf,
    pub(crate) log: PathBuf,
    /// The time that each program may take.
    pub(super) timeout: Duration,
    /// Environment variables of its programs.
    pub(super) env: Vec<(String, String)>,
    /// The tool that runs the server's program.
    pub(super) wrapped_in: Option<WrappedIn>,
}

impl ServerPlace {
    /// Creates empty directories, which belong to the server's user, and prepares the limits.
    /// `bin_dir` contains the build's programs.
    pub(crate) fn create(
        kind: &'static ServerKind,
        options: &StartOptions<'_>,
        bin_dir: &Path,
    ) -> Result<Self, SetupError> {
        let parent = socket_parent(&kind.socket_name(options.port()));
        Self::create_with(&parent, kind, options, bin_dir)
    }

    fn create_with(
        socket_parent: &Path,
        kind: &'static ServerKind,
        options: &StartOptions<'_>,
        bin_dir: &Path,
    ) -> Result<Self, SetupError> {
        let log = std::path::absolute(options.log)?;
        let guard_exe = std::path::absolute(options.guard_exe)?;
        let user = user::server_user(kind.name, options.user, kind.user, options.data_dir)?;

        let data_dir = DataDir::create(options.data_dir, kind.user)?;
        refuse_live_server(kind, &data_dir.path().join(kind.data))?;
        remove_leftover_sockets(&data_dir, user.as_ref());
        data_dir.wipe()?;

        // Until the server's guard runs, a killed assay leaves this directory behind.
        let socket_dir =
            SocketDirectory::create(socket_parent, &data_dir.path().join(SOCKET_NOTE))?;
        if let Some(user) = &user {
            user.check_access(bin_dir, options.build, data_dir.path())?;
        }
        write_certificate(options, socket_dir.path(), user.as_ref())?;

        // The config and the server's own logs may contain secrets.
        fs::set_permissions(data_dir.path(), std::fs::Permissions::from_mode(0o700))?;
        hand_over(data_dir.path(), user.as_ref())?;
        hand_over(socket_dir.path(), user.as_ref())?;

        let wrapped_in = match options.wrapper {
            Some(wrapper) => Some(WrappedIn::create(wrapper, data_dir.path(), user.as_ref())?),
            None => None,
        };
        let slowdown = if wrapped_in.is_some() { SLOWER_UNDER_WRAPPER } else { 1 };
        Ok(Self {
            kind,
            data_dir,
            socket_dir,
            socket_name: kind.socket_name(options.port()),
            user,
            enforced: Enforced::prepare(options.limits)?,
            guard_exe,
            log,
            timeout: options.timeout * slowdown,
            env: options.env.to_vec(),
            wrapped_in,
        })
    }

    /// Fills the directory of the server's data with a copy of the directory `database`, which
    /// belongs to this process's user.
    pub(crate) fn copy_data(
        &self,
        database: &Path,
        stop: &AtomicBool,
    ) -> Result<Copied, SetupError> {
        fs::create_dir(self.data())?;
        let owner = self.user.as_ref().map(|user| Owner { uid: user.uid, gid: user.gid });
        let options = CopyOptions {
            owner_before: rustix::process::geteuid().as_raw(),
            owner_after: owner,
            stop,
        };
        let copied = copy_database(database, &self.data(), &options)?;

        // PostgreSQL refuses a directory that others can enter.
        fs::set_permissions(self.data(), std::fs::Permissions::from_mode(0o700))?;
        hand_over(&self.data(), self.user.as_ref())?;
        Ok(copied)
    }

    /// Returns the directory of the server's data.
    pub(crate) fn data(&self) -> PathBuf {
        self.data_dir.path().join(self.kind.data)
    }

    /// Returns the path of the server's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket_dir.path().join(&self.socket_name)
    }

    /// Creates a directory that belongs to the server's user.
    pub(crate) fn create_directory(&self, path: &Path) -> Result<(), SetupError> {
        fs::create_dir(path)?;
        hand_over(path, self.user.as_ref())
    }

    /// Writes a file that the server's user can read.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, SetupError> {
        let path = self.data_dir.path().join(name);
        // The directory belongs to the server's user, whose programs may have put a link there.
        replace_file(&path, text, 0o644)?;
        Ok(path)
    }

    /// Returns the server that was started here.
    pub(crate) fn into_server(
        self,
        guarded: Guarded,
        config_text: String,
        notes: Vec<String>,
        origin: Option<Origin>,
    ) -> Server {
        Server {
            limits: self.enforced.applied(guarded.pid()),
            guarded,
            place: self,
            config_text,
            notes,
            origin,
        }
    }
}

/// Makes the server's user the owner of a path. Without one, the server runs as this process's user,
/// who owns it already.
fn hand_over(path: &Path, user: Option<&SystemUser>) -> Result<(), SetupError> {
    user.map_or(Ok(()), |user| user.own(path))
}

/// Writes the files of the certificate, if the server has one.
fn write_certificate(
    options: &StartOptions<'_>,
    directory: &Path,
    user: Option<&SystemUser>,
) -> Result<(), SetupError> {
    let Some(certificate) = options.network.and_then(|network| network.certificate.as_ref()) else {
        return Ok(());
    };

    for (name, text) in certificate.files() {
        let path = directory.join(name);
        write_private(&path, text)?;
        hand_over(&path, user)?;
    }
    Ok(())
}

/// Writes a new file that only its owner can read.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// A place in a temporary directory, in which a build reads a configuration without starting a
/// server.
pub struct Trial {
    /// Dropped before the directory that contains it.
    pub(crate) place: ServerPlace,
    _directory: trial::Directory,
}

impl Trial {
    /// Checks that the server's user can access the build and the data directory, without creating
    /// the latter. Then creates the place.
    pub(crate) fn create(
        kind: &'static ServerKind,
        options: &StartOptions<'_>,
        bin_dir: &Path,
    ) -> Result<Self, SetupError> {
        let data_dir = std::path::absolute(options.data_dir)?;
        let user = user::server_user(kind.name, options.user, kind.user, &data_dir)?;
        if let Some(user) = &user {
            user.check_access(bin_dir, options.build, &data_dir.join(kind.user))?;
        }

        let directory = trial::Directory::create()?;
        let mode = std::fs::Permissions::from_mode(0o711);
        fs::set_permissions(directory.path(), mode)?;

        let options = StartOptions {
            data_dir: directory.path(),
            user: user.as_ref().map(|user| user.name.as_str()),
            log: &directory.path().join("log"),
            limits: &Limits::default(),
            timeout: options.timeout.min(trial::TRIAL_TIMEOUT),
            wrapper: None,
            ..*options
        };
        let mut place = ServerPlace::create_with(directory.path(), kind, &options, bin_dir)?;
        place.enforced.limit_memory(trial::TRIAL_MEMORY_BYTES_MAX);
        Ok(Self { place, _directory: directory })
    }

    /// Returns the lines that the programs have printed.
    pub(crate) fn output(&self) -> Vec<String> {
        let bytes = fs::read(&self.place.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(str::to_string).collect()
    }
}

/// Writes a new file in the place of whatever has its name, without following a link. MySQL ignores
/// an option file that everyone may write, so the mode does not depend on the umask.
pub(crate) fn replace_file(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Removes the socket directory of an assay process that was killed. The server's user may have
/// changed the note, so this removes only a directory that belongs to that user, or is empty.
fn remove_leftover_sockets(data_dir: &DataDir, user: Option<&SystemUser>) {
    let Ok(path) = read_start(&data_dir.path().join(SOCKET_NOTE), PATH_BYTES_MAX) else {
        return;
    };

    let path = PathBuf::from(OsString::from_vec(path));

    let is_socket_dir =
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(SOCKETS_PREFIX.as_bytes()));
    if !is_socket_dir {
        return;
    }

    let Ok(directory) = fs::symlink_metadata(&path) else {
        return;
    };

    let uid = user.map_or_else(|| rustix::process::geteuid().as_raw(), |user| user.uid);

    // A failure leaves only a few bytes in a temporary directory.
    let _ = if directory.is_dir() && directory.uid() == uid {
        fs::remove_dir_all(&path)
    } else {
        fs::remove_dir(&path)
    };
}

/// Refuses a data directory that a live server uses.
fn refuse_live_server(kind: &ServerKind, data: &Path) -> Result<(), SetupError> {
    let Some(pid) = (kind.live)(data) else {
        return Ok(());
    };

    Err(SetupError::Directory {
        path: data.to_path_buf(),
        what: format!("a {} server, process {pid}, uses this directory", kind.name),
        help: format!(
            "stop the server with `kill -{} {pid}`, or choose another data directory",
            kind.ending.name().trim_start_matches("SIG")
        ),
    })
}

/// Returns the process that the first line of a file names, if it is one of these programs and uses
/// the directory `data`.
pub(crate) fn live_server(pid_file: &Path, data: &Path, programs: &[&str]) -> Option<u32> {
    let text = read_start(pid_file, PID_FILE_BYTES_MAX).ok()?;
    let pid = String::from_utf8_lossy(&text).lines().next()?.trim().parse().ok()?;
    uses_directory(pid, data, programs).then_some(pid)
}

/// Returns true when process `pid` is one of these programs and uses the directory `data`. A build
/// with its own C library runs as that library's loader.
fn uses_directory(pid: u32, data: &Path, programs: &[&str]) -> bool {
    let name = program_name(pid).unwrap_or_default();
    let is_program = name.trim().starts_with("ld-")
        || programs.iter().any(|program| name.trim().starts_with(program));
    // A zombie keeps its name until its parent waits for it, which the first process of some
    // containers never does.
    if !is_program || !is_alive(pid) {
        return false;
    }

    // A server's working directory is its data directory. If that cannot be read, the name decides.
    let Ok(data) = fs::canonicalize(data) else {
        return false;
    };
    fs::read_link(format!("/proc/{pid}/cwd")).map_or(true, |cwd| cwd == data)
}

/// Returns the name of the program that a process runs.
fn program_name(pid: u32) -> Option<String> {
    match fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(exe) => Some(exe.file_name()?.to_string_lossy().into_owned()),
        // Another user's process: only its short name is readable.
        Err(_) => fs::read_to_string(format!("/proc/{pid}/comm")).ok(),
    }
}

/// A server that assay started. Dropping it kills the server, which may damage its data.
pub struct Server {
    guarded: Guarded,
    /// Dropped after the server, because it removes the server's control group.
    pub(crate) place: ServerPlace,
    /// The limits and their effect.
    pub(crate) limits: Vec<words::Limit>,
    /// The text of the server's configuration file.
    pub(crate) config_text: String,
    /// Notes for readers of the results.
    pub(crate) notes: Vec<String>,
    /// The database of another server with which it started; `None`: it began with an empty one.
    pub(crate) origin: Option<Origin>,
}

/// The database of another server with which a server started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The copy.
    pub copied: Copied,
    /// The time that a program took to upgrade the copy before the start; `None`: none was needed.
    pub upgrade: Option<Duration>,
}

impl Server {
    pub(crate) fn process_id(&self) -> u32 {
        self.guarded.pid()
    }

    /// Returns the server's process under guard.
    pub fn guarded(&self) -> &Guarded {
        &self.guarded
    }

    /// Returns the directory of the tool that runs the server's program; `None` without a tool.
    pub fn wrapper_folder(&self) -> Option<&Path> {
        self.place.wrapped_in.as_ref().map(|wrapped_in| wrapped_in.folder.as_path())
    }

    /// Returns the user and group that the server runs as; `None` for those of this process.
    pub fn user_ids(&self) -> Option<(u32, u32)> {
        self.place.user.as_ref().map(|user| (user.uid, user.gid))
    }

    /// Returns a freezer of the server and all its processes.
    pub(crate) fn freezer(&self) -> std::io::Result<Freezer> {
        Freezer::of(&self.guarded)
    }

    pub(crate) fn killed_for_memory(&self) -> Option<String> {
        self.place.enforced.server_killed_for_memory(self.guarded.pid())
    }

    /// Stops the server cleanly, or by force and with an error.
    pub(crate) fn stop(self) -> Result<(), SetupError> {
        let Self { guarded, place, .. } = self;
        let timeout = place.timeout;
        place.stop(guarded, timeout)
    }

    /// Stops a server whose data nobody needs, with little time to do so cleanly.
    pub(crate) fn abandon(self) -> Result<(), SetupError> {
        let Self { guarded, place, .. } = self;
        place.stop(guarded, ABANDON_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_file_is_written_in_the_place_of_a_link_and_not_through_it() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "mine").unwrap();
        let path = folder.path().join("server.cnf");
        for target in [&elsewhere, &folder.path().join("missing")] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            replace_file(&path, "a=1", 0o644).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "a=1");
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
        assert!(!folder.path().join("missing").exists());
    }

    #[test]
    fn a_stale_pid_file_does_not_mean_a_live_server() {
        let data = tempfile::tempdir().unwrap();
        let pid_file = data.path().join("server.pid");
        assert_eq!(live_server(&pid_file, data.path(), &["mysqld"]), None);
        // This process is alive but not a server.
        for text in [&format!("{}\n/x\n", std::process::id()), "nonsense", ""] {
            fs::write(&pid_file, text).unwrap();
            assert_eq!(live_server(&pid_file, data.path(), &["mysqld"]), None);
        }
    }

    #[test]
    fn a_zombie_uses_no_directory() {
        let data = tempfile::tempdir().unwrap();
        let mut server =
            Command::new("cat").current_dir(data.path()).stdin(Stdio::piped()).spawn().unwrap();
        let pid = server.id();
        let uses = |data: &Path| uses_directory(pid, data, &["cat", "busybox", "coreutils"]);
        assert!(uses(data.path()));
        assert!(!uses(Path::new("/")));
        drop(server.stdin.take());
        let status = || fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        while !status().contains("\nState:\tZ") {
            std::thread::yield_now();
        }
        assert!(!uses(data.path()));
        server.wait().unwrap();
    }
}

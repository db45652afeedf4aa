//! A server that assay starts on this host, from what it is started with to its end: what is the same for all kinds.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fs_err as fs;

use super::socket::{SOCKETS_PREFIX, SocketDirectory, parent_of_sockets};
use super::user::{self, SystemUser};
use crate::guard::{Ending, Guarded, is_alive};
use crate::limits::{Enforced, Limits};
use crate::net::address::Address;
use crate::{DataDir, SetupError, trial};

/// The file that names the directory of the sockets.
const SOCKETS_NOTE: &str = "socket-directory";

/// What a server is started with.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions<'a> {
    /// The build: see the engine's `locate`.
    pub build: &'a str,
    /// Where the directory `mysql` or `postgres` is made, marked as assay's, for the server's files. One that is there
    /// already and carries the mark is wiped, unless a server lives in it.
    pub data_dir: &'a Path,
    /// The texts of files in the server's own format, verbatim, in their order. Lines of an option file of MySQL before
    /// its first group are the server's.
    pub config_files: &'a [String],
    /// Options, after those of the files. MySQL's `default_storage_engine` (also `storage_engine`) says where tables are
    /// made; with `rocksdb` the plugin is loaded.
    pub set: &'a [(String, String)],
    /// The system user that runs the server when assay is root; `None`: the one that its packages make, else the owner
    /// of `data_dir`, else `nobody`. Not used when assay is not root.
    pub user: Option<&'a str>,
    /// The program that runs [`crate::guard::main`] when its first argument is [`crate::guard::SUBCOMMAND`].
    pub guard_exe: &'a Path,
    /// Where the server's log goes, after what is there already.
    pub log: &'a Path,
    /// Connections that the run needs. Where that is more than a fresh installation allows, `max_connections` is raised;
    /// the config's own value wins over it.
    pub connections: u32,
    /// What the server may use, and whatever makes its files.
    pub limits: &'a Limits,
    /// How long the server may take to start, and again to stop.
    pub timeout: Duration,
    /// Ends the start early when it is set, with what was begun taken down again.
    pub stop: &'a AtomicBool,
}

/// What tells one kind of server from another.
#[derive(Debug)]
pub struct Kind {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// The user that its packages make, and the name of the directory that assay makes.
    pub(crate) user: &'static str,
    /// The directory of its data, in that one.
    pub(crate) data: &'static str,
    /// The name of its socket.
    pub(crate) socket: &'static str,
    /// Variables of the environment that change what its programs do.
    pub(crate) environment: &'static [&'static str],
    /// How it is asked to stop, in good order.
    pub(crate) ending: Ending,
    /// How the kernel ends it when its guard is killed.
    pub(crate) orphaned: Ending,
    /// The process that lives in a data directory.
    pub(crate) live: fn(&Path) -> Option<u32>,
    /// What in the log of a server that did not start is about its configuration; `None` if nothing is.
    pub(crate) complaint: fn(&[String]) -> Option<String>,
    /// Parses a URL, completed from what the server's own clients read.
    pub(crate) parse_url: fn(&str) -> Result<Address, SetupError>,
}

/// What a server needs before it is there: directories, a user, limits.
pub struct Place {
    pub(super) kind: &'static Kind,
    pub(crate) data_dir: DataDir,
    /// Removed with what is in it when the server has ended.
    pub(crate) socket_dir: SocketDirectory,
    pub(crate) user: Option<SystemUser>,
    pub(super) enforced: Enforced,
    pub(super) guard_exe: PathBuf,
    pub(crate) log: PathBuf,
    /// How long each program may take.
    pub(super) timeout: Duration,
}

impl Place {
    /// Makes the directories, empty, and prepares the limits; `bin_dir` is where the build's programs are. Both
    /// directories belong to the server's user.
    pub(crate) fn make(
        kind: &'static Kind,
        options: &StartOptions<'_>,
        bin_dir: &Path,
    ) -> Result<Self, SetupError> {
        Self::make_with(&parent_of_sockets(kind.socket), kind, options, bin_dir)
    }

    fn make_with(
        parent_of_sockets: &Path,
        kind: &'static Kind,
        options: &StartOptions<'_>,
        bin_dir: &Path,
    ) -> Result<Self, SetupError> {
        let log = std::path::absolute(options.log)?;
        let guard_exe = std::path::absolute(options.guard_exe)?;
        let user = user::server_user(kind.name, options.user, kind.user, options.data_dir)?;
        let data_dir = DataDir::create(options.data_dir, kind.user)?;
        refuse_live_server(kind, &data_dir.path().join(kind.data))?;
        remove_left_sockets(&data_dir, user.as_ref());
        data_dir.wipe()?;
        // Until the server's guard has to remove the sockets, they are left when assay is killed.
        let socket_dir =
            SocketDirectory::make(parent_of_sockets, &data_dir.path().join(SOCKETS_NOTE))?;
        if let Some(user) = &user {
            user.check_access(bin_dir, options.build, data_dir.path())?;
            user.own(data_dir.path())?;
            user.own(socket_dir.path())?;
        }
        Ok(Self {
            kind,
            data_dir,
            socket_dir,
            user,
            enforced: Enforced::prepare(options.limits)?,
            guard_exe,
            log,
            timeout: options.timeout,
        })
    }

    /// Where the server's data goes.
    pub(crate) fn data(&self) -> PathBuf {
        self.data_dir.path().join(self.kind.data)
    }

    /// Where its socket is to be.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket_dir.path().join(self.kind.socket)
    }

    /// Makes a directory that belongs to the server's user.
    pub(crate) fn make_directory(&self, path: &Path) -> Result<(), SetupError> {
        fs::create_dir(path)?;
        self.user.as_ref().map_or(Ok(()), |user| user.own(path))
    }

    /// Writes a file that the server's user can read.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, SetupError> {
        let path = self.data_dir.path().join(name);
        fs::write(&path, text)?;
        // One that everybody may write MySQL would ignore.
        fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))?;
        Ok(path)
    }

    /// The server that was started here.
    pub(crate) fn taken(self, guarded: Guarded, config_text: String, notes: Vec<String>) -> Server {
        Server {
            limits: self.enforced.applied(guarded.pid()),
            guarded,
            place: self,
            config_text,
            notes,
        }
    }
}

/// A place in a temporary directory, where a build reads a configuration and no server is started.
pub struct Trial {
    /// Goes before the directory that it is in.
    pub(crate) place: Place,
    _directory: trial::Directory,
}

impl Trial {
    /// Checks that the server's user can get to the build and to the data directory, which is not made, and makes the
    /// place.
    pub(crate) fn make(
        kind: &'static Kind,
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
            ..*options
        };
        Ok(Self {
            place: Place::make_with(directory.path(), kind, &options, bin_dir)?,
            _directory: directory,
        })
    }

    /// Returns the lines that the programs have written.
    pub(crate) fn output(&self) -> Vec<String> {
        let bytes = fs::read(&self.place.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(str::to_string).collect()
    }
}

/// Removes the directory of sockets that a killed assay left. The note may have been changed by the server's user, so
/// only what belongs to that one is removed, or has nothing in it.
fn remove_left_sockets(data_dir: &DataDir, user: Option<&SystemUser>) {
    let Ok(path) = fs::read(data_dir.path().join(SOCKETS_NOTE)) else {
        return;
    };
    let path = PathBuf::from(OsString::from_vec(path));
    let has_our_name = path
        .file_name()
        .is_some_and(|name| name.as_bytes().starts_with(SOCKETS_PREFIX.as_bytes()));
    let Some(directory) = fs::symlink_metadata(&path).ok().filter(|_| has_our_name) else {
        return;
    };
    let uid = user.map_or_else(|| rustix::process::geteuid().as_raw(), |user| user.uid);
    // A few bytes in a temporary directory: no reason not to start.
    let _ = match directory.is_dir() && directory.uid() == uid {
        true => fs::remove_dir_all(&path),
        // Assay was killed before it gave the directory away.
        false => fs::remove_dir(&path),
    };
}

/// A server that is used is not wiped, whoever started it.
fn refuse_live_server(kind: &Kind, data: &Path) -> Result<(), SetupError> {
    match (kind.live)(data) {
        Some(pid) => Err(SetupError::Directory {
            path: data.to_path_buf(),
            what: format!("a {} server runs in it, process {pid}", kind.name),
            help: format!(
                "stop it (`kill -{} {pid}`), or choose another data directory",
                kind.ending.name().trim_start_matches("SIG")
            ),
        }),
        None => Ok(()),
    }
}

/// Whether process `pid` is one of these programs and lives in the directory `data`. A build that brings its own C
/// library runs as that library's loader.
pub(crate) fn lives_in(pid: u32, data: &Path, programs: &[&str]) -> bool {
    let file_name = |path: PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
    let name = match fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(exe) => file_name(exe),
        // Another user's: its short name is for all to read.
        Err(_) => fs::read_to_string(format!("/proc/{pid}/comm")).ok(),
    };
    let is_program = name.is_some_and(|name| {
        let name = name.trim();
        name.starts_with("ld-") || programs.iter().any(|program| name.starts_with(program))
    });
    // A server's working directory is that of its data; where that can't be read its name decides.
    let is_here = || {
        let here = fs::canonicalize(data).ok();
        here.is_some()
            && fs::read_link(format!("/proc/{pid}/cwd")).map_or(true, |cwd| Some(cwd) == here)
    };
    // One that has ended keeps its name until its parent has asked how, which not every container's first process does.
    is_program && is_alive(pid) && is_here()
}

/// A server that assay started. Dropping it ends the server at once, without care for its data.
pub struct Server {
    guarded: Guarded,
    /// After what it limits, which has to be gone when it goes.
    pub(crate) place: Place,
    /// What came of the limits.
    pub(crate) limits: Vec<words::Limit>,
    /// The text of its configuration file.
    pub(crate) config_text: String,
    /// What a reader of the results should know.
    pub(crate) notes: Vec<String>,
}

impl Server {
    pub(crate) fn process_id(&self) -> u32 {
        self.guarded.pid()
    }

    pub(crate) fn killed_for_memory(&self) -> Option<String> {
        self.place
            .enforced
            .server_killed_for_memory(self.guarded.pid())
    }

    /// Stops it in good order; then, with errors, by force.
    pub(crate) fn stop(self) -> Result<(), SetupError> {
        let Self { guarded, place, .. } = self;
        place.stop(guarded)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_server_that_has_ended_lives_nowhere_though_nobody_has_asked_how() {
        let data = tempfile::tempdir().unwrap();
        let mut server = Command::new("cat")
            .current_dir(data.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = server.id();
        let lives_in = |data: &Path| lives_in(pid, data, &["cat", "busybox", "coreutils"]);
        assert!(lives_in(data.path()));
        assert!(!lives_in(Path::new("/")));
        drop(server.stdin.take());
        let status = || fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        while !status().contains("\nState:\tZ") {
            std::thread::yield_now();
        }
        assert!(!lives_in(data.path()));
        server.wait().unwrap();
    }
}

//! The C library and the allocator of a running process, as settings.

use std::io::Read as _;
use std::path::Path;

use fs_err as fs;
use words::Setting;

use crate::error::SetupError;

/// The beginnings of the names of libraries that allocate memory in the place of the C library.
const ALLOCATORS: [&str; 5] =
    ["libjemalloc", "libtcmalloc", "libmimalloc", "libsnmalloc", "libhoard"];

/// The variable that makes the loader load libraries into a program before its own.
const PRELOAD: &str = "LD_PRELOAD";

/// More than the C library has.
const LIBRARY_BYTES_MAX: u64 = 16 << 20;

/// The text before the version in the GNU C library.
const GLIBC: &[u8] = b"stable release version ";

/// Returns the C library and the allocator of a process; none if this process may not look into it.
/// An allocator that is linked statically is not seen.
pub fn settings(pid: u32) -> Vec<Setting> {
    let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else {
        return Vec::new();
    };
    let libraries = libraries(&maps);

    let allocator = libraries.iter().map(|path| file_name(path)).find(|name| is_allocator(name));
    let mut settings = vec![Setting::new("runtime.allocator", allocator.unwrap_or("C library"))];
    let c_library = libraries.iter().find(|path| is_c_library(file_name(path)));
    let version = c_library.and_then(|path| glibc_version(Path::new(path)));
    settings.extend(version.map(|version| Setting::new("runtime.c-library", version)));
    settings
}

/// Refuses a process into which the loader has not loaded a library of `LD_PRELOAD`: it only prints
/// that it ignores one that it cannot load. `env` has the variables of the process.
///
/// # Errors
/// [`SetupError::Config`] for such a library, and errors of reading the process's maps.
pub fn check_preloaded(env: &[(String, String)], pid: u32) -> Result<(), SetupError> {
    let Some((name, preloaded)) = env.iter().find(|(name, _)| name == PRELOAD) else {
        return Ok(());
    };

    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let loaded = libraries(&maps);

    for library in preloaded.split([':', ' ']).filter(|library| !library.is_empty()) {
        // The kernel shows where links lead.
        let path = fs::canonicalize(library).map(|path| path.display().to_string());
        let path = path.unwrap_or_else(|_| library.to_owned());

        if !loaded.iter().any(|known| known.ends_with(&path)) {
            return Err(SetupError::option(
                &format!("env.{name}"),
                format!("the engine's process did not load `{library}`, which `{name}` names"),
                "name an existing library by its path, which the server's user can read and which suits the build's C library",
            ));
        }
    }
    Ok(())
}

/// Returns the paths of files in the lines of `/proc/PID/maps`.
fn libraries(maps: &str) -> Vec<&str> {
    let paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    let mut paths: Vec<&str> = paths.collect();
    paths.dedup();
    paths
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn is_allocator(name: &str) -> bool {
    ALLOCATORS.iter().any(|allocator| name.starts_with(allocator))
}

/// Returns whether a library is that of C by its name, such as `libc.so.6` or `libc-2.31.so`.
fn is_c_library(name: &str) -> bool {
    name.starts_with("libc.so") || name.starts_with("libc-")
}

/// Returns the version that is in the file of the GNU C library: `glibc 2.36`.
fn glibc_version(path: &Path) -> Option<String> {
    let file = fs::File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(LIBRARY_BYTES_MAX).read_to_end(&mut bytes).ok()?;

    // Looking at each window of bytes takes a tenth of a second without optimization.
    let start = memchr::memmem::find(&bytes, GLIBC)? + GLIBC.len();
    let is_of_version = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let version: Vec<u8> = bytes[start..].iter().take_while(is_of_version).copied().collect();
    let version = String::from_utf8(version).ok()?;
    Some(format!("glibc {}", version.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocator_is_a_library_that_the_process_has_mapped() {
        let maps = "7f01 r-xp 00000000 fe:00 1  /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f02 r-xp 00000000 fe:00 2  /opt/lib/libjemalloc.so.2\n\
                    7f03 rw-p 00000000 00:00 0  [stack]\n";
        let names: Vec<&str> = libraries(maps).into_iter().map(file_name).collect();
        assert_eq!(names, ["libc.so.6", "libjemalloc.so.2"]);
        assert!(is_c_library(names[0]) && is_allocator(names[1]));
        assert!(!is_c_library("libcrypto.so.3") && !is_c_library("libcap.so.2"));
    }

    #[test]
    fn a_library_that_was_not_preloaded_is_refused() {
        let preloading = |library: &str| {
            let env = [(PRELOAD.to_owned(), library.to_owned())];
            check_preloaded(&env, std::process::id())
        };
        preloading("/nowhere/libjemalloc.so.2").unwrap_err();
        let own = std::env::current_exe().unwrap();
        preloading(own.to_str().unwrap()).unwrap();
        check_preloaded(&[], std::process::id()).unwrap();
    }

    #[test]
    fn this_process_has_a_c_library_and_an_allocator() {
        let settings = settings(std::process::id());
        assert_eq!(settings[0].name, "runtime.allocator");
        // A build for another C library has no version of the GNU one.
        if let Some(version) = settings.get(1) {
            assert!(version.value.starts_with("glibc 2."), "{version:?}");
        }
    }
}

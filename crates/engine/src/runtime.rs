//! The C library and the allocator of a running process, as settings.

use std::io::Read as _;
use std::path::Path;

use fs_err as fs;

use crate::Setting;

/// The beginnings of the names of libraries that allocate memory in the place of the C library.
const ALLOCATORS: [&str; 5] =
    ["libjemalloc", "libtcmalloc", "libmimalloc", "libsnmalloc", "libhoard"];

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

    let start = bytes.windows(GLIBC.len()).position(|window| window == GLIBC)? + GLIBC.len();
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
    fn this_process_has_a_c_library_and_an_allocator() {
        let settings = settings(std::process::id());
        assert_eq!(settings[0].name, "runtime.allocator");
        // A build for another C library has no version of the GNU one.
        if let Some(version) = settings.get(1) {
            assert!(version.value.starts_with("glibc 2."), "{version:?}");
        }
    }
}

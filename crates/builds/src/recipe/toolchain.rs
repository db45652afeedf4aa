//! The parts of this machine that a recipe uses, as far as it is known that they decide what a
//! build is.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::asking::version_of;

/// The variables that choose compilers and their flags. `EXTRA_*` are RocksDB's.
const FLAGS: [&str; 9] = [
    "CC",
    "CFLAGS",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "EXTRA_CFLAGS",
    "EXTRA_CXXFLAGS",
    "EXTRA_LDFLAGS",
    "LDFLAGS",
];

/// The variables that choose a compiler, each with the compiler that is used without it.
const COMPILERS: [(&str, &str); 2] = [("CC", "cc"), ("CXX", "c++")];

/// The compilers and their flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Toolchain {
    /// The architecture of the machine.
    pub arch: &'static str,
    /// The commands that start compilers, each with the first line of its version.
    pub compilers: BTreeMap<String, String>,
    /// The variables that are set.
    pub flags: BTreeMap<String, String>,
}

impl Toolchain {
    /// Returns the compilers and flags of this process's environment.
    pub fn of_environment() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let flags: BTreeMap<String, String> =
            FLAGS.into_iter().filter_map(|name| Some((name.to_owned(), set(name)?))).collect();

        let mut compilers = BTreeMap::new();
        for (name, default) in COMPILERS {
            let command = flags.get(name).map_or(default, String::as_str);
            compilers.insert(command.to_owned(), version_of(command));
        }

        Self { arch: std::env::consts::ARCH, compilers, flags }
    }
}

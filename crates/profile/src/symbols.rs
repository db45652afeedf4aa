//! Names of functions as their source has them.

use std::collections::HashMap;

use cpp_demangle::{DemangleOptions, Symbol};

/// The names of functions by their symbols. A profile names each function many times, and demangling
/// is slow, above all in a process that itself runs under callgrind.
#[derive(Debug, Default)]
pub struct FunctionNames(HashMap<String, String>);

impl FunctionNames {
    /// Returns the name of a symbol. Each symbol is demangled once.
    pub fn of(&mut self, symbol: &str) -> &str {
        if !self.0.contains_key(symbol) {
            self.0.insert(symbol.to_owned(), function_name(symbol));
        }
        &self.0[symbol]
    }
}

/// Returns a symbol's name without mangling, parameters, return type, version and what compilers
/// append to parts and copies of a function.
fn function_name(symbol: &str) -> String {
    let without_version = symbol.split('@').next().unwrap_or(symbol);
    if let Ok(rust) = rustc_demangle::try_demangle(without_version) {
        return format!("{rust:#}");
    }

    let base = without_copy_suffixes(without_version);
    if !base.starts_with("_Z") {
        return base.to_owned();
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    Symbol::new(base)
        .ok()
        .and_then(|cpp| cpp.demangle_with_options(&options).ok())
        .unwrap_or_else(|| base.to_owned())
}

/// Removes `.part.0`, `.constprop.1`, `.isra.0`, `.cold`, `.lto_priv.3` and `.llvm.123`, which GCC
/// and Clang append to parts and copies of one function of the source.
fn without_copy_suffixes(symbol: &str) -> &str {
    const SUFFIXES: [&str; 6] = [".part", ".constprop", ".isra", ".cold", ".lto_priv", ".llvm"];

    let first = SUFFIXES.iter().filter_map(|suffix| symbol.find(suffix)).min();
    match first {
        Some(at) if at > 0 => &symbol[..at],
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_all_languages_have_the_names_of_their_source() {
        for (symbol, expected) in [
            ("get_actual_variable_range", "get_actual_variable_range"),
            ("heap_insert.part.0", "heap_insert"),
            ("ha_write_row.constprop.0.isra.2", "ha_write_row"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            (".hidden", ".hidden"),
            ("_ZN7rocksdb6DBImpl3GetERKNS_11ReadOptionsE", "rocksdb::DBImpl::Get"),
            ("_ZN7rocksdb6DBImpl3GetERKNS_11ReadOptionsE.cold", "rocksdb::DBImpl::Get"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backEOi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            ("_ZN4core3fmt9Formatter3pad17h1c4a5a6f4a0f2c1eE", "core::fmt::Formatter::pad"),
            ("_ZN_broken", "_ZN_broken"),
        ] {
            assert_eq!(function_name(symbol), expected);
        }
    }

    #[test]
    fn a_symbol_has_the_same_name_each_time() {
        let mut names = FunctionNames::default();
        let symbols =
            ["_ZN7rocksdb6DBImpl3GetEv", "memcpy@@GLIBC_2.14", "_ZN7rocksdb6DBImpl3GetEv"];
        let found = symbols.map(|symbol| names.of(symbol).to_owned());
        assert_eq!(found, ["rocksdb::DBImpl::Get", "memcpy", "rocksdb::DBImpl::Get"]);
    }
}

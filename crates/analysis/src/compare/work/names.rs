//! Names of functions and objects without what differs between two builds of the same code.

/// Suffixes that compilers give to parts and copies of a function; a number may follow each.
const COPIES: [&str; 6] = [".constprop", ".part", ".isra", ".cold", ".lto_priv", ".llvm"];
/// C++ operators that have brackets in their names, the longest first.
const BRACKET_OPERATORS: [&str; 13] =
    ["<<=", ">>=", "<=>", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "<", ">"];
/// The name of C++ code without a namespace, as demanglers write it.
const ANONYMOUS: &str = "(anonymous namespace)";

/// Returns whether a function has no symbol, so that its name is its address.
pub(super) fn is_address(name: &str) -> bool {
    let digits = name.strip_prefix("0x");
    name == "???" || digits.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()))
}

/// Returns the name of a program or library without its directory and version:
/// `/usr/lib/libpq.so.5.14` and `libpq.so.5.15` are both `libpq.so`.
pub(super) fn object(object: &str) -> &str {
    let file = object.rsplit('/').next().unwrap_or(object);
    let Some((library, _)) = file.split_once(".so") else {
        return file;
    };
    // `libc-2.31.so` is `libc.so.6` of an older system.
    let unversioned = library.rsplit_once('-').filter(|(_, version)| is_version(version));
    unversioned.map_or(library, |(name, _)| name)
}

fn is_version(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_digit())
}

/// Returns the name of a function without arguments, template arguments, return type, versions of
/// symbols and the suffixes of copies. Overloads become one function.
pub(crate) fn function(name: &str) -> String {
    let plain = without_suffixes(name);
    // Rust's `<T as Trait>::method`, and callgrind's `(below main)`.
    if plain.starts_with(['<', '(']) && !plain.starts_with(ANONYMOUS) {
        return plain.to_owned();
    }

    let without_arguments = without_brackets(plain);
    let trimmed = without_arguments.trim();
    let bare = trimmed.strip_suffix(" const").unwrap_or(trimmed).trim_end();
    let named = without_return_type(bare);
    if named.is_empty() { plain.to_owned() } else { named.to_owned() }
}

/// Returns a name without the suffixes of recursion, versions, hashes and copies.
fn without_suffixes(name: &str) -> &str {
    let mut rest = name.split(" [clone").next().unwrap_or(name);

    // Callgrind's levels of recursion: `walk'2`.
    if let Some((before, level)) = rest.rsplit_once('\'')
        && !level.is_empty()
        && level.chars().all(|letter| letter.is_ascii_digit())
    {
        rest = before;
    }

    if let Some((before, _)) = rest.split_once('@')
        && !before.is_empty()
    {
        rest = before;
    }

    if let Some((before, hash)) = rest.rsplit_once("::h")
        && hash.len() == 16
        && hash.chars().all(|letter| letter.is_ascii_hexdigit())
    {
        rest = before;
    }

    while let Some(shorter) = without_copy(rest) {
        rest = shorter;
    }
    rest
}

/// Returns a name without its last suffix of a copy; `None` if it has none.
fn without_copy(name: &str) -> Option<&str> {
    let is_number = |letter: char| letter.is_ascii_digit();
    let numberless = match name.rsplit_once('.') {
        Some((before, number)) if !number.is_empty() && number.chars().all(is_number) => before,
        _ => name,
    };
    COPIES.iter().find_map(|copy| numberless.strip_suffix(copy)).filter(|rest| !rest.is_empty())
}

/// Returns a C++ name without what is in brackets.
fn without_brackets(name: &str) -> String {
    let mut bare = String::new();
    let mut depth = 0_usize;
    let mut rest = name;

    while let Some(letter) = rest.chars().next() {
        if depth == 0 {
            if let Some(after) = rest.strip_prefix(ANONYMOUS) {
                bare.push_str("{anonymous}");
                rest = after;
                continue;
            }

            if let Some(operator) = operator_of(&bare, rest) {
                bare.push_str(operator);
                rest = &rest[operator.len()..];
                continue;
            }
            // A method of a Go type: `(*Server).serve`.
            if rest.starts_with("(*") {
                return name.to_owned();
            }
        }

        match letter {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => bare.push(letter),
            _ => {}
        }

        rest = &rest[letter.len_utf8()..];
    }
    bare
}

/// Returns the operator at the begin of `rest`, if `before` ends with the word for it.
fn operator_of(before: &str, rest: &str) -> Option<&'static str> {
    let word = before.strip_suffix("operator")?;
    let is_whole_word = word.is_empty() || word.ends_with([':', ' ']);
    let found = BRACKET_OPERATORS.into_iter().find(|operator| rest.starts_with(operator));
    found.filter(|_| is_whole_word)
}

/// Returns a name without the return type that demanglers write before names of templates.
fn without_return_type(name: &str) -> &str {
    // `operator new` has a space, and so has the type of a conversion.
    let end = name.find("operator").unwrap_or(name.len());
    name[..end].rfind(' ').map_or(name, |space| &name[space + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_builds_are_the_same() {
        for (name, plain) in [
            ("ExecInterpExpr", "ExecInterpExpr"),
            ("hash_search.constprop.0", "hash_search"),
            ("slot_deform.part.1.isra.0", "slot_deform"),
            ("errstart.cold", "errstart"),
            ("walk'2", "walk"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("foo(int) [clone .part.3]", "foo"),
            (
                "rocksdb::DBImpl::Get(rocksdb::ReadOptions const&, char const*)",
                "rocksdb::DBImpl::Get",
            ),
            ("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector::push_back"),
            ("void rocksdb::Merge<(char)1>(int) const", "rocksdb::Merge"),
            ("ns::Name[abi:cxx11](int)", "ns::Name"),
            ("std::string ns::format<int>(int)", "ns::format"),
            (
                "(anonymous namespace)::Sorter::operator()(int, int) const",
                "{anonymous}::Sorter::operator()",
            ),
            ("bool operator< <int>(int)", "operator<"),
            ("std::ostream& operator<< <char>(std::ostream&)", "operator<<"),
            ("operator new(unsigned long)", "operator new"),
            ("operator delete[](void*)", "operator delete"),
            ("(below main)", "(below main)"),
            (
                "<alloc::vec::Vec<T> as Drop>::drop::h0123456789abcdef",
                "<alloc::vec::Vec<T> as Drop>::drop",
            ),
            ("turso::vm::step::h0123456789abcdef", "turso::vm::step"),
            ("main.(*Server).serve", "main.(*Server).serve"),
        ] {
            assert_eq!(function(name), plain, "{name}");
        }
    }

    #[test]
    fn objects_have_no_versions() {
        for (path, name) in [
            ("/usr/lib/x86_64-linux-gnu/libpq.so.5.14", "libpq"),
            ("libpq.so.5.15", "libpq"),
            ("libc-2.31.so", "libc"),
            ("libc.so.6", "libc"),
            ("postgres", "postgres"),
            ("", ""),
        ] {
            assert_eq!(object(path), name);
        }
    }

    #[test]
    fn addresses_are_no_names() {
        assert!(is_address("0x1d70d0") && is_address("???"));
        assert!(!is_address("0xrow") && !is_address("insert"));
    }
}

//! Compares and orders version numbers.

/// Returns true when `version` is `requested`, or continues it after a period: `17.2` matches the
/// request `17`.
pub fn is_version(version: &str, requested: &str) -> bool {
    version
        .strip_prefix(requested)
        .is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
}

/// Returns the index of the newest version that `requested` matches, among versions in ascending
/// order: `17` is the newest 17.
pub fn newest_of(versions: &[String], requested: &str) -> Option<usize> {
    let exact = versions.iter().position(|version| version == requested);
    exact.or_else(|| versions.iter().rposition(|version| is_version(version, requested)))
}

/// Returns a version's numbers, for sorting; `None` for a version that is not all numbers, such as
/// a beta.
pub fn numbers(version: &str) -> Option<Vec<u64>> {
    version.split('.').map(|number| number.parse().ok()).collect()
}

//! Versions as they are asked for and put in order.

/// Returns whether `version` is the one that `asked` means: the same, or one that goes on after a point.
pub fn is_version(version: &str, asked: &str) -> bool {
    version
        .strip_prefix(asked)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A version's numbers, for putting versions in order; `None` for one that is not all numbers, such as a beta.
pub fn numbers(version: &str) -> Option<Vec<u64>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

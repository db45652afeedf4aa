//! Finds the name that a misspelled one was meant to be.

/// Returns the name of which `got` is most likely a misspelling, in whichever case; `None` if none is
/// near.
pub fn nearest<'n>(got: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wanted = got.to_lowercase();
    let distance_max = (wanted.chars().count() / 3).max(1);

    let with_distances =
        names.map(|name| (strsim::damerau_levenshtein(&wanted, &name.to_lowercase()), name));
    let near = with_distances.filter(|(distance, _)| *distance <= distance_max);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        let nearest_of = |got| nearest(got, ["clients", "repeats", "order"].into_iter());
        assert_eq!(nearest_of("client"), Some("clients"));
        assert_eq!(nearest_of("Order"), Some("order"));
        assert_eq!(nearest_of("threads"), None);
        assert_eq!(nearest_of("x"), None);
    }
}

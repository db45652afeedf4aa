//! Proposals for a name that does not exist.

/// Sorts items by how similar their names are to `text`, the most similar first.
pub fn most_similar_first<T>(items: &mut [T], text: &str, name: impl Fn(&T) -> &str) {
    let similarity = |item: &T| strsim::normalized_damerau_levenshtein(text, name(item));
    items.sort_by(|a, b| similarity(b).total_cmp(&similarity(a)));
}

/// The least similarity of a name that is proposed for an unknown one.
const SIMILARITY_MIN: f64 = 0.5;
/// The number of names that the help for an unknown name lists.
const NAMES_MAX: usize = 12;

/// Returns the help for an unknown name: the most similar of `names` if it is similar enough, and
/// the names, the most similar first.
pub fn did_you_mean(names: &mut [impl AsRef<str>], unknown: &str, what: &str) -> Option<String> {
    most_similar_first(names, unknown, |name| name.as_ref());
    let proposal = proposal(names.first()?.as_ref(), unknown);

    let listed: Vec<&str> = names.iter().take(NAMES_MAX).map(AsRef::as_ref).collect();

    let more = match names.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };

    Some(format!("{proposal}available {what}: `{}`{more}", listed.join("`, `")))
}

/// Returns the help for an unknown name: the most similar of `names` if it is similar enough, and all
/// names in alphabetical order. Meant for names that are known beforehand, of which there are few.
pub fn did_you_mean_of_all(
    names: &mut [impl AsRef<str>],
    unknown: &str,
    what: &str,
) -> Option<String> {
    most_similar_first(names, unknown, |name| name.as_ref());
    let proposal = proposal(names.first()?.as_ref(), unknown);

    let mut sorted: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    sorted.dedup();

    Some(format!("{proposal}available {what}: `{}`", sorted.join("`, `")))
}

/// Proposes the nearest name, if it is similar enough.
fn proposal(nearest: &str, unknown: &str) -> String {
    let is_similar = strsim::normalized_damerau_levenshtein(unknown, nearest) >= SIMILARITY_MIN;
    if is_similar { format!("did you mean `{nearest}`? ") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_may_list_all_names_in_order() {
        let mut names = [
            "vmstat", "costs", "iostat", "metrics", "counters", "b1", "b2", "b3", "b4", "b5", "b6",
            "b7", "b8", "costs",
        ];
        let all = "`b1`, `b2`, `b3`, `b4`, `b5`, `b6`, `b7`, `b8`, `costs`, `counters`, `iostat`, \
                   `metrics`, `vmstat`";
        let help = did_you_mean_of_all(&mut names, "nosuch", "tables").unwrap();
        assert_eq!(help, format!("available tables: {all}"));
        let similar = did_you_mean_of_all(&mut names, "iostats", "tables").unwrap();
        assert_eq!(similar, format!("did you mean `iostat`? available tables: {all}"));
    }
}

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

/// The names that the help for an unknown one lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedNames {
    /// Some, the most similar first, and the number of the others.
    MostSimilar,
    /// All in alphabetical order: for names that are known beforehand, of which there are few.
    All,
}

/// Returns the help for an unknown name: the most similar of `names` if it is similar enough, and a
/// list of them. `what` says in the plural what they name. `None` without names.
pub fn did_you_mean(
    names: &mut [impl AsRef<str>],
    unknown: &str,
    what: &str,
    listed_names: ListedNames,
) -> Option<String> {
    most_similar_first(names, unknown, |name| name.as_ref());

    let nearest = names.first()?.as_ref();
    let is_similar = strsim::normalized_damerau_levenshtein(unknown, nearest) >= SIMILARITY_MIN;
    let proposal = if is_similar { format!("did you mean `{nearest}`? ") } else { String::new() };

    let mut listed: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let mut more = String::new();
    match listed_names {
        ListedNames::MostSimilar => {
            listed.truncate(NAMES_MAX);
            if names.len() > listed.len() {
                more = format!(" and {} more", names.len() - listed.len());
            }
        }
        ListedNames::All => {
            listed.sort_unstable();
            listed.dedup();
        }
    }

    Some(format!("{proposal}available {what}: `{}`{more}", listed.join("`, `")))
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
        let help = did_you_mean(&mut names, "nosuch", "tables", ListedNames::All).unwrap();
        assert_eq!(help, format!("available tables: {all}"));
        let similar = did_you_mean(&mut names, "iostats", "tables", ListedNames::All).unwrap();
        assert_eq!(similar, format!("did you mean `iostat`? available tables: {all}"));
    }

    #[test]
    fn help_may_list_the_most_similar_names_and_count_the_others() {
        let mut names = [
            "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "costs", "counters", "iostat",
            "metrics", "vmstat",
        ];
        let help = did_you_mean(&mut names, "iostats", "tables", ListedNames::MostSimilar).unwrap();
        assert!(help.starts_with("did you mean `iostat`? available tables: `iostat`, "), "{help}");
        assert!(help.ends_with("` and 1 more"), "{help}");
        let few = did_you_mean(&mut names[..2], "x", "steps", ListedNames::MostSimilar).unwrap();
        assert!(!few.contains("more"), "{few}");
        assert_eq!(did_you_mean(&mut [""; 0], "x", "steps", ListedNames::MostSimilar), None);
    }
}

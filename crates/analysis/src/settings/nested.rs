//! Options of RocksDB that are made of options: `{size_ratio=1;stop_style=kCompactionStopStyleTotalSize;}`. In which order
//! these stand, and which there are, depends on the version.

use std::collections::{BTreeMap, BTreeSet};

use super::names::Notation;

/// One part of two values: its path after the option's name, `.size_ratio`, and what it is in each. `None`: it has none of
/// that name.
pub(crate) type Part<'a> = (String, Option<&'a str>, Option<&'a str>);

/// Two values part by part where both are made of options, else the two as they are, with an empty path.
pub(crate) fn parts<'a>(
    notation: Notation,
    a: Option<&'a str>,
    b: Option<&'a str>,
) -> Vec<Part<'a>> {
    let of = |value: Option<&'a str>| fields(notation, value?);
    let (Some(of_a), Some(of_b)) = (of(a), of(b)) else {
        return vec![(String::new(), a, b)];
    };
    let names: BTreeSet<&str> = of_a.keys().chain(of_b.keys()).copied().collect();
    let of_name = |name: &&'a str| {
        let inner = parts(notation, of_a.get(name).copied(), of_b.get(name).copied());
        let name = *name;
        inner
            .into_iter()
            .map(move |(path, a, b)| (format!(".{name}{path}"), a, b))
    };
    names.iter().flat_map(of_name).collect()
}

/// The part of a value that a path of [`parts`] leads to; of a value that is not made of options all of it.
pub(crate) fn part<'a>(notation: Notation, value: &'a str, path: &str) -> Option<&'a str> {
    path.split('.')
        .skip(1)
        .try_fold(value, |value, name| match fields(notation, value) {
            Some(fields) => fields.get(name).copied(),
            None => Some(value),
        })
}

/// The options that a value is made of; `None` where it is not, and of a list of such.
pub(crate) fn fields(notation: Notation, value: &str) -> Option<BTreeMap<&str, &str>> {
    if notation != Notation::Rocksdb {
        return None;
    }
    let inner = value.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut fields = BTreeMap::new();
    let (mut begin, mut depth) = (0, 0_usize);
    for (at, letter) in inner.char_indices().chain([(inner.len(), ';')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            ';' if depth == 0 => {
                let field = inner[begin..at].trim();
                begin = at + 1;
                if !field.is_empty() {
                    let (name, value) = field.split_once('=')?;
                    fields.insert(name.trim(), value.trim());
                }
            }
            _ => {}
        }
    }
    (depth == 0).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROCKSDB: Notation = Notation::Rocksdb;

    #[test]
    fn a_value_made_of_options_has_their_names_and_another_has_none() {
        let of =
            |value| fields(ROCKSDB, value).map(|fields| fields.into_iter().collect::<Vec<_>>());
        assert_eq!(
            of("{size_ratio=1; ages=;inner={a=b;c={d=e;}};}").unwrap(),
            [
                ("ages", ""),
                ("inner", "{a=b;c={d=e;}}"),
                ("size_ratio", "1")
            ]
        );
        assert_eq!(of("{}").unwrap(), []);
        for other in [
            "64M",
            "",
            "{a=b}:{c=d}",
            "{a=b",
            "{words}",
            "{a={b=c}",
            "bloomfilter:10:false",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(fields(Notation::Postgres, "{a=b}"), None);
    }

    #[test]
    fn two_values_are_taken_apart_where_both_can_be() {
        let (a, b) = ("{x=1;in={y=2;z=3};old=4}", "{new=5; in={z=4;y=2}; x=1}");
        assert_eq!(
            parts(ROCKSDB, Some(a), Some(b)),
            [
                (".in.y".to_owned(), Some("2"), Some("2")),
                (".in.z".to_owned(), Some("3"), Some("4")),
                (".new".to_owned(), None, Some("5")),
                (".old".to_owned(), Some("4"), None),
                (".x".to_owned(), Some("1"), Some("1")),
            ]
        );
        assert_eq!(
            parts(ROCKSDB, Some("512M"), Some("{capacity=1G}")),
            [(String::new(), Some("512M"), Some("{capacity=1G}"))]
        );
    }

    #[test]
    fn a_path_leads_to_its_part() {
        let value = "{x=1;in={y=2}}";
        assert_eq!(part(ROCKSDB, value, ""), Some(value));
        assert_eq!(part(ROCKSDB, value, ".in.y"), Some("2"));
        assert_eq!(part(ROCKSDB, value, ".in.z"), None);
        assert_eq!(part(ROCKSDB, "1:2:3", ".in.y"), Some("1:2:3"));
    }
}

//! Removes duplicates, groups items in their order of appearance, and sorts them by a number.

/// Returns each item once.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// Returns each key once, with all of its items.
pub(crate) fn grouped<K: PartialEq, T>(
    items: impl IntoIterator<Item = (K, T)>,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

/// Sorts by a number, the largest first. Items with the same number keep their order.
///
/// The code of a sort is large, and the compiler makes it anew for each closure. All callers share
/// the sort of the numbers.
pub(crate) fn sort_largest_first<T>(items: &mut Vec<T>, number: impl Fn(&T) -> f64) {
    let numbers: Vec<f64> = items.iter().map(|item| -number(item)).collect();
    arrange(items, &order_of(&numbers));
}

/// Does what [`sort_largest_first`] does, the smallest first.
pub(crate) fn sort_smallest_first<T>(items: &mut Vec<T>, number: impl Fn(&T) -> f64) {
    let numbers: Vec<f64> = items.iter().map(number).collect();
    arrange(items, &order_of(&numbers));
}

/// Returns the places of some numbers, the smallest first.
fn order_of(numbers: &[f64]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..numbers.len()).collect();
    places.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
    places
}

/// Puts the items at these places in this order.
fn arrange<T>(items: &mut Vec<T>, places: &[usize]) {
    let mut taken: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(places.iter().filter_map(|&place| taken[place].take()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_with_the_same_number_keep_their_order() {
        let mut items = vec![("a", 1.0), ("b", 3.0), ("c", 1.0), ("d", f64::INFINITY), ("e", -2.0)];
        sort_largest_first(&mut items, |item| item.1);
        let names: String = items.iter().map(|item| item.0).collect();
        assert_eq!(names, "dbace");
        sort_smallest_first(&mut items, |item| item.1);
        let names: String = items.iter().map(|item| item.0).collect();
        assert_eq!(names, "eacbd");
    }
}

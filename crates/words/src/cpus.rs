//! Lists of CPUs as the kernel writes them: `0-3,8`.

/// More than any machine has.
const MOST: u32 = 8192;

/// Formats a list of CPUs; order and repetition do not matter.
pub fn format_cpus(cpus: &[u32]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    let ranges = cpus.chunk_by(|one, next| one + 1 == *next);
    let ranges = ranges.map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        _ => range[0].to_string(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

/// Parses a list of CPUs, ascending; `None` when it is not one.
pub fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| text.trim().parse().ok().filter(|&cpu| cpu < MOST);
    let mut cpus = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_and_read_as_the_kernel_does() {
        assert_eq!(format_cpus(&[8, 0, 1, 2, 2, 10]), "0-2,8,10");
        assert_eq!(parse_cpus("0-2, 10,8,1"), Some(vec![0, 1, 2, 8, 10]));
        for wrong in ["", "a", "3-1", "0-99999999", "1,"] {
            assert_eq!(parse_cpus(wrong), None, "{wrong}");
        }
    }
}

//! Lists of CPUs as the kernel writes them: `0-3,8`.

/// More CPUs than any machine has.
const CPUS_MAX: u32 = 8192;

/// Formats a list of CPUs. The list may be unsorted and have duplicates.
pub fn format_cpus(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();

    let ranges: Vec<String> = sorted
        .chunk_by(|cpu, next| cpu + 1 == *next)
        .map(|range| match range {
            [first, .., last] => format!("{first}-{last}"),
            _ => range[0].to_string(),
        })
        .collect();
    ranges.join(",")
}

/// Parses a list of CPUs, and returns it in ascending order; `None` if the text is not such a list.
pub fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in text.split(',') {
        let (first_text, last_text) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (parse_cpu(first_text)?, parse_cpu(last_text)?);
        if first > last {
            return None;
        }
        cpus.extend(first..=last);
    }

    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn parse_cpu(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|&cpu| cpu < CPUS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_the_notation_of_the_kernel() {
        assert_eq!(format_cpus(&[8, 0, 1, 2, 2, 10]), "0-2,8,10");
        assert_eq!(parse_cpus("0-2, 10,8,1"), Some(vec![0, 1, 2, 8, 10]));
        for wrong in ["", "a", "3-1", "0-99999999", "1,"] {
            assert_eq!(parse_cpus(wrong), None, "{wrong}");
        }
    }
}

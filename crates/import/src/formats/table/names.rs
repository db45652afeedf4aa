//! Names of steps and targets in tables of the Insert Benchmark's author.

/// A step with its number of clients.
pub struct NamedStep {
    pub step: String,
    pub clients: Option<u32>,
}

/// The beginnings of names of files, which tables have in place of steps.
const STARTS: [&str; 6] =
    ["sb.prepare.met.", "sb.prepare.o.", "sb.met.", "sb.r.qps.", "sb.o.", "sb."];

/// Returns the step in the name of a file: `sb.met.read-only.range100.pk1.dop40` is
/// `read-only.range100` with 40 clients.
pub fn step_of(name: &str) -> NamedStep {
    let start = STARTS.iter().find_map(|start| name.strip_prefix(start));
    let mut parts: Vec<&str> = start.unwrap_or(name).split('.').collect();
    let mut clients = None;
    if let Some(last) = parts.last().and_then(|last| last.strip_prefix("dop")) {
        clients = last.parse().ok();
        parts.pop();
    }
    let is_key = |part: &&str| {
        let digits = part.strip_prefix("pk");
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    parts.retain(|part| !is_key(part));

    // Rows of tables have `hot-points_range=100` for `hot-points.range100`.
    let step = parts.join(".").replace("_range=", ".range");
    NamedStep { step, clients }
}

/// Returns the target in the name of a folder: `x.pg174.x10a.pk1` is `pg174.x10a`.
pub fn target_of(name: &str) -> String {
    let name = name.strip_prefix("x.").unwrap_or(name);
    let name = name.strip_suffix(".pk1").or(name.strip_suffix(".pk0")).unwrap_or(name);
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_steps_and_targets() {
        let step = step_of("sb.met.read-only.range100.pk1.dop40");
        assert_eq!((step.step.as_str(), step.clients), ("read-only.range100", Some(40)));
        assert_eq!(step_of("scan.warm_range=100").step, "scan.warm.range100");
        assert_eq!(step_of("l.i0").step, "l.i0");
        assert_eq!(target_of("x.pg174.x10a.pk1"), "pg174.x10a");
    }
}

//! The plan of a statement, as the engine explains it.

use serde::{Deserialize, Serialize};

/// The beginnings of remarks in a line of a plan that don't belong to its shape; they end with the
/// parenthesis.
const REMARKS: [&str; 3] = ["  (cost=", "  (rows=", " (returns "];

/// A statement of the workload with its plan after a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementPlan {
    /// The statement, shortened if it is long.
    pub statement: String,
    /// A hash of the whole statement without numbers and values.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The engine's plan, a line for each node; empty if there was an error.
    pub plan: String,
    /// The reason why the engine did not explain the statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl StatementPlan {
    /// Returns the key by which the same statement is found elsewhere, whatever its numbers and
    /// values. The key is the digest, since the place where a long statement is cut depends on its
    /// values. Older records have no digest.
    pub fn key(&self) -> String {
        if self.digest.is_empty() { masked(&self.statement) } else { self.digest.clone() }
    }
}

/// Returns the FNV-1a hash of a text in hexadecimal, which is the same in each version of Assay.
pub fn digest(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Returns a plan without estimates, numbers and values: plans of the same shape are equal.
pub fn shape_of(plan: &str) -> String {
    let lines: Vec<String> = plan
        .lines()
        .map(|line| masked(&without_estimates(line)).replace("(InitPlan ?).col?", "?"))
        .collect();
    lines.join("\n")
}

/// Returns a line of a plan without estimates, and without the parameters of PostgreSQL's subplans,
/// which depend on its version.
pub fn without_estimates(line: &str) -> String {
    let mut shortened = line.to_owned();
    for remark in REMARKS {
        if let Some(start) = shortened.find(remark) {
            let end = shortened[start..].find(')').map_or(shortened.len(), |at| start + at + 1);
            shortened.replace_range(start..end, "");
        }
    }
    shortened
}

/// Returns SQL or a line of a plan with `?` for each number, parameter and text with its type, also
/// for numbers in names.
pub fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(first) = rest.next() {
        match first {
            '0'..='9' | '$' => while rest.next_if(char::is_ascii_digit).is_some() {},
            '\'' => {
                // A doubled quote within the text begins another text, which is masked like this
                // one.
                let _ = rest.by_ref().find(|c| *c == '\'');
                // The type that may follow: `'7'::bigint`.
                while rest.next_if(|c| c.is_alphanumeric() || matches!(c, ':' | '_')).is_some() {}
            }
            other => {
                masked.push(other);
                continue;
            }
        }

        // Adjacent masked parts are one.
        if !masked.ends_with('?') {
            masked.push('?');
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_published_hash() {
        assert_eq!(digest(""), "cbf29ce484222325");
        assert_eq!(digest("foobar"), "85944171f73967e8");
    }

    #[test]
    fn a_statement_has_one_key_wherever_it_was_cut() {
        let plan = |statement: &str, whole: &str| StatementPlan {
            statement: statement.into(),
            digest: digest(&masked(whole)),
            ..StatementPlan::default()
        };
        let short = plan("select c from sbtest1 whe…", "select c from sbtest1 where id = 1");
        let long = plan("select c from sbtest12 wh…", "select c from sbtest12 where id = 1");
        assert_eq!(short.key(), long.key());
        let other = plan("select c from sbtest1 whe…", "select c from sbtest1 where k = 1");
        assert_ne!(short.key(), other.key());
        let old = |statement: &str| StatementPlan {
            statement: statement.into(),
            ..StatementPlan::default()
        };
        assert_eq!(old("select 1").key(), old("select 2").key());
        assert_ne!(old("select a").key(), old("select b").key());
    }

    #[test]
    fn plans_of_one_shape_are_equal_whatever_their_estimates_and_values() {
        let custom = "Index Scan using pi1_pkey on pi1  (cost=0.29..8.31 rows=1 width=12)\n  Index Cond: (id >= '7'::bigint)";
        let generic = "Index Scan using pi1_pkey on pi1  (cost=0.42..9.00 rows=30 width=12)\n  Index Cond: (id >= $1)";
        assert_eq!(shape_of(custom), shape_of(generic));
        assert_eq!(shape_of(custom), "Index Scan using pi?_pkey on pi?\n  Index Cond: (id >= ?)");
        assert_ne!(
            shape_of(custom),
            shape_of("Seq Scan on pi1  (cost=0.00..8.31 rows=1 width=12)")
        );
        assert_eq!(
            shape_of("pi1: range on PRIMARY; Using where  (rows=10, filtered=100.00)"),
            shape_of("pi1: range on PRIMARY; Using where  (rows=20, filtered=33.33)")
        );
    }

    #[test]
    fn a_subplan_is_the_same_in_each_version_of_postgres() {
        assert_eq!(
            shape_of("InitPlan 1 (returns $0)\n  Index Cond: (id = ANY ($0))"),
            shape_of("InitPlan 1\n  Index Cond: (id = ANY ((InitPlan 1).col1))")
        );
    }

    #[test]
    fn texts_with_quotes_are_masked() {
        assert_eq!(
            masked("select c from sbtest12 where c = 'it''s 1' and id in (1, $2)"),
            "select c from sbtest? where c = ? and id in (?, ?)"
        );
    }
}

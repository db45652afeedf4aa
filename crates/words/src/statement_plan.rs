//! The plan of a statement, as the engine explains it.

use serde::{Deserialize, Serialize};

/// The beginnings of remarks in a line of a plan that don't belong to its shape; they end with the
/// parenthesis.
const REMARKS: [&str; 3] = ["  (cost=", "  (rows=", " (returns "];

/// The first word of a line of MySQL's plans where it says only what kind of statement it is; which
/// word that is depends on the version.
const STATEMENT_KINDS: [&str; 6] = ["simple", "primary", "insert", "replace", "update", "delete"];
/// The kinds of [`STATEMENT_KINDS`] whose line names the table that takes new rows, and no access.
const INSERTING: [&str; 2] = ["insert", "replace"];
/// The beginnings of what MySQL's plans do besides the access to a table. Other remarks depend on
/// the version: they repeat conditions, or name a direction.
const MYSQL_WORK: [&str; 9] = [
    "Using filesort",
    "Using index",
    "Using intersect",
    "Using join buffer",
    "Using sort_union",
    "Using temporary",
    "Using union",
    "Select tables optimized away",
    "Impossible",
];

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

/// Returns a plan without estimates, numbers and values, and without what depends on how a version
/// of the engine prints it: plans of the same shape are equal. Lines without an access to data are
/// left out.
pub fn shape_of(plan: &str) -> String {
    let lines = plan.lines().map(line_shape);
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

fn line_shape(line: &str) -> String {
    let line = without_estimates(line);
    if is_redundant_condition(&line) {
        return String::new();
    }
    // Lines of other engines are indented, or begin with a capital.
    let line = if line.starts_with(|char: char| char.is_ascii_lowercase()) {
        mysql_access(&line)
    } else {
        line
    };
    masked(&line).replace("(InitPlan ?).col?", "?")
}

/// Returns whether a line of PostgreSQL's plan only excludes nulls. For the smallest or largest
/// value of a column that has none, PostgreSQL 17 leaves this condition out.
fn is_redundant_condition(line: &str) -> bool {
    let condition = line.trim_start().strip_prefix("Index Cond: (");
    let column = condition.and_then(|condition| condition.strip_suffix(" IS NOT NULL)"));
    column.is_some_and(|column| !column.contains(' '))
}

/// Returns the table, access type and index in a line of MySQL's or MariaDB's plan, and the work
/// that comes with them: `pi1: range on PRIMARY; Using index`. Empty for a line without an access.
fn mysql_access(line: &str) -> String {
    let mut parts = line.split("; ");
    let access = parts.next().unwrap_or_default();
    let kind = access.split([' ', ';']).next().unwrap_or_default();
    if INSERTING.contains(&kind) {
        return String::new();
    }
    let access = if STATEMENT_KINDS.contains(&kind) { access[kind.len()..].trim() } else { access };
    let is_work = |part: &&str| MYSQL_WORK.iter().any(|work| part.starts_with(work));
    let work = parts.filter(is_work);
    let shown: Vec<&str> =
        std::iter::once(access).filter(|access| !access.is_empty()).chain(work).collect();
    shown.join("; ")
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

    /// Plans as MySQL 5.6.14, MySQL 5.7.22 to 9.7.4 and MariaDB 10.11.18 explain them.
    #[test]
    fn a_plan_of_mysql_is_the_same_however_a_version_prints_it() {
        let insert = ["simple; No tables used", "insert pi1: ALL", "insert pi1: ALL"];
        let delete = [
            "simple pi1: range on PRIMARY; Using where  (rows=10050)",
            "delete pi1: range on PRIMARY; Using where  (rows=10050, filtered=100.00)",
            "simple pi1: range on PRIMARY; Using where  (rows=50)",
        ];
        let query = [
            "simple pi1: range on pdc; Using where; Using index  (rows=7630)",
            "simple pi1: range on pdc; Using where; Using index  (rows=4073, filtered=100.00)",
            "simple pi1: range on pdc; Using where; Using index  (rows=4073)",
        ];
        let smallest = ["simple; Select tables optimized away"; 3];
        for plans in [insert, delete, query, smallest] {
            let shapes = plans.map(shape_of);
            assert!(shapes.iter().all(|shape| *shape == shapes[0]), "{shapes:?}");
        }
        assert_eq!(shape_of(insert[1]), "");
        assert_eq!(shape_of(query[0]), "pi?: range on pdc; Using index");
    }

    #[test]
    fn another_access_index_or_sort_is_another_plan_of_mysql() {
        let range = shape_of("delete pi1: range on PRIMARY; Using where  (rows=50)");
        for other in [
            "simple pi1: index on PRIMARY; Using where  (rows=50)",
            "simple pi1: range on pdc; Using where  (rows=50)",
            "simple pi1: range on PRIMARY; Using where; Using filesort  (rows=50)",
            "dependent subquery pi1: range on PRIMARY; Using where  (rows=50)",
        ] {
            assert_ne!(shape_of(other), range);
        }
        // `insert ... select` reads a table.
        assert_eq!(shape_of("insert pi2: ALL\nsimple pi1: ALL  (rows=9)"), "pi?: ALL");
    }

    /// As PostgreSQL 15.3 and 17.2 explain `select min(transactionid)`.
    #[test]
    fn a_condition_that_excludes_no_row_is_no_other_plan() {
        let old = "Result  (cost=0.36..0.37 rows=1 width=8)\n  InitPlan 1 (returns $0)\n    ->  Limit  \
                   (cost=0.29..0.36 rows=1 width=8)\n          ->  Index Only Scan using pi1_pkey on pi1  \
                   (cost=0.29..1420.48 rows=20811 width=8)\n                Index Cond: (transactionid IS NOT NULL)";
        let new = "Result  (cost=0.35..0.36 rows=1 width=8)\n  InitPlan 1\n    ->  Limit  (cost=0.29..0.35 \
                   rows=1 width=8)\n          ->  Index Only Scan using pi1_pkey on pi1  (cost=0.29..1370.03 \
                   rows=20916 width=8)";
        assert_eq!(shape_of(old), shape_of(new));
        let condition = "Index Cond: ((id > $1) AND (id IS NOT NULL))";
        assert!(!shape_of(condition).is_empty());
    }

    #[test]
    fn texts_with_quotes_are_masked() {
        assert_eq!(
            masked("select c from sbtest12 where c = 'it''s 1' and id in (1, $2)"),
            "select c from sbtest? where c = ? and id in (?, ?)"
        );
    }
}

//! The way in which the database of a server is made.

/// The making of a server's database, apart from the server's options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Creation {
    /// Arguments of the program that creates the data: `initdb`, or the server itself.
    pub init_arguments: Vec<String>,
    /// Extensions of the new database (PostgreSQL).
    pub extensions: Vec<String>,
    /// Statements that run in the new database, after its extensions exist.
    pub setup_sql: Vec<String>,
    /// SQL at the end of the statements that create tables; empty for none.
    pub table_options: String,
}

impl Creation {
    /// Returns what is given, as a plan names and writes it: `extensions` and `citus, btree_gin`.
    pub fn declared(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("init-arguments", self.init_arguments.join(" ")),
            ("extensions", self.extensions.join(", ")),
            ("setup-sql", self.setup_sql.join("; ")),
            ("table-options", self.table_options.clone()),
        ];
        all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

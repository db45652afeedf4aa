//! What a config declares: the options of its files and of the plan's `set`, merged in their order.

use super::names::{Notation, is_loose, key, switch};

/// One option of a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name as it was written.
    pub name: String,
    /// What it is compared as.
    pub(crate) key: String,
    /// Its value, without quotes.
    pub value: String,
    /// A server that does not know it goes on without it.
    pub(crate) is_loose: bool,
}

impl Declared {
    /// What a config lets its server use of the machine: `memory` in bytes, `cpus` by number.
    pub fn limit(what: &str, asked: &str) -> Self {
        let name = format!("limit.{what}");
        Self {
            key: name.clone(),
            name,
            value: asked.to_owned(),
            is_loose: false,
        }
    }

    fn new(notation: Notation, name: &str, value: Option<&str>) -> Self {
        let mut plain = key(notation, name);
        let mut value = value.map(str::to_owned);
        if let Some((switched, is_on)) = switch(notation, &plain) {
            let is_denied = value.as_deref().is_some_and(is_off);
            value = Some(if is_on == is_denied { "OFF" } else { "ON" }.to_owned());
            plain = switched.to_owned();
        }
        if notation == Notation::Mysql {
            // A word that stands alone switches on; the binary log is switched on by the name of its files.
            let value = value.get_or_insert_with(|| "ON".to_owned());
            if plain == "log_bin" && !is_off(value) {
                "ON".clone_into(value);
            }
        }
        Self {
            name: name.trim().to_owned(),
            key: plain,
            value: value.unwrap_or_default(),
            is_loose: is_loose(notation, name),
        }
    }
}

fn is_off(value: &str) -> bool {
    ["0", "off", "false", "no"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
}

/// What a config declares: the texts of its files in their order, and over them the options of `set`. Of several of
/// one name the last holds, and stands where the first did. Files that such a file includes are not read.
pub fn declared<'a>(
    engine: &str,
    files: impl IntoIterator<Item = &'a str>,
    set: &[(String, String)],
) -> Vec<Declared> {
    let notation = Notation::of(engine);
    let mut all: Vec<Declared> = Vec::new();
    let mut add = |option: Declared| match all.iter_mut().find(|known| known.key == option.key) {
        Some(known) => *known = option,
        None => all.push(option),
    };
    for file in files {
        let options = match notation {
            Notation::Postgres => postgres_options(file),
            Notation::Mysql => mysql_options(file),
            Notation::Rocksdb => rocksdb_options(file),
            Notation::Sqlite | Notation::Other => Vec::new(),
        };
        for (name, value) in options {
            add(Declared::new(notation, &name, value.as_deref()));
        }
    }
    for (name, value) in set {
        // A plan writes a word that stands alone as one with an empty value.
        let is_alone = notation == Notation::Mysql && value.is_empty();
        add(Declared::new(notation, name, (!is_alone).then_some(value)));
    }
    all
}

/// Names and values of an options file, as RocksDB writes them. Its first section says who wrote it.
fn rocksdb_options(file: &str) -> Vec<(String, Option<String>)> {
    let mut is_version = false;
    let mut options = Vec::new();
    for line in file.lines().map(str::trim) {
        if line.starts_with('[') {
            is_version = line.eq_ignore_ascii_case("[Version]");
        } else if !is_version
            && !line.starts_with('#')
            && let Some((name, value)) = line.split_once('=')
        {
            options.push((name.trim().to_owned(), Some(value.trim().to_owned())));
        }
    }
    options
}

/// `name = value`, `name value`, `name = 'it''s'`; `#` begins a comment.
fn postgres_options(file: &str) -> Vec<(String, Option<String>)> {
    let option = |line: &str| {
        let line = line.trim_start();
        let end = line
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))
            .unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let rest = rest.trim_start();
        let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
        let value = match rest.strip_prefix('\'') {
            Some(quoted) => unquoted(quoted, '\''),
            None => rest
                .split(|c: char| c.is_whitespace() || c == '#')
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        let is_option = !name.is_empty() && !name.to_ascii_lowercase().starts_with("include");
        is_option.then(|| (name.to_owned(), Some(value)))
    };
    file.lines().filter_map(option).collect()
}

/// `name`, `name = value`, `name = "a # b"` in a group for servers, or before any; `#` begins a comment, and so does `;`
/// at the start of a line.
fn mysql_options(file: &str) -> Vec<(String, Option<String>)> {
    let mut is_servers = true;
    let mut options = Vec::new();
    for line in file.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[') {
            let group = group.split(']').next().unwrap_or_default();
            is_servers = ["mysqld", "server", "mariadb"]
                .iter()
                .any(|known| group.starts_with(known))
                && !["mysqld_safe", "mysqld_multi", "mariadb-client"].contains(&group);
        } else if is_servers && !line.is_empty() && !line.starts_with(['#', ';', '!']) {
            let end = line.find(['=', '#']).unwrap_or(line.len());
            let name = line[..end].trim();
            let value = line[end..].strip_prefix('=').map(str::trim).map(|rest| {
                match rest.strip_prefix(['\'', '"']) {
                    Some(quoted) => unquoted(quoted, rest.chars().next().unwrap_or('"')),
                    None => rest.split('#').next().unwrap_or_default().trim().to_owned(),
                }
            });
            if !name.is_empty() {
                options.push((name.to_owned(), value));
            }
        }
    }
    options
}

/// What stands before the closing quote; a doubled quote or one after `\` does not close.
fn unquoted(text: &str, quote: char) -> String {
    let mut value = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next()),
            _ if letter == quote => match letters.next_if_eq(&quote) {
                Some(letter) => value.push(letter),
                None => break,
            },
            _ => value.push(letter),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(engine: &str, files: &[&str], set: &[(&str, &str)]) -> Vec<(String, String)> {
        let set: Vec<(String, String)> = set
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        declared(engine, files.iter().copied(), &set)
            .into_iter()
            .map(|option| (option.key, option.value))
            .collect()
    }

    #[track_caller]
    fn check(engine: &str, files: &[&str], set: &[(&str, &str)], expected: &[(&str, &str)]) {
        let found = of(engine, files, set);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_file_of_postgresql_is_read_as_the_server_reads_it() {
        let file = "# shared_buffers = 1GB\n\
            Shared_Buffers = 2GB   # mine\n\
            \n  wal_compression='it''s \\'#\\''#c\nwork_mem 8MB\nport=5433#x\nautovacuum\t=\ton\n\
            include 'other.conf'\ninclude_if_exists = 'x'\nmy.option = ''\n";
        check(
            "postgres",
            &[file],
            &[],
            &[
                ("shared_buffers", "2GB"),
                ("wal_compression", "it's '#'"),
                ("work_mem", "8MB"),
                ("port", "5433"),
                ("autovacuum", "on"),
                ("my.option", ""),
            ],
        );
    }

    #[test]
    fn the_last_holds() {
        check(
            "postgres",
            &["a=1\nb=1\na=2", "b=2"],
            &[("A", "3")],
            &[("a", "3"), ("b", "2")],
        );
        let files = ["innodb-io-capacity=1\nskip-log-bin"];
        check(
            "mysql",
            &files,
            &[("loose_innodb_io_capacity", "2"), ("log_bin", "")],
            &[("innodb_io_capacity", "2"), ("log_bin", "ON")],
        );
    }

    #[test]
    fn a_file_of_mysql_is_read_as_the_server_reads_it() {
        let file = "sync_binlog=0 # mine\n[client]\nport=1\n[mysqld]\n;x=1\n!include y\n\
            init-connect = \"set @a = '#'\"\nslow_query_log\nlog-bin = /logs/b\nskip-name-resolve\n\
            disable_performance_schema\n[mysqld_safe]\nnice=1\n[mariadb-10.11]\nsql_mode=''\n";
        check(
            "mysql",
            &[file],
            &[("skip_log_bin", "false")],
            &[
                ("sync_binlog", "0"),
                ("init_connect", "set @a = '#'"),
                ("slow_query_log", "ON"),
                ("log_bin", "ON"),
                ("skip_name_resolve", "ON"),
                ("performance_schema", "OFF"),
                ("sql_mode", ""),
            ],
        );
    }

    #[test]
    fn only_servers_have_files() {
        check(
            "sqlite",
            &["a=1"],
            &[("Synchronous", "full")],
            &[("synchronous", "full")],
        );
    }
}

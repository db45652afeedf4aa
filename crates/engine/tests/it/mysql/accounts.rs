//! Accounts of servers that assay starts, and passwords of replicas.

use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use engine::mysql::Mysql;
use engine::{
    Engine as _, ForReplicas, Network, Port, Replicated as _, Session as _, SetupError,
    SqlEngine as _, StartOptions,
};
use words::{Creation, Secret};

use super::{ServerDir, build, installed, is_mariadb};
use crate::server::TestServer as _;

fn port() -> Port {
    Port::reserve(Ipv4Addr::LOCALHOST.into()).unwrap()
}

/// Asserts that a config is refused for this reason.
#[track_caller]
fn assert_refused(started: Result<Mysql, SetupError>, reason: &str) {
    match started {
        Err(SetupError::Config { what, .. }) => assert!(what.contains(reason), "{what}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the config is accepted"),
    }
}

#[test]
fn an_account_that_the_config_creates_for_other_hosts_is_refused() {
    if installed().is_none() {
        return;
    }
    let place = ServerDir::new();
    let statements = place.path().join("statements.sql");
    let set = [("init_file", statements.to_str().unwrap())];
    let network = Network { port: port(), password: Secret::new("made-for-it"), certificate: None };
    let start = |account: &str| {
        fs_err::write(&statements, format!("create user {account};\n")).unwrap();
        place.with_options(&place.path().join("data"), &build(), &set, |options| {
            Mysql::start(&StartOptions { network: Some(&network), ..options })
        })
    };
    assert_refused(start("guest@'%'"), "`guest@%`");
    start("guest@localhost").unwrap().stop().unwrap();
}

#[test]
fn an_account_that_setup_sql_creates_for_other_hosts_is_refused() {
    if installed().is_none() {
        return;
    }
    let place = ServerDir::new();
    let network = Network { port: port(), password: Secret::new("made-for-it"), certificate: None };
    let start = |account: &str| {
        let setup_sql = vec![format!("create user {account}")];
        let creation = Creation { setup_sql, ..Creation::default() };
        place.with_options(&place.path().join("data"), &build(), &[], |options| {
            let options = StartOptions { network: Some(&network), creation: &creation, ..options };
            Mysql::start(&options)
        })
    };
    assert_refused(start("guest@'%'"), "`guest@%`");
    start("guest@localhost").unwrap().stop().unwrap();
}

#[test]
fn an_option_that_opens_another_port_is_refused() {
    if installed().is_none() {
        return;
    }
    for option in [("extra_port", "33062"), ("loose-admin-address", "127.0.0.1")] {
        assert_refused(ServerDir::new().start(&[option]), "opens another port");
    }
}

#[test]
fn no_client_by_tcp_can_pass_for_a_local_one() {
    if installed().is_none() || !is_mariadb() {
        return;
    }
    let server = ServerDir::new();
    let server = server.start(&[("proxy_protocol_networks", "*")]).unwrap();
    let mut session = server.connect().unwrap();
    let sql = "show global variables where variable_name in \
               ('proxy_protocol_networks', 'skip_name_resolve') and value not in ('', 'ON')";
    assert_eq!(session.query(sql).unwrap(), Vec::<Vec<Option<String>>>::new());
}

#[test]
fn no_log_has_the_password_of_a_replica() {
    if installed().is_none_or(|it| !is_mariadb() && it.version.number < (5, 7, 0)) {
        return;
    }

    let (place, other, port) = (ServerDir::new(), ServerDir::new(), port());
    let replicas = Some(ForReplicas { port: &port, logical: false });
    // Replicas have their own ID.
    let talkative = Mysql::ACCESS.talkative.iter().filter(|(name, _)| *name != "server_id");
    let set: Vec<(&str, &str)> = talkative.copied().collect();
    let data = |place: &ServerDir| place.path().join("data");

    let primary = place.with_options(&data(&place), &build(), &set, |options| {
        Mysql::start(&StartOptions { replicas, ..options })
    });
    let primary = primary.unwrap();
    let replica = other.with_options(&data(&other), &build(), &set, |options| {
        primary.start_replica("replica_1", &options)
    });
    let replica = replica.unwrap();

    let file = other.path().join("data/mysql/data/master.info");
    let password = match fs_err::read_to_string(&file) {
        Ok(text) => text.lines().find(|line| is_password(line)).unwrap().to_owned(),
        Err(_) => {
            let sql = "select user_password from mysql.slave_master_info";
            replica.connect().unwrap().query_column(sql).unwrap().remove(0)
        }
    };
    assert!(is_password(&password));

    for place in [&place, &other] {
        let mut names = Vec::new();
        for directory in [place.path().to_owned(), place.path().join("data/mysql/data")] {
            names.extend(logs_with(&directory, "sql_log_off", &password));
        }
        assert!(names.iter().any(|name| name == "general.log"), "{names:?}");
    }
}

/// Returns true for 32 hexadecimal digits.
fn is_password(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the names of the logs in a directory that contain `statement`. None may contain the
/// password.
fn logs_with(directory: &Path, statement: &str, password: &str) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(directory).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".log") && !name.starts_with("binlog.") && !name.contains("relay") {
            continue;
        }
        assert!(entry.metadata().unwrap().mode() & 0o007 == 0, "others can read {name}");
        let text = fs_err::read(entry.path()).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(password), "{name} has the password");
        if text.contains(statement) {
            names.push(name);
        }
    }
    names
}

//! Logins with each authentication plugin, and TLS.

use engine::ServerEngine;
use engine::mysql::{Address, Host, Mysql, MysqlSession, SslMode};
use engine::{Engine, ErrorClass, Needs, Session, SetupError, SqlEngine};
use words::Secret;

use super::{ServerDir, installed, is_mariadb};
use crate::guard::eventually;
use crate::server::{TestServer as _, on_a_port};
use crate::tables::class_of;

/// Returns the authentication plugins of this server, and the SQL that creates an account for each.
fn accounts(session: &mut MysqlSession) -> Vec<&'static str> {
    let ways: &[(&str, &str)] = if is_mariadb() {
        // Not every build has its file.
        let _ = session.query("install soname 'auth_ed25519'");
        &[
            ("native", "identified via mysql_native_password using password('secret')"),
            ("signed", "identified via ed25519 using password('secret')"),
        ]
    } else if installed().is_some_and(|it| it.version.number < (5, 7, 0)) {
        // Which plugin it is cannot be said together with a password there.
        &[("native", "identified by 'secret'")]
    } else {
        let _ =
            session.query("install plugin mysql_native_password soname 'mysql_native_password.so'");
        &[
            ("native", "identified with mysql_native_password by 'secret'"),
            ("cached", "identified with caching_sha2_password by 'secret'"),
            ("hashed", "identified with sha256_password by 'secret'"),
        ]
    };
    // A server before 8.0 without RSA accepts such a password only over a TLS version that is no
    // longer supported.
    let is_old = installed().is_some_and(|it| it.version.number < (8, 0, 0));
    let has_no_key = is_old && {
        let rows = session.query("show global status like 'Rsa_public_key'");
        rows.unwrap().is_empty()
    };
    let mut made = Vec::new();
    for (name, identified) in ways {
        if *name == "hashed" && has_no_key {
            continue;
        }
        // Skips plugins that the version no longer has.
        for host in ["localhost", "127.0.0.1", "%"] {
            let sql = format!("create user {name}@'{host}' {identified}");
            if session.query(&sql).is_ok() && !made.contains(name) {
                made.push(*name);
            }
            let _ = session.query(&format!("grant all on ib.* to {name}@'{host}'"));
        }
    }
    made
}

#[test]
fn every_way_to_log_in_works_and_refuses_a_wrong_password() {
    if installed().is_none() {
        return;
    }
    let place = ServerDir::new();
    let mysql = place.start(&[]).unwrap();
    let mut root = mysql.connect().unwrap();
    let accounts = accounts(&mut root);
    let mut has_plugin = |name: &str| {
        let rows = root.query(&format!(
            "select 1 from information_schema.plugins where plugin_name = '{name}'"
        ));
        !rows.unwrap().is_empty()
    };
    assert!(!accounts.is_empty());
    assert_eq!(accounts.contains(&"signed"), has_plugin("ed25519"));
    for name in accounts {
        let with = |password: Option<&str>| Address {
            user: name.into(),
            password: password.map(Secret::new),
            ..mysql.address().clone()
        };
        // Twice, because at the first login, the server may not have cached the hash.
        for _ in 0..2 {
            let mut session = MysqlSession::connect(&with(Some("secret"))).unwrap();
            assert_eq!(session.query_i64("select 1").unwrap(), Some(1), "{name}");
        }
        for wrong in [Some("wrong"), None] {
            let error = MysqlSession::connect(&with(wrong)).err().unwrap();
            assert_eq!(error.class, ErrorClass::Refused, "{name}: {error}");
        }
    }
    let nowhere = Address { database: "nowhere".into(), ..mysql.address().clone() };
    let error = MysqlSession::connect(&nowhere).err().unwrap();
    assert_eq!((error.class, error.code.as_deref()), (ErrorClass::Refused, Some("1049")));
}

#[test]
fn what_keeps_a_run_from_a_server_is_found() {
    if installed().is_none() {
        return;
    }
    let place = ServerDir::new();
    let mysql = place.start(&[]).unwrap();
    let mut root = mysql.connect().unwrap();
    let mut run_all = |statements: &[&str]| {
        for sql in statements {
            root.query(sql).unwrap();
        }
    };
    let Host::Unix(socket) = &mysql.address().host else {
        panic!("{}", mysql.address());
    };
    let found = |user: &str, connections: u32, makes_tables: bool| {
        let others = "select count(*) from information_schema.processlist where user = 'weak'";
        let url = format!("mysql://{user}@localhost/ib?socket={}", socket.display());
        let attached = Mysql::attach(&url).unwrap();
        // The server takes a moment to forget those that looked at it.
        eventually("its sessions have ended", || {
            mysql.connect().unwrap().query_i64(others).unwrap() == Some(0)
        });
        let needs = Needs { connections, makes_tables };
        let obstacles = attached.obstacles(needs).unwrap();
        let told = obstacles.into_iter().map(|it| format!("{} ({})", it.what, it.help));
        told.collect::<Vec<_>>()
    };
    let one = |mut told: Vec<String>, words: &[&str]| {
        assert_eq!(told.len(), 1, "{told:?}");
        let told = told.remove(0);
        for word in words {
            assert!(told.contains(word), "no `{word}` in {told}");
        }
    };

    assert_eq!(found("root", 5, true), Vec::<String>::new());
    run_all(&[
        "create user weak@localhost",
        "grant select, insert, delete, drop on ib.* to weak@localhost",
    ]);
    one(
        found("weak", 5, true),
        &["lacks privileges in database `ib`: CREATE, INDEX (run `grant create, index on ib.*"],
    );
    assert_eq!(found("weak", 5, false), Vec::<String>::new());

    run_all(&["grant all on ib.* to weak@localhost", "set global read_only = on"]);
    one(found("weak", 5, true), &["the server is read-only: `read_only` is on"]);
    // A user with all privileges may write anyway.
    assert_eq!(found("root", 5, true), Vec::<String>::new());
    run_all(&["set global read_only = off"]);

    one(
        found("weak", 5_000, true),
        &["the run needs 5000 connections, but the server accepts only 1", "max_connections"],
    );
    let limited = if is_mariadb() || installed().is_some_and(|it| it.version.number < (5, 7, 0)) {
        "grant usage on *.* to weak@localhost with max_user_connections 3"
    } else {
        "alter user weak@localhost with max_user_connections 3"
    };
    run_all(&[limited]);
    one(found("weak", 5, true), &["the user may open only 3 more", "max_user_connections"]);
    assert_eq!(found("weak", 3, true), Vec::<String>::new());

    let timeout = if is_mariadb() {
        "set global max_statement_time = 7"
    } else if installed().is_some_and(|it| it.version.number < (5, 7, 0)) {
        return;
    } else {
        "set global max_execution_time = 7000"
    };
    run_all(&[timeout]);
    one(found("weak", 3, false), &["the server cancels long statements: `max_", " = 7"]);
}

#[test]
fn a_server_that_runs_already_is_used_and_left_running() {
    if installed().is_none() {
        return;
    }
    let place = ServerDir::new();
    let mysql = place.start(&[]).unwrap();
    let Host::Unix(socket) = &mysql.address().host else {
        panic!("{}", mysql.address());
    };
    let url = format!("mysql://root@localhost/ib?socket={}", socket.display());
    let attached = Mysql::attach(&url).unwrap();
    assert_eq!(attached.version(), mysql.version());
    assert_eq!(attached.process_id(), mysql.process_id());
    assert_eq!(attached.storage(), mysql.storage());
    attached.stop().unwrap();
    assert_eq!(mysql.connect().unwrap().query_i64("select 1").unwrap(), Some(1));
    let url = format!("mysql://root@localhost/other?socket={}", socket.display());
    let error = Mysql::attach(&url).err().unwrap();
    assert!(
        matches!(&error, SetupError::Server { help: Some(help), .. } if help.contains("create database other")),
        "{error}"
    );
}

#[test]
fn connections_beyond_the_servers_limit_are_refused() {
    if installed().is_none() {
        return;
    }
    let place = ServerDir::new();
    let mysql = place.start(&[]).unwrap();
    let mut root = mysql.connect().unwrap();
    root.query("set global max_connections = 10").unwrap();
    root.query("create user guest@localhost").unwrap();
    root.query("grant select on ib.* to guest@localhost").unwrap();
    let guest = Address { user: "guest".into(), ..mysql.address().clone() };
    let mut sessions = Vec::new();
    let refused = loop {
        match MysqlSession::connect(&guest) {
            Ok(session) => sessions.push(session),
            Err(error) => break error,
        }
        assert!(sessions.len() < 20);
    };
    assert_eq!(refused.class, ErrorClass::Refused);
    assert_eq!(refused.code.as_deref(), Some("1040"));
}

/// By TCP, which assay's own servers don't have: a second server that is the test's.
#[test]
fn passwords_go_by_tcp_in_clear_to_no_one() {
    let Some(tcp) = Tcp::start() else { return };
    let mut root = tcp.mysql.connect().unwrap();
    for name in accounts(&mut root) {
        for mode in [SslMode::Disable, SslMode::Prefer, SslMode::Require] {
            // So that the password itself has to be sent again.
            let _ = root.query("flush privileges");
            let address = Address {
                user: name.into(),
                password: Some(Secret::new("secret")),
                ssl_mode: mode,
                ..tcp.address()
            };

            let has_tls = tcp.has_tls(&mut root);
            match MysqlSession::connect(&address) {
                Ok(mut session) => {
                    assert_eq!(
                        Mysql::is_encrypted(&mut session),
                        has_tls && mode != SslMode::Disable,
                        "{name} {mode:?}"
                    );
                }
                Err(error) => {
                    assert!(mode == SslMode::Require && !has_tls, "{name} {mode:?}: {error}");
                    assert_eq!(error.class, ErrorClass::Refused);
                }
            }

            let wrong = Address { password: Some(Secret::new("wrong")), ..address };
            assert_eq!(
                class_of(MysqlSession::connect(&wrong)),
                ErrorClass::Refused,
                "{name} {mode:?}"
            );
        }

        if tcp.has_tls(&mut root) {
            let verified = Address {
                user: name.into(),
                password: Some(Secret::new("secret")),
                ssl_mode: SslMode::VerifyCa,
                ..tcp.address()
            };
            let error = MysqlSession::connect(&verified).err().unwrap();
            assert!(error.message.contains("TLS"), "{error}");
        }
    }
}

/// A server like assay's, started again by its own option file with a port of its own.
struct Tcp {
    mysql: Mysql,
    port: u16,
    _guarded: engine::guard::Guarded,
    _place: ServerDir,
}

impl Tcp {
    fn start() -> Option<Self> {
        let installation = installed()?;
        let place = ServerDir::new();
        let first = place.start(&[]).unwrap();
        let directory = first.data_dir().unwrap().path().to_path_buf();
        let text = first.config_text().unwrap().to_string();
        first.stop().unwrap();
        let socket = directory.join("s");
        let text: String = text
            .lines()
            .filter(|line| !["skip_networking", "ssl=OFF"].contains(line))
            .filter(|line| !line.starts_with("socket="))
            .map(|line| format!("{line}\n"))
            .collect();
        let file = directory.join("tcp.cnf");
        let owner = fs_err::metadata(&directory).unwrap();
        let args = |port| {
            let own = format!("port={port}\nbind_address=127.0.0.1\nsocket={}\n", socket.display());
            fs_err::write(&file, format!("{text}{own}")).unwrap();
            vec![format!("--defaults-file={}", file.display()).into()]
        };
        let url = format!("mysql://root@localhost/ib?socket={}", socket.display());
        let answer = |_| Mysql::attach(&url).ok();
        let program = &installation.program;
        let (guarded, port, mysql) = on_a_port(&place.log(), program, &owner, args, answer);
        Some(Self { mysql, port, _guarded: guarded, _place: place })
    }

    fn address(&self) -> Address {
        Address {
            host: Host::Tcp("127.0.0.1".into()),
            port: self.port,
            ..self.mysql.address().clone()
        }
    }

    fn has_tls(&self, root: &mut MysqlSession) -> bool {
        let rows = root.query("show global variables like 'have_ssl'").unwrap();
        let required = Address { ssl_mode: SslMode::Require, ..self.address() };
        let disagrees = |error: engine::Error| error.message.contains("the TLS handshake");
        if Mysql::has_old_tls() && MysqlSession::connect(&required).is_err_and(disagrees) {
            return false;
        }
        match rows.first() {
            Some(row) => row[1].as_deref() == Some("YES"),
            // MySQL from 8.4 on always has it.
            None => true,
        }
    }
}

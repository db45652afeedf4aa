//! Logins over TCP and TLS, and connections to a server that assay did not start.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::ServerEngine;
use engine::guard::{Ending, Guarded};
use engine::postgres::{Postgres, locate};
use engine::{Engine, ErrorClass, Session, SettleLimits, SetupError, SqlEngine};

use super::{ServerDir, build, is_installed, major};
use crate::guard::eventually;
use crate::server::{GO_ON, on_a_port};
use crate::tables::{fill, table};

/// Roles with different methods of login. All have the password `right`.
const RULES: &str = "\
local all all trust
hostssl all only_tls 127.0.0.1/32 scram-sha-256
hostnossl all only_plain 127.0.0.1/32 scram-sha-256
host all clear 127.0.0.1/32 password
host all old 127.0.0.1/32 md5
host all me 127.0.0.1/32 scram-sha-256
";

/// A server that listens on TCP with TLS, as others would run it.
struct Foreign {
    guarded: Guarded,
    port: u16,
    root: PathBuf,
    other_root: PathBuf,
    cluster: PathBuf,
    _place: ServerDir,
}

impl Foreign {
    fn start(certificate_for: &str) -> Self {
        let place = ServerDir::new();
        // Assay makes the cluster; then it is run by other rules.
        let postgres = place.start(&[]).unwrap();
        let mut session = postgres.connect().unwrap();
        // Before 14 the default was md5.
        session.query("set password_encryption = 'scram-sha-256'").unwrap();
        for role in ["me", "only_tls", "only_plain", "clear"] {
            session.query(&format!("create role {role} superuser login password 'right'")).unwrap();
        }
        session.query("create role no_rule login password 'right'").unwrap();
        session
            .query("set password_encryption = md5; create role old login password 'right'")
            .unwrap();
        drop(session);

        let cluster = postgres.storage().data[0].clone();
        let bin_dir = locate(&build()).unwrap().bin_dir;
        let owner = fs_err::metadata(&cluster).unwrap();
        postgres.stop().unwrap();

        let (root, certificate, key) = certified(certificate_for);
        let (other_root, _, _) = certified(certificate_for);
        let write = |name: &str, text: &str, mode: u32| {
            use std::os::unix::fs::PermissionsExt;
            let path = cluster.join(name);
            fs_err::write(&path, text).unwrap();
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
            path
        };
        write("pg_hba.conf", RULES, 0o600);
        write("server.crt", &certificate, 0o600);
        write("server.key", &key, 0o600);
        let root = write("root.pem", &root, 0o644);
        let other_root = write("other.pem", &other_root, 0o644);

        let args = |port| {
            let option = |text: String| ["-c".into(), text.into()];
            let mut args = vec!["-D".into(), cluster.clone().into_os_string()];
            args.extend(option("listen_addresses=127.0.0.1".into()));
            args.extend(option(format!("port={port}")));
            args.extend(option("unix_socket_directories=".into()));
            args.extend(option("ssl=on".into()));
            args
        };

        let answer = |port| Postgres::attach(&url(port, "me:right", "")).ok();
        let program = bin_dir.join("postgres");
        let (guarded, port, _) = on_a_port(&place.log(), &program, &owner, args, answer);
        Self { guarded, port, root, other_root, cluster, _place: place }
    }

    fn url(&self, login: &str, parameters: &str) -> String {
        url(self.port, login, parameters)
    }

    /// Returns whether this connection is encrypted, once the server has accepted it.
    fn is_encrypted(&self, login: &str, parameters: &str) -> Result<bool, SetupError> {
        let postgres = Postgres::attach(&self.url(login, parameters))?;
        let mut session = postgres.connect().unwrap();
        let sql = "select ssl::int from pg_stat_ssl where pid = pg_backend_pid()";
        let statement = session.prepare(sql, &[]).unwrap();
        session.start(statement);
        let value = session.execute().unwrap().value;
        assert_eq!(session.query_i64(sql).unwrap(), value);
        Ok(value == Some(1))
    }
}

fn url(port: u16, login: &str, parameters: &str) -> String {
    format!("postgresql://{login}@127.0.0.1:{port}/ib?{parameters}")
}

/// An authority's certificate, a server's that it signed, and the server's key.
fn certified(name: &str) -> (String, String, String) {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec![name.to_string()])
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    (authority.pem(), server.pem(), key.serialize_pem())
}

fn refusal(result: Result<bool, SetupError>) -> engine::Error {
    match result {
        Err(SetupError::Server { source, .. }) => source,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was let in"),
    }
}

#[test]
fn passwords_are_checked_by_every_method() {
    if !is_installed() {
        return;
    }
    let server = Foreign::start("127.0.0.1");
    for role in ["me", "old", "only_plain"] {
        assert!(
            !server.is_encrypted(&format!("{role}:right"), "sslmode=disable").unwrap(),
            "{role}"
        );
        let wrong = refusal(server.is_encrypted(&format!("{role}:wr0ng"), "sslmode=disable"));
        assert_eq!(
            (wrong.class, wrong.code.as_deref()),
            (ErrorClass::Refused, Some("28P01")),
            "{role}: {wrong}"
        );
        assert!(!format!("{wrong} {wrong:?}").contains("wr0ng"));
    }
    let none = refusal(server.is_encrypted("me", "sslmode=disable"));
    assert!(none.class == ErrorClass::Refused && none.message.contains("password"), "{none}");
    // A password in clear text is sent only over TLS.
    assert!(server.is_encrypted("clear:right", "sslmode=require").unwrap());
    let clear = refusal(server.is_encrypted("clear:right", "sslmode=disable"));
    assert!(clear.message.contains("in clear"), "{clear}");
    let database = Postgres::attach(&server.url("me:right", "dbname=nowhere")).err().unwrap();
    assert!(database.help().unwrap().contains("createdb nowhere"), "{database}");
    let no_rule = Postgres::attach(&server.url("no_rule:right", "")).err().unwrap();
    assert!(no_rule.help().unwrap().contains("pg_hba.conf"), "{no_rule}");
}

#[test]
fn ssl_modes_mean_what_the_servers_own_clients_mean() {
    if !is_installed() {
        return;
    }
    let server = Foreign::start("127.0.0.1");
    let (root, other) = (server.root.display(), server.other_root.display());
    for (login, parameters, is_encrypted) in [
        ("me:right", "sslmode=prefer".to_string(), true),
        ("me:right", "sslmode=allow".to_string(), false),
        ("only_tls:right", "sslmode=allow".to_string(), true),
        ("only_plain:right", "sslmode=prefer".to_string(), false),
        ("me:right", "sslmode=require".to_string(), true),
        ("me:right", format!("sslmode=require&sslrootcert={root}"), true),
        ("me:right", format!("sslmode=verify-ca&sslrootcert={root}"), true),
        ("me:right", format!("sslmode=verify-full&sslrootcert={root}"), true),
    ] {
        let result = server.is_encrypted(login, &parameters);
        assert_eq!(result.unwrap(), is_encrypted, "{login} {parameters}");
    }
    for parameters in [
        format!("sslmode=require&sslrootcert={other}"),
        format!("sslmode=verify-ca&sslrootcert={other}"),
        format!("sslmode=verify-full&sslrootcert={other}"),
        "sslmode=verify-ca&sslrootcert=/nowhere.pem".to_string(),
    ] {
        let refused = refusal(server.is_encrypted("me:right", &parameters));
        assert_eq!(refused.class, ErrorClass::Refused, "{parameters}: {refused}");
    }
    let plain = refusal(server.is_encrypted("only_tls:right", "sslmode=disable"));
    assert_eq!(plain.code.as_deref(), Some("28000"), "{plain}");
}

#[test]
fn only_verify_full_requires_the_right_name() {
    if !is_installed() {
        return;
    }
    let server = Foreign::start("db.example");
    let root = server.root.display();
    assert!(
        server.is_encrypted("me:right", &format!("sslmode=verify-ca&sslrootcert={root}")).unwrap()
    );
    let refused = refusal(
        server.is_encrypted("me:right", &format!("sslmode=verify-full&sslrootcert={root}")),
    );
    let words = "the server's certificate is not valid for `127.0.0.1`, but for `db.example`";
    assert!(refused.message.contains(words), "{refused}");
}

#[test]
fn a_role_without_privileges_gets_the_figures_that_it_may_see() {
    if !is_installed() {
        return;
    }
    let place = ServerDir::new();
    let postgres = place.start(&[("autovacuum", "on"), ("autovacuum_naptime", "1s")]).unwrap();
    let mut session = postgres.connect().unwrap();
    session.query("create role plain login; grant all on schema public to plain").unwrap();

    let engine::postgres::Host::Unix(socket) = &postgres.address().host else {
        panic!("it listens elsewhere");
    };
    let url = format!("postgresql://plain@/ib?host={}", socket.display());
    let plain = Postgres::attach(&url).unwrap();

    let mine = table("mine1", None);
    let mut writer = fill(&plain, &mine, 10);
    let names = |postgres: &Postgres| -> Vec<String> {
        let mut observer = postgres.observer(std::slice::from_ref(&mine)).unwrap();
        let counters = observer.counters().unwrap();
        assert!(!observer.sample().unwrap().is_empty());
        counters.into_iter().map(|counter| counter.name).collect()
    };

    assert_eq!(names(&plain), names(&postgres), "counters are for all");
    assert_eq!(plain.inspect(&mine, true).unwrap().rows, 10);
    let settings = plain.settings().unwrap();
    assert!(settings.iter().any(|it| it.name == "shared_buffers" && it.value == "16MB"));

    // A vacuum of autovacuum's that takes long, to be seen by both; of this table alone, so that
    // its workers are not at others.
    let sql = "alter table mine1 set (autovacuum_vacuum_threshold = 10, autovacuum_vacuum_scale_factor = 0, \
               autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1); \
               insert into mine1 (dateandtime, price, data) \
               select now(), g, repeat('x', 1000) from generate_series(1, 5000) g; \
               delete from mine1 where transactionid % 2 = 0";
    writer.query(sql).unwrap();
    drop(writer);

    let limits = SettleLimits { at_least: Duration::ZERO, at_most: Duration::from_secs(300) };
    let workers = |postgres: &Postgres| {
        let stop = AtomicBool::new(true);
        let settled = postgres.settle(std::slice::from_ref(&mine), limits, &stop).unwrap();
        let counter = |it: &&engine::Counter| it.name == "autovacuum_worker_count";
        settled.pending_before.iter().find(counter).unwrap().value
    };

    eventually("autovacuum works on it", || workers(&postgres) == 1.0);
    assert_eq!(workers(&plain), 1.0);
    let settled = plain.settle(std::slice::from_ref(&mine), limits, &GO_ON).unwrap();
    let done: Vec<&str> = settled.actions.iter().map(|it| it.what.as_str()).collect();
    assert!(done.iter().any(|it| it.starts_with("VACUUM") && it.ends_with("mine1")), "{done:?}");
    assert!(done.contains(&"CHECKPOINT: not allowed"), "{done:?}");

    plain.stop().unwrap();
    postgres.stop().unwrap();
}

#[test]
fn an_attached_server_is_measured_as_far_as_it_can_be_reached_and_left_running() {
    if !is_installed() {
        return;
    }
    let mut server = Foreign::start("127.0.0.1");
    let postgres = Postgres::attach(&server.url("me:right", "")).unwrap();
    assert_eq!(postgres.process_id(), Some(server.guarded.pid()));
    assert_eq!(postgres.storage().data, [server.cluster.clone()]);
    assert!(postgres.version().starts_with(&major().to_string()));
    assert!(postgres.log_path().is_none() && postgres.config_text().is_none());
    // A user without the privilege sees less, without an error.
    let stranger = Postgres::attach(&server.url("old:right", "sslmode=disable")).unwrap();
    assert_eq!((stranger.process_id(), stranger.storage().data.len()), (None, 0));
    // An interrupt reaches a server behind TLS too.
    let mut session = postgres.connect().unwrap();
    let interrupt = session.interrupt().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| session.query("select pg_sleep(1000)"));
        let mut other = postgres.connect().unwrap();
        let mut sleepers = || {
            other
                .query_i64("select count(*) from pg_stat_activity where wait_event = 'PgSleep'")
                .unwrap()
        };
        eventually("it sleeps", || sleepers() == Some(1));
        interrupt();
        assert_eq!(waiting.join().unwrap().unwrap_err().class, ErrorClass::Interrupted);
        eventually("the query is canceled", || sleepers() == Some(0));
    });
    postgres.stop().unwrap();
    assert!(server.guarded.is_alive());
    let (ending, ended) =
        server.guarded.stop(&[(Ending::Interrupt, Duration::from_secs(60))]).unwrap();
    assert_eq!((ending, ended.code()), (Ending::Interrupt, Some(0)));
}

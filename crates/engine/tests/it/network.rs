//! Servers whose clients connect by TCP, in plain or with TLS.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use engine::{Certificate, ErrorClass, Network, Port, Session, SetupError};
use words::Secret;

use crate::server::{ServerDir, TestServer, on_each_server};

on_each_server!(
    a_server_with_a_certificate_encrypts_what_its_clients_say,
    a_server_that_listens_wants_the_password,
);

fn network(certificate: Option<Certificate>) -> Network {
    Network {
        port: Port::reserve(Ipv4Addr::LOCALHOST.into()).unwrap(),
        password: Secret::new("made-for-it"),
        certificate,
    }
}

/// Starts a server; `None` if it has no TLS that is new enough, which must be what it says.
fn start<S: TestServer>(place: &ServerDir<S>, network: &Network) -> Option<S> {
    match place.start_on(network) {
        Err(SetupError::Server { source, help, .. }) if S::has_old_tls() => {
            assert!(source.message.contains("TLS"), "{source}");
            assert!(help.is_some_and(|help| help.contains("`tls`")));
            None
        }
        started => Some(started.unwrap()),
    }
}

fn refused<S: TestServer>(url: &str) -> engine::Error {
    match S::attach(url) {
        Err(SetupError::Server { source, .. }) => {
            assert_eq!(source.class, ErrorClass::Refused, "{source}");
            source
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was let in"),
    }
}

/// Returns the settings of the connection to a server.
fn transport(server: &impl TestServer) -> [String; 2] {
    let settings = server.settings().unwrap();
    ["transport", "tls"].map(|name| {
        let setting = settings.iter().find(|it| it.name == name).unwrap();
        setting.value.clone()
    })
}

/// Returns the private directory of a server.
fn private_directory<S: TestServer>(server: &S) -> PathBuf {
    let note = server.data_dir().unwrap().path().join("socket-directory");
    fs_err::read_to_string(note).unwrap().into()
}

fn a_server_with_a_certificate_encrypts_what_its_clients_say<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let network = network(Some(Certificate::make(Ipv4Addr::LOCALHOST.into()).unwrap()));
    let Some(server) = start(&place, &network) else {
        return;
    };

    assert!(S::is_encrypted(&mut server.connect().unwrap()));
    // A load rank has only the URL.
    let attached = S::attach(&server.url()).unwrap();
    assert!(S::is_encrypted(&mut attached.connect().unwrap()));
    for engine in [&server, &attached] {
        assert_eq!(transport(engine), ["tcp", "on"]);
    }

    let (address, parameters) =
        server.url().split_once('?').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let (mode, _) = parameters.split_once('&').unwrap();
    let error = refused::<S>(&format!("{address}?{mode}"));
    assert!(error.message.contains("certificate"), "{error}");

    let (name, _) = mode.split_once('=').unwrap();
    let disabled = if name == "sslmode" { "disable" } else { "disabled" };
    let plain = format!("{address}?{name}={disabled}");
    if server.refuses_plain() {
        refused::<S>(&plain);
    }

    let wrong = server.url().replace("made-for-it", "made-up");
    refused::<S>(&wrong);

    let directory = private_directory(&server);
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory.join("server.key")), 0o600);

    drop(attached);
    server.stop().unwrap();
    assert!(!directory.exists(), "the key is removed");
}

fn a_server_that_listens_wants_the_password<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let server = place.start_on(&network(None)).unwrap();
    let mut session = server.connect().unwrap();
    assert!(!S::is_encrypted(&mut session));
    assert_eq!(session.query_i64("select 6 * 7").unwrap(), Some(42));
    drop(session);
    let url = server.url();
    S::attach(&url).unwrap();
    assert_eq!(transport(&server), ["tcp", "off"]);
    refused::<S>(&url.replace("made-for-it", "made-up"));
    refused::<S>(&url.replace(":made-for-it", ""));
    server.stop().unwrap();
}

//! PostgreSQL, with a real server: the distribution's, or the build that `ASSAY_TEST_POSTGRES` names (a directory, or
//! whatever else `locate` understands). These tests hold on every version from 12 on:
//!
//! ```sh
//! for build in /opt/postgresql-*; do ASSAY_TEST_POSTGRES=$build cargo test -p engine postgres; done
//! ```

mod conformance;
mod life;
mod login;
mod upkeep;

use std::sync::{Arc, Mutex, Weak};

use engine::Session;
use engine::SetupError;
use engine::StartOptions;
use engine::postgres::{Postgres, PostgresSession, locate};

use crate::guard::{eventually, is_running};
use crate::place::{Startable, is_there};

/// Names the build that is tested.
const VARIABLE: &str = "ASSAY_TEST_POSTGRES";

/// The build that is tested.
pub(crate) fn build() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| "distribution".into())
}

/// The major version of the build that is tested.
pub(crate) fn major() -> u32 {
    locate(&build()).unwrap().version.major
}

/// Whether PostgreSQL is here; says so aloud when it is not.
pub(crate) fn is_installed() -> bool {
    is_there(locate(&build()), VARIABLE, "postgres").is_some()
}

/// Where a test's server keeps its files.
pub(crate) type Place = crate::place::Place<Postgres>;

impl Startable for Postgres {
    const CONFIG: &str = "fsync = off\nautovacuum = off\nshared_buffers = 16MB\n";

    fn build() -> String {
        build()
    }

    fn start(options: &StartOptions<'_>) -> Result<Self, SetupError> {
        Postgres::start(options)
    }

    fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError> {
        Postgres::try_config(options)
    }
}

/// Ends a session, and waits until its backend has gone: what that held back of its statistics is handed on then.
pub(crate) fn end(mut session: PostgresSession) {
    let pid = session.query_i64("select pg_backend_pid()").unwrap();
    let pid = u32::try_from(pid.unwrap()).unwrap();
    drop(session);
    eventually("the backend has gone", || !is_running(pid));
}

/// A server that tests share while one of them is running.
pub(crate) struct Shared {
    pub(crate) postgres: Postgres,
    _place: Place,
}

/// The shared server; `None` when PostgreSQL is not here.
pub(crate) fn shared() -> Option<Arc<Shared>> {
    static SHARED: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
    if !is_installed() {
        return None;
    }
    let mut known = SHARED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    Some(known.upgrade().unwrap_or_else(|| {
        let place = Place::new();
        let shared = Arc::new(Shared {
            postgres: place.start(&[]).unwrap(),
            _place: place,
        });
        *known = Arc::downgrade(&shared);
        shared
    }))
}

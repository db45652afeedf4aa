//! Sessions that outlive a lost connection.

use std::marker::PhantomData;

use engine::{ErrorClass, Replicated, ServerEngine};

/// A session that is opened again if it was lost.
pub struct Link<E: ServerEngine> {
    url: String,
    pub session: Option<E::Session>,
    engine: PhantomData<E>,
}

impl<E: Replicated> Link<E> {
    /// Returns a session that will be opened when it is needed.
    pub fn to(url: &str) -> Self {
        Self { url: url.to_owned(), session: None, engine: PhantomData }
    }

    /// Opens a session.
    pub fn open(engine: &E) -> Result<Self, engine::Error> {
        Ok(Self { session: Some(engine.connect_watcher()?), ..Self::to(&engine.url()) })
    }

    /// Does something on the session.
    pub fn ask<T>(
        &mut self,
        act: impl FnOnce(&mut E::Session) -> Result<T, engine::Error>,
    ) -> Result<T, engine::Error> {
        let failed = |error: engine::SetupError| {
            engine::Error::new(ErrorClass::ConnectionLost, error.to_string())
        };
        let mut session = match self.session.take() {
            Some(session) => session,
            None => E::attach(&self.url).map_err(failed)?.connect_watcher()?,
        };

        // The next question connects again if this one broke the session.
        let result = act(&mut session);
        let has_ended = matches!(&result, Err(error) if error.class.ends_session());
        self.session = (!has_ended).then_some(session);

        result
    }
}

//! A connection's stream with its read buffer.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::contract::Interrupt;
use crate::error::{Error, ErrorClass};
use crate::net::failure;
use crate::net::stream::Stream;

/// The initial size of the read buffer. Most replies are much smaller.
const BUFFER_BYTES: usize = 32 * 1024;

/// A stream with a reused read buffer, which grows when a message does not fit.
pub(crate) struct Wire {
    pub(crate) stream: Stream,
    /// The bytes read; those in `start..end` are not yet taken.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// Set by an interrupt before it shuts the socket down.
    is_interrupted: Arc<AtomicBool>,
}

impl Wire {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            input: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            is_interrupted: Arc::default(),
        }
    }

    /// Returns the bytes that were read and not yet taken.
    #[inline]
    pub(crate) fn unread(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    /// Takes a header and a body with these lengths. Returns the body's range in
    /// [`bytes`](Self::bytes), or `None` if they are not complete yet.
    #[inline]
    pub(crate) fn take(&mut self, header: usize, body: usize) -> Option<Range<usize>> {
        let body = self.start + header..self.start + header + body;
        if body.end > self.end {
            return None;
        }
        self.start = body.end;
        Some(body)
    }

    /// Returns bytes that were taken, which are valid until the next call of [`fill`](Self::fill).
    #[inline]
    pub(crate) fn bytes(&self, body: Range<usize>) -> &[u8] {
        &self.input[body]
    }

    /// Reads once from the stream.
    pub(crate) fn fill(&mut self) -> Result<(), Error> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.input.len() {
            if self.start > 0 {
                self.input.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                // One message fills the buffer. Its real size decides, not the size that it claims.
                self.input.resize(self.input.len() * 2, 0);
            }
        }

        loop {
            match self.stream.read(&mut self.input[self.end..]) {
                Ok(0) => return Err(self.lost(failure::closed())),
                Ok(length) => {
                    self.end += length;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(self.lost(failure::from_io("read from the server", &error)));
                }
            }
        }
    }

    /// Reads until at least `bytes` bytes are [`unread`](Self::unread).
    pub(crate) fn fill_to(&mut self, bytes: usize) -> Result<(), Error> {
        while self.end - self.start < bytes {
            self.fill()?;
        }
        Ok(())
    }

    /// Removes a range from the [`unread`](Self::unread) bytes.
    pub(crate) fn cut(&mut self, range: Range<usize>) {
        let destination = self.start + range.start;
        let source = self.start + range.end..self.end;
        self.input.copy_within(source, destination);
        self.end -= range.len();
    }

    /// Sets the class of an error that ends the connection.
    #[cold]
    pub(crate) fn lost(&self, mut error: Error) -> Error {
        error.class = if self.is_interrupted.load(Ordering::Relaxed) {
            ErrorClass::Interrupted
        } else {
            ErrorClass::ConnectionLost
        };
        error
    }

    /// Ends the connection after a protocol violation, and returns the error.
    #[cold]
    pub(crate) fn broken(&self, what: impl Into<String>) -> Error {
        if let Ok(socket) = self.stream.socket() {
            socket.shut_down();
        }
        failure::protocol(what)
    }

    /// Returns a handle that interrupts the connection from another thread. A server notices a
    /// closed connection only at its next write, so `tell` also cancels its statement, as far
    /// as possible.
    pub(crate) fn interrupt(
        &self,
        tell: impl Fn() + Send + Sync + 'static,
    ) -> Result<Interrupt, Error> {
        let socket = self
            .stream
            .socket()
            .map_err(|error| failure::from_io("duplicate the socket", &error))?;

        let is_interrupted = Arc::clone(&self.is_interrupted);

        Ok(Box::new(move || {
            is_interrupted.store(true, Ordering::Relaxed);
            socket.shut_down();
            tell();
        }))
    }

    /// Sends the last message, so that the server does not log a lost connection.
    pub(crate) fn end(&mut self, goodbye: &[u8]) {
        let _ = self.stream.limit(Some(Duration::from_millis(100)));
        let _ = self.stream.write_all(goodbye);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn wire() -> (Wire, UnixStream) {
        let (ours, peer) = UnixStream::pair().unwrap();
        (Wire::new(Stream::Unix(ours, None)), peer)
    }

    /// Reads a message whose header is the length of its body.
    fn message(wire: &mut Wire) -> Result<&[u8], Error> {
        loop {
            if let [length, ..] = *wire.unread()
                && let Some(body) = wire.take(1, length.into())
            {
                return Ok(wire.bytes(body));
            }
            wire.fill()?;
        }
    }

    #[test]
    fn messages_are_complete_however_they_arrive() {
        let (mut wire, mut peer) = wire();
        peer.write_all(b"\x03one\0\x05th").unwrap();
        assert_eq!(message(&mut wire).unwrap(), b"one");
        assert_eq!(message(&mut wire).unwrap(), b"");
        assert_eq!(wire.unread(), b"\x05th");
        peer.write_all(b"ree\x01").unwrap();
        assert_eq!(message(&mut wire).unwrap(), b"three");
        drop(peer);
        let error = message(&mut wire).unwrap_err();
        assert_eq!(error.class, ErrorClass::ConnectionLost);
    }

    #[test]
    fn the_buffer_is_reused_and_grows_only_for_a_message_that_does_not_fit() {
        let (mut wire, mut peer) = wire();
        for round in 0..2 * BUFFER_BYTES / 200 {
            let text = [round as u8; 200];
            peer.write_all(&[200]).unwrap();
            peer.write_all(&text).unwrap();
            // Half of the next message, so that the buffer is never empty.
            peer.write_all(b"\x01").unwrap();
            assert_eq!(message(&mut wire).unwrap(), text);
            peer.write_all(b"x").unwrap();
            assert_eq!(message(&mut wire).unwrap(), b"x");
        }
        assert_eq!(wire.input.len(), BUFFER_BYTES);
        let large = vec![7; 5 * BUFFER_BYTES];
        std::thread::scope(|scope| {
            scope.spawn(|| peer.write_all(&large).unwrap());
            wire.fill_to(large.len()).unwrap();
        });
        let body = wire.take(0, large.len()).unwrap();
        assert_eq!(wire.bytes(body), large);
        assert_eq!(wire.input.len(), 8 * BUFFER_BYTES);
    }

    #[test]
    fn a_removed_range_is_gone() {
        let (mut wire, mut peer) = wire();
        peer.write_all(b"\0\x04lo--st\x02ok").unwrap();
        assert_eq!(message(&mut wire).unwrap(), b"");
        wire.cut(3..5);
        assert_eq!(message(&mut wire).unwrap(), b"lost");
        assert_eq!(message(&mut wire).unwrap(), b"ok");
    }

    #[test]
    fn the_error_after_an_interrupt_has_its_class() {
        let (mut wire, _peer) = wire();
        let told = Arc::new(AtomicU32::new(0));
        let interrupt = wire
            .interrupt({
                let told = Arc::clone(&told);
                move || {
                    told.fetch_add(1, Ordering::Relaxed);
                }
            })
            .unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wire.fill().unwrap_err().class);
            interrupt();
            assert_eq!(waiting.join().unwrap(), ErrorClass::Interrupted);
        });
        assert_eq!(told.load(Ordering::Relaxed), 1);
    }
}

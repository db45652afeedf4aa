//! A connection's stream, and what was read from it and not yet looked at.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::failure;
use super::stream::Stream;
use crate::{Error, ErrorClass, Interrupt};

/// The read buffer's size at first: most replies are far smaller.
const BUFFER_BYTES: usize = 32 * 1024;

/// Messages come out of a reused buffer, which grows when one does not fit.
pub(crate) struct Wire {
    pub(crate) stream: Stream,
    /// Bytes read; those in `start..end` are still to be looked at.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// Set by an interrupt, before it shuts the socket down.
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

    /// What was read and not yet taken.
    #[inline]
    pub(crate) fn unread(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    /// Takes a header and a body of so many bytes, once all has come: where in [`bytes`](Self::bytes) the body is.
    #[inline]
    pub(crate) fn take(&mut self, header: usize, body: usize) -> Option<Range<usize>> {
        let body = self.start + header..self.start + header + body;
        if body.end > self.end {
            return None;
        }
        self.start = body.end;
        Some(body)
    }

    /// What was taken: valid until the next call of [`fill`](Self::fill).
    #[inline]
    pub(crate) fn bytes(&self, body: Range<usize>) -> &[u8] {
        &self.input[body]
    }

    /// Reads what has come, once.
    pub(crate) fn fill(&mut self) -> Result<(), Error> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.input.len() {
            if self.start > 0 {
                self.input.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                // Full of one message: what came decides the size, not what the message claims.
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

    /// Reads until so many bytes are [`unread`](Self::unread).
    pub(crate) fn fill_to(&mut self, bytes: usize) -> Result<(), Error> {
        while self.end - self.start < bytes {
            self.fill()?;
        }
        Ok(())
    }

    /// Takes a part out of what is [`unread`](Self::unread).
    pub(crate) fn cut(&mut self, part: Range<usize>) {
        let at = self.start + part.start;
        self.input.copy_within(self.start + part.end..self.end, at);
        self.end -= part.len();
    }

    /// An error that ends the connection, with its class.
    #[cold]
    pub(crate) fn lost(&self, mut error: Error) -> Error {
        error.class = match self.is_interrupted.load(Ordering::Relaxed) {
            true => ErrorClass::Interrupted,
            false => ErrorClass::ConnectionLost,
        };
        error
    }

    /// The peer does not keep to the protocol: nothing that it says from here on can be understood.
    #[cold]
    pub(crate) fn broken(&self, what: impl Into<String>) -> Error {
        if let Ok(socket) = self.stream.socket() {
            socket.shut_down();
        }
        failure::protocol(what)
    }

    /// Ends what the connection waits for, from another thread. The server notices a closed connection only when it
    /// next writes to it: `tell` has it told as well, so that a long statement does not go on. A server that can't be
    /// told is no reason to fail.
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

    /// Says goodbye. Good manners: the server then does not log a connection that was lost.
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

    /// The next message, whose header is the length of its body.
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
    fn messages_are_whole_however_they_come() {
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
    fn the_buffer_is_used_again_and_grows_only_for_a_message_that_does_not_fit() {
        let (mut wire, mut peer) = wire();
        for round in 0..2 * BUFFER_BYTES / 200 {
            let text = [round as u8; 200];
            peer.write_all(&[200]).unwrap();
            peer.write_all(&text).unwrap();
            // Half of the next, so that there is always something left.
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
    fn a_part_that_is_cut_out_was_never_there() {
        let (mut wire, mut peer) = wire();
        peer.write_all(b"\0\x04lo--st\x02ok").unwrap();
        assert_eq!(message(&mut wire).unwrap(), b"");
        wire.cut(3..5);
        assert_eq!(message(&mut wire).unwrap(), b"lost");
        assert_eq!(message(&mut wire).unwrap(), b"ok");
    }

    #[test]
    fn what_an_interrupt_ends_is_known_to_be_interrupted() {
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

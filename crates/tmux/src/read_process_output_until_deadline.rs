//! Reads the output of a process to its end, or until a deadline.
//!
//! A thread that blocks in `read` would be simpler, but might never end. The process is a tmux
//! client, which shares its standard output with the tmux server. A server that is stopped
//! (SIGSTOP) keeps this output open, even after the client was killed.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How many bytes one read takes at most.
const CHUNK_BYTES: usize = 64 * 1024;

/// A pipe, and what was read from it.
struct PipeReader {
    /// `None` after the end of the pipe.
    pipe: Option<File>,
    bytes: Vec<u8>,
}

/// Reads all `pipes` to their ends. Returns the bytes of each pipe, or `None` if the deadline
/// passes first. If reading fails, the bytes from before the failure are returned.
pub(crate) fn read_pipes<const N: usize>(pipes: [OwnedFd; N], deadline: Instant) -> Option<[Vec<u8>; N]> {
    let mut readers = pipes.map(|pipe| PipeReader { pipe: Some(pipe.into()), bytes: Vec::new() });
    let mut chunk = vec![0; CHUNK_BYTES];
    while readers.iter().any(|reader| reader.pipe.is_some()) {
        let remaining = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        let mut open: Vec<&mut PipeReader> =
            readers.iter_mut().filter(|reader| reader.pipe.is_some()).collect();
        let mut polled: Vec<PollFd<'_>> = open
            .iter()
            .filter_map(|reader| reader.pipe.as_ref())
            .map(|pipe| PollFd::new(pipe, PollFlags::IN))
            .collect();
        // Errors of `poll` are ignored, because the loop calls `poll` again. The loop ends at the
        // deadline at the latest.
        poll(&mut polled, Timespec::try_from(remaining).ok().as_ref()).ok();
        let is_ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        open.iter_mut().zip(is_ready).filter(|(_, is_ready)| *is_ready).for_each(|(reader, _)| {
            reader.read_some(&mut chunk);
        });
    }
    Some(readers.map(|reader| reader.bytes))
}

impl PipeReader {
    /// Reads once from a pipe that is readable, so that the read does not block.
    fn read_some(&mut self, chunk: &mut [u8]) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(chunk) {
            Ok(0) => self.pipe = None,
            Ok(length) => self.bytes.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn pipes_are_read_until_their_ends_or_the_deadline() {
        let [(first, mut first_writer), (second, second_writer)] =
            [(); 2].map(|()| UnixStream::pair().unwrap());
        let text = vec![b'x'; 3 * CHUNK_BYTES];
        let expected = text.clone();
        let writer = std::thread::spawn(move || first_writer.write_all(&text));
        drop(second_writer);
        let in_time = Instant::now() + Duration::from_secs(30);
        assert_eq!(read_pipes([first.into(), second.into()], in_time), Some([expected, Vec::new()]));
        writer.join().unwrap().unwrap();
        let (third, _open) = UnixStream::pair().unwrap();
        assert_eq!(read_pipes([third.into()], Instant::now() + Duration::from_millis(10)), None);
    }
}

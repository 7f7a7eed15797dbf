//! A sentinel is a text that the shim writes to the pseudo-terminal after a program has exited.
//! When the shim reads the sentinel back, it has read all output of the program.

use std::collections::VecDeque;

/// How many sentinels are awaited at most. If a program discards the terminal's buffers, the
/// sentinels in the buffers never arrive. Without this limit they would be awaited forever.
const MAX_AWAITED: usize = 8;
/// The length of a sentinel in bytes. It consists of a UUID between two NULs.
const SENTINEL_BYTES: usize = 34;

/// The sentinels that were written but not read back yet. Each sentinel has its own text, so that a
/// late sentinel is not mistaken for a newer one.
#[derive(Debug, Default)]
pub(super) struct Sentinel {
    /// The sentinels that were not read back yet, in the order in which they were written.
    awaited: VecDeque<Vec<u8>>,
    /// The part of the sentinels that the terminal has not taken yet.
    unwritten: Vec<u8>,
    /// The last bytes that were read, if they may be the beginning of a sentinel.
    partial: Vec<u8>,
}

impl Sentinel {
    /// Creates a new sentinel, to be written and then awaited.
    pub(super) fn issue(&mut self) {
        self.discard_unwritten();
        let text = format!("\0{}\0", uuid::Uuid::new_v4().simple()).into_bytes();
        // If an earlier sentinel was written only in part, its rest is written first. Otherwise the
        // earlier sentinel could not be recognized in the output.
        self.unwritten.extend_from_slice(&text);
        self.awaited.push_back(text);
        self.awaited.drain(..self.awaited.len().saturating_sub(MAX_AWAITED));
    }

    /// The bytes that are still to be written.
    pub(super) fn unwritten(&self) -> &[u8] {
        &self.unwritten
    }

    /// Records that the terminal took `bytes` bytes.
    pub(super) fn note_written(&mut self, bytes: usize) {
        self.unwritten.drain(..bytes);
    }

    /// If the terminal took no byte of the latest sentinel, forgets that sentinel, because the shim
    /// will never read it back.
    pub(super) fn discard_unwritten(&mut self) {
        if self.unwritten.len() >= SENTINEL_BYTES {
            self.unwritten.truncate(self.unwritten.len() - SENTINEL_BYTES);
            self.awaited.pop_back();
        }
    }

    pub(super) fn is_awaited(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Removes sentinels from output that was read. When a sentinel is found, earlier ones are no
    /// longer awaited.
    pub(super) fn strip(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut output = std::mem::take(&mut self.partial);
        output.extend_from_slice(bytes);
        while let Some((position, index)) = self.find_first(&output) {
            output.drain(position..position + SENTINEL_BYTES);
            self.awaited.drain(..=index);
        }
        let is_sentinel_start =
            |start: &usize| self.awaited.iter().any(|text| text.starts_with(&output[*start..]));
        let start = (output.len().saturating_sub(SENTINEL_BYTES)..output.len()).find(is_sentinel_start);
        self.partial = output.split_off(start.unwrap_or(output.len()));
        output
    }

    /// Finds the first sentinel in `bytes`. Returns its position and its index in `awaited`.
    fn find_first(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        if self.awaited.is_empty() {
            return None;
        }
        let index_of = |window: &[u8]| self.awaited.iter().position(|text| text == window);
        bytes
            .windows(SENTINEL_BYTES)
            .enumerate()
            .find_map(|(position, window)| Some((position, index_of(window)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issues a sentinel and returns its bytes, as if they had been written.
    fn write_sentinel(sentinel: &mut Sentinel) -> Vec<u8> {
        sentinel.issue();
        let text = sentinel.unwritten().to_vec();
        sentinel.note_written(text.len());
        text
    }

    #[test]
    fn sentinels_are_stripped_wherever_a_read_splits_them() {
        for at in 0..SENTINEL_BYTES * 2 + 13 {
            let mut sentinel = Sentinel::default();
            let (first, second) = (write_sentinel(&mut sentinel), write_sentinel(&mut sentinel));
            assert_ne!(first, second);
            let output = [b"before\0".as_slice(), &first, b"after", &second].concat();
            let text = [sentinel.strip(&output[..at]), sentinel.strip(&output[at..])].concat();
            assert_eq!(text, b"before\0after", "split at {at}");
            assert!(!sentinel.is_awaited());
            assert_eq!(sentinel.strip(&second), second, "no sentinel is awaited");
        }
    }

    #[test]
    fn unwritten_or_lost_sentinel_is_not_awaited() {
        let mut sentinel = Sentinel::default();
        sentinel.issue();
        sentinel.discard_unwritten();
        assert!(!sentinel.is_awaited() && sentinel.unwritten().is_empty());
        write_sentinel(&mut sentinel);
        let latest = write_sentinel(&mut sentinel);
        assert_eq!(sentinel.strip(&latest), b"");
        assert!(!sentinel.is_awaited());
    }

    #[test]
    fn partly_written_sentinel_is_completed_with_the_next_one() {
        let mut sentinel = Sentinel::default();
        sentinel.issue();
        let start = sentinel.unwritten()[..9].to_vec();
        sentinel.note_written(9);
        sentinel.discard_unwritten();
        assert!(sentinel.is_awaited());
        let remainder = write_sentinel(&mut sentinel);
        assert_eq!(remainder.len(), 2 * SENTINEL_BYTES - 9);
        assert_eq!(sentinel.strip(&[start, remainder].concat()), b"");
        assert!(!sentinel.is_awaited());
    }
}

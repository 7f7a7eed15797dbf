//! A text that is written to the terminal after a program has exited. When it comes out, all output
//! of the program was read.

use std::collections::VecDeque;

/// How many sentinels are waited for. A program that discards the terminal's buffers loses
/// sentinels.
const MAX_AWAITED: usize = 8;
/// The length of a sentinel: a UUID between two NULs. In bytes.
const SENTINEL_BYTES: usize = 34;

/// The sentinels that are on their way. Each has a new text, so that an old one is not taken for
/// the latest.
#[derive(Debug, Default)]
pub(super) struct Sentinel {
    /// The sentinels that have not come out, in the order in which they were written.
    awaited: VecDeque<Vec<u8>>,
    /// The part of the sentinels that the terminal has not taken yet.
    unwritten: Vec<u8>,
    /// The end of the last read, if it may be the beginning of a sentinel.
    partial: Vec<u8>,
}

impl Sentinel {
    /// Creates a sentinel to write and to wait for.
    pub(super) fn issue(&mut self) {
        self.discard_unwritten();
        let text = format!("\0{}\0", uuid::Uuid::new_v4().simple()).into_bytes();
        // A sentinel that was written in part is completed first, so that it can be recognized.
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

    /// Forgets the latest sentinel if the terminal took none of it, because it will never come out.
    pub(super) fn discard_unwritten(&mut self) {
        if self.unwritten.len() >= SENTINEL_BYTES {
            self.unwritten.truncate(self.unwritten.len() - SENTINEL_BYTES);
            self.awaited.pop_back();
        }
    }

    pub(super) fn is_awaited(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Removes sentinels from output that was read. A sentinel that comes out also ends the wait
    /// for all earlier ones.
    pub(super) fn strip(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.partial);
        rest.extend_from_slice(bytes);
        while let Some((at, which)) = self.find_first(&rest) {
            rest.drain(at..at + SENTINEL_BYTES);
            self.awaited.drain(..=which);
        }
        let begins = |from: &usize| self.awaited.iter().any(|text| text.starts_with(&rest[*from..]));
        let from = (rest.len().saturating_sub(SENTINEL_BYTES)..rest.len()).find(begins);
        self.partial = rest.split_off(from.unwrap_or(rest.len()));
        rest
    }

    /// Where the first sentinel is, and its index in `awaited`.
    fn find_first(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        if self.awaited.is_empty() {
            return None;
        }
        let which = |window: &[u8]| self.awaited.iter().position(|text| text == window);
        bytes.windows(SENTINEL_BYTES).enumerate().find_map(|(at, window)| Some((at, which(window)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(mark: &mut Sentinel) -> Vec<u8> {
        mark.issue();
        let text = mark.unwritten().to_vec();
        mark.note_written(text.len());
        text
    }

    #[test]
    fn marks_are_taken_out_wherever_they_are_torn() {
        for at in 0..SENTINEL_BYTES * 2 + 13 {
            let mut mark = Sentinel::default();
            let (one, two) = (set(&mut mark), set(&mut mark));
            assert_ne!(one, two);
            let whole = [b"before\0".as_slice(), &one, b"after", &two].concat();
            let out = [mark.strip(&whole[..at]), mark.strip(&whole[at..])].concat();
            assert_eq!(out, b"before\0after", "torn at {at}");
            assert!(!mark.is_awaited());
            assert_eq!(mark.strip(&two), two, "nobody waits for it");
        }
    }

    #[test]
    fn one_that_was_never_written_or_has_been_lost_is_not_waited_for() {
        let mut mark = Sentinel::default();
        mark.issue();
        mark.discard_unwritten();
        assert!(!mark.is_awaited() && mark.unwritten().is_empty());
        set(&mut mark);
        let latest = set(&mut mark);
        assert_eq!(mark.strip(&latest), b"");
        assert!(!mark.is_awaited());
    }

    #[test]
    fn one_that_was_written_in_part_is_made_whole_with_the_next() {
        let mut mark = Sentinel::default();
        mark.issue();
        let begun = mark.unwritten()[..9].to_vec();
        mark.note_written(9);
        mark.discard_unwritten();
        assert!(mark.is_awaited());
        let rest = set(&mut mark);
        assert_eq!(rest.len(), 2 * SENTINEL_BYTES - 9);
        assert_eq!(mark.strip(&[begun, rest].concat()), b"");
        assert!(!mark.is_awaited());
    }
}

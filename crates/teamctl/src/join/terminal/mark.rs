//! A text that goes through the terminal behind all that a program wrote, to see that all of it has come out.

use std::collections::VecDeque;

/// The most that are waited for; a program that throws away what the terminal holds loses them for good.
const MOST: usize = 8;
/// The length of each, bytes: a UUID between two NULs.
const LENGTH: usize = 34;

/// Texts that no program writes, each anew: what has become of an old one says nothing of the latest.
#[derive(Debug, Default)]
pub(super) struct Mark {
    /// Still to come out, in the order in which they were written.
    due: VecDeque<Vec<u8>>,
    /// What the terminal has not taken yet of the latest.
    unwritten: Vec<u8>,
    /// Perhaps the beginning of one.
    held: Vec<u8>,
}

impl Mark {
    /// A new one, to be written and then waited for.
    pub(super) fn set(&mut self) {
        self.forget_unwritten();
        let text = format!("\0{}\0", uuid::Uuid::new_v4().simple()).into_bytes();
        // What the terminal has of a mark is made whole first, so that it can be told from a program's output.
        self.unwritten.extend_from_slice(&text);
        self.due.push_back(text);
        self.due.drain(..self.due.len().saturating_sub(MOST));
    }

    /// What is still to be written.
    pub(super) fn unwritten(&self) -> &[u8] {
        &self.unwritten
    }

    /// So much of it is.
    pub(super) fn written(&mut self, bytes: usize) {
        self.unwritten.drain(..bytes);
    }

    /// One of which the terminal took nothing will never come out.
    pub(super) fn forget_unwritten(&mut self) {
        if self.unwritten.len() >= LENGTH {
            self.unwritten.truncate(self.unwritten.len() - LENGTH);
            self.due.pop_back();
        }
    }

    pub(super) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// What was read, without the marks in it. One that comes out takes with it those from before, which are lost.
    pub(super) fn without(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        rest.extend_from_slice(bytes);
        while let Some((at, which)) = self.first(&rest) {
            rest.drain(at..at + LENGTH);
            self.due.drain(..=which);
        }
        let begins = |from: &usize| self.due.iter().any(|text| text.starts_with(&rest[*from..]));
        let from = (rest.len().saturating_sub(LENGTH)..rest.len()).find(begins);
        self.held = rest.split_off(from.unwrap_or(rest.len()));
        rest
    }

    /// Where the first one is, and which.
    fn first(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        if self.due.is_empty() {
            return None;
        }
        let which = |window: &[u8]| self.due.iter().position(|text| text == window);
        bytes.windows(LENGTH).enumerate().find_map(|(at, window)| Some((at, which(window)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(mark: &mut Mark) -> Vec<u8> {
        mark.set();
        let text = mark.unwritten().to_vec();
        mark.written(text.len());
        text
    }

    #[test]
    fn marks_are_taken_out_wherever_they_are_torn() {
        for at in 0..LENGTH * 2 + 13 {
            let mut mark = Mark::default();
            let (one, two) = (set(&mut mark), set(&mut mark));
            assert_ne!(one, two);
            let whole = [b"before\0".as_slice(), &one, b"after", &two].concat();
            let out = [mark.without(&whole[..at]), mark.without(&whole[at..])].concat();
            assert_eq!(out, b"before\0after", "torn at {at}");
            assert!(!mark.is_due());
            assert_eq!(mark.without(&two), two, "nobody waits for it");
        }
    }

    #[test]
    fn one_that_was_never_written_or_has_been_lost_is_not_waited_for() {
        let mut mark = Mark::default();
        mark.set();
        mark.forget_unwritten();
        assert!(!mark.is_due() && mark.unwritten().is_empty());
        set(&mut mark);
        let latest = set(&mut mark);
        assert_eq!(mark.without(&latest), b"");
        assert!(!mark.is_due());
    }

    #[test]
    fn one_that_was_written_in_part_is_made_whole_with_the_next() {
        let mut mark = Mark::default();
        mark.set();
        let begun = mark.unwritten()[..9].to_vec();
        mark.written(9);
        mark.forget_unwritten();
        assert!(mark.is_due());
        let rest = set(&mut mark);
        assert_eq!(rest.len(), 2 * LENGTH - 9);
        assert_eq!(mark.without(&[begun, rest].concat()), b"");
        assert!(!mark.is_due());
    }
}

//! A text that goes through the terminal behind all that a program wrote, to see that all of it has come out.

/// A text that no program writes, and how often it is still to come out.
#[derive(Debug)]
pub(super) struct Mark {
    text: Vec<u8>,
    due: usize,
    /// Perhaps the beginning of one.
    held: Vec<u8>,
}

impl Mark {
    pub(super) fn new() -> Mark {
        Mark { text: format!("\0{}\0", uuid::Uuid::new_v4().simple()).into_bytes(), due: 0, held: Vec::new() }
    }

    /// The text to write.
    pub(super) fn set(&mut self) -> Vec<u8> {
        self.due += 1;
        self.text.clone()
    }

    pub(super) fn is_due(&self) -> bool {
        self.due > 0
    }

    /// What was read, without the marks in it.
    pub(super) fn without(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        rest.extend_from_slice(bytes);
        while self.due > 0
            && let Some(at) = rest.windows(self.text.len()).position(|window| window == self.text)
        {
            rest.drain(at..at + self.text.len());
            self.due -= 1;
        }
        if self.due > 0 {
            let begins = |from: &usize| self.text.starts_with(&rest[*from..]);
            let from = (rest.len().saturating_sub(self.text.len())..rest.len()).find(begins);
            self.held = rest.split_off(from.unwrap_or(rest.len()));
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_out_wherever_they_are_torn() {
        let mut mark = Mark::new();
        let text = mark.text.clone();
        let whole = [b"before\0".as_slice(), &text, b"after", &text].concat();
        for at in 0..whole.len() {
            mark.set();
            mark.set();
            let out = [mark.without(&whole[..at]), mark.without(&whole[at..])].concat();
            assert_eq!(out, b"before\0after", "torn at {at}");
            assert!(!mark.is_due());
        }
        assert_eq!(mark.without(&text), text, "nobody waits for it");
    }
}

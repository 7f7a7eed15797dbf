//! The lines of a control-mode client, put together into blocks.
//!
//! `%begin TIME NUMBER FLAGS` opens a block, and only `%end` or `%error` with the very same three closes it:
//! everything between is data, whatever it looks like. Outside of blocks nothing can be trusted, since a user's hook
//! can print there what it likes; such a line is at most a hint to look. Lines are bytes.

/// What one command printed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Whether our own input caused it; the others come from the start of the client and from hooks.
    pub(crate) origin: Origin,
    pub(crate) outcome: Outcome,
    pub(crate) lines: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Ours,
    Foreign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
}

impl Block {
    /// The data, its lines joined.
    pub(crate) fn text(&self) -> Vec<u8> {
        self.lines.join(&b'\n')
    }
}

/// What a line amounted to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A block is complete.
    Block(Block),
    /// Windows, panes or sessions may have moved.
    Hint,
}

/// Puts lines together. Feed it every line in order, without the newline.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    id: Vec<u8>,
    lines: Vec<Vec<u8>>,
}

/// Hints of `tmux(1)`, CONTROL MODE, that mean another look. What only concerns a pane's output is not among them.
const HINTS: [&[u8]; 10] = [
    b"%layout-change",
    b"%pane-mode-changed",
    b"%session-changed",
    b"%session-window-changed",
    b"%sessions-changed",
    b"%unlinked-window-add",
    b"%unlinked-window-close",
    b"%window-add",
    b"%window-close",
    b"%window-pane-changed",
];

impl Wire {
    pub(crate) fn line(&mut self, line: &[u8]) -> Option<Heard> {
        let Some(open) = &mut self.open else { return self.outside(line) };
        match closing(line, &open.id) {
            Some(outcome) => self.close(outcome).map(Heard::Block),
            None => {
                open.lines.push(line.to_vec());
                None
            }
        }
    }

    fn outside(&mut self, line: &[u8]) -> Option<Heard> {
        if let Some(id) = line.strip_prefix(b"%begin ") {
            self.open = Some(Open { id: id.to_vec(), lines: Vec::new() });
            return None;
        }
        let word = line.split(|b| *b == b' ').next().unwrap_or_default();
        HINTS.contains(&word).then_some(Heard::Hint)
    }

    fn close(&mut self, outcome: Outcome) -> Option<Block> {
        let Open { id, lines } = self.open.take()?;
        Some(Block { origin: origin(&id), outcome, lines })
    }
}

fn closing(line: &[u8], id: &[u8]) -> Option<Outcome> {
    let ends = |word: &[u8]| line.strip_prefix(word).is_some_and(|rest| rest == id);
    match () {
        () if ends(b"%end ") => Some(Outcome::Done),
        () if ends(b"%error ") => Some(Outcome::Failed),
        () => None,
    }
}

/// The lowest bit of the flags says that the command came in on our connection.
fn origin(id: &[u8]) -> Origin {
    let flags = id.rsplit(|b| *b == b' ').next().and_then(|flags| std::str::from_utf8(flags).ok());
    match flags.and_then(|flags| flags.parse::<u32>().ok()) {
        Some(flags) if flags & 1 == 1 => Origin::Ours,
        _ => Origin::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(stream: &[u8]) -> Vec<Heard> {
        let mut wire = Wire::default();
        stream.split(|b| *b == b'\n').filter_map(|line| wire.line(line)).collect()
    }

    fn ours(outcome: Outcome, lines: &[&[u8]]) -> Heard {
        let lines = lines.iter().map(|line| line.to_vec()).collect();
        Heard::Block(Block { origin: Origin::Ours, outcome, lines })
    }

    #[test]
    fn lines_between_begin_and_its_own_end_are_data() {
        let stream =
            b"%begin 5 7 1\n%end 9 9 9\n%pause %1\n%exit\n%begin 5 8 1\n%end 5 7 0\n\n\xff\xfe\n%end 5 7 1\n";
        let data: [&[u8]; 7] =
            [b"%end 9 9 9", b"%pause %1", b"%exit", b"%begin 5 8 1", b"%end 5 7 0", b"", b"\xff\xfe"];
        assert_eq!(heard(stream), [ours(Outcome::Done, &data)]);
    }

    #[test]
    fn an_error_is_told_from_an_end() {
        let stream = b"%begin 5 7 1\ncan't find pane: %9\n%error 5 7 1\n";
        assert_eq!(heard(stream), [ours(Outcome::Failed, &[b"can't find pane: %9"])]);
    }

    #[test]
    fn blocks_of_hooks_and_of_the_start_are_not_ours() {
        let stream = b"%begin 5 7 0\nx\n%end 5 7 0\n%begin 5 8 what\n%end 5 8 what\n";
        let origins: Vec<Origin> = heard(stream)
            .into_iter()
            .map(|heard| match heard {
                Heard::Block(block) => block.origin,
                Heard::Hint => panic!("no hint was there"),
            })
            .collect();
        assert_eq!(origins, [Origin::Foreign, Origin::Foreign]);
    }

    #[test]
    fn outside_of_blocks_there_are_only_hints() {
        let stream =
            b"%exit spoofed\n%end 1 2 1\nhello\n\n%output %1 abc\n%message x\n%window-add @2\n%window-addx\n";
        assert_eq!(heard(stream), [Heard::Hint]);
    }

    #[test]
    fn a_long_reply_is_one_block() {
        let line = vec![b'x'; 1 << 20];
        let mut stream = b"%begin 1 1 1\n".to_vec();
        stream.extend(&line);
        stream.extend(b"\n%end 1 1 1\n");
        assert_eq!(heard(&stream), [ours(Outcome::Done, &[&line])]);
    }
}

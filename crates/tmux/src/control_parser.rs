//! Parses the output of a control-mode client into blocks. A block is the output of one command.
//!
//! The line `%begin TIME NUMBER FLAGS` opens a block. Only `%end` or `%error` with the same three
//! values closes the block, and every line between them is output of the command. Lines are bytes
//! and need not be UTF-8.
//!
//! A line outside of a block cannot be trusted, because a tmux hook of the user can print anything
//! there. So it is only a hint that something may have changed ([`ControlEvent::OwnSessionsUsed`]),
//! and the caller asks tmux what has changed.

/// The output of one command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ControlBlock {
    /// Which command caused the block.
    pub(crate) origin: BlockOrigin,
    pub(crate) outcome: BlockStatus,
    pub(crate) lines: Vec<Vec<u8>>,
}

/// Which command caused a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockOrigin {
    /// A command that this client sent.
    OwnCommand,
    /// The command with which the client was started, or a command of a tmux hook.
    Other,
}

/// Whether a block ended with `%end` or with `%error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockStatus {
    Ok,
    Error,
}

impl ControlBlock {
    /// Returns the lines of the block, joined by newlines.
    pub(crate) fn text(&self) -> Vec<u8> {
        self.lines.join(&b'\n')
    }
}

/// What the parser reports after a line of output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ControlEvent {
    /// The line ends a block.
    Block(ControlBlock),
    /// A foreign window, pane or client may be in a session of this crate.
    OwnSessionsUsed,
}

/// Builds blocks from lines.
#[derive(Debug, Default)]
pub(crate) struct ControlParser {
    open: Option<OpenBlock>,
}

/// A block whose last line has not been parsed yet.
#[derive(Debug)]
struct OpenBlock {
    /// The three values of `%begin`: time, number and flags.
    id: Vec<u8>,
    lines: Vec<Vec<u8>>,
}

/// The control-mode notifications (`tmux(1)`, section CONTROL MODE) after which a session of this
/// crate may have a foreign window, pane or client. A control client gets `%layout-change` and
/// `%window-add` only for the session to which it is attached, and the others for every session.
const CHANGE_NOTIFICATIONS: [&[u8]; 4] =
    [b"%client-session-changed", b"%layout-change", b"%unlinked-window-add", b"%window-add"];

impl ControlParser {
    /// Handles the next line, without its newline. `None` if the line completes nothing.
    pub(crate) fn push_line(&mut self, line: &[u8]) -> Option<ControlEvent> {
        let Some(open) = &mut self.open else { return self.parse_outside_block(line) };
        match block_end(line, &open.id) {
            Some(outcome) => self.finish_block(outcome).map(ControlEvent::Block),
            None => {
                open.lines.push(line.to_vec());
                None
            }
        }
    }

    fn parse_outside_block(&mut self, line: &[u8]) -> Option<ControlEvent> {
        if let Some(id) = line.strip_prefix(b"%begin ") {
            self.open = Some(OpenBlock { id: id.to_vec(), lines: Vec::new() });
            return None;
        }
        let name = line.split(|b| *b == b' ').next().unwrap_or_default();
        CHANGE_NOTIFICATIONS.contains(&name).then_some(ControlEvent::OwnSessionsUsed)
    }

    fn finish_block(&mut self, outcome: BlockStatus) -> Option<ControlBlock> {
        let OpenBlock { id, lines } = self.open.take()?;
        Some(ControlBlock { origin: block_origin(&id), outcome, lines })
    }
}

/// Returns how `line` ends the block `id`. `None` if the line does not end it.
fn block_end(line: &[u8], id: &[u8]) -> Option<BlockStatus> {
    let ends = |keyword: &[u8]| line.strip_prefix(keyword).is_some_and(|rest| rest == id);
    match () {
        () if ends(b"%end ") => Some(BlockStatus::Ok),
        () if ends(b"%error ") => Some(BlockStatus::Error),
        () => None,
    }
}

/// Reads the lowest bit of the flags, which is set if the command came from this client.
fn block_origin(id: &[u8]) -> BlockOrigin {
    let flags = id.rsplit(|b| *b == b' ').next().and_then(|flags| std::str::from_utf8(flags).ok());
    match flags.and_then(|flags| flags.parse::<u32>().ok()) {
        Some(flags) if flags & 1 == 1 => BlockOrigin::OwnCommand,
        _ => BlockOrigin::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(stream: &[u8]) -> Vec<ControlEvent> {
        let mut parser = ControlParser::default();
        stream.split(|b| *b == b'\n').filter_map(|line| parser.push_line(line)).collect()
    }

    fn own_block(outcome: BlockStatus, lines: &[&[u8]]) -> ControlEvent {
        let lines = lines.iter().map(|line| line.to_vec()).collect();
        ControlEvent::Block(ControlBlock { origin: BlockOrigin::OwnCommand, outcome, lines })
    }

    #[test]
    fn lines_inside_a_block_are_data() {
        let stream =
            b"%begin 5 7 1\n%end 9 9 9\n%pause %1\n%exit\n%begin 5 8 1\n%end 5 7 0\n\n\xff\xfe\n%end 5 7 1\n";
        let data: [&[u8]; 7] =
            [b"%end 9 9 9", b"%pause %1", b"%exit", b"%begin 5 8 1", b"%end 5 7 0", b"", b"\xff\xfe"];
        assert_eq!(parse(stream), [own_block(BlockStatus::Ok, &data)]);
    }

    #[test]
    fn error_block_differs_from_end() {
        let stream = b"%begin 5 7 1\ncan't find pane: %9\n%error 5 7 1\n";
        assert_eq!(parse(stream), [own_block(BlockStatus::Error, &[b"can't find pane: %9"])]);
    }

    #[test]
    fn blocks_of_hooks_have_another_origin() {
        let stream = b"%begin 5 7 0\nx\n%end 5 7 0\n%begin 5 8 what\n%end 5 8 what\n";
        let origins: Vec<BlockOrigin> = parse(stream)
            .into_iter()
            .map(|event| match event {
                ControlEvent::Block(block) => block.origin,
                ControlEvent::OwnSessionsUsed => panic!("unexpected notice of used sessions"),
            })
            .collect();
        assert_eq!(origins, [BlockOrigin::Other, BlockOrigin::Other]);
    }

    #[test]
    fn notifications_outside_blocks_are_changes() {
        let stream =
            b"%exit spoofed\n%end 1 2 1\nhello\n\n%output %1 abc\n%message x\n%window-add @2\n%window-addx\n";
        assert_eq!(parse(stream), [ControlEvent::OwnSessionsUsed]);
    }

    #[test]
    fn long_reply_is_one_block() {
        let line = vec![b'x'; 1 << 20];
        let mut stream = b"%begin 1 1 1\n".to_vec();
        stream.extend(&line);
        stream.extend(b"\n%end 1 1 1\n");
        assert_eq!(parse(&stream), [own_block(BlockStatus::Ok, &[&line])]);
    }
}

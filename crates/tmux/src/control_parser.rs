//! The lines of a control-mode client, put together into blocks.
//!
//! `%begin TIME NUMBER FLAGS` opens a block, and only `%end` or `%error` with the very same three closes it:
//! everything between is data, whatever it looks like. Outside of blocks nothing can be trusted, since a user's hook
//! can print there what it likes; such a line is at most a hint to look. Lines are bytes.

/// What one command printed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ControlBlock {
    /// Whether our own input caused it; the others come from the start of the client and from hooks.
    pub(crate) origin: BlockOrigin,
    pub(crate) outcome: BlockStatus,
    pub(crate) lines: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockOrigin {
    OwnCommand,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockStatus {
    Ok,
    Error,
}

impl ControlBlock {
    /// The data, its lines joined.
    pub(crate) fn text(&self) -> Vec<u8> {
        self.lines.join(&b'\n')
    }
}

/// What a line amounted to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ControlEvent {
    /// A block is complete.
    Block(ControlBlock),
    /// Windows, panes or sessions may have moved.
    Changed,
}

/// Puts lines together. Feed it every line in order, without the newline.
#[derive(Debug, Default)]
pub(crate) struct ControlParser {
    open: Option<OpenBlock>,
}

#[derive(Debug)]
struct OpenBlock {
    id: Vec<u8>,
    lines: Vec<Vec<u8>>,
}

/// Hints of `tmux(1)`, CONTROL MODE, that mean another look. What only concerns a pane's output is not among them.
const CHANGE_NOTIFICATIONS: [&[u8]; 10] = [
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

impl ControlParser {
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
        let word = line.split(|b| *b == b' ').next().unwrap_or_default();
        CHANGE_NOTIFICATIONS.contains(&word).then_some(ControlEvent::Changed)
    }

    fn finish_block(&mut self, outcome: BlockStatus) -> Option<ControlBlock> {
        let OpenBlock { id, lines } = self.open.take()?;
        Some(ControlBlock { origin: block_origin(&id), outcome, lines })
    }
}

fn block_end(line: &[u8], id: &[u8]) -> Option<BlockStatus> {
    let ends = |word: &[u8]| line.strip_prefix(word).is_some_and(|rest| rest == id);
    match () {
        () if ends(b"%end ") => Some(BlockStatus::Ok),
        () if ends(b"%error ") => Some(BlockStatus::Error),
        () => None,
    }
}

/// The lowest bit of the flags says that the command came in on our connection.
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

    fn heard(stream: &[u8]) -> Vec<ControlEvent> {
        let mut wire = ControlParser::default();
        stream.split(|b| *b == b'\n').filter_map(|line| wire.push_line(line)).collect()
    }

    fn ours(outcome: BlockStatus, lines: &[&[u8]]) -> ControlEvent {
        let lines = lines.iter().map(|line| line.to_vec()).collect();
        ControlEvent::Block(ControlBlock { origin: BlockOrigin::OwnCommand, outcome, lines })
    }

    #[test]
    fn lines_inside_a_block_are_data() {
        let stream =
            b"%begin 5 7 1\n%end 9 9 9\n%pause %1\n%exit\n%begin 5 8 1\n%end 5 7 0\n\n\xff\xfe\n%end 5 7 1\n";
        let data: [&[u8]; 7] =
            [b"%end 9 9 9", b"%pause %1", b"%exit", b"%begin 5 8 1", b"%end 5 7 0", b"", b"\xff\xfe"];
        assert_eq!(heard(stream), [ours(BlockStatus::Ok, &data)]);
    }

    #[test]
    fn error_block_differs_from_end() {
        let stream = b"%begin 5 7 1\ncan't find pane: %9\n%error 5 7 1\n";
        assert_eq!(heard(stream), [ours(BlockStatus::Error, &[b"can't find pane: %9"])]);
    }

    #[test]
    fn blocks_of_hooks_are_other() {
        let stream = b"%begin 5 7 0\nx\n%end 5 7 0\n%begin 5 8 what\n%end 5 8 what\n";
        let origins: Vec<BlockOrigin> = heard(stream)
            .into_iter()
            .map(|heard| match heard {
                ControlEvent::Block(block) => block.origin,
                ControlEvent::Changed => panic!("no hint was there"),
            })
            .collect();
        assert_eq!(origins, [BlockOrigin::Other, BlockOrigin::Other]);
    }

    #[test]
    fn notifications_outside_blocks_are_changes() {
        let stream =
            b"%exit spoofed\n%end 1 2 1\nhello\n\n%output %1 abc\n%message x\n%window-add @2\n%window-addx\n";
        assert_eq!(heard(stream), [ControlEvent::Changed]);
    }

    #[test]
    fn a_long_reply_is_one_block() {
        let line = vec![b'x'; 1 << 20];
        let mut stream = b"%begin 1 1 1\n".to_vec();
        stream.extend(&line);
        stream.extend(b"\n%end 1 1 1\n");
        assert_eq!(heard(&stream), [ours(BlockStatus::Ok, &[&line])]);
    }
}

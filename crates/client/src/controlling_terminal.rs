//! The processes above this one, up to the first of its terminal: whose hook this is, and whose end ends it.
//!
//! A program may run its hooks through a shell, and in a session without a terminal; a program that is killed leaves
//! the shell behind. So all of them are known, each by pid and start time.

use crate::process_table::{ProcessStat, self_and_ancestors};
use protocol::control;
use std::path::PathBuf;

/// Where this process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllingTerminal {
    /// The processes from our parent to the first of the terminal.
    pub ancestors: Vec<ProcessStat>,
    /// Its device; none where nobody above has one.
    pub device: Option<PathBuf>,
}

impl ControllingTerminal {
    /// The first process of the terminal; without a terminal our parent.
    pub fn first_process(&self) -> Option<ProcessStat> {
        if self.device.is_some() { self.ancestors.last().copied() } else { self.ancestors.first().copied() }
    }
}

/// Where this process is now. Nothing where there is no /proc.
pub fn controlling_terminal() -> ControllingTerminal {
    from_ancestors(&self_and_ancestors())
}

/// The processes above this one, its parent first, as far as they can be seen.
pub fn ancestor_ids() -> Vec<control::Process> {
    let told = |process: &ProcessStat| control::Process { pid: process.pid, start_time: process.start };
    self_and_ancestors().iter().skip(1).map(told).collect()
}

/// `all`: this process, its parent, and so on.
fn from_ancestors(all: &[ProcessStat]) -> ControllingTerminal {
    let number = all.iter().map(|process| process.tty).find(|number| *number != 0);
    let last = all.iter().rposition(|process| Some(process.tty) == number);
    let above = match last {
        Some(last) => all.get(1..=last.max(1)),
        None => all.get(1..2),
    };
    ControllingTerminal { ancestors: above.unwrap_or_default().to_vec(), device: number.and_then(pts_path) }
}

/// A pseudo-terminal's: their majors are 136 to 143, with 256 each... of the older numbering.
fn pts_path(number: u32) -> Option<PathBuf> {
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    (136..=143).contains(&major).then(|| PathBuf::from(format!("/dev/pts/{}", (major - 136) * 256 + minor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, terminal: u32) -> ProcessStat {
        ProcessStat { pid, tty: terminal, ..ProcessStat::default() }
    }

    #[test]
    fn the_first_of_the_terminal_is_the_outermost_that_has_it() {
        let pts = (136 << 8) | 3;
        // A hook and its shell without a terminal, the agent, the pane's shell, tmux.
        let all = [process(9, 0), process(8, 0), process(7, pts), process(6, pts), process(5, 0)];
        let terminal = from_ancestors(&all);
        assert_eq!(terminal.ancestors.iter().map(|p| p.pid).collect::<Vec<_>>(), [8, 7, 6]);
        assert_eq!((terminal.first_process().unwrap().pid, terminal.device), (6, Some("/dev/pts/3".into())));
    }

    #[test]
    fn without_a_terminal_it_is_our_parent() {
        let terminal = from_ancestors(&[process(9, 0), process(8, 0), process(7, 0)]);
        assert_eq!((terminal.first_process().unwrap().pid, terminal.device), (8, None));
        assert_eq!(from_ancestors(&[process(9, 0)]).first_process(), None);
    }

    #[test]
    fn a_device_is_found_by_its_number() {
        assert_eq!(pts_path((136 << 8) | 300 & 0xff | (256 << 12)), Some("/dev/pts/300".into()));
        assert_eq!(pts_path((137 << 8) | 1), Some("/dev/pts/257".into()));
        assert_eq!(pts_path((4 << 8) | 1), None);
    }
}

//! Finds the controlling terminal of the calling process, and the ancestors of that process. A hook
//! command needs both to find out which agent or lead session has run it, and when that agent
//! exits.
//!
//! The parent of a hook is not enough: an agent program may run its hooks through a shell, and the
//! shell can survive the program. So all ancestors are recorded. If the hook itself has no
//! terminal, the terminal of its nearest ancestor that has one is used.

use platform::ProcessEntry;
use platform::process_tree::self_and_ancestors;
use protocol::control_socket;
use std::path::PathBuf;

/// The controlling terminal of the calling process, and the process's ancestors in this terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllingTerminal {
    /// Ancestors of the calling process, from its parent to the outermost process in the same
    /// terminal. Only the parent if there is no terminal.
    pub ancestors: Vec<ProcessEntry>,
    /// Path of the terminal's device. `None` if no ancestor has a pseudo-terminal.
    pub device: Option<PathBuf>,
}

impl ControllingTerminal {
    /// The first process of the terminal. Without a terminal, the parent of the calling process.
    pub fn first_process(&self) -> Option<ProcessEntry> {
        if self.device.is_some() { self.ancestors.last().copied() } else { self.ancestors.first().copied() }
    }
}

/// The terminal of the calling process. Has no ancestors if the system shows no process table.
pub fn controlling_terminal() -> ControllingTerminal {
    from_ancestors(&self_and_ancestors())
}

/// The ancestors of the calling process, its parent first. Empty if the system shows no process
/// table.
pub fn ancestor_ids() -> Vec<control_socket::Process> {
    let process_id =
        |process: &ProcessEntry| control_socket::Process { pid: process.pid, start_time: process.start };
    self_and_ancestors().iter().skip(1).map(process_id).collect()
}

/// Finds the terminal. `processes` has the calling process, its parent, and so on.
fn from_ancestors(processes: &[ProcessEntry]) -> ControllingTerminal {
    let tty = processes.iter().map(|process| process.tty).find(|tty| *tty != 0);
    let outermost = processes.iter().rposition(|process| Some(process.tty) == tty);
    let ancestors = match outermost {
        Some(outermost) => processes.get(1..=outermost.max(1)),
        None => processes.get(1..2),
    };
    ControllingTerminal {
        ancestors: ancestors.unwrap_or_default().to_vec(),
        device: tty.and_then(terminal_path),
    }
}

fn terminal_path(device: u32) -> Option<PathBuf> {
    platform::system().terminal_path(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, terminal: u32) -> ProcessEntry {
        ProcessEntry { pid, tty: terminal, ..ProcessEntry::default() }
    }

    #[test]
    fn first_process_is_the_outermost_in_the_terminal() {
        let pts = (136 << 8) | 3;
        // The pids in this test: 9 is a hook and 8 its shell, both without a terminal; 7 is the
        // agent, 6 the pane's shell, and 5 tmux.
        let all = [process(9, 0), process(8, 0), process(7, pts), process(6, pts), process(5, 0)];
        let terminal = from_ancestors(&all);
        assert_eq!(terminal.ancestors.iter().map(|p| p.pid).collect::<Vec<_>>(), [8, 7, 6]);
        assert_eq!((terminal.first_process().unwrap().pid, terminal.device), (6, Some("/dev/pts/3".into())));
    }

    #[test]
    fn first_process_without_terminal_is_the_parent() {
        let terminal = from_ancestors(&[process(9, 0), process(8, 0), process(7, 0)]);
        assert_eq!((terminal.first_process().unwrap().pid, terminal.device), (8, None));
        assert_eq!(from_ancestors(&[process(9, 0)]).first_process(), None);
    }
}

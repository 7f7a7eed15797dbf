//! What a daemon that was killed has on the server for a moment still: its control client and its hidden session.
//!
//! When they go, tmux tells every control client, and 3.3a also one that has only begun to say who it is: then it reads
//! through a null pointer in `control_write`, and all of its sessions are gone (met twice in some three hundred kills of a
//! daemon whose successor connected at once, on a busy machine). So the successor connects once they have gone.

use std::time::{Duration, Instant};

use tmux_interface::{ListClients, ListSessions};

use crate::address::Tmux;
use crate::client::owner_of_session;
use crate::deadline::Deadline;
use crate::exec;
use crate::script::Script;

/// Where their watcher was killed too they stay, and are in nobody's way.
const PATIENCE: Duration = Duration::from_millis(500);

/// Each look is a process of its own, so this is no busy loop; of a server that isn't there nothing is left.
pub(crate) fn await_end(tmux: &Tmux, deadline: Deadline) {
    let until = Instant::now() + PATIENCE.min(deadline.left());
    while is_there(tmux, deadline) && Instant::now() < until {}
}

fn is_there(tmux: &Tmux, deadline: Deadline) -> bool {
    let clients = ListClients::new().format("#{session_name}").build();
    let sessions = ListSessions::new().format("#{session_name}").build();
    let Ok(reply) = exec::run(tmux, &Script::of(&clients).then(&sessions), deadline) else { return false };
    let Ok(names) = reply.text(deadline.verb()) else { return false };
    names.lines().filter_map(owner_of_session).any(has_ended)
}

/// A zombie has; its number says nothing in another container, where we wait in vain.
fn has_ended(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lives_has_not_ended_and_who_is_not_there_has() {
        assert!(!has_ended(std::process::id()));
        assert!(has_ended(u32::MAX));
    }
}

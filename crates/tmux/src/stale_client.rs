//! What a daemon that was killed has on the server for a moment still: its control client and its hidden session.
//!
//! When they go, tmux tells every control client, and 3.3a also one that has only begun to say who it is: then it reads
//! through a null pointer in `control_write`, and all of its sessions are gone (met twice in some three hundred kills of a
//! daemon whose successor connected at once, on a busy machine). So the successor connects once they have gone.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tmux_interface::{KillSession, ListClients, ListSessions};

use crate::address::TmuxEndpoint;
use crate::command_list::CommandList;
use crate::control_client::session_pid;
use crate::deadline::Deadline;
use crate::guarded_command::{all_of, if_then};
use crate::subprocess;

/// Where their watcher was killed too they would stay: then we do what it was there for.
const STALE_CLIENT_TIMEOUT: Duration = Duration::from_millis(500);

/// Each look is a process of its own, so this is no busy loop; of a server that isn't there nothing is left.
pub(crate) fn wait_or_remove(tmux: &TmuxEndpoint, deadline: Deadline) {
    let until = Instant::now() + STALE_CLIENT_TIMEOUT.min(deadline.remaining_time());
    let mut there = stale_sessions(tmux, deadline);
    while !there.is_empty() {
        if Instant::now() >= until {
            return there.iter().for_each(|name| kill_session(tmux, name, deadline));
        }
        there = stale_sessions(tmux, deadline);
    }
}

/// A session that was made on this server for a control client, and has none. In another container its daemon may
/// live, whose number says nothing here: then it has.
fn kill_session(tmux: &TmuxEndpoint, name: &str, deadline: Deadline) {
    let kill = KillSession::new().target_session(format!("={name}")).build();
    let made_here = "#{==:#{@teamd_server},#{pid} #{start_time}}";
    let act = if_then(
        &format!("={name}:"),
        &all_of(made_here, "#{==:#{session_attached},0}"),
        &CommandList::new(&kill),
    );
    // What stays costs the next one the same wait, and nothing else.
    drop(act.and_then(|act| subprocess::run(tmux, &act, deadline)));
}

fn stale_sessions(tmux: &TmuxEndpoint, deadline: Deadline) -> BTreeSet<String> {
    let clients = ListClients::new().format("#{session_name}").build();
    let sessions = ListSessions::new().format("#{session_name}").build();
    let Ok(reply) = subprocess::run(tmux, &CommandList::new(&clients).with_command(&sessions), deadline)
    else {
        return BTreeSet::new();
    };
    let names = reply.text(deadline.action()).unwrap_or_default();
    let is_left = |name: &&str| session_pid(name).is_some_and(has_exited);
    names.lines().filter(is_left).map(str::to_owned).collect()
}

/// A zombie has; its number says nothing in another container, where we wait in vain.
fn has_exited(pid: u32) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return true };
    String::from_utf8_lossy(&stat).rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_process_has_not_exited() {
        assert!(!has_exited(std::process::id()));
        assert!(has_exited(u32::MAX));
    }
}

//! Waits until the control client and the hidden session of an exited daemon are gone.
//!
//! A killed daemon leaves both on the server for a moment. When they end, tmux notifies every
//! control client. tmux 3.3a also notifies a client that has not finished its handshake. It then
//! dereferences a null pointer in `control_write` and crashes with all of its sessions. This
//! happened twice in some 300 kills of a daemon whose successor connected at once, on a busy
//! machine. So a new daemon connects only after they are gone.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tmux_interface::{KillSession, ListClients, ListSessions};

use crate::address::TmuxEndpoint;
use crate::command_list::CommandList;
use crate::condition::{all_of, if_then};
use crate::control_client_process::session_pid;
use crate::deadline::Deadline;
use crate::subprocess;

/// How long to wait for the watcher of the exited daemon. After that the watcher has probably been
/// killed too, and this module kills the session itself.
const STALE_CLIENT_TIMEOUT: Duration = Duration::from_millis(500);

/// Waits for up to 500 ms until no hidden session of an exited process is left, and then kills the
/// rest. Returns at once if no server is running.
///
/// Each check runs a process, so the loop does not use a processor all the time.
pub(crate) fn wait_or_remove(tmux: &TmuxEndpoint, deadline: Deadline) {
    let end = Instant::now() + STALE_CLIENT_TIMEOUT.min(deadline.remaining_time());
    let mut stale = stale_sessions(tmux, deadline);
    while !stale.is_empty() {
        if Instant::now() >= end {
            return stale.iter().for_each(|name| kill_session(tmux, name, deadline));
        }
        stale = stale_sessions(tmux, deadline);
    }
}

/// Kills the session `name` if it was created on this server for a control client and has no
/// client.
///
/// A session with a client stays: its daemon may run in another container, where process ids mean
/// something else.
fn kill_session(tmux: &TmuxEndpoint, name: &str, deadline: Deadline) {
    let kill = KillSession::new().target_session(format!("={name}")).build();
    let created_here = "#{==:#{@teamd_server_epoch},#{pid} #{start_time}}";
    let guarded = if_then(
        &format!("={name}:"),
        &all_of(created_here, "#{==:#{session_attached},0}"),
        &CommandList::new(&kill),
    );
    // If this fails, the next daemon waits for the session again. There is no other effect.
    drop(guarded.map(|guarded| subprocess::run(tmux, &guarded, deadline)));
}

/// Returns the names of hidden sessions whose process has exited. Empty if no server replies.
fn stale_sessions(tmux: &TmuxEndpoint, deadline: Deadline) -> BTreeSet<String> {
    let clients = ListClients::new().format("#{session_name}").build();
    let sessions = ListSessions::new().format("#{session_name}").build();
    let Ok(reply) = subprocess::run(tmux, &CommandList::new(&clients).with_command(&sessions), deadline)
    else {
        return BTreeSet::new();
    };
    let names = reply.text().unwrap_or_default();
    let is_stale = |name: &&str| session_pid(name).is_some_and(has_exited);
    names.lines().filter(is_stale).map(str::to_owned).collect()
}

/// Whether process `pid` has exited. A zombie has exited too.
///
/// A process of another container seems to have exited, so its session is waited for without
/// effect.
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

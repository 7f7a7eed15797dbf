//! Waits until the hidden session of an exited daemon is gone. Each daemon sends its commands to
//! tmux through a control client, which is attached to a hidden session of its own.
//!
//! The wait prevents a crash of tmux 3.3a. When a daemon is killed, tmux closes its hidden session
//! a moment later, and notifies the control clients of other daemons. If one of these clients is
//! just connecting, tmux crashes, and all its sessions are lost. So a new daemon connects only
//! after the hidden session of the killed daemon is gone. Without this wait, two of about 300 tests
//! on a busy machine crashed tmux.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tmux_interface::{ListClients, ListPanes};

use crate::command_list::CommandList;
use crate::control_client_process::{kill_idle_pane_command, session_pid};
use crate::deadline::Deadline;
use crate::if_shell::{all_of, if_then};
use crate::run_tmux_process;
use crate::server_address_and_program::TmuxEndpoint;

/// How long to wait for the end of a hidden session. Each daemon starts a watcher, a process that
/// ends the daemon's hidden session when the daemon is killed. If the session still exists after
/// this time, the watcher was probably killed too. Then this module ends the session.
const STALE_CLIENT_TIMEOUT: Duration = Duration::from_millis(500);

/// Waits until no hidden session of an exited daemon is left. After [`STALE_CLIENT_TIMEOUT`], ends
/// the sessions that are left. Returns at once if no tmux server is running.
///
/// The loop has no pause, but it does not keep a processor busy, because each check starts a tmux
/// process and waits for it.
pub(crate) fn wait_or_remove(tmux: &TmuxEndpoint, deadline: Deadline) {
    let end = Instant::now() + STALE_CLIENT_TIMEOUT.min(deadline.remaining_time());
    let mut stale = stale_sessions(tmux, deadline);
    while !stale.is_empty() {
        if Instant::now() >= end {
            return stale.iter().for_each(|name| kill_idle_pane(tmux, name, deadline));
        }
        stale = stale_sessions(tmux, deadline);
    }
}

/// Ends the hidden session `name` by killing the only pane that teamd has created in it. If another
/// program has put a window into the session, the session stays.
///
/// Does nothing if a client is attached to the session: a daemon in another container may use it.
/// Does nothing either if another program has created a session with this name.
fn kill_idle_pane(tmux: &TmuxEndpoint, name: &str, deadline: Deadline) {
    let created_here = "#{==:#{@teamd_server_epoch},#{pid} #{start_time}}";
    let guarded = if_then(
        &format!("={name}:"),
        &all_of(created_here, "#{==:#{session_attached},0}"),
        &CommandList::new(&kill_idle_pane_command(name)),
    );
    // An error is ignored: it only means that the next daemon waits for this session again.
    drop(guarded.map(|guarded| run_tmux_process::run(tmux, &guarded, deadline)));
}

/// Returns the names of hidden sessions whose process has exited. Empty if no server replies.
fn stale_sessions(tmux: &TmuxEndpoint, deadline: Deadline) -> BTreeSet<String> {
    let clients = ListClients::new().format("#{session_name}").build();
    // A hidden session without its idle pane has windows of other programs, and stays.
    let is_idle_pane = "#{==:#{pane_id},#{@teamd_idle_pane}}";
    let sessions = ListPanes::new().all().filter(is_idle_pane).format("#{session_name}").build();
    let Ok(reply) =
        run_tmux_process::run(tmux, &CommandList::new(&clients).with_command(&sessions), deadline)
    else {
        return BTreeSet::new();
    };
    let names = reply.text().unwrap_or_default();
    let is_stale = |name: &&str| session_pid(name).is_some_and(has_exited);
    names.lines().filter(is_stale).map(str::to_owned).collect()
}

/// Whether the process `pid` has exited. A zombie counts as exited. So does a process in another
/// container, because this process cannot see it. If the process table cannot be read, no process
/// counts as exited.
fn has_exited(pid: u32) -> bool {
    platform::ProcessEntry::start_time(pid).is_ok_and(|start| start.is_none())
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

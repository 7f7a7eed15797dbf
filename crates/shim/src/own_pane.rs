//! Closing the pane that the shim runs in, when no daemon does.

use std::process::{Command, Stdio};
use store::env_var;

/// The daemon closes the panes of agents that have ended; where there is none, we close our own. By a command, not by
/// our end: see docs/ARCHITECTURE.md, deviation 7.
pub(crate) fn close_own_pane(spawn: &str) {
    if !spawn.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        // tmux would read more than a word into it.
        return;
    }
    let (Some(tmux), Some(pane)) = (env_var("TMUX"), env_var("TMUX_PANE")) else { return };
    let socket = tmux.split(',').next().unwrap_or_default();
    let mut command = Command::new("tmux");
    // Whoever starts the pane anew hangs us up, and has it as theirs.
    let ours = format!("#{{&&:#{{==:#{{@teamd}},{spawn}}},#{{==:#{{pane_pid}},{}}}}}", std::process::id());
    command.args(["-S", socket, "if-shell", "-F", "-t", &pane, &ours, &format!("kill-pane -t {pane}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
}

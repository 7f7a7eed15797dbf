//! Closes the pane that the shim runs in, if no daemon does it.

use std::process::{Command, Stdio};
use store::env_var;

/// Closes the pane of this shim. The daemon closes the panes of ended agents; without a daemon the
/// shim does it itself.
///
/// The pane is closed by a tmux command and not by the exit of the shim: see docs/ARCHITECTURE.md,
/// deviation 7.
pub(crate) fn close_own_pane(spawn: &str) {
    if !spawn.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        // tmux would parse such an id as more than a word.
        return;
    }
    let (Some(tmux), Some(pane)) = (env_var("TMUX"), env_var("TMUX_PANE")) else { return };
    let socket = tmux.split(',').next().unwrap_or_default();
    let mut command = Command::new("tmux");
    // If a user respawns the pane, tmux sends SIGHUP to the shim, and the pane is the user's. So
    // the command checks that the shim is still the pane's process.
    let ours =
        format!("#{{&&:#{{==:#{{@teamd_spawn}},{spawn}}},#{{==:#{{pane_pid}},{}}}}}", std::process::id());
    command.args(["-S", socket, "if-shell", "-F", "-t", &pane, &ours, &format!("kill-pane -t {pane}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
}

//! Closes the pane that the shim runs in, if no daemon does it.

use std::process::{Command, Stdio};
use store::env_var;

/// Closes the pane of this shim. Normally the daemon closes the panes of agents that have ended.
/// The shim calls this function when there is no daemon.
///
/// A tmux command must close the pane, because the pane stays open when the shim exits
/// (`remain-on-exit`). docs/ARCHITECTURE.md says why this option is set.
pub(crate) fn close_own_pane(spawn: &str) {
    if !spawn.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        // tmux would not parse such a spawn id as a single word.
        return;
    }
    let (Some(tmux), Some(pane)) = (env_var("TMUX"), env_var("TMUX_PANE")) else { return };
    let socket = tmux.split(',').next().unwrap_or_default();
    let mut command = Command::new("tmux");
    // The command closes the pane only if the shim is still the pane's process. If the user has
    // respawned the pane, tmux has sent SIGHUP to the shim, and the pane now belongs to the user.
    let is_own_process =
        format!("#{{&&:#{{==:#{{@teamd_spawn}},{spawn}}},#{{==:#{{pane_pid}},{}}}}}", std::process::id());
    command.args([
        "-S",
        socket,
        "if-shell",
        "-F",
        "-t",
        &pane,
        &is_own_process,
        &format!("kill-pane -t {pane}"),
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
}

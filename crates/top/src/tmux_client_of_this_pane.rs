//! The terminal (tmux client) in which the person sees `top`: which session and window it shows,
//! and which keys lead from a member's pane back to `top`.

use crate::teamctl_command::memory_file;
use std::process::{Command, Stdio};

/// A tmux client, and the session and window that it shows.
pub(crate) struct TmuxClient {
    name: String,
    session: String,
    window: String,
}

impl TmuxClient {
    /// The first client of this pane's session. `None` if there is none.
    pub(crate) fn find_for_this_pane() -> Option<TmuxClient> {
        let pane = std::env::var("TMUX_PANE").unwrap_or_default();
        TmuxClient::list(&["-t", &pane]).into_iter().next()
    }

    /// The clients with a terminal. The daemon's own client is in control mode and is left out.
    fn list(options: &[&str]) -> Vec<TmuxClient> {
        let format = "#{client_control_mode} #{session_id} #{window_id} #{client_name}";
        let listed = run_tmux(&[&["list-clients", "-F", format], options].concat()).unwrap_or_default();
        let client = |line: &str| {
            let mut fields = line.strip_prefix("0 ")?.splitn(3, ' ').map(str::to_owned);
            let (session, window, name) = (fields.next()?, fields.next()?, fields.next()?);
            Some(TmuxClient { name, session, window })
        };
        listed.lines().filter_map(client).collect()
    }

    /// Shows in tmux for 5 s which key leads back to the team's screen. tmux expands formats
    /// (`#{…}`) in this text, so the text contains nothing that another program wrote.
    pub(crate) fn show_return_key(&self) {
        let Some(now) = TmuxClient::list(&[]).into_iter().find(|client| client.name == self.name) else {
            return;
        };
        let back = match (now.session == self.session, now.window == self.window) {
            (false, _) => "prefix L (switch-client -l)",
            (true, false) => "prefix l (last-window)",
            (true, true) => "prefix ; (last-pane)",
        };
        let text = format!("back to the team's screen: {back}");
        run_tmux(&["display-message", "-d", "5000", "-c", &self.name, &text]);
    }
}

/// Whether this program runs in a pane or a popup of tmux.
pub(crate) fn is_inside_tmux() -> bool {
    std::env::var("TMUX").is_ok_and(|tmux| !tmux.is_empty())
}

/// Copies a text to a buffer of tmux. tmux also copies the text to the clipboard of the terminal in
/// which tmux runs. Returns whether tmux has succeeded.
pub(crate) fn copy_to_tmux(text: &str) -> bool {
    // Standard input is used, because the list of processes shows arguments.
    let input = memory_file(text).map(Stdio::from);
    input.is_ok_and(|input| run_tmux_with_input(&["load-buffer", "-w", "-"], input).is_some())
}

/// Runs tmux on the server of this pane. `None` if it failed.
pub(crate) fn run_tmux(args: &[&str]) -> Option<String> {
    run_tmux_with_input(args, Stdio::null())
}

fn run_tmux_with_input(args: &[&str], input: Stdio) -> Option<String> {
    let socket = std::env::var("TMUX").ok()?.split(',').next()?.to_owned();
    let output = Command::new("tmux").arg("-S").arg(socket).args(args).stdin(input).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

//! Lines about the daemon, panes, interrupted runs, suspended members and exhausted budgets, shared
//! by several commands.

use crate::add_options_to_suggested_commands::rewrite_commands;
use crate::command_context::CommandContext;
use crate::output;
use client::find_tmux_session_of_daemon::{DaemonSession, daemon_session};
use client::suggested_commands::SuggestedCommands;
use protocol::control_socket::{StatusReply, TeamStatus};
use runner::InterruptedRun;

/// The line about the daemon. `state` is `is ready` or `runs already`.
pub(in crate::commands) fn daemon_line(status: &StatusReply, state: &str) -> String {
    let daemon = &status.daemon;
    let tmux = daemon.tmux.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    format!("teamd {state}: pid {}, root {}, tmux {tmux}.", daemon.pid, daemon.root.display())
}

/// Says how many members are suspended and how to resume them. `None`: there are none.
pub(in crate::commands) fn suspended_line(count: usize, commands: &SuggestedCommands) -> Option<String> {
    let resume = commands.command(&["up", "--resume"]);
    match count {
        0 => None,
        1 => Some(format!("1 member is suspended; resume it with: {resume}")),
        several => Some(format!("{several} members are suspended; resume them with: {resume}")),
    }
}

/// Says that a run was killed, and how to go on with it.
pub(in crate::commands) fn interrupted_run_line(
    run: &InterruptedRun,
    commands: &SuggestedCommands,
) -> String {
    let file = run.file.display().to_string();
    let options: &[&str] = if run.keeps_team { &["--resume", "--keep-team"] } else { &["--resume"] };
    let resume = commands.without_team().command_for_name("run", &file, options);
    format!("no run drives the team any more, so failed tasks are not retried; go on with: {resume}")
}

/// Says that the team's budget is exhausted and how to raise it. `None`: it is not exhausted.
pub(in crate::commands) fn budget_line(context: &CommandContext, team: &TeamStatus) -> Option<String> {
    let reason = team.budget.as_ref()?.exhausted_reason.as_ref()?;
    let help = format!("give it more with: teamctl policy FILE -t {}", team.name);
    Some(format!("No member of {} is started: {reason}.\n  {}", team.name, rewrite_commands(context, &help)))
}
/// Where the members' panes open, with the command that goes there.
pub(in crate::commands) fn panes_line(status: &StatusReply) -> Option<String> {
    let DaemonSession { name, command } = daemon_session(&status.daemon)?;
    let line = format!("The members' panes open in the tmux session {name}. Go there: {command}");
    Some(output::sanitize(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_run_keeps_its_team_if_it_was_to() {
        let line = |keeps_team| {
            let run = InterruptedRun { file: "/a b.toml".into(), keeps_team };
            interrupted_run_line(&run, &SuggestedCommands::default())
        };
        assert!(line(false).ends_with("go on with: teamctl run '/a b.toml' --resume"), "{}", line(false));
        assert!(line(true).ends_with("go on with: teamctl run '/a b.toml' --resume --keep-team"));
    }
}

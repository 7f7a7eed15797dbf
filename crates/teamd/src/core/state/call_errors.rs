//! The errors of calls that more than one handler returns.

use crate::core::state::core_state::State;
use crate::core::state::team::TeamState;
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::{BEING_DELETED_SUFFIX, ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;

/// The error for a call while the daemon shuts down. `next_command` is the command to run once the
/// daemon has ended.
pub(crate) fn going_down_error(action: &str, next_command: &str) -> ErrorReport {
    let message = format!("cannot {action}: teamd is going down");
    ErrorReport::new(ErrorKind::Refused, message).with_help(format!("once it has ended: {next_command}"))
}

/// The error for an unknown team, or a team of another program.
pub(crate) fn no_such_team_error(state: &State, team: &TeamName) -> ErrorReport {
    if team.is_claude_session() {
        let message = format!("cannot do that in {team}: it belongs to a session of Claude Code");
        return ErrorReport::new(ErrorKind::NotPermitted, message)
            .with_help("it can be looked at with status and inbox, and its members can be sent messages");
    }
    let suggestion = did_you_mean(team.as_str(), state.teams.keys().map(TeamName::as_str));
    ErrorReport::new(ErrorKind::NotFound, format!("cannot find the team {team}"))
        .with_help(suggestion.unwrap_or_else(|| format!("make it with: teamctl create {team}")))
}

pub(crate) fn no_pane_error(team: &TeamName, name: &str, verb: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, format!("cannot {verb} {name}: it has no pane"))
        .with_help(format!("its output: teamctl logs {name} -t {team}"))
}

/// The error for moving or arranging a session of iTerm2. `verb` completes "cannot …".
pub(crate) fn iterm2_error(team: &TeamName, subject: &str, verb: &str) -> ErrorReport {
    let message = format!("cannot {verb} {subject}: only tmux panes can be moved, and it runs in iTerm2");
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("move the panes in iTerm2 itself; its members: teamctl status -t {team}"))
}

pub(crate) fn tmux_gone_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::MissingPath, "cannot reach tmux: its server is gone")
        .with_help("see: teamctl doctor")
}

/// The error for deleting a team that has members.
pub(crate) fn has_members_error(team: &TeamName, names: &[String]) -> ErrorReport {
    let message = format!("Cannot cleanup team with {} active member(s): {}", names.len(), names.join(", "));
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("end them with: teamctl shutdown --all -t {team}; then delete it again"))
}

/// The error for deleting the mirror of a team.
pub(crate) fn mirror_error(team: &TeamName) -> ErrorReport {
    let message = format!("cannot delete {team} here: its home is another machine");
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help("delete it there; to end its members here: teamctl shutdown --all")
}

/// The error for deleting a team with members that teamd does not run.
pub(crate) fn has_unsupervised_members_error(team: &TeamName, names: &[String]) -> ErrorReport {
    let names = names.join(", ");
    let message = format!("cannot delete {team}: it has members that teamd does not run: {names}");
    ErrorReport::new(ErrorKind::Refused, message).with_help(format!(
        "end those of other hosts with: teamctl shutdown --all -t {team}; end others in the program that started them; to delete the team at once: teamctl delete {team} --force"
    ))
}

pub(crate) fn check_not_deleting(name: &TeamName, team: &TeamState) -> Result<(), ErrorReport> {
    if team.deletion.is_none() {
        return Ok(());
    }
    let error =
        ErrorReport::new(ErrorKind::Refused, format!("cannot do that: {name} {BEING_DELETED_SUFFIX}"));
    Err(error.with_help("it is over in a moment; what is left then: teamctl status"))
}

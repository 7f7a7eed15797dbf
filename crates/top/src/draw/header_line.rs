//! The line at the top of the screen.

use crate::team_snapshot_for_screen::{DaemonReachability, TaskState, TeamPresence};
use crate::ui_state::UiState;
use protocol::team_and_member_names::MemberName;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// The line at the top of the screen: the team and what needs attention.
pub(super) fn header_spans(state: &UiState) -> Vec<Span<'static>> {
    let (capabilities, snapshot) = (state.capabilities, &state.snapshot);
    let mut spans =
        vec![Span::styled(format!("{}  ", state.team), Style::new().add_modifier(Modifier::BOLD))];
    spans.extend(daemon_span(state));
    if (snapshot.daemon, snapshot.team) == (DaemonReachability::Running, TeamPresence::Exists) {
        let active = snapshot.members.iter().filter(|member| member.state.starts_with("active")).count();
        spans.push(Span::raw(format!("{} active", count_text(active, "member", "members"))));
    }
    spans.extend([requests_span(state), failed_tasks_span(state), lead_span(state)].into_iter().flatten());
    if !state.filter.is_empty() {
        spans.push(Span::raw(format!("  only: {}", capabilities.printable_line(&state.filter))));
    }
    if !snapshot.budget.is_empty() {
        spans.push(Span::raw(format!("  {}", capabilities.printable_line(&snapshot.budget))));
    }
    spans
}

/// The text for the header that says what is wrong with the team or the daemon. `None` if the
/// team exists and the daemon answers.
fn daemon_span(state: &UiState) -> Option<Span<'static>> {
    let snapshot = &state.snapshot;
    let text = match (snapshot.team, snapshot.daemon) {
        (TeamPresence::Deleted, _) => "no such team any more".to_owned(),
        (_, DaemonReachability::Unknown) => return Some(Span::raw("looking")),
        (_, DaemonReachability::Running) => return None,
        (_, DaemonReachability::NotRunning) => {
            let up = state.suggested_commands.without_team().command(&["up"]);
            format!("teamd is down ({up}): this is what the files say")
        }
        (_, DaemonReachability::Unresponsive) => {
            "teamd does not answer: this is what the files say".to_owned()
        }
    };
    Some(Span::styled(text, bold_style(state, Color::Red)))
}

/// The text for the header that says how many requests are open, or that they cannot be read.
/// `None` if no request is open.
fn requests_span(state: &UiState) -> Option<Span<'static>> {
    let snapshot = &state.snapshot;
    if snapshot.has_unreadable_requests() {
        let requests = state.suggested_commands.command(&["requests"]);
        let text = format!("  requests can't be read: {requests} says why");
        return Some(Span::styled(text, bold_style(state, Color::Red)));
    }
    let open = snapshot.requests.as_ref().map_or(0, Vec::len);
    let text = format!("  {}", count_text(open, "request waits", "requests wait"));
    (open > 0).then(|| Span::styled(text, bold_style(state, Color::Yellow)))
}

/// The text for the header that says how many tasks have failed. `None` if no task has failed.
fn failed_tasks_span(state: &UiState) -> Option<Span<'static>> {
    let failed = state.snapshot.tasks.iter().filter(|task| task.state == TaskState::Failed).count();
    let text = format!("  {}", count_text(failed, "task failed", "tasks failed"));
    (failed > 0).then(|| Span::styled(text, bold_style(state, Color::Red)))
}

/// The text for the header that says how many messages to the lead are unread. It is in the
/// header because the lead's row in the list may be out of sight. `None` if all messages are
/// read or the number is unknown.
fn lead_span(state: &UiState) -> Option<Span<'static>> {
    let lead = state.snapshot.member(MemberName::lead().as_str())?;
    let unread = lead.unread.filter(|unread| *unread > 0)?;
    Some(Span::styled(format!("  lead: {unread} unread"), Style::new().add_modifier(Modifier::BOLD)))
}

fn bold_style(state: &UiState, color: Color) -> Style {
    state.capabilities.color_style(color).add_modifier(Modifier::BOLD)
}

/// A number with its noun: `one` is the singular, `many` the plural.
fn count_text(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

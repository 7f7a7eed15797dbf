//! Builds the list items of a snapshot: texts about members and requests.

use crate::clock_time::ScreenClock;
use crate::team_snapshot_for_screen::{MemberItem, RequestItem};
use client::member_request_view::{MemberRequestView, request_text};
use client::member_view::MemberView;
use client::suggested_commands::SuggestedCommands;
use protocol::control_socket::{Activity, BudgetStatus, PastMember};
use protocol::single_line::single_line;
use protocol::token_and_cost_usage::Usage;

/// Returns the list item of a member. `last_line` is the last line of the member's output log. If
/// the member runs on another host, its log is there, so the item shows the host's name in place of
/// the line.
pub(crate) fn member_item(member: &MemberView, last_line: String, clock: &ScreenClock) -> MemberItem {
    MemberItem {
        name: member.name.clone(),
        color: member.color.clone(),
        state: state_text(member),
        since: member.activity_since.map(|since| clock.text(since)).unwrap_or_default(),
        unread: member.unread,
        task: single_line(member.task.as_deref().unwrap_or_default()),
        usage: usage_text(member.usage),
        last_line: member.host.as_ref().map_or(last_line, |host| single_line(&format!("on {host}"))),
        pane: member.pane.clone(),
        details: detail_lines(member),
    }
}

fn usage_text(usage: Usage) -> String {
    if usage.is_zero() { String::new() } else { usage.to_string() }
}

/// The budget as a text. The end of the time limit is shown as a clock time, which stays correct.
pub(crate) fn budget_text(budget: &BudgetStatus, clock: &ScreenClock) -> String {
    let until =
        budget.max_time_ms.map(|ms| format!("until {}", clock.text(budget.started_at.saturating_add(ms))));
    client::budget_text::budget_text(budget, until)
}

/// The activity and the flags of a running member. For any other member its lifecycle.
fn state_text(member: &MemberView) -> String {
    let lifecycle = member.lifecycle_and_flags();
    let activity = match member.activity {
        Some(Activity::Active) => "active",
        Some(Activity::Idle) => "idle",
        None => return lifecycle,
    };
    match lifecycle.strip_prefix("running") {
        Some(flags) => format!("{activity}{flags}"),
        // `stopping` includes the shutdown request.
        None => lifecycle.replacen("stopping!shutdown", "stopping", 1),
    }
}

fn detail_lines(member: &MemberView) -> Vec<String> {
    let lifecycle = Some(member.lifecycle_and_flags()).filter(|text| !text.is_empty());
    let pane = match (&member.pane, member.is_hidden) {
        (Some(pane), true) => Some(format!("pane {pane}, hidden")),
        (Some(pane), false) => Some(format!("pane {pane}")),
        (None, _) => None,
    };
    let respawns = member.respawns.filter(|times| *times > 0);
    let lines = [
        lifecycle.map(|text| format!("lifecycle {text}")),
        member.host.as_ref().map(|host| format!("host {host}")),
        pane,
        member.backend.as_ref().map(|backend| format!("backend {backend}")),
        member.pid.map(|pid| format!("pid {pid}")),
        member.mode.as_ref().map(|mode| format!("mode {mode}")),
        respawns.map(|times| format!("started again {times} times")),
        member.worktree.as_ref().map(|path| format!("worktree {}", path.display())),
        member.branch.as_ref().map(|branch| format!("branch {branch}")),
        member.delivery_point.map(|point| point.description().to_string()),
        member.activity_reason.clone().filter(|activity_reason| !activity_reason.is_empty()),
    ];
    lines.into_iter().flatten().map(|line| single_line(&line)).collect()
}

/// The list item of a past member. `commands` is how a person types a command about the team.
pub(crate) fn past_member_item(
    past: &PastMember,
    commands: &SuggestedCommands,
    clock: &ScreenClock,
) -> MemberItem {
    let next_spawn = match (past.respawns_at, past.is_suspended) {
        (Some(at), _) => format!(", again at {}", clock.text(at)),
        (None, true) => format!("; resume it with: {}", commands.command(&["up", "--resume"])),
        (None, false) => String::new(),
    };
    MemberItem {
        name: past.name.to_string(),
        state: if past.is_suspended { "suspended".to_owned() } else { past.outcome.clone() },
        since: clock.text(past.ended_at),
        unread: Some(0),
        usage: usage_text(past.usage),
        last_line: single_line(&format!("{}{next_spawn}", past.description)),
        details: vec![format!("ended: {}{next_spawn}", single_line(&past.description))],
        ..MemberItem::default()
    }
}

/// The list item of an open request.
pub(crate) fn request_item(open: &MemberRequestView, clock: &ScreenClock) -> RequestItem {
    let MemberRequestView { request, policy_answer } = open;
    let (id, from) = (request.request.id().to_string(), request.from.to_string());
    let since = if request.asked_at == 0 { String::new() } else { clock.text(request.asked_at) };
    let text = request_text(&request.request);
    let timeout_text = policy_answer.map_or_else(String::new, |(at, approved)| {
        format!(", {} at {} without an answer", if approved { "approved" } else { "denied" }, clock.text(at))
    });
    let since_text = if since.is_empty() { String::new() } else { format!(" since {since}") };
    // The request is indented, so that no line of its text can imitate a line of the screen.
    let indented: String = text.lines().map(|line| format!("\n  {line}")).collect();
    let details =
        format!("{}, request {}{since_text}{timeout_text}\n{indented}", single_line(&from), single_line(&id));
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let summary =
        if first.ends_with(':') { format!("{first} {}", lines.next().unwrap_or_default()) } else { first };
    RequestItem { id, from, since, summary, details }
}

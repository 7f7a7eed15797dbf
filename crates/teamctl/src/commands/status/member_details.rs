//! Details of one member that the table does not show: its process, its worktree, its environment,
//! and a sentence for each of its flags, such as `AtDialog`.

use crate::commands::status::table_cells::{activity_name, age};
use crate::output::sanitize;
use client::member_view::MemberView;
use client::short_duration::short_duration;
use client::suggested_commands::SuggestedCommands;
use protocol::control_socket::{FailedTurnsPause, MemberFlag, TurnPause, WorktreeStatus};
use protocol::single_line::single_line;
use store::now;

/// Details of one member that the table does not show.
pub(super) fn member_details(member: &MemberView, commands: &SuggestedCommands) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(pid) = member.pid {
        let backend =
            member.backend.as_deref().map_or_else(String::new, |backend| format!(", backend {backend}"));
        let respawns = match member.respawns.unwrap_or(0) {
            0 => String::new(),
            1 => ", started again once".to_owned(),
            times => format!(", started again {times} times"),
        };
        lines.push(format!("  pid {pid}{backend}{respawns}"));
    }
    lines.extend(member.mode.iter().map(|mode| format!("  mode {}", single_line(mode))));
    if let (Some(since), Some(activity_reason)) = (member.activity_since, &member.activity_reason)
        && !activity_reason.is_empty()
    {
        let activity =
            member.activity.map(|activity| format!("{} for {}: ", activity_name(activity), age(since)));
        lines.push(format!("  {}{}", activity.unwrap_or_default(), single_line(activity_reason)));
    }
    lines.extend(member.delivery_point.map(|point| format!("  {}", point.description())));
    lines.extend(member.flags.iter().map(|flag| format!("  {}", flag_text(*flag, member, commands))));
    lines.into_iter().map(|line| sanitize(&line)).collect()
}

/// The member's environment. It is long and seldom needed, so it is printed last.
pub(super) fn environment_lines(member: &MemberView) -> Vec<String> {
    let Some(environment) = &member.environment else { return Vec::new() };
    let pairs = environment.iter().map(|(name, value)| format!("    {name}={}", single_line(value)));
    std::iter::once("  environment:".to_owned()).chain(pairs).map(|line| sanitize(&line)).collect()
}

/// The worktree of a current or past member.
pub(super) fn worktree_line(worktree: &WorktreeStatus) -> String {
    sanitize(
        &format!("  worktree {}, branch {}", worktree.path.display(), worktree.branch).replace('\n', "\\n"),
    )
}

fn flag_text(flag: MemberFlag, member: &MemberView, commands: &SuggestedCommands) -> String {
    let text = match flag {
        MemberFlag::AtDialog => {
            let attach = commands.command_for_name("attach", &member.name, &[]);
            let question = member.dialog.as_ref().map(|text| format!(" ({})", single_line(text)));
            let question = question.unwrap_or_default();
            return format!("its program waits at a dialog{question}: go there with {attach}");
        }
        MemberFlag::NoOutput => {
            let capture = commands.command_for_name("capture", &member.name, &[]);
            return format!(
                "its turn has written nothing for long, it may wait for a person; see its screen: {capture}"
            );
        }
        MemberFlag::Limited => return limit_text(member, commands),
        MemberFlag::Paused | MemberFlag::TurnsStopped => return pause_text(member, commands),
        MemberFlag::AwaitingPlanApproval => "its plan waits for an answer",
        MemberFlag::AwaitingPermission => "it asks for permission, and waits for the answer",
        MemberFlag::ShutdownRequested => "it was asked to shut down, and has not answered",
        MemberFlag::DialogUnknown => {
            "whether its program waits at a dialog is not known: tmux did not show its screen"
        }
    };
    text.to_owned()
}

/// Why turns of the member wait, and what starts the next one.
fn pause_text(member: &MemberView, commands: &SuggestedCommands) -> String {
    match &member.turn_pause {
        Some(TurnPause::FailedTurns(pause)) => failed_turns_text(member, pause, commands),
        Some(TurnPause::Exchange(pause)) => format!(
            "it answered {with} in {} turns within {}: more messages from {with} wait {}",
            pause.turns,
            short_duration(pause.within_ms),
            short_duration(pause.until.saturating_sub(now())),
            with = single_line(pause.with.as_str()),
        ),
        Some(TurnPause::NoContact(pause)) => format!(
            "it begins no turn until the home of its team has contact again: none for {}",
            short_duration(now().saturating_sub(pause.since)),
        ),
        None => "its turns are paused".to_owned(),
    }
}

/// Until when the member's program is at its usage limit, and what starts the next turn.
fn limit_text(member: &MemberView, commands: &SuggestedCommands) -> String {
    let time = member.usage_limit.as_ref().map(|limit| single_line(&limit.local_time)).unwrap_or_default();
    let limited = format!("its program is limited until {time}");
    match &member.turn_pause {
        Some(TurnPause::FailedTurns(FailedTurnsPause { reason, until: Some(until), .. })) => {
            let send = commands.command_for_name("send", &member.name, &["TEXT"]);
            let wait = short_duration(until.saturating_sub(now()));
            format!(
                "{limited} ({}): the next turn starts in {wait}, or at once with {send}",
                single_line(reason)
            )
        }
        _ => limited,
    }
}

/// How many turns of the member have failed, why, and what starts the next one.
fn failed_turns_text(member: &MemberView, pause: &FailedTurnsPause, commands: &SuggestedCommands) -> String {
    let turns = match pause.failed_turns {
        1 => "its last turn has failed".to_owned(),
        count => format!("its last {count} turns have failed"),
    };
    let send = commands.command_for_name("send", &member.name, &["TEXT"]);
    let next_turn = match pause.until.map(|at| short_duration(at.saturating_sub(now()))) {
        Some(time) => format!("the next turn starts in {time}, or at once with {send}"),
        None => format!("it starts no further turn until you write to it: {send}"),
    };
    format!("{turns} ({}): {next_turn}", single_line(&pause.reason))
}

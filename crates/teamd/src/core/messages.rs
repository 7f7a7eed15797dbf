//! Mail: its owner is woken at once; then the inbox is read, for the event log and for what of it concerns us:
//! answers to shutdown requests, and what members ask.

use crate::core::clock::Now;
use crate::core::effect::Effect;
use crate::core::jobs::files::{FileJob, InboxScanResult, RestoreRule};
use crate::core::lifecycle::{Lifecycle, Stopping};
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::state::team::ScanState;
use crate::core::turns::activity;
use crate::core::{approvals, lead_session};
use protocol::control::Activity;
use protocol::delivery::Delivery;
use protocol::error::ErrorReport;
use protocol::event::{Event, EventKind};
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;

/// A storm of changes becomes one look, and one more after it.
pub(crate) fn handle_inbox_changed(
    state: &mut State,
    team: &TeamName,
    inbox: &str,
    rung: bool,
    out: &mut Vec<Effect>,
) {
    if AgentName::new_unchecked(inbox).is_lead() {
        read_shutdown_answers(state, team, out);
        lead_session::wake_lead(state, team, out);
    }
    if let Some(agent) = state.member(team, &AgentName::new_unchecked(inbox)) {
        out.push(Effect::WakeAgent { spawn: agent.record.spawn_id.clone(), is_already_woken: rung });
    }
    schedule_inbox_scan(state, team, inbox, out);
}

fn schedule_inbox_scan(state: &mut State, team: &TeamName, inbox: &str, out: &mut Vec<Effect>) {
    let guard = restore_rule(state, team, &AgentName::new_unchecked(inbox));
    let Some(known) = state.team_mut(team) else { return };
    if known.inbox_scans.entry(inbox.to_owned()).or_default().try_start() {
        out.push(Effect::File(FileJob::ScanInbox {
            team: team.clone(),
            inbox: inbox.to_owned(),
            restore_rule: guard,
        }));
    }
}

/// A program that speaks the files' protocol itself takes out what it has had. A member that is between two lives, or
/// has none, has nothing put back: it would be nobody's.
fn restore_rule(state: &State, team: &TeamName, owner: &AgentName) -> RestoreRule {
    if team.is_claude_session() {
        return RestoreRule::Never;
    }
    if owner.is_lead() {
        return RestoreRule::ForeignProgram;
    }
    match state.member(team, owner) {
        None => RestoreRule::NotNow,
        Some(agent) if matches!(agent.lifecycle, Lifecycle::Gone(_)) => RestoreRule::NotNow,
        Some(agent) => match agent.record.delivery {
            Delivery::Native => RestoreRule::Never,
            Delivery::Pull => RestoreRule::ForeignProgram,
            Delivery::Hook | Delivery::Acp | Delivery::Turn | Delivery::Keys => RestoreRule::OwnDelivery,
        },
    }
}

pub(crate) fn handle_inbox_scanned(
    state: &mut State,
    team: &TeamName,
    inbox: &str,
    result: Result<InboxScanResult, ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.team_mut(team) else { return };
    let again = known.inbox_scans.remove(inbox) == Some(ScanState::RunningRescanNeeded);
    let more = result.as_ref().is_ok_and(|mail| mail.has_more);
    match result {
        Err(fault) => out.push(Effect::log_team(team, EventKind::Error { message: fault.message })),
        Ok(mail) => apply_scan(state, team, &AgentName::new_unchecked(inbox), mail, now, out),
    }
    if again {
        // Its owner was woken for each change.
        handle_inbox_changed(state, team, inbox, true, out);
    } else if more {
        schedule_inbox_scan(state, team, inbox, out);
    }
}

fn apply_scan(
    state: &mut State,
    team: &TeamName,
    owner: &AgentName,
    mail: InboxScanResult,
    now: Now,
    out: &mut Vec<Effect>,
) {
    approvals::apply_messages(state, team, owner, &mail, now, out);
    for letter in mail.new {
        if owner.is_lead() && matches!(letter.payload, Some(Payload::IdleNotification(_))) {
            activity::apply_config_activity(state, team, &letter.from, Activity::Idle, now, out);
        }
        let what = EventKind::MessageStored {
            index: letter.index,
            from: letter.from.to_string(),
            kind: letter.payload.as_ref().map_or("text", Payload::type_name).to_owned(),
            summary: letter.summary,
        };
        out.push(Effect::Log(Event::for_member(team, owner, what)));
    }
    for letter in mail.restored {
        let kind = letter.payload.as_ref().map_or("text", Payload::type_name).to_owned();
        let what = EventKind::MessageRestored {
            from: letter.from.to_string(),
            kind,
            summary: letter.summary.clone(),
        };
        out.push(Effect::Log(Event::for_member(team, owner, what)));
    }
    if let Some(unread) = mail.unread {
        out.push(Effect::Log(Event::for_member(team, owner, EventKind::MessageRead { unread })));
    }
}

/// In the lead's inbox there may be an answer to a shutdown request.
fn read_shutdown_answers(state: &State, team: &TeamName, out: &mut Vec<Effect>) {
    let asked = |agent: &&Agent| {
        agent.record.team == *team
            && matches!(agent.lifecycle, Lifecycle::Stopping(_, Stopping::Requested(_)))
    };
    let asked = state.agents.values().filter(asked);
    let requests: Vec<RequestId> = asked.flat_map(|agent| agent.record.shutdown_requests.clone()).collect();
    if !requests.is_empty() {
        out.push(Effect::File(FileJob::ReadShutdownAnswers { team: team.clone(), requests }));
    }
}

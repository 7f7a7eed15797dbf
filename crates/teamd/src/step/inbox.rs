//! Mail: its owner is woken at once; then the inbox is read, for the event log and for what of it concerns us:
//! answers to shutdown requests, and what members ask.

use super::{lead, requests, turn};
use crate::effect::Effect;
use crate::event::Now;
use crate::files::{FileJob, Guard, Mail};
use crate::state::{Agent, Look, Phase, State, Stopping};
use protocol::control::Activity;
use protocol::delivery::Delivery;
use protocol::error::ErrorReport;
use protocol::event::{Event, EventKind};
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;

/// A storm of changes becomes one look, and one more after it.
pub(super) fn changed(state: &mut State, team: &TeamName, inbox: &str, rung: bool, out: &mut Vec<Effect>) {
    if AgentName::new_unchecked(inbox).is_lead() {
        answers(state, team, out);
        lead::mail(state, team, out);
    }
    if let Some(agent) = state.member(team, &AgentName::new_unchecked(inbox)) {
        out.push(Effect::Wake { spawn: agent.record.spawn.clone(), rung });
    }
    look(state, team, inbox, out);
}

fn look(state: &mut State, team: &TeamName, inbox: &str, out: &mut Vec<Effect>) {
    let guard = guard(state, team, &AgentName::new_unchecked(inbox));
    let Some(known) = state.watched_mut(team) else { return };
    if known.reading.entry(inbox.to_owned()).or_default().is_due() {
        out.push(Effect::File(FileJob::Inbox { team: team.clone(), inbox: inbox.to_owned(), guard }));
    }
}

/// A program that speaks the files' protocol itself takes out what it has had. A member that is between two lives, or
/// has none, has nothing put back: it would be nobody's.
fn guard(state: &State, team: &TeamName, owner: &AgentName) -> Guard {
    if team.is_claude_session() {
        return Guard::Never;
    }
    if owner.is_lead() {
        return Guard::Looks;
    }
    match state.member(team, owner) {
        None => Guard::Later,
        Some(agent) if matches!(agent.phase, Phase::Gone(_)) => Guard::Later,
        Some(agent) => match agent.record.feed {
            Delivery::Native => Guard::Never,
            Delivery::Pull => Guard::Looks,
            Delivery::Hook | Delivery::Acp | Delivery::Turn | Delivery::Keys => Guard::Fed,
        },
    }
}

pub(super) fn seen(
    state: &mut State,
    team: &TeamName,
    inbox: &str,
    result: Result<Mail, ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.watched_mut(team) else { return };
    let again = known.reading.remove(inbox) == Some(Look::Again);
    let more = result.as_ref().is_ok_and(|mail| mail.more);
    match result {
        Err(fault) => out.push(Effect::of_team(team, EventKind::Error { message: fault.message })),
        Ok(mail) => take(state, team, &AgentName::new_unchecked(inbox), mail, now, out),
    }
    if again {
        // Its owner was woken for each change.
        changed(state, team, inbox, true, out);
    } else if more {
        look(state, team, inbox, out);
    }
}

fn take(state: &mut State, team: &TeamName, owner: &AgentName, mail: Mail, now: Now, out: &mut Vec<Effect>) {
    requests::mail(state, team, owner, &mail, now, out);
    for letter in mail.new {
        if owner.is_lead() && matches!(letter.payload, Some(Payload::IdleNotification(_))) {
            turn::said(state, team, &letter.from, Activity::Idle, now, out);
        }
        let what = EventKind::MessageStored {
            index: letter.index,
            from: letter.from.to_string(),
            kind: letter.payload.as_ref().map_or("text", Payload::type_name).to_owned(),
            summary: letter.summary,
        };
        out.push(Effect::Log(Event::for_member(team, owner, what)));
    }
    for letter in mail.put_back {
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
fn answers(state: &State, team: &TeamName, out: &mut Vec<Effect>) {
    let asked = |agent: &&Agent| {
        agent.record.team == *team && matches!(agent.phase, Phase::Stopping(_, Stopping::Asked(_)))
    };
    let asked = state.agents.values().filter(asked);
    let requests: Vec<RequestId> = asked.flat_map(|agent| agent.record.asked.clone()).collect();
    if !requests.is_empty() {
        out.push(Effect::File(FileJob::Answers { team: team.clone(), requests }));
    }
}

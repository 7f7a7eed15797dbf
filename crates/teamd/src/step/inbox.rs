//! Mail: its owner is woken at once; then the inbox is read, for the event log and for what of it concerns us:
//! answers to shutdown requests, and plans that wait.

use super::turn;
use crate::effect::Effect;
use crate::event::Now;
use crate::files::{FileJob, Letter, Mail};
use crate::state::{Agent, Look, Phase, State, Stopping};
use protocol::control::Activity;
use protocol::event::{Event, What};
use protocol::fault::Fault;
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;

/// A storm of changes becomes one look, and one more after it.
pub(super) fn changed(state: &mut State, team: &TeamName, inbox: &str, out: &mut Vec<Effect>) {
    if AgentName::foreign(inbox).is_lead() {
        answers(state, team, out);
    }
    if let Some(agent) = state.member(team, &AgentName::foreign(inbox)) {
        out.push(Effect::Wake { spawn: agent.record.spawn.clone() });
    }
    let Some(known) = state.teams.get_mut(team) else { return };
    if known.reading.entry(inbox.to_owned()).or_default().is_due() {
        out.push(Effect::File(FileJob::Inbox { team: team.clone(), inbox: inbox.to_owned() }));
    }
}

pub(super) fn seen(
    state: &mut State,
    team: &TeamName,
    inbox: &str,
    result: Result<Mail, Fault>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.teams.get_mut(team) else { return };
    let again = known.reading.remove(inbox) == Some(Look::Again);
    match result {
        Err(fault) => out.push(Effect::of_team(team, What::Trouble { why: fault.message })),
        Ok(mail) => take(state, team, &AgentName::foreign(inbox), mail, now, out),
    }
    if again {
        changed(state, team, inbox, out);
    }
}

fn take(state: &mut State, team: &TeamName, owner: &AgentName, mail: Mail, now: Now, out: &mut Vec<Effect>) {
    mail.earlier.iter().for_each(|letter| plans(state, team, owner, letter));
    for letter in mail.new {
        plans(state, team, owner, &letter);
        if owner.is_lead() && matches!(letter.payload, Some(Payload::IdleNotification(_))) {
            turn::wrote(state, team, &letter.from, Activity::Idle, now, out);
        }
        let what = What::MessageStored {
            index: letter.index,
            from: letter.from.to_string(),
            kind: letter.payload.as_ref().map_or("text", Payload::kind).to_owned(),
            summary: letter.summary,
        };
        out.push(Effect::Log(Event::agent(team, owner, what)));
    }
    if let Some(unread) = mail.unread {
        out.push(Effect::Log(Event::agent(team, owner, What::MessageRead { unread })));
    }
}

/// A member's plan waits from its request to the answer; after a start of ours they may be read in any order.
fn plans(state: &mut State, team: &TeamName, owner: &AgentName, letter: &Letter) {
    let planner = if owner.is_lead() { &letter.from } else { owner };
    let hers = |agent: &&mut Agent| agent.record.team == *team && agent.record.name == *planner;
    let Some(agent) = state.agents.values_mut().find(hers) else { return };
    match &letter.payload {
        Some(Payload::PlanApprovalRequest(request))
            if owner.is_lead() && agent.answered.as_ref() != Some(&request.request_id) =>
        {
            agent.plan = Some(request.request_id.clone());
        }
        Some(Payload::PlanApprovalResponse(response)) if letter.from.is_lead() => {
            agent.plan.take_if(|plan| *plan == response.request_id);
            agent.answered = Some(response.request_id.clone());
        }
        _ => {}
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

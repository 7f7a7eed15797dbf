//! What members ask: the team's policy answers, or somebody is told that one waits.
//!
//! Which requests are open the files say, by one look at all of them (`store::requests`), so after a crash nothing is
//! asked or answered twice. A look follows whatever may have changed that; between two looks the state remembers what
//! was decided.

use super::plan;
use crate::effect::Effect;
use crate::event::Now;
use crate::files::{FileJob, Letter, Mail};
use crate::notices::News;
use crate::state::{Agent, Asking, Given, Look, Pending, State};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::{Event, EventKind};
use protocol::id::RequestId;
use protocol::member_request::{Answer, Approval, MemberRequestKind, answered_request};
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;
use protocol::permission_mode::PermissionMode;
use protocol::policy::{AnsweredBy, Policy, PolicyDecision};
use protocol::timestamp::parse_iso8601;
use std::collections::{BTreeMap, BTreeSet};
use store::OpenRequest;

/// What a look into an inbox found may open a request or close one.
pub(super) fn mail(
    state: &mut State,
    team: &TeamName,
    owner: &AgentName,
    mail: &Mail,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.watched_mut(team) else { return };
    let letters = || mail.earlier.iter().chain(&mail.new);
    let opens = owner.is_lead() && letters().any(|letter| letter.asks());
    let closes = !known.asked.is_empty()
        && (owner.is_lead() && mail.unread.is_some() || letters().any(|letter| letter.answers().is_some()));
    if mail.more {
        // A look is at all of it: one, after the last part.
        known.unseen_asked |= opens || closes;
    } else if opens || closes || known.unseen_asked {
        look(state, team, out);
    }
    if !owner.is_lead() {
        let from_lead = letters().filter(|letter| letter.from.is_lead());
        let approved: Vec<(u64, PermissionMode)> = from_lead.filter_map(plan_approved).collect();
        approved.into_iter().for_each(|(at, mode)| leaves_plan_mode(state, (team, owner), at, mode, now));
        let given: Vec<(RequestId, bool)> = mail.new.iter().filter_map(answered_by_lead).collect();
        given.iter().for_each(|(id, approved)| closed_by_lead(state, team, owner, id, *approved, out));
    }
}

/// When a plan was approved, ms since the epoch, and the mode to carry it out in.
fn plan_approved(letter: &Letter) -> Option<(u64, PermissionMode)> {
    match &letter.payload {
        Some(Payload::PlanApprovalResponse(answer)) if answer.approved => {
            let mode = answer.permission_mode.as_deref().and_then(|mode| mode.parse().ok());
            let at = parse_iso8601(&answer.timestamp).unwrap_or(u64::MAX);
            Some((at, mode.unwrap_or(PermissionMode::Default)))
        }
        _ => None,
    }
}

/// A plan of this life was approved: from now on its mode may be set.
fn leaves_plan_mode(
    state: &mut State,
    (team, owner): (&TeamName, &AgentName),
    at: u64,
    mode: PermissionMode,
    now: Now,
) {
    let hers = |agent: &&mut Agent| {
        agent.record.team == *team && agent.record.name == *owner && at >= agent.record.born
    };
    let Some(agent) = state.agents.values_mut().find(hers) else { return };
    agent.record.plan_approved = true;
    agent.record.comeback.iter_mut().for_each(|comeback| comeback.plan_approved = true);
    plan::approved(agent, mode, now);
    state.dirty = true;
}

fn answered_by_lead(letter: &Letter) -> Option<(RequestId, bool)> {
    letter.answers().filter(|_| letter.from.is_lead())
}

/// A storm of changes becomes one look, and one more after it.
pub(super) fn look(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    let Some(known) = state.watched_mut(team) else { return };
    if known.asking.is_due() {
        out.push(Effect::File(FileJob::Requests { team: team.clone() }));
    }
}

/// Where somebody waits for an answer.
pub(super) fn look_if_any(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    if state.watched_mut(team).is_some_and(|known| known.unseen_asked || !known.asked.is_empty()) {
        look(state, team, out);
    }
}

/// At the rescan: what could not be read or written is tried again.
pub(super) fn look_again(state: &mut State, out: &mut Vec<Effect>) {
    state.watched().iter().for_each(|team| look_if_any(state, team, out));
}

/// All requests of a team, as they stand now.
pub(super) fn seen(
    state: &mut State,
    team: &TeamName,
    result: Result<store::RequestScanResult, ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.watched_mut(team) else { return };
    let again = std::mem::take(&mut known.asking) == Look::Again;
    known.unseen_asked = result.is_err();
    match result {
        Err(fault) => out.push(Effect::of_team(team, EventKind::Error { message: fault.message })),
        Ok(store::RequestScanResult { open, answered, withdrawn, plans_timed_out_twice: overlooked }) => {
            known.overlooked = overlooked;
            let named = open.iter().map(|request| request.request.id().clone());
            let named: BTreeSet<RequestId> =
                named.chain(answered.iter().map(|answered| answered.request_id.clone())).collect();
            answered.iter().for_each(|answered| closed(state, team, answered, out));
            withdrawn.iter().for_each(|key| taken_back(state, team, key, out));
            let Some(known) = state.watched_mut(team) else { return };
            let is_open = |key: &(AgentName, RequestId)| open.iter().any(|request| key_of(request) == *key);
            known.asked.retain(|key, pending| is_open(key) || matches!(pending.stage, Asking::Answering(_)));
            open.into_iter().for_each(|request| take(state, team, request, now, out));
            if let Some(known) = state.watched_mut(team) {
                known.told_asked.keep(&named);
            }
            show(state, team, out);
        }
    }
    if again {
        look(state, team, out);
    }
}

/// One that has its answer, by whomever: told, unless it was.
fn closed(state: &mut State, team: &TeamName, answered: &store::AnsweredRequest, out: &mut Vec<Effect>) {
    let Some(known) = state.watched_mut(team) else { return };
    let key = (answered.member.clone(), answered.request_id.clone());
    let given = match known.asked.get(&key).map(|pending| pending.stage) {
        // The word of whoever writes it comes.
        Some(Asking::Answering(_)) => return,
        Some(Asking::Waits { .. } | Asking::Failed) => true,
        None => known.told_asked.opened.contains(&key.1) && !known.told_asked.closed.contains(&key.1),
    };
    if given {
        close(state, team, &key, Given { by: answered.answered_by, approved: answered.approved }, out);
    }
}

/// One that waits for no answer any more: told, unless it was.
fn taken_back(state: &mut State, team: &TeamName, key: &(AgentName, RequestId), out: &mut Vec<Effect>) {
    let Some(known) = state.watched_mut(team) else { return };
    // What is being answered is refused to whoever writes that, and looked at again.
    let answering = known.asked.get(key).is_some_and(|pending| matches!(pending.stage, Asking::Answering(_)));
    if answering || !known.told_asked.opened.contains(&key.1) || known.told_asked.closed.contains(&key.1) {
        return;
    }
    known.asked.remove(key);
    known.told_asked.closed.insert(key.1.clone());
    let what = EventKind::RequestWithdrawn { request_id: key.1.to_string() };
    out.push(Effect::Log(Event::for_member(team, &key.0, what)));
}

fn key_of(request: &OpenRequest) -> (AgentName, RequestId) {
    (request.from.clone(), request.request.id().clone())
}

/// One that is open: it is decided unless it was.
fn take(state: &mut State, team: &TeamName, request: OpenRequest, now: Now, out: &mut Vec<Effect>) {
    let cwd = state.member(team, &request.from).map(|agent| agent.record.cwd.to_string_lossy().into_owned());
    let Some(known) = state.watched_mut(team) else { return };
    let key = key_of(&request);
    if known.asked.get(&key).is_some_and(|pending| pending.stage != Asking::Failed) {
        return;
    }
    let news = known.told_asked.opened.insert(key.1.clone());
    if news {
        let (request, kind, about) = (key.1.to_string(), request.request.kind(), request.request.summary());
        out.push(Effect::Log(Event::for_member(
            team,
            &key.0,
            EventKind::RequestOpened { request_id: request, kind, summary: about },
        )));
    }
    let decision = known.policy.decide(&request.request, &cwd.unwrap_or_else(|| request.cwd.clone()));
    let waited = if news { 0 } else { now.wall.saturating_sub(request.asked_at) };
    let waits = request.request.kind() == MemberRequestKind::Plan && known.overlooked.contains(&key.0);
    let until = until(&known.policy, waited, now).filter(|_| !waits);
    if waits && news && known.policy.timeout_decision().is_some() {
        out.push(Effect::Log(Event::for_member(
            team,
            &key.0,
            EventKind::Error { message: unanswered(&key.0) },
        )));
    }
    let mut pending = Pending { request: Box::new(request), stage: Asking::Waits { until } };
    match decision {
        PolicyDecision::Ask(_) if news => {
            let pane = state.member(team, &key.0).and_then(|agent| agent.record.pane.as_ref()?.id());
            state.notices.add(team, &key.0, pane, News::Asks(pending.request.request.kind()));
        }
        PolicyDecision::Ask(_) => {}
        decided => give(team, &mut pending, decided, now, out),
    }
    if let Some(known) = state.watched_mut(team) {
        known.asked.insert(key, pending);
    }
}

/// It would plan for ever, and nobody look at it.
fn unanswered(name: &AgentName) -> String {
    format!(
        "nobody has answered the last two plans of {name} in time: this one waits for a person, however long"
    )
}

/// What waits for somebody, under another policy than before.
pub(super) fn decide_anew(state: &mut State, team: &TeamName, now: Now, out: &mut Vec<Effect>) {
    let Some(known) = state.teams.get_mut(team) else { return };
    let waits = |pending: &Pending| matches!(pending.stage, Asking::Waits { .. });
    let (waiting, others) =
        std::mem::take(&mut known.asked).into_iter().partition(|(_, pending)| waits(pending));
    known.asked = others;
    BTreeMap::into_values(waiting).for_each(|pending| take(state, team, *pending.request, now, out));
    show(state, team, out);
}

/// When the policy answers what nobody has answered; none: never.
fn until(policy: &Policy, waited: u64, now: Now) -> Option<u64> {
    policy.timeout_decision()?;
    Some(now.mono.saturating_add(policy.answer_timeout_ms?.saturating_sub(waited)))
}

/// Has the policy's answer written.
fn give(team: &TeamName, pending: &mut Pending, decision: PolicyDecision, now: Now, out: &mut Vec<Effect>) {
    let (by, answer) = match decision {
        PolicyDecision::Approve(by) => (by, Answer::Approve(Approval::default())),
        PolicyDecision::Deny(by, reason) => (by, Answer::Deny { reason }),
        PolicyDecision::Ask(_) => return,
    };
    pending.stage = Asking::Answering(Given { by, approved: matches!(answer, Answer::Approve(_)) });
    let request = pending.request.clone();
    out.push(Effect::File(FileJob::Answer { team: team.clone(), request, answer, by, at: now.wall }));
}

/// The policy's answer stands in the member's inbox, or could not be put there.
pub(super) fn answered(
    state: &mut State,
    team: &TeamName,
    from: &AgentName,
    id: &RequestId,
    result: Result<(), ErrorReport>,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.teams.get_mut(team) else { return };
    let key = (from.clone(), id.clone());
    let Some(pending) = known.asked.get_mut(&key) else { return };
    let Asking::Answering(given) = pending.stage else { return };
    match result {
        Ok(()) => close(state, team, &key, given, out),
        // Somebody was faster, or it was taken back: the answer's own letter, or the next look, closes it.
        Err(fault) if matches!(fault.kind, ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            pending.stage = Asking::Waits { until: None };
            look(state, team, out);
        }
        Err(fault) => {
            pending.stage = Asking::Failed;
            out.push(Effect::Log(Event::for_member(team, from, EventKind::Error { message: fault.message })));
        }
    }
    show(state, team, out);
}

/// A person or the lead has answered.
fn closed_by_lead(
    state: &mut State,
    team: &TeamName,
    owner: &AgentName,
    id: &RequestId,
    approved: bool,
    out: &mut Vec<Effect>,
) {
    let key = (owner.clone(), id.clone());
    let waits = state.watched_mut(team).and_then(|known| known.asked.get(&key));
    if waits.is_some_and(|pending| matches!(pending.stage, Asking::Waits { .. })) {
        close(state, team, &key, Given { by: AnsweredBy::Lead, approved }, out);
        show(state, team, out);
    }
}

fn close(
    state: &mut State,
    team: &TeamName,
    key: &(AgentName, RequestId),
    given: Given,
    out: &mut Vec<Effect>,
) {
    if let Some(known) = state.watched_mut(team) {
        known.asked.remove(key);
        known.told_asked.closed.insert(key.1.clone());
    }
    let what = EventKind::RequestAnswered {
        request_id: key.1.to_string(),
        approved: given.approved,
        answered_by: given.by,
    };
    out.push(Effect::Log(Event::for_member(team, &key.0, what)));
}

/// When the first of them has waited long enough.
pub(super) fn next_due(state: &State) -> Option<u64> {
    let pending = state.teams.values().flat_map(|known| known.asked.values());
    pending.filter_map(Pending::until).chain(state.notices.due()).min()
}

/// Those that have.
pub(super) fn due(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    for (team, known) in &mut state.teams {
        let Some(decision) = known.policy.timeout_decision() else { continue };
        let over =
            known.asked.values_mut().filter(|pending| pending.until().is_some_and(|at| at <= now.mono));
        over.for_each(|pending| give(team, pending, decision.clone(), now, out));
    }
}

/// What waits for somebody stands at its member, and on the border of its pane.
fn show(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    let Some(known) = state.teams.get(team) else { return };
    let asks = |agent: &Agent| {
        let waits = |pending: &&Pending| !matches!(pending.stage, Asking::Answering(_));
        let hers =
            known.asked.iter().filter(|(key, _)| key.0 == agent.record.name).map(|(_, pending)| pending);
        hers.filter(waits).map(|pending| pending.request.request.kind()).collect()
    };
    for agent in state.agents.values_mut().filter(|agent| agent.record.team == *team) {
        let now = asks(agent);
        if agent.asks != now {
            agent.asks = now;
            out.extend(super::spawn::relabel(agent));
        }
    }
}

impl Letter {
    fn asks(&self) -> bool {
        matches!(self.payload, Some(Payload::PlanApprovalRequest(_) | Payload::PermissionRequest(_)))
    }

    fn answers(&self) -> Option<(RequestId, bool)> {
        self.payload.as_ref().and_then(answered_request)
    }
}

//! What members ask: the team's policy answers, or somebody is told that one waits.
//!
//! Which requests are open the files say, by one look at all of them (`store::requests`), so after a crash nothing is
//! asked or answered twice. A look follows whatever may have changed that; between two looks the state remembers what
//! was decided.

use crate::core::clock::Now;
use crate::core::context::Context;
use crate::core::effect::{Effect, Effects};
use crate::core::jobs::files::{FileJob, InboxScanResult, MessageHeader};
use crate::core::labels::update_label;
use crate::core::members::plan_handover;
use crate::core::notices::NoticeKind;
use crate::core::scans::schedule_request_scan;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::state::team::{GivenAnswer, RequestStage, ScanState, TrackedRequest};
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
pub(crate) fn apply_messages(
    context: &mut Context,
    team: &TeamName,
    owner: &AgentName,
    mail: &InboxScanResult,
) {
    let Some(known) = context.state.team_mut(team) else { return };
    let letters = || mail.known.iter().chain(&mail.new);
    let opens = owner.is_lead() && letters().any(|letter| letter.is_request());
    let closes = !known.open_requests.is_empty()
        && (owner.is_lead() && mail.unread.is_some()
            || letters().any(|letter| letter.answered_request().is_some()));
    if mail.has_more {
        // A look is at all of it: one, after the last part.
        known.is_request_scan_needed |= opens || closes;
    } else if opens || closes || known.is_request_scan_needed {
        schedule_request_scan(context, team);
    }
    if !owner.is_lead() {
        let from_lead = letters().filter(|letter| letter.from.is_lead());
        let approved: Vec<(u64, PermissionMode)> = from_lead.filter_map(parse_plan_approval).collect();
        approved
            .into_iter()
            .for_each(|(at, mode)| record_plan_approval(context.state, (team, owner), at, mode, context.now));
        let answers: Vec<(RequestId, GivenAnswer)> = mail.new.iter().filter_map(parse_lead_answer).collect();
        answers.into_iter().for_each(|(id, given)| close_by_lead(context, team, (owner.clone(), id), given));
    }
}

/// When a plan was approved, ms since the epoch, and the mode to carry it out in.
fn parse_plan_approval(letter: &MessageHeader) -> Option<(u64, PermissionMode)> {
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
fn record_plan_approval(
    state: &mut State,
    (team, owner): (&TeamName, &AgentName),
    at: u64,
    mode: PermissionMode,
    now: Now,
) {
    let hers = |agent: &&mut Agent| {
        agent.record.request.team == *team
            && agent.record.request.name == *owner
            && at >= agent.record.spawned_at
    };
    let Some(agent) = state.agents.values_mut().find(hers) else { return };
    agent.record.respawn.is_plan_approved = true;
    plan_handover::schedule_handover(agent, mode, now);
    state.has_roster_changed = true;
}

fn parse_lead_answer(message: &MessageHeader) -> Option<(RequestId, GivenAnswer)> {
    let (id, is_approved) = message.answered_request().filter(|_| message.from.is_lead())?;
    Some((id, GivenAnswer { by: AnsweredBy::Lead, is_approved }))
}

/// All requests of a team, as they stand now.
pub(crate) fn handle_requests_scanned(
    context: &mut Context,
    team: &TeamName,
    result: Result<store::RequestScanResult, ErrorReport>,
) {
    let Some(known) = context.state.team_mut(team) else { return };
    let again = std::mem::take(&mut known.request_scan) == ScanState::RunningRescanNeeded;
    known.is_request_scan_needed = result.is_err();
    match result {
        Err(fault) => {
            context.effects.push(Effect::log_team(team, EventKind::Error { message: fault.message }));
        }
        Ok(store::RequestScanResult { open, answered, withdrawn, plans_timed_out_twice: overlooked }) => {
            known.unanswered_planners = overlooked;
            let named = open.iter().map(|request| request.request.id().clone());
            let named: BTreeSet<RequestId> =
                named.chain(answered.iter().map(|answered| answered.request_id.clone())).collect();
            answered.iter().for_each(|answered| close_answered(context, team, answered));
            withdrawn.iter().for_each(|key| close_withdrawn(context, team, key));
            let Some(known) = context.state.team_mut(team) else { return };
            let is_open =
                |key: &(AgentName, RequestId)| open.iter().any(|request| request_key(request) == *key);
            known
                .open_requests
                .retain(|key, pending| is_open(key) || matches!(pending.stage, RequestStage::Answering(_)));
            open.into_iter().for_each(|request| track_request(context, team, request));
            if let Some(known) = context.state.team_mut(team) {
                known.logged_requests.forget_closed(&named);
            }
            update_open_requests(context, team);
        }
    }
    if again {
        schedule_request_scan(context, team);
    }
}

/// One that has its answer, by whomever: told, unless it was.
fn close_answered(context: &mut Context, team: &TeamName, answered: &store::AnsweredRequest) {
    let Some(known) = context.state.team_mut(team) else { return };
    let key = (answered.member.clone(), answered.request_id.clone());
    let given = match known.open_requests.get(&key).map(|pending| pending.stage) {
        // The word of whoever writes it comes.
        Some(RequestStage::Answering(_)) => return,
        Some(RequestStage::Waiting { .. } | RequestStage::WriteFailed) => true,
        None => {
            known.logged_requests.opened.contains(&key.1) && !known.logged_requests.closed.contains(&key.1)
        }
    };
    if given {
        close_request(
            context,
            team,
            &key,
            GivenAnswer { by: answered.answered_by, is_approved: answered.approved },
        );
    }
}

/// One that waits for no answer any more: told, unless it was.
fn close_withdrawn(context: &mut Context, team: &TeamName, key: &(AgentName, RequestId)) {
    let Some(known) = context.state.team_mut(team) else { return };
    // What is being answered is refused to whoever writes that, and looked at again.
    let answering = known
        .open_requests
        .get(key)
        .is_some_and(|pending| matches!(pending.stage, RequestStage::Answering(_)));
    if answering
        || !known.logged_requests.opened.contains(&key.1)
        || known.logged_requests.closed.contains(&key.1)
    {
        return;
    }
    known.open_requests.remove(key);
    known.logged_requests.closed.insert(key.1.clone());
    let what = EventKind::RequestWithdrawn { request_id: key.1.to_string() };
    context.effects.push(Effect::Log(Event::for_member(team, &key.0, what)));
}

fn request_key(request: &OpenRequest) -> (AgentName, RequestId) {
    (request.from.clone(), request.request.id().clone())
}

/// One that is open: it is decided unless it was.
fn track_request(context: &mut Context, team: &TeamName, request: OpenRequest) {
    let cwd = context
        .state
        .member(team, &request.from)
        .map(|agent| agent.record.request.cwd.to_string_lossy().into_owned());
    let Some(known) = context.state.team_mut(team) else { return };
    let key = request_key(&request);
    if known.open_requests.get(&key).is_some_and(|pending| pending.stage != RequestStage::WriteFailed) {
        return;
    }
    let news = known.logged_requests.opened.insert(key.1.clone());
    if news {
        context.effects.push(request_opened_effect(team, &request));
    }
    let decision = known.policy.decide(&request.request, &cwd.unwrap_or_else(|| request.cwd.clone()));
    let waited = if news { 0 } else { context.now.wall.saturating_sub(request.asked_at) };
    let waits =
        request.request.kind() == MemberRequestKind::Plan && known.unanswered_planners.contains(&key.0);
    let until = answer_deadline(&known.policy, waited, context.now).filter(|_| !waits);
    if waits && news && known.policy.timeout_decision().is_some() {
        let error = EventKind::Error { message: unanswered_plans_message(&key.0) };
        context.effects.push(Effect::Log(Event::for_member(team, &key.0, error)));
    }
    let mut pending = TrackedRequest { request: Box::new(request), stage: RequestStage::Waiting { until } };
    match decision {
        PolicyDecision::Ask(_) if news => add_request_notice(context.state, team, &pending.request),
        PolicyDecision::Ask(_) => {}
        decided => write_policy_answer(team, &mut pending, decided, context.now, &mut context.effects),
    }
    if let Some(known) = context.state.team_mut(team) {
        known.open_requests.insert(key, pending);
    }
}

fn request_opened_effect(team: &TeamName, request: &OpenRequest) -> Effect {
    let opened = EventKind::RequestOpened {
        request_id: request.request.id().to_string(),
        kind: request.request.kind(),
        summary: request.request.summary(),
    };
    Effect::Log(Event::for_member(team, &request.from, opened))
}

fn add_request_notice(state: &mut State, team: &TeamName, request: &OpenRequest) {
    let pane = state.member(team, &request.from).and_then(|agent| agent.record.pane.as_ref()?.id());
    state.notices.add(team, &request.from, pane, NoticeKind::RequestWaiting(request.request.kind()));
}

/// It would plan for ever, and nobody look at it.
fn unanswered_plans_message(name: &AgentName) -> String {
    format!(
        "nobody has answered the last two plans of {name} in time: this one waits for a person, however long"
    )
}

/// What waits for somebody, under another policy than before.
pub(crate) fn reapply_policy(context: &mut Context, team: &TeamName) {
    let Some(known) = context.state.teams.get_mut(team) else { return };
    let waits = |pending: &TrackedRequest| matches!(pending.stage, RequestStage::Waiting { .. });
    let (waiting, others) =
        std::mem::take(&mut known.open_requests).into_iter().partition(|(_, pending)| waits(pending));
    known.open_requests = others;
    BTreeMap::into_values(waiting).for_each(|pending| track_request(context, team, *pending.request));
    update_open_requests(context, team);
}

/// When the policy answers what nobody has answered; none: never.
fn answer_deadline(policy: &Policy, waited: u64, now: Now) -> Option<u64> {
    policy.timeout_decision()?;
    Some(now.mono.saturating_add(policy.answer_timeout_ms?.saturating_sub(waited)))
}

/// Has the policy's answer written.
fn write_policy_answer(
    team: &TeamName,
    pending: &mut TrackedRequest,
    decision: PolicyDecision,
    now: Now,
    effects: &mut Effects,
) {
    let (by, answer) = match decision {
        PolicyDecision::Approve(by) => (by, Answer::Approve(Approval::default())),
        PolicyDecision::Deny(by, reason) => (by, Answer::Deny { reason }),
        PolicyDecision::Ask(_) => return,
    };
    pending.stage =
        RequestStage::Answering(GivenAnswer { by, is_approved: matches!(answer, Answer::Approve(_)) });
    let request = pending.request.clone();
    effects.push(Effect::File(FileJob::WriteAnswer {
        team: team.clone(),
        request,
        answer,
        by,
        at: now.wall,
    }));
}

/// The policy's answer stands in the member's inbox, or could not be put there.
pub(crate) fn handle_answer_written(
    context: &mut Context,
    team: &TeamName,
    from: &AgentName,
    id: &RequestId,
    result: Result<(), ErrorReport>,
) {
    let Some(known) = context.state.teams.get_mut(team) else { return };
    let key = (from.clone(), id.clone());
    let Some(pending) = known.open_requests.get_mut(&key) else { return };
    let RequestStage::Answering(given) = pending.stage else { return };
    match result {
        Ok(()) => close_request(context, team, &key, given),
        // Somebody was faster, or it was taken back: the answer's own letter, or the next look, closes it.
        Err(fault) if matches!(fault.kind, ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            pending.stage = RequestStage::Waiting { until: None };
            schedule_request_scan(context, team);
        }
        Err(fault) => {
            pending.stage = RequestStage::WriteFailed;
            context.effects.push(Effect::Log(Event::for_member(
                team,
                from,
                EventKind::Error { message: fault.message },
            )));
        }
    }
    update_open_requests(context, team);
}

/// A person or the lead has answered.
fn close_by_lead(context: &mut Context, team: &TeamName, key: (AgentName, RequestId), given: GivenAnswer) {
    let waits = context.state.team_mut(team).and_then(|known| known.open_requests.get(&key));
    if waits.is_some_and(|pending| matches!(pending.stage, RequestStage::Waiting { .. })) {
        close_request(context, team, &key, given);
        update_open_requests(context, team);
    }
}

fn close_request(context: &mut Context, team: &TeamName, key: &(AgentName, RequestId), given: GivenAnswer) {
    if let Some(known) = context.state.team_mut(team) {
        known.open_requests.remove(key);
        known.logged_requests.closed.insert(key.1.clone());
    }
    let what = EventKind::RequestAnswered {
        request_id: key.1.to_string(),
        approved: given.is_approved,
        answered_by: given.by,
    };
    context.effects.push(Effect::Log(Event::for_member(team, &key.0, what)));
}

/// When the first of them has waited long enough.
pub(crate) fn next_answer_deadline(state: &State) -> Option<u64> {
    let pending = state.teams.values().flat_map(|known| known.open_requests.values());
    pending.filter_map(TrackedRequest::deadline).chain(state.notices.next_due()).min()
}

/// Those that have.
pub(crate) fn answer_overdue_requests(context: &mut Context) {
    for (team, known) in &mut context.state.teams {
        let Some(decision) = known.policy.timeout_decision() else { continue };
        let over = known
            .open_requests
            .values_mut()
            .filter(|pending| pending.deadline().is_some_and(|at| at <= context.now.mono));
        over.for_each(|pending| {
            write_policy_answer(team, pending, decision.clone(), context.now, &mut context.effects);
        });
    }
}

/// What waits for somebody stands at its member, and on the border of its pane.
fn update_open_requests(context: &mut Context, team: &TeamName) {
    let Some(known) = context.state.teams.get(team) else { return };
    let asks = |agent: &Agent| {
        let waits = |pending: &&TrackedRequest| !matches!(pending.stage, RequestStage::Answering(_));
        let hers = known
            .open_requests
            .iter()
            .filter(|(key, _)| key.0 == agent.record.request.name)
            .map(|(_, pending)| pending);
        hers.filter(waits).map(|pending| pending.request.request.kind()).collect()
    };
    for agent in context.state.agents.values_mut().filter(|agent| agent.record.request.team == *team) {
        let now = asks(agent);
        if agent.open_requests != now {
            agent.open_requests = now;
            context.effects.extend(update_label(agent));
        }
    }
}

impl MessageHeader {
    fn is_request(&self) -> bool {
        matches!(self.payload, Some(Payload::PlanApprovalRequest(_) | Payload::PermissionRequest(_)))
    }

    fn answered_request(&self) -> Option<(RequestId, bool)> {
        self.payload.as_ref().and_then(answered_request)
    }
}

//! Requests in which a member asks its lead to approve a plan or to permit an action. The team's
//! policy answers such a request, or leaves the answer to a person, who then sees a notice.
//!
//! A scan of the team's files (`store::requests`) finds the open requests and the answers. After a
//! crash, the next daemon scans the files again, so it answers no request twice. Each event that
//! may open or close a request schedules such a scan. Until the next scan, the state keeps what the
//! daemon has decided about each request.

use crate::core::context::Context;
use crate::core::effect::{Effect, Effects};
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::{FileJob, InboxScanResult, MessageHeader};
use crate::core::members::plan_approval_respawn;
use crate::core::notice_queue::NoticeKind;
use crate::core::pane_labels::update_label;
use crate::core::queue_scans::schedule_request_scan;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::state::team::{GivenAnswer, RequestStage, TrackedRequest};
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

/// Handles the messages that a scan of one inbox found. If a message may open or close a request,
/// schedules a scan of the team's requests. In a member's inbox, also applies the lead's approvals
/// of plans and the lead's answers to requests.
pub(crate) fn apply_messages(
    context: &mut Context,
    team: &TeamName,
    owner: &AgentName,
    mail: &InboxScanResult,
) {
    let Some(known) = context.state.watched_team_mut(team) else { return };
    let messages = || mail.known.iter().chain(&mail.new);
    let opens = owner.is_lead() && messages().any(|message| message.is_request());
    let closes = !known.open_requests.is_empty()
        && (owner.is_lead() && mail.unread.is_some()
            || messages().any(|message| message.answered_request().is_some()));
    if mail.has_more {
        // This inbox scan has read only a part of the inbox, and more scans follow. A request scan
        // reads all inboxes completely, so one request scan after the last part is enough.
        known.is_request_scan_needed |= opens || closes;
    } else if opens || closes || known.is_request_scan_needed {
        schedule_request_scan(context, team);
    }
    if !owner.is_lead() {
        let from_lead = messages().filter(|message| message.from.is_lead());
        let approved: Vec<(u64, PermissionMode)> = from_lead.filter_map(parse_plan_approval).collect();
        approved
            .into_iter()
            .for_each(|(at, mode)| record_plan_approval(context.state, (team, owner), at, mode, context.now));
        let answers: Vec<(RequestId, GivenAnswer)> = mail.new.iter().filter_map(parse_lead_answer).collect();
        answers.into_iter().for_each(|(id, given)| close_by_lead(context, team, (owner.clone(), id), given));
    }
}

/// Parses a message that approves a plan. Returns when the plan was approved, in milliseconds since
/// the epoch, and in which permission mode the member works from then on. `None` for any other
/// message.
fn parse_plan_approval(message: &MessageHeader) -> Option<(u64, PermissionMode)> {
    match &message.payload {
        Some(Payload::PlanApprovalResponse(answer)) if answer.approved => {
            let mode = answer.permission_mode.as_deref().and_then(|mode| mode.parse().ok());
            let at = parse_iso8601(&answer.timestamp).unwrap_or(u64::MAX);
            Some((at, mode.unwrap_or(PermissionMode::Default)))
        }
        _ => None,
    }
}

/// Records the approval of a plan, if it came after the start of this spawn.
fn record_plan_approval(
    state: &mut State,
    (team, owner): (&TeamName, &AgentName),
    at: u64,
    mode: PermissionMode,
    now: Now,
) {
    let is_owner = |agent: &&mut Agent| {
        agent.record.request.team == *team
            && agent.record.request.name == *owner
            && at >= agent.record.spawned_at
    };
    let Some(agent) = state.agents.values_mut().find(is_owner) else { return };
    agent.record.respawn.is_plan_approved = true;
    plan_approval_respawn::schedule_handover(agent, mode, now);
    state.has_roster_changed = true;
}

fn parse_lead_answer(message: &MessageHeader) -> Option<(RequestId, GivenAnswer)> {
    let (id, is_approved) = message.answered_request().filter(|_| message.from.is_lead())?;
    Some((id, GivenAnswer { by: AnsweredBy::Lead, is_approved }))
}

/// Applies the result of a request scan.
pub(crate) fn handle_requests_scanned(
    context: &mut Context,
    team: &TeamName,
    result: Result<store::RequestScanResult, ErrorReport>,
) {
    let Some(known) = context.state.watched_team_mut(team) else { return };
    let again = known.request_scan.finish();
    known.is_request_scan_needed = result.is_err();
    match result {
        Err(error) => {
            context.effects.push(Effect::log_team(team, EventKind::Error { message: error.message }));
        }
        Ok(store::RequestScanResult {
            open, answered, withdrawn, plans_timed_out_twice: overlooked, ..
        }) => {
            if let Some(known) = context.state.teams.get_mut(team) {
                known.unanswered_planners = overlooked;
            }
            let named = open.iter().map(|request| request.request.id().clone());
            let named: BTreeSet<RequestId> =
                named.chain(answered.iter().map(|answered| answered.request_id.clone())).collect();
            answered.iter().for_each(|answered| close_answered(context, team, answered));
            withdrawn.iter().for_each(|key| close_withdrawn(context, team, key));
            let Some(known) = context.state.watched_team_mut(team) else { return };
            let is_open =
                |key: &(AgentName, RequestId)| open.iter().any(|request| request_key(request) == *key);
            known
                .open_requests
                .retain(|key, pending| is_open(key) || matches!(pending.stage, RequestStage::Answering(_)));
            open.into_iter().for_each(|request| track_request(context, team, request));
            if let Some(known) = context.state.watched_team_mut(team) {
                known.logged_requests.forget_closed(&named);
            }
            update_open_requests(context, team);
        }
    }
    if again {
        schedule_request_scan(context, team);
    }
}

/// Closes an answered request and logs the answer, unless the answer is logged already.
fn close_answered(context: &mut Context, team: &TeamName, answered: &store::AnsweredRequest) {
    let Some(known) = context.state.watched_team_mut(team) else { return };
    let key = (answered.member.clone(), answered.request_id.clone());
    let given = match known.open_requests.get(&key).map(|pending| pending.stage) {
        // The files thread is writing this answer, and its result follows.
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

/// Closes a withdrawn request and logs the withdrawal, unless the withdrawal is logged already.
fn close_withdrawn(context: &mut Context, team: &TeamName, key: &(AgentName, RequestId)) {
    let Some(known) = context.state.watched_team_mut(team) else { return };
    // The files thread refuses to answer a withdrawn request, and a scan follows.
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

/// Begins to track an open request and applies the team's policy to it. Does nothing for a request
/// that is tracked already, unless the policy's answer could not be written: then applies the
/// policy again.
fn track_request(context: &mut Context, team: &TeamName, request: OpenRequest) {
    let cwd = context
        .state
        .member(team, &request.from)
        .map(|agent| agent.record.request.cwd.to_string_lossy().into_owned());
    let supervised = context.state.teams.get(team);
    let policy = supervised.map(|known| known.policy.clone()).unwrap_or_default();
    let waits = request.request.kind() == MemberRequestKind::Plan
        && supervised.is_some_and(|known| known.unanswered_planners.contains(&request.from));
    let Some(known) = context.state.watched_team_mut(team) else { return };
    let key = request_key(&request);
    if known.open_requests.get(&key).is_some_and(|pending| pending.stage != RequestStage::WriteFailed) {
        return;
    }
    let news = known.logged_requests.opened.insert(key.1.clone());
    if news {
        context.effects.push(request_opened_effect(team, &request));
    }
    let decision = policy.decide(&request.request, &cwd.unwrap_or_else(|| request.cwd.clone()));
    let waited = if news { 0 } else { context.now.wall.saturating_sub(request.last_asked_at) };
    let until = answer_deadline(&policy, waited, context.now).filter(|_| !waits);
    if waits && news && policy.timeout_decision().is_some() {
        let error = EventKind::Error { message: unanswered_plans_message(&key.0) };
        context.effects.push(Effect::Log(Event::for_member(team, &key.0, error)));
    }
    let mut pending = TrackedRequest { request: Box::new(request), stage: RequestStage::Waiting { until } };
    match decision {
        PolicyDecision::Ask(_) if news => add_request_notice(context.state, team, &pending.request),
        PolicyDecision::Ask(_) => {}
        decided => write_policy_answer(team, &mut pending, decided, context.now, &mut context.effects),
    }
    if let Some(known) = context.state.watched_team_mut(team) {
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

/// The error text for a new plan of a member whose last two plans were rejected because nobody
/// answered in time. The new plan waits for a person without a timeout, so that the member does not
/// replan forever.
fn unanswered_plans_message(name: &AgentName) -> String {
    format!(
        "the last two plans of {name} got no answer in time: this one waits for a person, without a timeout"
    )
}

/// Applies a new policy to the open requests that wait for an answer.
pub(crate) fn reapply_policy(context: &mut Context, team: &TeamName) {
    let Some(known) = context.state.watched_team_mut(team) else { return };
    let waits = |pending: &TrackedRequest| matches!(pending.stage, RequestStage::Waiting { .. });
    let (waiting, others) =
        std::mem::take(&mut known.open_requests).into_iter().partition(|(_, pending)| waits(pending));
    known.open_requests = others;
    BTreeMap::into_values(waiting).for_each(|pending| track_request(context, team, *pending.request));
    update_open_requests(context, team);
}

/// When the policy answers an open request, in milliseconds on the monotonic clock. `None`: never.
fn answer_deadline(policy: &Policy, waited: u64, now: Now) -> Option<u64> {
    policy.timeout_decision()?;
    Some(now.mono.saturating_add(policy.answer_timeout_ms?.saturating_sub(waited)))
}

/// Lets the files thread write the answer of the policy.
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

/// Handles the result of writing the policy's answer.
pub(crate) fn handle_answer_written(
    context: &mut Context,
    team: &TeamName,
    from: &AgentName,
    id: &RequestId,
    result: Result<(), ErrorReport>,
) {
    let Some(known) = context.state.watched_team_mut(team) else { return };
    let key = (from.clone(), id.clone());
    let Some(pending) = known.open_requests.get_mut(&key) else { return };
    let RequestStage::Answering(given) = pending.stage else { return };
    match result {
        Ok(()) => close_request(context, team, &key, given),
        // The policy's answer was not written, because the request has another answer already or
        // the member has withdrawn it. The request scan that is scheduled here finds out which, and
        // closes the request.
        Err(error) if matches!(error.kind, ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            pending.stage = RequestStage::Waiting { until: None };
            schedule_request_scan(context, team);
        }
        Err(error) => {
            pending.stage = RequestStage::WriteFailed;
            context.effects.push(Effect::Log(Event::for_member(
                team,
                from,
                EventKind::Error { message: error.message },
            )));
        }
    }
    update_open_requests(context, team);
}

/// Closes a request that the lead or a person has answered.
fn close_by_lead(context: &mut Context, team: &TeamName, key: (AgentName, RequestId), given: GivenAnswer) {
    let waits = context.state.watched_team_mut(team).and_then(|known| known.open_requests.get(&key));
    if waits.is_some_and(|pending| matches!(pending.stage, RequestStage::Waiting { .. })) {
        close_request(context, team, &key, given);
        update_open_requests(context, team);
    }
}

fn close_request(context: &mut Context, team: &TeamName, key: &(AgentName, RequestId), given: GivenAnswer) {
    if let Some(known) = context.state.watched_team_mut(team) {
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

/// When the next open request or notice is due, in milliseconds on the monotonic clock.
pub(crate) fn next_answer_deadline(state: &State) -> Option<u64> {
    let pending = state.teams.values().flat_map(|known| known.watched.open_requests.values());
    pending.filter_map(TrackedRequest::deadline).chain(state.notices.next_due()).min()
}

/// Lets the policy answer the requests whose deadline has passed.
pub(crate) fn answer_overdue_requests(context: &mut Context) {
    for (team, known) in &mut context.state.teams {
        let Some(decision) = known.policy.timeout_decision() else { continue };
        let over = known
            .watched
            .open_requests
            .values_mut()
            .filter(|pending| pending.deadline().is_some_and(|at| at <= context.now.mono));
        over.for_each(|pending| {
            write_policy_answer(team, pending, decision.clone(), context.now, &mut context.effects);
        });
    }
}

/// Updates the open requests of each agent and the labels of their panes.
fn update_open_requests(context: &mut Context, team: &TeamName) {
    let Some(known) = context.state.teams.get(team) else { return };
    let asks = |agent: &Agent| {
        let waits = |pending: &&TrackedRequest| !matches!(pending.stage, RequestStage::Answering(_));
        let is_owner = known
            .watched
            .open_requests
            .iter()
            .filter(|(key, _)| key.0 == agent.record.request.name)
            .map(|(_, pending)| pending);
        is_owner.filter(waits).map(|pending| pending.request.request.kind()).collect()
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

//! Requests in which a member asks its lead to approve a plan or to permit an action. The team's
//! policy answers such a request, or leaves the answer to a person, who then sees a notice.
//!
//! A scan of the team's files (`store::MemberRequests`) finds the open requests and the answers.
//! The daemon scans after each event that may open or close a request. The files are the record:
//! after a crash, the next daemon finds the answers in them, so it answers no request twice.
//!
//! The plan of a suspended member does not count as an open request, so no policy or timeout
//! answers it. The member sends the plan again, with the same request id, when it is resumed. The
//! event log then does not get a second line about the request.

use crate::core::effect::{Effect, Effects};
use crate::core::event_time::Now;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::pane_labels::update_label;
use crate::core::schedule_scans::schedule_request_scan;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::state::tracked_member_request::{GivenAnswer, RequestStage, TrackedRequest};
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::{Event, EventKind};
use protocol::member_request::{Answer, Approval, MemberRequestKind};
use protocol::member_task_and_request_ids::RequestId;
use protocol::policy::{Policy, PolicyDecision};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use store::OpenRequest;

/// Applies the result of a request scan.
pub(crate) fn handle_requests_scanned(
    context: &mut Context,
    team: &TeamName,
    result: Result<store::RequestScanResult, ErrorReport>,
) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    let is_rescan_needed = watched_team.request_scan.finish();
    watched_team.is_request_scan_needed = result.is_err();
    match result {
        Err(error) => {
            context.effects.push(Effect::log_team(team, EventKind::Error { message: error.message }));
        }
        Ok(store::RequestScanResult { open, answered, withdrawn, plans_timed_out_twice, .. }) => {
            if let Some(team_state) = context.state.teams.get_mut(team) {
                team_state.unanswered_planners = plans_timed_out_twice;
            }
            let ids_in_files = open.iter().map(|request| request.request.id().clone());
            let ids_in_files: BTreeSet<RequestId> =
                ids_in_files.chain(answered.iter().map(|answered| answered.request_id.clone())).collect();
            answered.iter().for_each(|answered| close_answered(context, team, answered));
            withdrawn.iter().for_each(|key| close_withdrawn(context, team, key));
            let Some(watched_team) = context.state.watched_team_mut(team) else { return };
            let is_open =
                |key: &(MemberName, RequestId)| open.iter().any(|request| request_key(request) == *key);
            watched_team.open_requests.retain(|key, tracked_request| {
                is_open(key) || matches!(tracked_request.stage, RequestStage::Answering(_))
            });
            open.into_iter().for_each(|request| track_request(context, team, request));
            if let Some(watched_team) = context.state.watched_team_mut(team) {
                watched_team.logged_requests.forget_closed(&ids_in_files);
            }
            update_open_requests(context, team);
        }
    }
    if is_rescan_needed {
        schedule_request_scan(context, team);
    }
}

/// Closes an answered request and logs the answer, unless the answer is logged already.
fn close_answered(context: &mut Context, team: &TeamName, answered_request: &store::AnsweredRequest) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    let key = (answered_request.member.clone(), answered_request.request_id.clone());
    let is_new_answer =
        match watched_team.open_requests.get(&key).map(|tracked_request| tracked_request.stage) {
            // The files thread is already writing the policy's answer. The request is closed when
            // the result of that write arrives.
            Some(RequestStage::Answering(_)) => return,
            Some(RequestStage::Waiting { .. } | RequestStage::WriteFailed) => true,
            None => {
                watched_team.logged_requests.opened.contains(&key.1)
                    && !watched_team.logged_requests.closed.contains(&key.1)
            }
        };
    if is_new_answer {
        close_request(
            context,
            team,
            &key,
            GivenAnswer { by: answered_request.answered_by, is_approved: answered_request.approved },
        );
    }
}

/// Closes a withdrawn request and logs the withdrawal, unless the withdrawal is logged already.
fn close_withdrawn(context: &mut Context, team: &TeamName, key: &(MemberName, RequestId)) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    // The files thread refuses to answer a withdrawn request, and a scan follows.
    let is_answering = watched_team
        .open_requests
        .get(key)
        .is_some_and(|tracked_request| matches!(tracked_request.stage, RequestStage::Answering(_)));
    if is_answering
        || !watched_team.logged_requests.opened.contains(&key.1)
        || watched_team.logged_requests.closed.contains(&key.1)
    {
        return;
    }
    watched_team.open_requests.remove(key);
    watched_team.logged_requests.closed.insert(key.1.clone());
    let event_kind = EventKind::RequestWithdrawn { request_id: key.1.to_string() };
    context.effects.push(Effect::Log(Event::for_member(team, &key.0, event_kind)));
}

fn request_key(request: &OpenRequest) -> (MemberName, RequestId) {
    (request.from.clone(), request.request.id().clone())
}

/// Begins to track an open request and applies the team's policy to it. A request that is tracked
/// already is left alone, unless the policy's answer could not be written. In that case the policy
/// is applied again.
fn track_request(context: &mut Context, team: &TeamName, request: OpenRequest) {
    let cwd = context
        .state
        .member(team, &request.from)
        .map(|agent| agent.record.request.cwd.to_string_lossy().into_owned());
    let team_state = context.state.teams.get(team);
    let policy = team_state.map(|team_state| team_state.policy.clone()).unwrap_or_default();
    let waits_for_person = request.request.kind() == MemberRequestKind::Plan
        && team_state.is_some_and(|team_state| team_state.unanswered_planners.contains(&request.from));
    // In a mirror, the home answers and notifies people.
    let is_mirror = context.state.host_links.home_of(team).is_some();
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    let key = request_key(&request);
    if watched_team
        .open_requests
        .get(&key)
        .is_some_and(|tracked_request| tracked_request.stage != RequestStage::WriteFailed)
    {
        return;
    }
    let is_new = watched_team.logged_requests.opened.insert(key.1.clone());
    if is_new {
        context.effects.push(request_opened_effect(team, &request));
    }
    let decision = policy.decide(&request.request, &cwd.unwrap_or_else(|| request.cwd.clone()));
    let waited_ms = if is_new { 0 } else { context.now.wall.saturating_sub(request.last_asked_at) };
    let deadline =
        answer_deadline(&policy, waited_ms, context.now).filter(|_| !waits_for_person && !is_mirror);
    if waits_for_person && is_new && !is_mirror && policy.timeout_decision().is_some() {
        let error = EventKind::Error { message: unanswered_plans_message(&key.0) };
        context.effects.push(Effect::Log(Event::for_member(team, &key.0, error)));
    }
    let mut tracked_request =
        TrackedRequest { request: Box::new(request), stage: RequestStage::Waiting { deadline } };
    match decision {
        _ if is_mirror => {}
        PolicyDecision::Ask(_) if is_new => add_request_notice(context.state, team, &tracked_request.request),
        PolicyDecision::Ask(_) => {}
        decision => {
            write_policy_answer(team, &mut tracked_request, decision, context.now, &mut context.effects);
        }
    }
    if let Some(watched_team) = context.state.watched_team_mut(team) {
        watched_team.open_requests.insert(key, tracked_request);
    }
}

fn request_opened_effect(team: &TeamName, request: &OpenRequest) -> Effect {
    let event_kind = EventKind::RequestOpened {
        request_id: request.request.id().to_string(),
        kind: request.request.kind(),
        summary: request.request.summary(),
    };
    Effect::Log(Event::for_member(team, &request.from, event_kind))
}

fn add_request_notice(state: &mut State, team: &TeamName, request: &OpenRequest) {
    let pane = state.member(team, &request.from).and_then(|agent| agent.record.pane.as_ref()?.id());
    state.notices.add(team, &request.from, pane, NoticeKind::RequestWaiting(request.request.kind()));
}

/// The error text for a new plan of the member `name`, whose last two plans got no answer in time.
/// The new plan waits for a person without a timeout, so that the member does not replan forever.
fn unanswered_plans_message(name: &MemberName) -> String {
    format!(
        "the last two plans of {name} got no answer in time: this one waits for a person, without a timeout"
    )
}

/// Applies a new policy to the open requests that wait for an answer.
pub(crate) fn reapply_policy(context: &mut Context, team: &TeamName) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    let is_waiting =
        |tracked_request: &TrackedRequest| matches!(tracked_request.stage, RequestStage::Waiting { .. });
    let (waiting, others) = std::mem::take(&mut watched_team.open_requests)
        .into_iter()
        .partition(|(_, tracked_request)| is_waiting(tracked_request));
    watched_team.open_requests = others;
    BTreeMap::into_values(waiting)
        .for_each(|tracked_request| track_request(context, team, *tracked_request.request));
    update_open_requests(context, team);
}

/// When the policy answers an open request, in milliseconds on the monotonic clock. `None`: never.
fn answer_deadline(policy: &Policy, waited_ms: u64, now: Now) -> Option<u64> {
    policy.timeout_decision()?;
    Some(now.mono.saturating_add(policy.answer_timeout_ms?.saturating_sub(waited_ms)))
}

/// Lets the files thread write the answer of the policy.
fn write_policy_answer(
    team: &TeamName,
    tracked_request: &mut TrackedRequest,
    decision: PolicyDecision,
    now: Now,
    effects: &mut Effects,
) {
    let (by, answer) = match decision {
        PolicyDecision::Approve(by) => (by, Answer::Approve(Approval::default())),
        PolicyDecision::Deny(by, reason) => (by, Answer::Deny { reason }),
        PolicyDecision::Ask(_) => return,
    };
    tracked_request.stage =
        RequestStage::Answering(GivenAnswer { by, is_approved: matches!(answer, Answer::Approve(_)) });
    let request = tracked_request.request.clone();
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
    member: &MemberName,
    id: &RequestId,
    result: Result<(), ErrorReport>,
) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    let key = (member.clone(), id.clone());
    let Some(tracked_request) = watched_team.open_requests.get_mut(&key) else { return };
    let RequestStage::Answering(answer) = tracked_request.stage else { return };
    match result {
        Ok(()) => close_request(context, team, &key, answer),
        // The policy's answer was not written, because the request has another answer already or
        // the member has withdrawn the request. The request scan that is scheduled here finds out
        // which of the two has happened, and closes the request.
        Err(error) if matches!(error.kind, ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            tracked_request.stage = RequestStage::Waiting { deadline: None };
            schedule_request_scan(context, team);
        }
        Err(error) => {
            tracked_request.stage = RequestStage::WriteFailed;
            context.effects.push(Effect::Log(Event::for_member(
                team,
                member,
                EventKind::Error { message: error.message },
            )));
        }
    }
    update_open_requests(context, team);
}

/// Closes a request that the lead or a person has answered.
pub(crate) fn close_by_lead(
    context: &mut Context,
    team: &TeamName,
    key: (MemberName, RequestId),
    answer: GivenAnswer,
) {
    let tracked_request =
        context.state.watched_team_mut(team).and_then(|watched_team| watched_team.open_requests.get(&key));
    if tracked_request
        .is_some_and(|tracked_request| matches!(tracked_request.stage, RequestStage::Waiting { .. }))
    {
        close_request(context, team, &key, answer);
        update_open_requests(context, team);
    }
}

fn close_request(context: &mut Context, team: &TeamName, key: &(MemberName, RequestId), answer: GivenAnswer) {
    if let Some(watched_team) = context.state.watched_team_mut(team) {
        watched_team.open_requests.remove(key);
        watched_team.logged_requests.closed.insert(key.1.clone());
    }
    let event_kind = EventKind::RequestAnswered {
        request_id: key.1.to_string(),
        approved: answer.is_approved,
        answered_by: answer.by,
    };
    context.effects.push(Effect::Log(Event::for_member(team, &key.0, event_kind)));
}

/// The next time at which this module has work: a notice is due, or the policy must answer an open
/// request. In milliseconds on the monotonic clock.
pub(crate) fn next_answer_deadline(state: &State) -> Option<u64> {
    let tracked_requests =
        state.teams.values().flat_map(|team_state| team_state.watched.open_requests.values());
    tracked_requests.filter_map(TrackedRequest::deadline).chain(state.notices.next_due()).min()
}

/// Lets the policy answer the requests whose deadline has passed.
pub(crate) fn answer_overdue_requests(context: &mut Context) {
    for (team, team_state) in &mut context.state.teams {
        let Some(decision) = team_state.policy.timeout_decision() else { continue };
        let overdue = team_state.watched.open_requests.values_mut().filter(|tracked_request| {
            tracked_request.deadline().is_some_and(|deadline| deadline <= context.now.mono)
        });
        overdue.for_each(|tracked_request| {
            write_policy_answer(team, tracked_request, decision.clone(), context.now, &mut context.effects);
        });
    }
}

/// Updates the open requests of each agent and the labels of their panes.
fn update_open_requests(context: &mut Context, team: &TeamName) {
    let Some(team_state) = context.state.teams.get(team) else { return };
    let open_request_kinds = |agent: &Agent| {
        let awaits_answer =
            |tracked_request: &&TrackedRequest| !matches!(tracked_request.stage, RequestStage::Answering(_));
        let own_requests = team_state
            .watched
            .open_requests
            .iter()
            .filter(|(key, _)| key.0 == agent.record.request.name)
            .map(|(_, tracked_request)| tracked_request);
        own_requests
            .filter(awaits_answer)
            .map(|tracked_request| tracked_request.request.request.kind())
            .collect()
    };
    for agent in context.state.agents.values_mut().filter(|agent| agent.record.request.team == *team) {
        let kinds = open_request_kinds(agent);
        if agent.open_requests != kinds {
            agent.open_requests = kinds;
            context.effects.extend(update_label(agent));
        }
    }
}

//! Searches scanned messages for the lead's approvals of plans, and for answers that close
//! requests.

use crate::core::apply_policy_to_member_requests::close_by_lead;
use crate::core::event_time::Now;
use crate::core::jobs::file_results::{InboxScanResult, MessageHeader};
use crate::core::members::plan_approval_respawn;
use crate::core::schedule_scans::schedule_request_scan;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::state::tracked_member_request::GivenAnswer;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::inbox_message_payload::Payload;
use protocol::member_request::answered_request;
use protocol::member_task_and_request_ids::RequestId;
use protocol::permission_mode::PermissionMode;
use protocol::policy::AnsweredBy;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::timestamp::parse_iso8601;

/// Handles the messages that a scan of one inbox found. If a message may open or close a request,
/// schedules a scan of the team's requests. In a member's inbox, the lead's approvals of plans and
/// answers to requests are applied without waiting for that scan.
pub(crate) fn apply_messages(
    context: &mut Context,
    team: &TeamName,
    owner: &MemberName,
    scan_result: &InboxScanResult,
) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    let messages = || scan_result.logged.iter().chain(&scan_result.new);
    let opens_request = owner.is_lead() && messages().any(|message| message.is_request());
    let may_close_request = !watched_team.open_requests.is_empty()
        && (owner.is_lead() && scan_result.unread.is_some()
            || messages().any(|message| message.answered_request().is_some()));
    if scan_result.has_more {
        // This scan has read only a part of the inbox, and further scans will read the rest. A
        // request scan is slow, because it reads all inboxes completely. So it is scheduled only
        // once, after the last part of this inbox.
        watched_team.is_request_scan_needed |= opens_request || may_close_request;
    } else if opens_request || may_close_request || watched_team.is_request_scan_needed {
        schedule_request_scan(context, team);
    }
    if !owner.is_lead() {
        let from_lead = messages().filter(|message| message.from.is_lead());
        let approvals: Vec<(u64, PermissionMode)> = from_lead.filter_map(parse_plan_approval).collect();
        approvals.into_iter().for_each(|(approved_at, mode)| {
            record_plan_approval(context.state, (team, owner), approved_at, mode, context.now);
        });
        let answers: Vec<(RequestId, GivenAnswer)> =
            scan_result.new.iter().filter_map(parse_lead_answer).collect();
        answers
            .into_iter()
            .for_each(|(id, answer)| close_by_lead(context, team, (owner.clone(), id), answer));
    }
}

/// Parses a message that approves a plan. Returns the time of the approval, in milliseconds since
/// the epoch, and the permission mode in which the member works from then on. `None` for any other
/// message.
fn parse_plan_approval(message: &MessageHeader) -> Option<(u64, PermissionMode)> {
    match &message.payload {
        Some(Payload::PlanApprovalResponse(response)) if response.approved => {
            let mode = response.permission_mode.as_deref().and_then(|mode| mode.parse().ok());
            let approved_at = parse_iso8601(&response.timestamp).unwrap_or(u64::MAX);
            Some((approved_at, mode.unwrap_or(PermissionMode::Default)))
        }
        _ => None,
    }
}

/// Records the approval of a plan, if it came after the start of this spawn.
fn record_plan_approval(
    state: &mut State,
    (team, owner): (&TeamName, &MemberName),
    approved_at: u64,
    mode: PermissionMode,
    now: Now,
) {
    let is_owner = |agent: &&mut Agent| {
        agent.record.request.team == *team
            && agent.record.request.name == *owner
            && approved_at >= agent.record.spawned_at
    };
    let Some(agent) = state.agents.values_mut().find(is_owner) else { return };
    agent.record.respawn.is_plan_approved = true;
    plan_approval_respawn::schedule(agent, mode, now);
    state.has_roster_changed = true;
}

fn parse_lead_answer(message: &MessageHeader) -> Option<(RequestId, GivenAnswer)> {
    let (id, is_approved) = message.answered_request().filter(|_| message.from.is_lead())?;
    Some((id, GivenAnswer { by: AnsweredBy::Lead, is_approved }))
}

impl MessageHeader {
    fn is_request(&self) -> bool {
        matches!(self.payload, Some(Payload::PlanApprovalRequest(_) | Payload::PermissionRequest(_)))
    }

    fn answered_request(&self) -> Option<(RequestId, bool)> {
        self.payload.as_ref().and_then(answered_request)
    }
}

//! Plan mode of a long-running program that takes its permission mode only at its start.
//!
//! The turn-end hook submits the agent's last reply as the plan, or the agent submits a plan
//! itself. A rejection is delivered like any message. After an approval the daemon respawns the
//! agent in the mode of the approval.

use super::agent_team_files::AgentTeamFiles;
use super::extract_reply_text::MAX_REPLY_BYTES;
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::InboxEntry;
use protocol::inbox_message_payload::{Payload, PlanApprovalResponse};
use protocol::team_and_member_names::MemberName;

/// The failure text of a turn in plan mode that has produced no plan.
const NO_PLAN_ERROR: &str =
    "its turn in plan mode said nothing: there is no plan; it can hand one in with: teamctl submit-plan";

impl AgentTeamFiles {
    /// Whether the member is in plan mode. False if the member's entry in the team's config cannot
    /// be read.
    pub(super) fn is_planning(&self) -> bool {
        self.team().member(self.member_name().as_str()).is_ok_and(|member| member.is_planning())
    }

    /// Whether the submitted plan has no answer yet.
    pub(super) fn is_awaiting_approval(&self) -> Result<bool, ErrorReport> {
        Ok(self.team().requests().open_plan_request(self.member_name())?.is_some())
    }

    /// Settles a turn in plan mode: submits the agent's last reply as the plan. Nothing is
    /// submitted if an earlier plan waits for an answer or was just approved. Returns why the turn
    /// has failed, or `None` if it has not failed.
    pub(super) fn finish_planning_turn(
        &mut self,
        last_reply: Option<&str>,
    ) -> Result<Option<String>, ErrorReport> {
        if self.is_awaiting_approval()?
            || self.unread()?.iter().any(|entry| plan_approval_in(entry).is_some())
        {
            return Ok(None);
        }
        let Some(plan) = last_reply.map(str::trim).filter(|last_reply| !last_reply.is_empty()) else {
            return Ok(Some(NO_PLAN_ERROR.to_owned()));
        };
        let start =
            (plan.len().saturating_sub(MAX_REPLY_BYTES)..).find(|position| plan.is_char_boundary(*position));
        self.submit_plan(&plan[start.unwrap_or_default()..]).map(|_| None)
    }

    /// Marks plan approvals read, because the program got their text on its command line.
    pub(crate) fn mark_approval_read(&mut self) -> Result<(), ErrorReport> {
        let approvals = self.unread()?.into_iter().filter(|entry| plan_approval_in(entry).is_some());
        self.mark_read(approvals.collect())
    }

    /// The text of the plan to which `answer` belongs. A respawned agent gets this text, because
    /// its session may not contain the plan.
    pub(super) fn approved_plan_text(&self, answer: &PlanApprovalResponse) -> Option<String> {
        self.team().requests().plan_text(&answer.request_id).ok().flatten()
    }
}

/// The plan approval in an unread entry of the lead. `None` for any other entry.
pub(super) fn plan_approval_in(entry: &InboxEntry) -> Option<PlanApprovalResponse> {
    let message = entry.unread().filter(|message| MemberName::new_unchecked(&message.from).is_lead())?;
    match Payload::parse(&message.text)? {
        Payload::PlanApprovalResponse(answer) if answer.approved => Some(answer),
        _ => None,
    }
}

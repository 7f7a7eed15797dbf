//! Plan mode of a program that is one process for the whole spawn and takes its mode only at its
//! start.
//!
//! The turn-end hook submits the last reply as the plan, or the program submits a plan itself. A
//! rejection is delivered like any message. After an approval the daemon respawns the agent in the
//! approved mode.

use super::reply_text::MAX_REPLY_BYTES;
use super::team_files::TeamFiles;
use protocol::error::ErrorReport;
use protocol::message::InboxEntry;
use protocol::name::AgentName;
use protocol::payload::{Payload, PlanApprovalResponse};

/// The failure of a turn in plan mode without a plan.
const NO_PLAN_ERROR: &str =
    "its turn in plan mode said nothing: there is no plan; it can hand one in with: teamctl submit-plan";

impl TeamFiles {
    /// Whether the member is in plan mode. False if its entry cannot be read.
    pub(super) fn is_planning(&self) -> bool {
        self.team().member(self.member_name().as_str()).is_ok_and(|member| member.is_planning())
    }

    /// Whether the submitted plan has no answer yet.
    pub(super) fn is_awaiting_approval(&self) -> Result<bool, ErrorReport> {
        Ok(self.team().requests().open_plan_request(self.member_name())?.is_some())
    }

    /// Settles a turn in plan mode: submits the last reply as the plan, unless a plan waits or was
    /// just approved. Returns why the turn has failed, `None` if it has not.
    pub(super) fn finish_planning_turn(&mut self, last: Option<&str>) -> Result<Option<String>, ErrorReport> {
        if self.is_awaiting_approval()?
            || self.unread()?.iter().any(|entry| plan_approval_in(entry).is_some())
        {
            return Ok(None);
        }
        let Some(plan) = last.map(str::trim).filter(|last| !last.is_empty()) else {
            return Ok(Some(NO_PLAN_ERROR.to_owned()));
        };
        let from = (plan.len().saturating_sub(MAX_REPLY_BYTES)..).find(|at| plan.is_char_boundary(*at));
        self.submit_plan(&plan[from.unwrap_or_default()..]).map(|_| None)
    }

    /// Marks approvals read that the program got on its command line.
    pub(crate) fn mark_approval_read(&mut self) -> Result<(), ErrorReport> {
        let approvals = self.unread()?.into_iter().filter(|entry| plan_approval_in(entry).is_some());
        self.mark_read(approvals.collect())
    }

    /// The text of an approved plan, for a spawn that may not know it.
    pub(super) fn approved_plan_text(&self, answer: &PlanApprovalResponse) -> Option<String> {
        self.team().requests().plan_text(&answer.request_id).ok().flatten()
    }
}

/// The lead's approval of a plan. `None` for other entries.
pub(super) fn plan_approval_in(entry: &InboxEntry) -> Option<PlanApprovalResponse> {
    let message = entry.unread().filter(|message| AgentName::new_unchecked(&message.from).is_lead())?;
    match Payload::parse(&message.text)? {
        Payload::PlanApprovalResponse(answer) if answer.approved => Some(answer),
        _ => None,
    }
}

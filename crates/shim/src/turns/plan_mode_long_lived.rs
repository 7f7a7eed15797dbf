//! Plan mode of a program that lives as long as its agent, and so takes its mode at its start alone. Its turn-end hook, or
//! whatever stands for that, hands in what it said at last; or it hands in its plan itself. A no is mail like any other.
//! A yes is not for this life, which only reads: the daemon ends it, and the next begins with the yes.

use super::reply_text::MAX_REPLY_BYTES;
use super::team_files::TeamFiles;
use protocol::error::ErrorReport;
use protocol::message::InboxEntry;
use protocol::name::AgentName;
use protocol::payload::{Payload, PlanApprovalResponse};

/// Where a turn in plan mode brought no plan.
const NO_PLAN_ERROR: &str =
    "its turn in plan mode said nothing: there is no plan; it can hand one in with: teamctl plan";

impl TeamFiles {
    /// Whether it is in plan mode. Who can't be looked up is taken to be as free as most are.
    pub(super) fn is_planning(&self) -> bool {
        self.team().member(self.member_name().as_str()).is_ok_and(|member| member.is_planning())
    }

    /// Its plan has no answer yet.
    pub(super) fn is_awaiting_approval(&self) -> Result<bool, ErrorReport> {
        Ok(self.team().requests().open_plan_request(self.member_name())?.is_some())
    }

    /// The end of a turn in plan mode, with what it said at last: that is its plan, unless one waits or was approved
    /// just now. Gives why the turn has failed.
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

    /// The approval was given to the program on its command line.
    pub(crate) fn mark_approval_read(&mut self) -> Result<(), ErrorReport> {
        let approvals = self.unread()?.into_iter().filter(|entry| plan_approval_in(entry).is_some());
        self.mark_read(approvals.collect())
    }

    /// The plan that was approved, for a life that may know nothing of it.
    pub(super) fn approved_plan_text(&self, answer: &PlanApprovalResponse) -> Option<String> {
        self.team().requests().plan_text(&answer.request_id).ok().flatten()
    }
}

/// The lead's yes to a plan.
pub(super) fn plan_approval_in(entry: &InboxEntry) -> Option<PlanApprovalResponse> {
    let message = entry.unread().filter(|message| AgentName::new_unchecked(&message.from).is_lead())?;
    match Payload::parse(&message.text)? {
        Payload::PlanApprovalResponse(answer) if answer.approved => Some(answer),
        _ => None,
    }
}

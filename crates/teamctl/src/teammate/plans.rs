//! Plan mode of a program that lives as long as its agent, and so takes its mode at its start alone. Its turn-end hook, or
//! whatever stands for that, hands in what it said at last; or it hands in its plan itself. A no is mail like any other.
//! A yes is not for this life, which only reads: the daemon ends it, and the next begins with the yes.

use super::Post;
use super::said::MOST;
use crate::here::fault;
use protocol::error::ErrorReport;
use protocol::message::InboxEntry;
use protocol::name::AgentName;
use protocol::payload::{Payload, PlanApprovalResponse};

/// Ahead of what it is given in plan mode, where its last words are heard.
pub(crate) use super::plan::ASKED;

/// The same where they are not.
pub(crate) const HAND_IN: &str = "You are in plan mode: read what you need, and change nothing. Hand in your plan with \
     `teamctl plan FILE`, or `teamctl plan -` and the text on its standard input; it is carried out once it is approved.";

/// Where a turn in plan mode brought no plan.
const NONE: &str =
    "its turn in plan mode said nothing: there is no plan; it can hand one in with: teamctl plan";

impl Post {
    /// Whether it is in plan mode. Who can't be looked up is taken to be as free as most are.
    pub(super) fn plans(&self) -> bool {
        self.team().member(self.me().as_str()).is_ok_and(|member| member.is_planning())
    }

    /// Its plan has no answer yet.
    pub(super) fn waits_for_approval(&self) -> Result<bool, ErrorReport> {
        Ok(self.team().requests().open_plan_request(self.me()).map_err(fault)?.is_some())
    }

    /// The end of a turn in plan mode, with what it said at last: that is its plan, unless one waits or was approved
    /// just now. Gives why the turn has failed.
    pub(super) fn turn_planned(&mut self, last: Option<&str>) -> Result<Option<String>, ErrorReport> {
        if self.waits_for_approval()? || self.unread()?.iter().any(|entry| approval(entry).is_some()) {
            return Ok(None);
        }
        let Some(plan) = last.map(str::trim).filter(|last| !last.is_empty()) else {
            return Ok(Some(NONE.to_owned()));
        };
        let from = (plan.len().saturating_sub(MOST)..).find(|at| plan.is_char_boundary(*at));
        self.hand_in(&plan[from.unwrap_or_default()..]).map(|_| None)
    }

    /// The approval was given to the program on its command line.
    pub(crate) fn had_approval(&mut self) -> Result<(), ErrorReport> {
        let approvals = self.unread()?.into_iter().filter(|entry| approval(entry).is_some());
        self.mark(approvals.collect())
    }

    /// The plan that was approved, for a life that may know nothing of it.
    pub(super) fn approved_plan(&self, answer: &PlanApprovalResponse) -> Option<String> {
        self.team().requests().plan_text(&answer.request_id).ok().flatten()
    }
}

/// The lead's yes to a plan.
pub(super) fn approval(entry: &InboxEntry) -> Option<PlanApprovalResponse> {
    let message = entry.unread().filter(|message| AgentName::new_unchecked(&message.from).is_lead())?;
    match Payload::parse(&message.text)? {
        Payload::PlanApprovalResponse(answer) if answer.approved => Some(answer),
        _ => None,
    }
}

//! Plan mode of a program whose turns we run: it begins in the program's read-only mode; what it has said at the end of
//! a turn is its plan, which is handed in; and it leaves plan mode by the approval of its plan alone.
//!
//! A task that it planned stays its own, in progress, until a turn with an approved plan has ended.

use super::said::said;
use super::{Halt, Host, Teammate};
use protocol::id::RequestId;
use protocol::message::InboxEntry;
use protocol::payload::{Payload, PlanApprovalResponse};
use protocol::permission_mode::PermissionMode;
use protocol::turn_program::PlanStage;

/// Ahead of what a turn in plan mode is about.
pub(crate) const ASKED: &str = "You are in plan mode: read what you need, and change nothing. End with your plan; \
     it is carried out once it is approved.";

impl<H: Host> Teammate<H> {
    /// Its next turn that goes well hands in a plan.
    pub(super) fn plans(&self) -> bool {
        self.now.plan_stage == Some(PlanStage::Planning)
    }

    /// Its plan has no answer yet.
    pub(super) fn waits_for_approval(&self) -> bool {
        matches!(self.now.plan_stage, Some(PlanStage::AwaitingApproval { .. }))
    }

    /// What the turn said is the plan. False where it said nothing, or it could not be handed in.
    pub(super) fn hand_in(&mut self) -> Result<bool, Halt> {
        let plan = said(&self.host.said(), self.program.says());
        if plan.is_empty() {
            return Ok(false);
        }
        let Some(stage) = self.insist(|post| post.hand_in(&plan))? else { return Ok(false) };
        self.host.say("The plan is handed in, and waits for approval.");
        self.now.plan_stage = Some(stage);
        Ok(true)
    }

    /// What the lead's answer to a plan comes to; false where it answers none that waits.
    pub(super) fn decided(&mut self, answer: &PlanApprovalResponse) -> bool {
        match &self.now.plan_stage {
            None => {}
            Some(PlanStage::AwaitingApproval { request_id: request, .. })
                if *request == answer.request_id =>
            {
                self.now.plan_stage = (!answer.approved).then_some(PlanStage::Planning);
                if answer.approved {
                    let mode = answer.permission_mode.as_deref().and_then(|mode| mode.parse().ok());
                    // One that its program does not know: it asks as usual, and is not left reading.
                    if !self.go_on_in(mode.unwrap_or(PermissionMode::Default)) {
                        self.go_on_in(PermissionMode::Default);
                    }
                }
            }
            Some(_) => return false,
        }
        true
    }

    /// From the next turn on; false where its program has no such mode.
    pub(super) fn go_on_in(&mut self, mode: PermissionMode) -> bool {
        let changed = if self.program.stands() {
            self.host.change_mode(mode.as_str())
        } else {
            self.program.go_on_in(mode)
        };
        match changed {
            Ok(()) => self.now.mode = Some(mode),
            Err(ref why) => self.host.say(&format!("cannot change to the mode {mode}: {why}")),
        }
        changed.is_ok()
    }

    /// The lead wants another mode. Whoever plans does not leave that so.
    pub(super) fn told_mode(&mut self, word: &str) {
        match word.parse::<PermissionMode>() {
            _ if self.now.plan_stage.is_some() => {
                self.host.say("It plans: its mode follows the approval of its plan.");
            }
            Err(error) => self.host.say(&error.to_string()),
            Ok(mode) => {
                if self.go_on_in(mode) && mode == PermissionMode::Plan {
                    self.now.plan_stage = Some(PlanStage::Planning);
                }
                self.host.tell(&self.now);
            }
        }
    }

    /// In a further life: a request of the one before is none any more, so the plan is handed in again, unless it was
    /// answered meanwhile.
    pub(super) fn ask_for_approval_again(&mut self) -> Result<(), Halt> {
        let Some(PlanStage::AwaitingApproval { request_id: request, file }) = self.now.plan_stage.clone()
        else {
            return Ok(());
        };
        self.carried = self.insist(|post| post.left())?.flatten();
        if self.insist(|post| post.has_answer(&request))?.unwrap_or(false) {
            return Ok(());
        }
        let again = self.insist(|post| post.hand_in_again(&file))?.flatten();
        self.now.plan_stage = Some(again.unwrap_or(PlanStage::Planning));
        Ok(())
    }
}

/// All answers to that plan that are there: of several an approval wins.
pub(super) fn answers_to(
    unread: &[InboxEntry],
    request: &RequestId,
) -> Vec<(InboxEntry, PlanApprovalResponse)> {
    let from_lead = |entry: &&InboxEntry| {
        entry
            .unread()
            .is_some_and(|message| protocol::name::AgentName::new_unchecked(&message.from).is_lead())
    };
    let answer = |entry: &InboxEntry| match Payload::parse(&entry.unread()?.text)? {
        Payload::PlanApprovalResponse(answer) if answer.request_id == *request => {
            Some((entry.clone(), answer))
        }
        _ => None,
    };
    let mut answers: Vec<_> = unread.iter().filter(from_lead).filter_map(answer).collect();
    answers.sort_by_key(|(_, answer)| !answer.approved);
    answers
}

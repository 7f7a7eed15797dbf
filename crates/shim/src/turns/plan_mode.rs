//! Plan mode of a program whose turns we run: it begins in the program's read-only mode; what it has said at the end of
//! a turn is its plan, which is handed in; and it leaves plan mode by the approval of its plan alone.
//!
//! A task that it planned stays its own, in progress, until a turn with an approved plan has ended.

use super::executor::TurnExecutor;
use super::reply_text::extract_reply;
use super::turn_loop::{StepError, TurnLoop};
use protocol::control::PlanStage;
use protocol::payload::PlanApprovalResponse;
use protocol::permission_mode::PermissionMode;

impl<H: TurnExecutor> TurnLoop<H> {
    /// Its next turn that goes well hands in a plan.
    pub(super) fn is_planning(&self) -> bool {
        self.status.plan_stage == Some(PlanStage::Planning)
    }

    /// Its plan has no answer yet.
    pub(super) fn is_awaiting_approval(&self) -> bool {
        matches!(self.status.plan_stage, Some(PlanStage::AwaitingApproval { .. }))
    }

    /// What the turn said is the plan. False where it said nothing, or it could not be handed in.
    pub(super) fn submit_plan(&mut self) -> Result<bool, StepError> {
        let plan = extract_reply(&self.executor.captured_output(), self.builder.reply_key());
        if plan.is_empty() {
            return Ok(false);
        }
        let Some(stage) = self.retry_until_done(|post| post.submit_plan(&plan))? else { return Ok(false) };
        self.executor.print_line("The plan is handed in, and waits for approval.");
        self.status.plan_stage = Some(stage);
        Ok(true)
    }

    /// What the lead's answer to a plan comes to; false where it answers none that waits.
    pub(super) fn apply_plan_answer(&mut self, answer: &PlanApprovalResponse) -> bool {
        match &self.status.plan_stage {
            None => {}
            Some(PlanStage::AwaitingApproval { request_id: request, .. })
                if *request == answer.request_id =>
            {
                self.status.plan_stage = (!answer.approved).then_some(PlanStage::Planning);
                if answer.approved {
                    let mode = answer.permission_mode.as_deref().and_then(|mode| mode.parse().ok());
                    // One that its program does not know: it asks as usual, and is not left reading.
                    if !self.change_mode(mode.unwrap_or(PermissionMode::Default)) {
                        self.change_mode(PermissionMode::Default);
                    }
                }
            }
            Some(_) => return false,
        }
        true
    }

    /// From the next turn on; false where its program has no such mode.
    pub(super) fn change_mode(&mut self, mode: PermissionMode) -> bool {
        let changed = if self.builder.is_driven() {
            self.executor.change_mode(mode.as_str())
        } else {
            self.builder.set_mode(mode)
        };
        match changed {
            Ok(()) => self.status.mode = Some(mode),
            Err(ref why) => self.executor.print_line(&format!("cannot change to the mode {mode}: {why}")),
        }
        changed.is_ok()
    }

    /// The lead wants another mode. Whoever plans does not leave that so.
    pub(super) fn handle_mode_request(&mut self, word: &str) {
        match word.parse::<PermissionMode>() {
            _ if self.status.plan_stage.is_some() => {
                self.executor.print_line("It plans: its mode follows the approval of its plan.");
            }
            Err(error) => self.executor.print_line(&error.to_string()),
            Ok(mode) => {
                if self.change_mode(mode) && mode == PermissionMode::Plan {
                    self.status.plan_stage = Some(PlanStage::Planning);
                }
                self.executor.report_status(&self.status);
            }
        }
    }

    /// In a further life: a request of the one before is none any more, so the plan is handed in again, unless it was
    /// answered meanwhile.
    pub(super) fn resubmit_plan(&mut self) -> Result<(), StepError> {
        let Some(PlanStage::AwaitingApproval { request_id: request, file }) = self.status.plan_stage.clone()
        else {
            return Ok(());
        };
        self.planned_task = self.retry_until_done(|post| post.unfinished_task())?.flatten();
        if self.retry_until_done(|post| post.has_plan_answer(&request))?.unwrap_or(false) {
            return Ok(());
        }
        let again = self.retry_until_done(|post| post.resubmit_plan(&file))?.flatten();
        self.status.plan_stage = Some(again.unwrap_or(PlanStage::Planning));
        Ok(())
    }
}

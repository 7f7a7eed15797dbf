//! Plan mode of an agent whose turns the shim runs. The agent starts in a read-only permission
//! mode. At the end of a turn the agent's reply is submitted as its plan. Only the approval of the
//! plan ends plan mode.
//!
//! A task for which the plan was made stays in progress until a turn with the approved plan has
//! ended.

use super::extract_reply_text::extract_reply;
use super::turn_executor_trait::TurnExecutor;
use super::turn_loop::{StepError, TurnLoop};
use protocol::control_socket::PlanStage;
use protocol::inbox_message_payload::PlanApprovalResponse;
use protocol::permission_mode::PermissionMode;

impl<H: TurnExecutor> TurnLoop<H> {
    /// Whether the next successful turn submits a plan.
    pub(super) fn is_planning(&self) -> bool {
        self.status.plan_stage == Some(PlanStage::Planning)
    }

    /// Whether the submitted plan has no answer yet.
    pub(super) fn is_awaiting_approval(&self) -> bool {
        matches!(self.status.plan_stage, Some(PlanStage::AwaitingApproval { .. }))
    }

    /// Submits the agent's reply in the turn as the plan. Returns false if there is no reply, or if
    /// the plan could not be submitted.
    pub(super) fn submit_plan(&mut self) -> Result<bool, StepError> {
        let plan = extract_reply(&self.executor.captured_output(), self.builder.reply_key());
        if plan.is_empty() {
            return Ok(false);
        }
        let Some(stage) = self.retry_until_done(|files| files.submit_plan(&plan))? else { return Ok(false) };
        self.executor.print_line("submitted the plan; it waits for approval");
        self.status.plan_stage = Some(stage);
        // The next spawn must know the plan. So the status is reported now: a shutdown request may
        // end the agent before it becomes idle.
        self.executor.report_status(&self.status);
        Ok(true)
    }

    /// Applies the lead's answer to the plan. Returns false if the answer belongs to another plan.
    pub(super) fn apply_plan_answer(&mut self, answer: &PlanApprovalResponse) -> bool {
        match &self.status.plan_stage {
            None => {}
            // The turn about this answer has failed, so the answer is delivered again.
            Some(PlanStage::Planning) if !answer.approved => {}
            Some(PlanStage::AwaitingApproval { request_id: request, .. })
                if *request == answer.request_id =>
            {
                self.status.plan_stage = (!answer.approved).then_some(PlanStage::Planning);
                if answer.approved {
                    let mode = answer.permission_mode.as_deref().and_then(|mode| mode.parse().ok());
                    // If the program does not support the mode that the approval names, the program
                    // is set to the default mode. Otherwise the program would stay in the read-only
                    // mode.
                    if !self.change_mode(mode.unwrap_or(PermissionMode::Default)) {
                        self.change_mode(PermissionMode::Default);
                    }
                }
            }
            Some(_) => return false,
        }
        true
    }

    /// Changes the permission mode, from the next turn on. Returns false if the program does not
    /// have this mode.
    pub(super) fn change_mode(&mut self, mode: PermissionMode) -> bool {
        let result = if self.builder.is_driven() {
            self.executor.change_mode(mode.as_str())
        } else {
            self.builder.set_mode(mode)
        };
        match result {
            Ok(()) => self.status.mode = Some(mode),
            Err(ref reason) => {
                self.executor.print_line(&format!("cannot change to the mode {mode}: {reason}"));
            }
        }
        result.is_ok()
    }

    /// Handles a request of the lead to change the permission mode. An agent in plan mode refuses,
    /// because only the approval of its plan ends plan mode.
    pub(super) fn handle_mode_request(&mut self, mode: &str) {
        match mode.parse::<PermissionMode>() {
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

    /// If the previous spawn ended before its plan was answered, submits this plan again. The new
    /// request for approval has the id of the old one. Does nothing if the inbox already has an
    /// answer to the plan.
    pub(super) fn resubmit_plan(&mut self) -> Result<(), StepError> {
        let Some(PlanStage::AwaitingApproval { request_id: request, file }) = self.status.plan_stage.clone()
        else {
            return Ok(());
        };
        self.planned_task = self.retry_until_done(|files| files.unfinished_task())?.flatten();
        if self.retry_until_done(|files| files.has_plan_answer(&request))?.unwrap_or(false) {
            return Ok(());
        }
        let stage = self.retry_until_done(|files| files.resubmit_plan(&request, &file))?.flatten();
        self.status.plan_stage = Some(stage.unwrap_or(PlanStage::Planning));
        Ok(())
    }
}

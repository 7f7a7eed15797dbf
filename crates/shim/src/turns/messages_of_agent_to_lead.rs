//! What one agent sends to its lead: requests, plans, answers and notifications. Messages that the
//! lead's inbox cannot take now are kept and sent later.

use crate::turns::agent_team_files::AgentTeamFiles;
use crate::turns::choose_inbox_action::shutdown_requests;
use protocol::control_socket::PlanStage;
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::{
    IdleNotification, Payload, PermissionRequest, ShutdownApproved, ShutdownRejected, ShutdownRequest,
};
use protocol::member_task_and_request_ids::RequestId;
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::iso8601;
use store::now;

/// How many notifications are kept at most while the lead's inbox is damaged.
const MAX_UNSENT: usize = 256;

impl AgentTeamFiles {
    /// Approves a shutdown request, and then marks the entries of all shutdown requests read. After
    /// a crash between these steps, a request that is already approved stays unread, which does no
    /// harm.
    pub(super) fn approve(
        &mut self,
        request: ShutdownRequest,
        entries: Vec<InboxEntry>,
    ) -> Result<(), ErrorReport> {
        let approval = ShutdownApproved::new(request.request_id, &self.me, iso8601(now()));
        self.send_to_lead(Payload::ShutdownApproved(approval).to_text())?;
        self.mark_read(entries).ok();
        Ok(())
    }

    /// Rejects all unread shutdown requests.
    pub(super) fn reject(&mut self, reason: &str) -> Result<(), ErrorReport> {
        for (entry, request) in shutdown_requests(&self.unread()?) {
            let rejection = ShutdownRejected {
                request_id: request.request_id,
                from: self.me.to_string(),
                reason: reason.to_owned(),
                timestamp: iso8601(now()),
            };
            self.send_to_lead(Payload::ShutdownRejected(rejection).to_text())?;
            self.mark_read(vec![entry])?;
        }
        Ok(())
    }

    /// Sends a permission request to the lead.
    pub(super) fn send_permission_request(&self, question: &PermissionRequest) -> Result<(), ErrorReport> {
        self.send_to_lead(Payload::PermissionRequest(question.clone()).to_text())
    }

    /// Withdraws permission requests of this agent that no longer need an answer.
    pub(super) fn withdraw_requests(&self, ids: &[RequestId]) -> Result<(), ErrorReport> {
        self.team.requests().withdraw(&self.me, ids, now()).map_err(ErrorReport::from)
    }

    /// Writes a plan to a new file and asks the lead to approve it.
    pub(super) fn submit_plan(&self, plan: &str) -> Result<PlanStage, ErrorReport> {
        let file = self.team.write_plan(plan)?;
        let request_id = self.team.request_plan_approval(&self.me, &file, plan, now())?;
        Ok(PlanStage::AwaitingApproval { request_id, file })
    }

    /// Asks the lead again to approve a plan of an earlier spawn. `None` if the file of the plan no longer
    /// exists.
    pub(super) fn resubmit_plan(
        &self,
        request: &RequestId,
        file: &str,
    ) -> Result<Option<PlanStage>, ErrorReport> {
        let Some(plan) = self.team.read_plan(file)? else { return Ok(None) };
        self.team.repeat_plan_request(request, &self.me, file, &plan, now())?;
        Ok(Some(PlanStage::AwaitingApproval { request_id: request.clone(), file: file.to_owned() }))
    }

    /// Sends a notification to the lead, after the notifications that could not be sent earlier.
    pub(super) fn send_idle_notification(
        &mut self,
        notification: &IdleNotification,
    ) -> Result<(), ErrorReport> {
        self.send_queued()?;
        self.send_to_lead(Payload::IdleNotification(notification.clone()).to_text())
    }

    /// Keeps a notification until the lead's inbox can be written again. If more than
    /// [`MAX_UNSENT`] are kept, the oldest are dropped.
    pub(super) fn queue_idle_notification(&mut self, notification: &IdleNotification) {
        self.unsent.push_back(self.new_message(Payload::IdleNotification(notification.clone()).to_text()));
        self.unsent.drain(..self.unsent.len().saturating_sub(MAX_UNSENT));
    }

    /// Sends the notifications that could not be sent earlier.
    pub(super) fn send_queued(&mut self) -> Result<(), ErrorReport> {
        if !self.unsent.is_empty() {
            let lead = self.team.inbox(&MemberName::lead());
            lead.append_all(self.unsent.make_contiguous())?;
            self.unsent.clear();
        }
        Ok(())
    }

    fn send_to_lead(&self, text: String) -> Result<(), ErrorReport> {
        self.team.inbox(&MemberName::lead()).append(&self.new_message(text)).map_err(ErrorReport::from)
    }

    fn new_message(&self, text: String) -> Message {
        let mut message = Message::new(&self.me, text, now());
        message.color.clone_from(&self.color);
        message
    }
}

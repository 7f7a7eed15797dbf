//! Submits a teammate's plan to the lead for approval.

use super::calling_member::Caller;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::RequestId;
use serde_json::{Value, json};

/// Maximum length of a plan in bytes. The request contains the whole plan.
const MAX_PLAN_BYTES: usize = 64 << 10;

impl Caller {
    /// Writes the plan to a file and asks the lead to approve it. Returns a JSON object with the
    /// fields success, message, request_id and plan_file_path.
    ///
    /// # Errors
    /// `NotPermitted` for the lead; `Refused` for a member that is not in plan mode or whose last
    /// plan has no answer; `Usage` for a plan that is empty or longer than 64 KiB.
    pub fn submit_plan(&self, plan: &str, at_ms: u64) -> Result<Value, ErrorReport> {
        self.check_plan(plan)?;
        let file = self.team.write_plan(plan)?;
        let request = self.team.request_plan_approval(&self.name, &file, plan, at_ms)?;
        let path = self.team.plan_path(&file);
        let message = sentence(&request);
        Ok(json!({"success": true, "message": message, "request_id": request, "plan_file_path": path}))
    }

    fn check_plan(&self, plan: &str) -> Result<(), ErrorReport> {
        if self.name.is_lead() {
            let error = ErrorReport::new(
                ErrorKind::NotPermitted,
                "cannot submit a plan as team-lead: that is for a teammate",
            );
            return Err(error.with_help("see the plans of others: teamctl requests"));
        }
        if plan.trim().is_empty() || plan.len() > MAX_PLAN_BYTES {
            let size = plan.len();
            let message =
                format!("cannot submit a plan of {size} bytes: it is a text of {MAX_PLAN_BYTES} at most");
            return Err(ErrorReport::new(ErrorKind::Usage, message));
        }
        let member = &self.name;
        if !self.team.member(member.as_str())?.is_planning() {
            let error = ErrorReport::new(
                ErrorKind::Refused,
                format!("cannot submit a plan: {member} is not in plan mode"),
            );
            return Err(error.with_help("tell the lead what you have in mind: teamctl send team-lead TEXT"));
        }
        match self.team.requests().open_plan_request(member)? {
            Some(request) => Err(ErrorReport::new(
                ErrorKind::Refused,
                format!("cannot submit a plan: {request} has no answer yet"),
            )
            .with_help("the answer comes to you as a message")),
            None => Ok(()),
        }
    }
}

fn sentence(request: &RequestId) -> String {
    format!("submitted the plan as {request}; it waits for approval")
}

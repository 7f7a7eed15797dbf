//! Settles a turn that a program with hooks has ended: completes the turn's task and notifies the
//! lead.

use super::agent_team_files::AgentTeamFiles;
use super::decide_turn_and_task_outcome::{TaskSettlement, TurnOutcome, idle_notification, settle};
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_message_payload::IdleReason;
use protocol::member_task_and_request_ids::TaskId;

/// How much of the agent's last reply a notification contains at most, in characters.
const SUMMARY_CHARS: usize = 200;

impl AgentTeamFiles {
    /// Settles a turn that the program ran itself, and notifies the lead. The turn's task is marked
    /// completed, unless the agent has already set another outcome.
    ///
    /// `started_at` is the start of the turn in milliseconds since the epoch. `last_reply` is the
    /// agent's last reply.
    pub(crate) fn finish_turn(
        &mut self,
        task: Option<TaskId>,
        started_at: u64,
        last_reply: Option<&str>,
    ) -> Result<(), ErrorReport> {
        let is_planning = self.is_planning();
        let failure = if is_planning { self.finish_planning_turn(last_reply)? } else { None };
        // In plan mode the agent has only planned its task, so the task is not completed.
        let task = task.filter(|_| !is_planning);
        let settlement = task.map(|id| Ok::<_, ErrorReport>((id, self.settle_task(id)?))).transpose()?;
        let settlement = settlement.as_ref().map(|(id, settlement)| (*id, settlement));
        let reason = if failure.is_some() { IdleReason::Failed } else { IdleReason::Available };
        let summary =
            self.find_sent_to_peers(started_at).summary().or_else(|| last_reply.and_then(first_line_summary));
        let notification = idle_notification(self.member_name(), reason, summary, settlement, failure);
        self.send_idle_notification(&notification)
    }

    fn settle_task(&self, id: TaskId) -> Result<TaskSettlement, ErrorReport> {
        let settlement = settle(self.task(&id)?.as_ref(), self.member_name(), &TurnOutcome::success());
        if settlement == TaskSettlement::MarkCompleted {
            self.complete(&id)?;
        }
        Ok(settlement)
    }
}

fn first_line_summary(last_reply: &str) -> Option<String> {
    let line = last_reply.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(SUMMARY_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_the_first_line_that_is_not_blank() {
        assert_eq!(first_line_summary("\n  all done \nmore").as_deref(), Some("all done"));
        assert_eq!(first_line_summary(" \n"), None);
    }
}

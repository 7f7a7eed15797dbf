//! Changes of the task list by members. A task can have a command, which a built-in worker runs.
//! This module checks who may set a command or cause it to run again. It also notifies the lead
//! when a teammate completes a task. All other rules are in [`crate::Tasks`].

use super::calling_member::Caller;
use crate::task_list::{NewTask, TaskHolder, TaskUpdate};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_message_payload::{Payload, TaskCompleted};
use protocol::member_task_and_request_ids::TaskId;
use protocol::policy::TaskCommandPolicy;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::iso8601;
use serde_json::{Map, Value};

impl Caller {
    /// Creates a task.
    ///
    /// # Errors
    /// `Usage` for an empty subject; `NotPermitted` if a teammate creates a task with a command and
    /// may not do so; the errors of the task list.
    pub fn create_task(&self, new: NewTask) -> Result<Task, ErrorReport> {
        check_not_internal(new.metadata.as_ref())?;
        self.check_command_allowed(new.metadata.as_ref())?;
        if new.subject.trim().is_empty() {
            let error = ErrorReport::new(ErrorKind::Usage, "cannot create a task: its subject is empty");
            return Err(error.with_help("say what to do: teamctl task create TEXT"));
        }
        self.team.change_at_home(|| Ok(self.team.tasks().create(new)?))
    }

    /// Changes a task. If a teammate completes the task, the lead is notified.
    ///
    /// A task of a run file can have an owner in that file. If an update makes the task pending and
    /// names no owner, the task gets the run file's owner again, unless this owner is the caller or
    /// has left the team.
    ///
    /// # Errors
    /// As [`Caller::create_task`]. `NotPermitted` also if the task tracks an agent, or if the task
    /// has a command and a teammate may not make this change. `Refused` if the change would take
    /// the task from a process that runs it. `Partial` if the lead could not be notified.
    pub fn update_task(&self, id: &TaskId, update: TaskUpdate, at_ms: u64) -> Result<Task, ErrorReport> {
        check_not_internal(update.metadata.as_ref())?;
        self.check_command_allowed(update.metadata.as_ref())?;
        if update.subject.as_deref().is_some_and(|subject| subject.trim().is_empty()) {
            return Err(ErrorReport::new(
                ErrorKind::Usage,
                format!("cannot change task {id}: the subject is empty"),
            ));
        }
        let task_before = self.team.tasks().get(id)?;
        let update = self.with_run_owner(&task_before, update);
        self.check_change_allowed(&task_before, &update)?;
        self.check_not_taken_away(&task_before, &update)?;
        let task = self.team.change_at_home(|| Ok(self.team.tasks().update(id, update, &self.name)?))?;
        self.notify_lead_if_completed(&task_before, &task, at_ms)?;
        Ok(task)
    }

    /// Completes a task. A task that is already completed is not an error.
    ///
    /// # Errors
    /// As [`Caller::update_task`].
    pub fn complete_task(&self, id: &TaskId, at_ms: u64) -> Result<Task, ErrorReport> {
        self.update_task(id, TaskUpdate::with_status(TaskStatus::Completed), at_ms)
    }

    /// Makes a task pending again.
    ///
    /// # Errors
    /// As [`Caller::update_task`].
    pub fn release_task(&self, id: &TaskId, at_ms: u64) -> Result<Task, ErrorReport> {
        self.update_task(id, TaskUpdate::with_status(TaskStatus::Pending), at_ms)
    }

    /// Deletes a task and all dependencies on it.
    ///
    /// # Errors
    /// As [`Caller::update_task`].
    pub fn delete_task(&self, id: &TaskId, at_ms: u64) -> Result<Task, ErrorReport> {
        self.update_task(id, TaskUpdate::with_status(TaskStatus::Deleted), at_ms)
    }

    /// The update, with the owner that a task of a run file gets when it becomes pending.
    fn with_run_owner(&self, task: &Task, update: TaskUpdate) -> TaskUpdate {
        if update.owner.is_some() || update.status != Some(TaskStatus::Pending) {
            return update;
        }
        let is_other_member =
            |owner: &MemberName| *owner != self.name && self.team.member(owner.as_str()).is_ok();
        TaskUpdate { owner: task.run_owner().filter(is_other_member), ..update }
    }

    /// Notifies the lead if a teammate has just completed the task. The task stays completed even
    /// if the notification fails.
    fn notify_lead_if_completed(
        &self,
        task_before: &Task,
        task: &Task,
        at_ms: u64,
    ) -> Result<(), ErrorReport> {
        if self.name.is_lead()
            || task.status != TaskStatus::Completed
            || task_before.status == TaskStatus::Completed
        {
            return Ok(());
        }
        let payload = Payload::TaskCompleted(TaskCompleted {
            from: self.name.to_string(),
            task_id: task.id,
            task_subject: task.subject.clone(),
            timestamp: iso8601(at_ms),
        });
        let result = self.team.inbox(&MemberName::lead()).append(&self.new_message(payload.to_text(), at_ms));
        result.map_err(|error| {
            let message = format!("task {} is done, but the lead could not be notified: {error}", task.id);
            ErrorReport::new(ErrorKind::Partial, message)
                .with_help("send it a message yourself: teamctl send team-lead TEXT")
        })
    }

    /// Checks whether the caller may change a task. Some internal tasks only track an agent; only
    /// teamd changes them. If a task has a command, a teammate may only record progress, unless the
    /// team's policy allows more. Other changes, such as reopening the task, could cause the
    /// command to run again.
    fn check_change_allowed(&self, task: &Task, update: &TaskUpdate) -> Result<(), ErrorReport> {
        if task.is_internal() {
            let message = format!("cannot change task {}: it tracks the agent {}", task.id, task.subject);
            return Err(ErrorReport::new(ErrorKind::NotPermitted, message)
                .with_help("teamd completes it when the agent ends; the other tasks: teamctl task list"));
        }
        let is_free = task.command().is_none() || self.name.is_lead() || self.is_progress(task, update);
        if is_free || self.policy()?.task_commands == TaskCommandPolicy::Any {
            return Ok(());
        }
        let reason =
            "it has a command, so only the lead or a person may reword, reopen, reassign or delete it";
        Err(ErrorReport::new(ErrorKind::NotPermitted, format!("cannot change task {}: {reason}", task.id))
            .with_help("ask the lead: teamctl send team-lead TEXT"))
    }

    /// Refuses to release, delete or reassign a task while a process of another member runs it.
    /// Otherwise the next owner could run the task at the same time.
    fn check_not_taken_away(&self, task: &Task, update: &TaskUpdate) -> Result<(), ErrorReport> {
        let is_given_away = update.owner.is_some() && update.owner != task.owner;
        let is_taken = matches!(update.status, Some(TaskStatus::Pending | TaskStatus::Deleted));
        if !is_given_away && !is_taken {
            return Ok(());
        }
        match self.team.task_holder(&task.id)?.filter(|holder| holder.member != self.name) {
            None => Ok(()),
            Some(TaskHolder { member, pid }) => {
                let message = format!("cannot take task {} from {member}: process {pid} runs it", task.id);
                let help = match self.name.is_lead() {
                    true => "wait until its turn has ended, or end the turn first: teamctl task has --force",
                    false => "wait until its turn has ended, or ask the lead: teamctl send team-lead TEXT",
                };
                Err(ErrorReport::new(ErrorKind::Refused, message).with_help(help))
            }
        }
    }

    /// Whether the update only records progress. Every teammate may make such an update, even if
    /// the task has a command.
    ///
    /// An update that changes the task's texts or deletes the task is more than progress. A task
    /// that is closed, has failed or belongs to another member is also protected from three other
    /// changes: it must not be started again, get another owner, or lose its recorded failure.
    fn is_progress(&self, task: &Task, update: &TaskUpdate) -> bool {
        let is_reworded =
            [&update.subject, &update.description, &update.active_form].into_iter().any(Option::is_some);
        let has_stopped = task.status.is_closed() || task.failure().is_some();
        let is_of_other = task.owner.as_ref().is_some_and(|owner| *owner != self.name);
        let clears_failure =
            update.metadata.as_ref().is_some_and(|metadata| metadata.contains_key("failure"));
        let is_started_again = matches!(update.status, Some(TaskStatus::Pending | TaskStatus::InProgress))
            || update.owner.is_some();
        let is_guarded = has_stopped || is_of_other;
        let changes_work = is_reworded || update.status == Some(TaskStatus::Deleted);
        !changes_work && !(is_guarded && (is_started_again || clears_failure))
    }

    /// Checks whether the caller may put a command into a task. A worker runs the command of its
    /// task. So the author of a command can make the worker run any program.
    fn check_command_allowed(&self, metadata: Option<&Map<String, Value>>) -> Result<(), ErrorReport> {
        if self.name.is_lead() || !metadata.is_some_and(|metadata| metadata.contains_key("command")) {
            return Ok(());
        }
        if self.policy()?.task_commands == TaskCommandPolicy::Any {
            return Ok(());
        }
        let message = "cannot put a command into a task: that is for the lead or a person";
        Err(ErrorReport::new(ErrorKind::NotPermitted, message)
            .with_help("ask the lead: teamctl send team-lead TEXT"))
    }
}

/// Refuses the metadata key `_internal`. It marks a task that tracks an agent: the task is hidden,
/// and only teamd changes it.
fn check_not_internal(metadata: Option<&Map<String, Value>>) -> Result<(), ErrorReport> {
    match metadata.is_some_and(|metadata| metadata.contains_key("_internal")) {
        false => Ok(()),
        true => Err(ErrorReport::new(
            ErrorKind::NotPermitted,
            "cannot set the key _internal: it marks the tasks with which teamd tracks agents",
        )
        .with_help("leave it out of the metadata")),
    }
}

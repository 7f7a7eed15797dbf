//! File jobs for one member: the steps before and after its registration, and after its
//! deregistration.

use crate::core::jobs::file_results::FileResult;
use crate::core::roster::agent_record::{AgentRecord, ApprovalDelivery, SharedRecord};
use crate::core::stop_and_exit_of_spawn::ShutdownApproval;
use crate::io::files::files_thread::FilesThread;
use crate::io::run_worktree_jobs;
use protocol::control_socket::{Activity, EarlierMessages, SpawnRequest};
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::Payload;
use protocol::member_color::Color;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::team_config::{Member, TeammateEntry};
use store::{Error, Inbox, Team};

/// A member to register, from [`FileJob::RegisterMember`](crate::core::jobs::file_jobs::FileJob).
pub(crate) struct PendingRegistration {
    pub(super) record: SharedRecord,
    pub(super) at: u64,
}

/// A member whose name is free and whose inbox is prepared.
pub(crate) struct PreparedRegistration {
    pub(super) team: Team,
    pub(super) member: Member,
    pub(super) lead_session: String,
}

impl FilesThread {
    /// Checks that a member can be added to config.json, and prepares its inbox.
    ///
    /// Before a first spawn, the inbox may have unread messages to an earlier member of the same
    /// name. They are marked as read: all of them, or only those in JSON, such as requests. The
    /// option `earlier_messages` of the spawn request says which. Then the member's prompt is
    /// appended.
    ///
    /// Before a respawn, unread shutdown requests are marked as read. The prompt is appended again
    /// only for a program with native delivery that does not resume a session.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if config.json has a member with this name already. The error of the save if
    /// the roster or the member's environment was not saved: the next daemon would not know the
    /// agent.
    pub(super) fn prepare_registration(
        &mut self,
        PendingRegistration { record, at }: &PendingRegistration,
    ) -> Result<PreparedRegistration, ErrorReport> {
        self.check_saved()?;
        let failed = self.shared.saves().failed_environments.remove(&record.respawn.environment_file);
        if let Some(error) = failed {
            return Err(error);
        }
        run_worktree_jobs::check_ownership(record)?;
        let team = self.open_team(&record.request.team)?;
        let config = team.as_repairer().cached_config()?;
        if config.member(&record.request.name).is_some() {
            return Err(ErrorReport::from(Error::AlreadyExists {
                what: format!("member {}", record.request.name),
            }));
        }
        let inbox = team.inbox(&record.request.name);
        let is_respawn = record.is_respawn();
        match record.request.earlier_messages {
            _ if is_respawn => discard_unread(&inbox, is_shutdown_request)?,
            EarlierMessages::Keep => discard_unread(&inbox, is_payload)?,
            EarlierMessages::Discard => inbox.mark_all_read()?,
        }
        if record.respawn.follows_plan_approval && record.approval_delivery == ApprovalDelivery::Message {
            repeat_approval(&inbox, *at)?;
        }
        if (!is_respawn || starts_new_session(record)) && !record.request.prompt.is_empty() {
            inbox.append(&Message::new(&MemberName::lead(), record.request.prompt.clone(), *at))?;
        }
        let member = to_config_member(record, initial_activity(record));
        Ok(PreparedRegistration { team, member, lead_session: config.lead_session_id.clone() })
    }

    /// Checks that the roster on disk contains the exit of a member. Otherwise, if this daemon were
    /// killed, the next daemon would notify the lead of the exit a second time. For a member that
    /// has never run, nothing is checked.
    ///
    /// Also remembers the member: if another program writes the member back to config.json, a scan
    /// removes it again.
    pub(super) fn check_exit_saved(&mut self, record: &AgentRecord) -> Result<(), ErrorReport> {
        if record.lifecycle.exit().is_some() {
            self.check_saved()?;
        }
        self.remember_deregistered(&record.request.team, &record.request.name, record.spawned_at);
        Ok(())
    }

    /// Returns the result of the file job that removed a member from its team. If there was no
    /// `error`, also removes the member's exit report and marks its unread prompt as read.
    pub(super) fn finish_deregistration(
        &self,
        record: &AgentRecord,
        approval: ShutdownApproval,
        error: Option<ErrorReport>,
    ) -> FileResult {
        if error.is_none() {
            self.log_error(
                "remove an exit report",
                self.state.remove(&protocol::state_file_names::exit_report(record.spawn_id.as_str())),
            );
            self.log_error("mark a prompt read", self.discard_prompt(record));
        }
        FileResult::MemberDeregistered { spawn: record.spawn_id.clone(), approval, error }
    }

    /// If no respawn follows, marks the unread prompt of an ended spawn as read. Otherwise a later
    /// member with the same name would read this prompt too.
    fn discard_prompt(&self, record: &AgentRecord) -> Result<(), Error> {
        let is_last = match record.lifecycle.exit() {
            Some(exit) => exit.next_step.is_none(),
            None => !record.is_respawn(),
        };
        let SpawnRequest { team, name, prompt, .. } = &*record.request;
        if !is_last || prompt.is_empty() {
            return Ok(());
        }
        let is_prompt =
            |message: &Message| message.text == *prompt && MemberName::new_unchecked(&message.from).is_lead();
        match self.root.team(team).and_then(|team| discard_unread(&team.inbox(name), is_prompt)) {
            Err(Error::NoSuchTeam { .. }) => Ok(()),
            result => result,
        }
    }
}

/// Marks as read the unread messages that `is_discarded` accepts. They were for an earlier spawn.
fn discard_unread(inbox: &Inbox, is_discarded: impl Fn(&Message) -> bool) -> Result<(), Error> {
    let unread = inbox.read_unread()?.into_iter();
    let discarded: Vec<InboxEntry> =
        unread.filter(|entry| entry.unread().is_some_and(&is_discarded)).collect();
    if discarded.is_empty() { Ok(()) } else { inbox.mark_read(&discarded) }
}

fn is_shutdown_request(message: &Message) -> bool {
    matches!(Payload::parse(&message.text), Some(Payload::ShutdownRequest(_)))
}

fn is_payload(message: &Message) -> bool {
    Payload::parse(&message.text).is_some()
}

/// Sends the approval of the member's plan again, if the previous spawn has read it. The previous
/// spawn only made the plan. The new spawn carries it out, so it needs the approval too.
fn repeat_approval(inbox: &Inbox, at: u64) -> Result<(), Error> {
    let latest = inbox.fold(|latest: &mut Option<Message>, entry| {
        let is_approval = |message: &Message| {
            let is_from_lead = MemberName::new_unchecked(&message.from).is_lead();
            is_from_lead
                && matches!(Payload::parse(&message.text), Some(Payload::PlanApprovalResponse(answer)) if answer.approved)
        };
        *latest = entry.message.ok().filter(is_approval).or(latest.take());
    })?;
    match latest.filter(|approval| approval.read) {
        None => Ok(()),
        Some(approval) => inbox.append(&Message::new(&MemberName::lead(), approval.text, at)),
    }
}

/// Whether the member has native delivery and resumes no session. Its program then reads the prompt
/// from the inbox.
fn starts_new_session(record: &AgentRecord) -> bool {
    record.request.delivery == Delivery::Native && record.respawn.session.is_none()
}

/// The activity that config.json has for a member when the member is registered. A program with
/// native delivery is idle if it has no prompt or resumes a session. All other programs begin with
/// a turn, so they are active.
fn initial_activity(record: &AgentRecord) -> Activity {
    let is_idle = record.request.delivery == Delivery::Native
        && (record.request.prompt.is_empty() || !starts_new_session(record));
    if is_idle { Activity::Idle } else { Activity::Active }
}

/// The entry of a member in config.json.
pub(super) fn to_config_member(record: &AgentRecord, activity: Activity) -> Member {
    let entry = TeammateEntry {
        name: record.request.name.clone(),
        agent_type: record.request.agent_type.clone(),
        model: record.model(),
        prompt: record.request.prompt.clone(),
        // The core chooses a color before it registers a member.
        color: record.color.unwrap_or_else(|| Color::for_joined_count(0)),
        plan_mode_required: record.requires_plan(),
        joined_at: record.spawned_at,
        tmux_pane_id: record.pane_id_or_in_process(),
        cwd: record.request.cwd.to_string_lossy().into_owned(),
        backend_type: record.request.backend.backend_type().to_owned(),
        worktree_path: record.worktree.as_ref().map(|worktree| worktree.path.to_string_lossy().into_owned()),
    };
    let is_active = Some(activity == Activity::Active);
    Member { is_active, mode: record.config_mode.clone(), ..Member::teammate(&record.request.team, entry) }
}

/// Whether config.json has this spawn of the member. A later spawn of the same name does not count.
pub(super) fn is_registered(team: &Team, record: &AgentRecord) -> Result<bool, Error> {
    let config = team.as_repairer().cached_config()?;
    Ok(config.member(&record.request.name).is_some_and(|member| member.joined_at == record.spawned_at))
}

/// Completes the tracking task of a member: the internal task that represents the member in the
/// team's task list.
///
/// If the member's record has no id of the task, this function finds the task by its subject. The
/// id is missing if an earlier daemon was killed before it saved the id.
pub(super) fn complete_tracking_task(team: &Team, record: &AgentRecord) -> Result<(), Error> {
    let tasks = team.tasks();
    let is_tracking_task = |task: &Task| task.is_internal() && task.subject == record.request.name.as_str();
    // The task with this id may be another one now: if the task list was removed by hand, the ids
    // begin at 1 again.
    if let Some(id) = &record.tracking_task {
        return match tasks.get(id) {
            Ok(task) if is_tracking_task(&task) => tasks.complete(id, &record.request.name).map(drop),
            Ok(_) | Err(Error::NoSuchTask { .. }) => Ok(()),
            Err(error) => Err(error),
        };
    }
    let all_tasks = tasks.list()?;
    let mut open_tasks =
        all_tasks.iter().filter(|task| is_tracking_task(task) && task.status == TaskStatus::InProgress);
    open_tasks.try_for_each(|task| tasks.complete(&task.id, &record.request.name).map(drop))
}

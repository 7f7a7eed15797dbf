//! File jobs for one member: registering and deregistering the member, sending it shutdown requests
//! and permission modes, and notifying the lead when it exits.

use crate::core::exit_record::ReportTo;
use crate::core::id::SpawnId;
use crate::core::jobs::file_jobs::{FileResult, ModeChange, ModeRoute, ShutdownAnswer};
use crate::core::lifecycle::ShutdownApproval;
use crate::core::roster::record::{AgentRecord, ApprovalDelivery, SharedRecord};
use crate::io::files::thread::FilesThread;
use crate::io::{kill_orphans, worktrees};
use protocol::control::{Activity, EarlierMessages, ExitReport, SpawnRequest};
use protocol::delivery::Delivery;
use protocol::error::ErrorReport;
use protocol::id::RequestId;
use protocol::inbox_message_payload::{ModeSetRequest, Payload, ShutdownRequest, TeammateTerminated};
use protocol::member_color::Color;
use protocol::message::{InboxEntry, Message};
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, TaskStatus};
use protocol::team_config::{Member, TeammateEntry};
use protocol::timestamp::iso8601;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
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
    /// Checks that a member can be registered, and prepares its inbox.
    ///
    /// For a first spawn, the inbox may have unread messages to an earlier member of the same name.
    /// Marks all of them as read, or only requests and answers, as the request's `earlier_messages`
    /// says. Then appends the prompt to the inbox.
    ///
    /// For a respawn, marks only shutdown requests as read. Appends the prompt again only for a
    /// program with native delivery that does not resume a session.
    ///
    /// # Errors
    ///
    /// If the roster or the member's environment could not be saved: no agent may start that the
    /// next daemon would not know. `AlreadyExists` if config.json has a member with this name
    /// already, possibly from another program.
    pub(super) fn prepare_registration(
        &mut self,
        PendingRegistration { record, at }: &PendingRegistration,
    ) -> Result<PreparedRegistration, ErrorReport> {
        self.check_saved()?;
        let failed = self.shared.saves().failed_environments.remove(&record.respawn.environment_file);
        if let Some(error) = failed {
            return Err(error);
        }
        worktrees::check_ownership(record)?;
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
            inbox.append(&Message::new(&AgentName::lead(), record.request.prompt.clone(), *at))?;
        }
        let member = to_config_member(record, initial_activity(record));
        Ok(PreparedRegistration { team, member, lead_session: config.lead_session_id.clone() })
    }

    /// Sends a shutdown request to a member.
    ///
    /// Does nothing if one of the earlier requests `unless_unread` is still unread in the inbox.
    /// After a crash the daemon may not know whether it has sent `request` already. Then
    /// `unless_unread` contains `request` too, and the function does nothing if the inbox has this
    /// request, read or unread.
    pub(super) fn send_shutdown_request(
        &self,
        team: &TeamName,
        name: &AgentName,
        request: &RequestId,
        reason: Option<String>,
        unless_unread: &[RequestId],
        at: u64,
    ) -> Result<(), Error> {
        let inbox = self.root.team(team)?.inbox(name);
        if unless_unread.contains(request) && contains_request(&inbox, request)? {
            return Ok(());
        }
        let is_pending = |entry: &InboxEntry| {
            entry
                .unread()
                .is_some_and(|message| unless_unread.iter().any(|id| message.text.contains(id.as_str())))
        };
        if !unless_unread.is_empty() && inbox.read_unread()?.iter().any(is_pending) {
            return Ok(());
        }
        let lead = AgentName::lead();
        let payload = Payload::ShutdownRequest(ShutdownRequest {
            request_id: request.clone(),
            from: lead.to_string(),
            reason,
            timestamp: iso8601(at),
        });
        inbox.append(&Message::new(&lead, payload.to_text(), at))
    }

    /// Sets the permission mode of a member. `route` says how: by writing the mode to config.json,
    /// or by sending a message to the member.
    pub(super) fn set_mode(
        &mut self,
        ModeChange { team, name, mode }: &ModeChange,
        route: ModeRoute,
        at: u64,
    ) -> Result<(), Error> {
        let team = self.open_team(team)?;
        if route == ModeRoute::InConfig {
            return team.set_member_fields(name, &[("mode", serde_json::json!(mode))]);
        }
        let lead = AgentName::lead();
        let request = ModeSetRequest { mode: mode.to_string(), from: lead.to_string() };
        team.inbox(name).append(&Message::new(&lead, Payload::ModeSetRequest(request).to_text(), at))
    }

    /// Reads the answers to these shutdown requests in the lead's inbox.
    pub(super) fn read_shutdown_answers(
        &self,
        team: &TeamName,
        requests: &BTreeSet<RequestId>,
    ) -> Result<Vec<ShutdownAnswer>, Error> {
        self.root.team(team)?.inbox(&AgentName::lead()).fold(|answers: &mut Vec<ShutdownAnswer>, entry| {
            let answer = entry.message.as_ref().ok().and_then(parse_shutdown_answer);
            answers.extend(answer.filter(|answer| requests.contains(&answer.request)));
        })
    }

    /// Checks that the roster on disk contains the exit of a member, before the lead is notified of
    /// the exit. Also remembers the member: if another program writes the member back to
    /// config.json, a scan removes it again.
    ///
    /// If the roster on disk lacked the exit and the daemon were killed, the next daemon would
    /// notify the lead a second time, with another text. A member without an exit has never run and
    /// needs no check.
    pub(super) fn check_exit_saved(&mut self, record: &AgentRecord) -> Result<(), ErrorReport> {
        if record.lifecycle.exit().is_some() {
            self.check_saved()?;
        }
        self.remember_deregistered(&record.request.team, &record.request.name, record.spawned_at);
        Ok(())
    }

    /// Builds the result of the file job that deregistered a member. If there was no `error`,
    /// removes the member's exit report and marks its unread prompt as read.
    pub(super) fn finish_deregistration(
        &self,
        record: &AgentRecord,
        approval: ShutdownApproval,
        error: Option<ErrorReport>,
    ) -> FileResult {
        if error.is_none() {
            self.log_error("remove an exit report", self.state.remove(&exit_report_file(&record.spawn_id)));
            self.log_error("mark a prompt read", self.discard_prompt(record));
        }
        FileResult::MemberDeregistered { spawn: record.spawn_id.clone(), approval, error }
    }

    /// Marks the unread prompt of an ended spawn as read, if no respawn follows. If it stayed
    /// unread, a later member with the same name would work on this prompt as well as on its own.
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
            |message: &Message| message.text == *prompt && AgentName::new_unchecked(&message.from).is_lead();
        match self.root.team(team).and_then(|team| discard_unread(&team.inbox(name), is_prompt)) {
            Err(Error::NoSuchTeam { .. }) => Ok(()),
            result => result,
        }
    }

    /// Finds the members that approved their shutdown. All `records` are of one team. An agent's
    /// answer may be in the lead's inbox although no scan has found it yet. So this function reads
    /// the inbox, but only if an agent ended while a shutdown request to it was open.
    pub(super) fn read_approvals(
        &self,
        records: &[SharedRecord],
    ) -> Result<BTreeMap<AgentName, ShutdownApproval>, Error> {
        let stopped_records = records.iter().filter(|record| has_open_request(record));
        let requests: BTreeSet<RequestId> =
            stopped_records.clone().flat_map(|record| record.lifecycle.shutdown_ids().to_vec()).collect();
        let Some(first) = stopped_records.clone().next() else { return Ok(BTreeMap::new()) };
        let answers = match self.read_shutdown_answers(&first.request.team, &requests) {
            Err(Error::NoSuchTeam { .. }) => Vec::new(),
            answers => answers?,
        };
        let is_given = |record: &SharedRecord| {
            answers.iter().any(|answer| {
                answer.rejection_reason.is_none()
                    && answer.from == record.request.name
                    && record.lifecycle.shutdown_ids().contains(&answer.request)
            })
        };
        let approved_records = stopped_records.filter(|record| is_given(record));
        Ok(approved_records.map(|record| (record.request.name.clone(), ShutdownApproval::Given)).collect())
    }

    /// Reads the exit report that a shim has written for its agent. If there is no report, the shim
    /// was killed: this function then kills the orphans of the agent and returns `None`.
    ///
    /// A report that is not valid comes from a shim that was killed while it wrote the report. All
    /// processes of the agent had exited by then, so no orphans are killed. After a read error it
    /// is unknown whether there is a report, so no orphans are killed either.
    pub(super) fn read_exit_report(&self, spawn: &SpawnId, token: &str) -> Option<ExitReport> {
        match self.state.read(&exit_report_file(spawn)) {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).ok(),
            Ok(None) => {
                kill_orphans::kill_orphans(token);
                None
            }
            Err(error) => {
                tracing::warn!("cannot read the exit report of a shim: {error}");
                None
            }
        }
    }
}

/// Whether the agent ended while a shutdown request to it was open.
pub(super) fn has_open_request(record: &AgentRecord) -> bool {
    record.lifecycle.exit().is_some_and(|exit| exit.report_to == ReportTo::LeadUnlessApproved)
}

/// The file name of a spawn's exit report in the state directory. The shim writes this file before
/// it reports the exit to the daemon.
pub(crate) fn exit_report_file(spawn: &SpawnId) -> String {
    format!("exit-{}.json", spawn.as_str())
}

/// Marks the unread messages for which `is_discarded` is true as read. They were for an earlier
/// spawn.
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
/// spawn only made the plan and was ended by the approval. The new spawn carries out the plan, so
/// it needs the message too.
fn repeat_approval(inbox: &Inbox, at: u64) -> Result<(), Error> {
    let latest = inbox.fold(|latest: &mut Option<Message>, entry| {
        let is_approval = |message: &Message| {
            let is_from_lead = AgentName::new_unchecked(&message.from).is_lead();
            is_from_lead
                && matches!(Payload::parse(&message.text), Some(Payload::PlanApprovalResponse(answer)) if answer.approved)
        };
        *latest = entry.message.ok().filter(is_approval).or(latest.take());
    })?;
    match latest.filter(|approval| approval.read) {
        None => Ok(()),
        Some(approval) => inbox.append(&Message::new(&AgentName::lead(), approval.text, at)),
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
/// If the member's record has no task id, this function finds the task by its subject. The id is
/// missing if an earlier daemon was killed before it saved the id.
pub(super) fn complete_tracking_task(team: &Team, record: &AgentRecord) -> Result<(), Error> {
    let tasks = team.tasks();
    let is_tracking_task = |task: &Task| task.is_internal() && task.subject == record.request.name.as_str();
    // The id alone is not enough: if the task list was removed by hand, its ids begin at 1 again,
    // and the id may be that of another task.
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

/// Notifies the lead of the exits of members, once for each exit.
///
/// If the daemon crashed after sending the message for an exit, the deregistration is repeated. The
/// earlier message is then found by its sender and the time of the exit, and is not sent again.
pub(super) fn notify_lead(team: &Team, records: &[&AgentRecord]) -> Result<(), Error> {
    let is_reported = |record: &&&AgentRecord| {
        record.lifecycle.exit().is_some_and(|exit| exit.report_to != ReportTo::Nobody)
    };
    let records: Vec<&AgentRecord> = records.iter().filter(is_reported).copied().collect();
    if records.is_empty() {
        return Ok(());
    }
    let tasks = team.tasks().list_cached().unwrap_or_default();
    let messages: Vec<Message> = records.iter().filter_map(|record| exit_message(record, &tasks)).collect();
    let inbox = team.inbox(&AgentName::lead());
    // The texts are not compared: the list of unfinished tasks may have changed since the crash.
    let sent = inbox.fold(|sent: &mut HashSet<(String, String)>, entry| {
        let message = entry.message.ok();
        let message = message.filter(|message| messages.iter().any(|new| new.timestamp == message.timestamp));
        let exit = message
            .filter(|message| matches!(Payload::parse(&message.text), Some(Payload::TeammateTerminated(_))));
        sent.extend(exit.map(|message| (message.from, message.timestamp)));
    })?;
    let is_sent = |message: &Message| sent.contains(&(message.from.clone(), message.timestamp.clone()));
    let unsent: Vec<Message> = messages.into_iter().filter(|message| !is_sent(message)).collect();
    if unsent.is_empty() { Ok(()) } else { inbox.append_all(&unsent) }
}

/// The message to the lead about the exit of a member. `None` if the record has no exit.
fn exit_message(record: &AgentRecord, tasks: &[Arc<Task>]) -> Option<Message> {
    let exit = record.lifecycle.exit()?;
    let next_step = exit.next_step.as_ref().map(|step| format!("; {step}")).unwrap_or_default();
    let message = format!(
        "{} has ended: {}{next_step}{}",
        record.request.name,
        exit.description,
        list_unfinished_tasks(tasks, record)
    );
    let payload = Payload::TeammateTerminated(TeammateTerminated { message });
    let message = Message::new(&record.request.name, payload.to_text(), exit.ended_at);
    Some(Message { color: record.color.map(|color| color.to_string()), ..message })
}

/// The tasks that an exited member left in progress, as a clause of the message to the lead. The
/// text is empty if there are no such tasks.
fn list_unfinished_tasks(tasks: &[Arc<Task>], record: &AgentRecord) -> String {
    let is_unfinished = |task: &&Arc<Task>| {
        task.status == TaskStatus::InProgress
            && !task.is_internal()
            && task.failure().is_none()
            && task.owner.as_ref() == Some(&record.request.name)
    };
    let unfinished: Vec<String> =
        tasks.iter().filter(is_unfinished).map(|task| format!("{} ({})", task.id, task.subject)).collect();
    if unfinished.is_empty() {
        String::new()
    } else {
        format!("; left in progress: {}", unfinished.join(", "))
    }
}

/// Whether the inbox has a message with this request, read or unread.
fn contains_request(inbox: &Inbox, request: &RequestId) -> Result<bool, Error> {
    inbox.fold(|found: &mut bool, entry| {
        *found |= entry.message.is_ok_and(|message| message.text.contains(request.as_str()));
    })
}

fn parse_shutdown_answer(message: &Message) -> Option<ShutdownAnswer> {
    // Most messages are something else, and need not be parsed.
    if !message.text.contains("shutdown_") {
        return None;
    }
    let from = AgentName::new_unchecked(&message.from);
    match Payload::parse(&message.text)? {
        Payload::ShutdownApproved(answer) => {
            Some(ShutdownAnswer { request: answer.request_id, from, rejection_reason: None })
        }
        Payload::ShutdownRejected(answer) => {
            let rejection_reason = Some(answer.reason);
            Some(ShutdownAnswer { request: answer.request_id, from, rejection_reason })
        }
        _ => None,
    }
}

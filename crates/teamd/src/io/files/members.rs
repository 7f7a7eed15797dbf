//! A member in the files: put on the team, asked, told of, taken off again.

use crate::core::exit_record::ReportTo;
use crate::core::id::SpawnId;
use crate::core::jobs::files::{FileResult, ModeRoute, ShutdownAnswer};
use crate::core::roster::record::{AgentRecord, SharedRecord, pane_id_or_in_process};
use crate::io::files::thread::FilesThread;
use crate::io::{orphans, worktrees};
use protocol::color::Color;
use protocol::control::{Activity, ExitReport};
use protocol::delivery::Delivery;
use protocol::error::ErrorReport;
use protocol::id::RequestId;
use protocol::message::{InboxEntry, Message};
use protocol::name::{AgentName, TeamName};
use protocol::payload::{ModeSetRequest, Payload, ShutdownRequest, TeammateTerminated};
use protocol::permission_mode::PermissionMode;
use protocol::task::{Task, TaskStatus};
use protocol::team_config::{Member, TeammateEntry};
use protocol::timestamp::iso8601;
use std::collections::HashSet;
use std::sync::Arc;
use store::{Error, Inbox, Team};

/// One who is to be put on its team: see the job.
pub(crate) struct PendingRegistration {
    pub(super) spawn: SpawnId,
    pub(super) record: SharedRecord,
    pub(super) is_respawn: bool,
    pub(super) at: u64,
}

/// One whose name is free and whose inbox is ready.
pub(crate) struct PreparedRegistration {
    pub(super) team: Team,
    pub(super) member: Member,
    pub(super) lead_session: String,
}

impl FilesThread {
    /// No agent runs that the next daemon would not know. A name that somebody else's member has is taken, although the
    /// roster does not know it.
    pub(super) fn prepare_registration(
        &mut self,
        PendingRegistration { record, is_respawn: again, at, .. }: &PendingRegistration,
    ) -> Result<PreparedRegistration, ErrorReport> {
        self.check_saved()?;
        if let Some(fault) = self.failed_environments.remove(&record.environment_file) {
            return Err(fault);
        }
        worktrees::check_ownership(record)?;
        let team = self.open_team(&record.team)?;
        let config = team.as_repairer().cached_config()?;
        if config.member(&record.name).is_some() {
            return Err(ErrorReport::from(Error::AlreadyExists { what: format!("member {}", record.name) }));
        }
        let inbox = team.inbox(&record.name);
        if *again {
            discard_shutdown_requests(&inbox)?;
        } else {
            inbox.mark_all_read()?;
        }
        if (!again || starts_new_session(record)) && !record.prompt.is_empty() {
            inbox.append(&Message::new(&AgentName::lead(), record.prompt.clone(), *at))?;
        }
        let member = to_config_member(record, initial_activity(record));
        Ok(PreparedRegistration { team, member, lead_session: config.lead_session_id.clone() })
    }

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
        let waits = |entry: &InboxEntry| {
            entry.unread().is_some_and(|m| unless_unread.iter().any(|id| m.text.contains(id.as_str())))
        };
        if !unless_unread.is_empty() && inbox.read_unread()?.iter().any(waits) {
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

    pub(super) fn set_mode(
        &mut self,
        team: &TeamName,
        name: &AgentName,
        mode: PermissionMode,
        telling: ModeRoute,
        at: u64,
    ) -> Result<(), Error> {
        let team = self.open_team(team)?;
        if telling == ModeRoute::InConfig {
            return team.set_member_fields(name, &[("mode", serde_json::json!(mode))]);
        }
        let lead = AgentName::lead();
        let request = ModeSetRequest { mode: mode.to_string(), from: lead.to_string() };
        team.inbox(name).append(&Message::new(&lead, Payload::ModeSetRequest(request).to_text(), at))
    }

    pub(super) fn read_shutdown_answers(
        &self,
        team: &TeamName,
        requests: &[RequestId],
    ) -> Result<Vec<ShutdownAnswer>, Error> {
        let is_to = |text: &str| requests.iter().any(|request| text.contains(request.as_str()));
        self.root.team(team)?.inbox(&AgentName::lead()).fold(|answers: &mut Vec<ShutdownAnswer>, entry| {
            let message = entry.message.as_ref().ok().filter(|message| is_to(&message.text));
            answers.extend(message.and_then(parse_shutdown_answer));
        })
    }

    /// Not before the next daemon would know that it has ended, and how: it would tell the lead once more, in other words.
    /// One that never ran has nothing to tell.
    pub(super) fn check_exit_saved(&mut self, record: &AgentRecord) -> Result<(), ErrorReport> {
        if record.exit.is_some() {
            self.check_saved()?;
        }
        self.remember_deregistered(&record.team, &record.name, record.spawned_at);
        Ok(())
    }

    /// It is off the team, but for what is `left`.
    pub(super) fn finish_deregistration(
        &self,
        record: &AgentRecord,
        approved: bool,
        left: Option<ErrorReport>,
    ) -> FileResult {
        if left.is_none() {
            self.log_error("remove an end record", self.state.remove(&exit_report_file(&record.spawn_id)));
        }
        FileResult::MemberDeregistered { spawn: record.spawn_id.clone(), is_approved: approved, error: left }
    }

    /// Its word may stand in the lead's inbox, and not have been read yet, when its end is seen.
    pub(super) fn has_approved(&self, record: &AgentRecord) -> Result<bool, Error> {
        let hers = |answer: &ShutdownAnswer| answer.rejection_reason.is_none() && answer.from == record.name;
        if record.is_shutdown_approved || record.shutdown_requests.is_empty() {
            return Ok(record.is_shutdown_approved);
        }
        match self.read_shutdown_answers(&record.team, &record.shutdown_requests) {
            Err(Error::NoSuchTeam { .. }) => Ok(false),
            answers => answers.map(|all| all.iter().any(hers)),
        }
    }

    /// None and nothing swept where the words can't be read: that is not the same as none. Half a word is of a join that
    /// was killed in it, when of its agent nothing was left.
    pub(super) fn read_exit_report(&self, spawn: &SpawnId, token: &str) -> Option<ExitReport> {
        match self.state.read(&exit_report_file(spawn)) {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).ok(),
            Ok(None) => {
                orphans::kill_orphans(token);
                None
            }
            Err(error) => {
                tracing::warn!("cannot read a join's last words: {error}");
                None
            }
        }
    }
}

/// Where a join leaves word of its agent's end, before it tells.
pub(crate) fn exit_report_file(spawn: &SpawnId) -> String {
    format!("end-{}.json", spawn.as_str())
}

/// What asked the life before to end asks the next one nothing.
fn discard_shutdown_requests(inbox: &Inbox) -> Result<(), Error> {
    let asks = |message: &Message| matches!(Payload::parse(&message.text), Some(Payload::ShutdownRequest(_)));
    let unread = inbox.read_unread()?.into_iter();
    let asked: Vec<InboxEntry> = unread.filter(|entry| entry.unread().is_some_and(asks)).collect();
    if asked.is_empty() { Ok(()) } else { inbox.mark_read(&asked) }
}

/// A client that reads its prompt itself, and of which no conversation is left to go on with.
fn starts_new_session(record: &AgentRecord) -> bool {
    record.delivery == Delivery::Native
        && record.respawn.as_ref().is_none_or(|comeback| comeback.session.is_none())
}

/// With a prompt it begins with a turn; a client that says so itself has none to begin with otherwise.
fn initial_activity(record: &AgentRecord) -> Activity {
    let rests =
        record.delivery == Delivery::Native && (record.prompt.is_empty() || !starts_new_session(record));
    if rests { Activity::Idle } else { Activity::Active }
}

/// Its entry in config.json.
pub(super) fn to_config_member(record: &AgentRecord, activity: Activity) -> Member {
    let entry = TeammateEntry {
        name: record.name.clone(),
        agent_type: record.agent_type.clone(),
        model: record.model.clone(),
        prompt: record.prompt.clone(),
        // Registration is what gives one.
        color: record.color.unwrap_or_else(|| Color::for_joined_count(0)),
        plan_mode_required: record.plan_mode_required,
        joined_at: record.spawned_at,
        tmux_pane_id: pane_id_or_in_process(record),
        cwd: record.cwd.to_string_lossy().into_owned(),
        backend_type: record.backend.backend_type().to_owned(),
        worktree_path: record.worktree.as_ref().map(|tree| tree.path.to_string_lossy().into_owned()),
    };
    let is_active = Some(activity == Activity::Active);
    Member { is_active, mode: record.mode.clone(), ..Member::teammate(&record.team, entry) }
}

/// In this very life.
pub(super) fn is_registered(team: &Team, record: &AgentRecord) -> Result<bool, Error> {
    let config = team.as_repairer().cached_config()?;
    Ok(config.member(&record.name).is_some_and(|member| member.joined_at == record.spawned_at))
}

/// Without its id on record (a daemon was killed between the two) it is found by what it is.
pub(super) fn complete_tracking_task(team: &Team, record: &AgentRecord) -> Result<(), Error> {
    let tasks = team.tasks();
    // By its number alone it could be another's: a list that was removed by hand begins at 1 again.
    if let Some(id) = &record.tracking_task {
        let is_hers = |task: &Task| task.is_internal() && task.subject == record.name.as_str();
        return match tasks.get(id) {
            Ok(task) if is_hers(&task) => tasks.complete(id, &record.name).map(drop),
            Ok(_) | Err(Error::NoSuchTask { .. }) => Ok(()),
            Err(error) => Err(error),
        };
    }
    let hers = |task: &&Task| {
        task.is_internal() && task.subject == record.name.as_str() && task.status == TaskStatus::InProgress
    };
    tasks.list()?.iter().filter(hers).try_for_each(|task| tasks.complete(&task.id, &record.name).map(drop))
}

/// Once: a farewell that is repeated after a crash finds its own message, which carries the time of the end.
pub(super) fn notify_lead(team: &Team, records: &[&AgentRecord]) -> Result<(), Error> {
    let ended =
        |record: &&&AgentRecord| record.exit.as_ref().is_some_and(|end| end.report_to == ReportTo::Lead);
    let records: Vec<&AgentRecord> = records.iter().filter(ended).copied().collect();
    if records.is_empty() {
        return Ok(());
    }
    let tasks = team.tasks().list_cached().unwrap_or_default();
    let news: Vec<Message> = records.iter().filter_map(|record| exit_message(record, &tasks)).collect();
    let inbox = team.inbox(&AgentName::lead());
    // Not by its text: what it left in progress may have been released between the two.
    let told = inbox.fold(|told: &mut HashSet<(String, String)>, entry| {
        let end = entry.message.ok().filter(|m| news.iter().any(|news| news.timestamp == m.timestamp));
        let end = end.filter(|m| matches!(Payload::parse(&m.text), Some(Payload::TeammateTerminated(_))));
        told.extend(end.map(|m| (m.from, m.timestamp)));
    })?;
    let is_told = |news: &Message| told.contains(&(news.from.clone(), news.timestamp.clone()));
    let untold: Vec<Message> = news.into_iter().filter(|news| !is_told(news)).collect();
    if untold.is_empty() { Ok(()) } else { inbox.append_all(&untold) }
}

fn exit_message(record: &AgentRecord, tasks: &[Arc<Task>]) -> Option<Message> {
    let end = record.exit.as_ref()?;
    let then = end.next_step.as_ref().map(|then| format!("; {then}")).unwrap_or_default();
    let message = format!(
        "{} has ended: {}{then}{}",
        record.name,
        end.description,
        list_unfinished_tasks(tasks, record)
    );
    let payload = Payload::TeammateTerminated(TeammateTerminated { message });
    let message = Message::new(&record.name, payload.to_text(), end.ended_at);
    Some(Message { color: record.color.map(|color| color.to_string()), ..message })
}

/// What it left in progress, for whoever is to see to it.
fn list_unfinished_tasks(tasks: &[Arc<Task>], record: &AgentRecord) -> String {
    let hers = |task: &&Arc<Task>| {
        task.status == TaskStatus::InProgress
            && !task.is_internal()
            && task.failure().is_none()
            && task.owner.as_ref() == Some(&record.name)
    };
    let left: Vec<String> =
        tasks.iter().filter(hers).map(|task| format!("{} ({})", task.id, task.subject)).collect();
    if left.is_empty() { String::new() } else { format!("; left in progress: {}", left.join(", ")) }
}

/// Whether it stands there, read or not.
fn contains_request(inbox: &Inbox, request: &RequestId) -> Result<bool, Error> {
    inbox.fold(|was: &mut bool, entry| {
        *was |= entry.message.is_ok_and(|message| message.text.contains(request.as_str()));
    })
}

fn parse_shutdown_answer(message: &Message) -> Option<ShutdownAnswer> {
    let from = AgentName::new_unchecked(&message.from);
    match Payload::parse(&message.text)? {
        Payload::ShutdownApproved(it) => {
            Some(ShutdownAnswer { request: it.request_id, from, rejection_reason: None })
        }
        Payload::ShutdownRejected(it) => {
            Some(ShutdownAnswer { request: it.request_id, from, rejection_reason: Some(it.reason) })
        }
        _ => None,
    }
}

//! The files thread: one job after the other, in order, so that the loop never waits for a disk or a lock.
//!
//! The only place of the daemon that changes files under the root. Jobs carry all they need; what they find
//! goes back as an event.

use crate::event::{ConnId, Event};
use crate::roster::{Record, Roster, SpawnId, Told};
use crate::seen::Seen;
use protocol::color::Color;
use protocol::config::{Member, TeamConfig, TeammateEntry};
use protocol::control::{Create, CreateReply, Ended};
use protocol::fault::{Fault, Kind};
use protocol::id::{AgentId, RequestId, TaskId};
use protocol::message::{Entry, Message};
use protocol::name::{AgentName, TeamName};
use protocol::payload::{Payload, ShutdownRequest, TeammateTerminated};
use protocol::task::{Task, TaskStatus};
use protocol::time::iso8601;
use serde_json::json;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::{Error, Root, StateDir, Team};
use tokio::sync::mpsc::UnboundedSender;

/// The file that holds the roster, in the state directory.
pub(crate) const ROSTER: &str = "roster.json";
/// The event log, in the state directory.
const EVENTS: &str = "events.jsonl";
/// Beyond this the event log starts anew and the old one gets `.1`, bytes.
const EVENTS_LIMIT: u64 = 10 * 1024 * 1024;
/// So many names are tried where any will do.
const TRIES: u32 = 1_000;

/// Something to do with files.
#[derive(Debug)]
pub(crate) enum FileJob {
    /// The roster as it is now.
    Roster(Roster),
    /// A line of the event log.
    Log(String),
    /// A new team.
    Create { client: ConnId, create: Create, created_at: u64 },
    /// A new member: entry, first message, tracking task.
    Register { spawn: SpawnId, record: Box<Record>, at: u64 },
    /// A shutdown request, unless one of those before is still unread.
    Ask {
        spawn: SpawnId,
        team: TeamName,
        name: AgentName,
        request: RequestId,
        reason: Option<String>,
        unless_unread: Vec<RequestId>,
        at: u64,
    },
    /// Which of these requests has the lead's inbox an answer to?
    Answers { team: TeamName, requests: Vec<RequestId> },
    /// A member that ended: its lead told (if it is to be), its entry removed, its tracking task completed.
    Farewell { record: Box<Record> },
    /// What a dead join left in writing.
    LastWords { spawn: SpawnId, token: String },
    /// The team's tasks.
    Tasks { team: TeamName },
    /// `isActive` of a member.
    Activity { team: TeamName, name: AgentName, active: bool },
    /// Living members that a foreign writer dropped.
    Repair { team: TeamName, living: Vec<Record> },
    /// A file that comes and goes, for the watcher to see.
    Probe,
    /// What changed since the last look, for file systems and moments without events.
    Rescan { teams: Vec<TeamName> },
    /// The team's files.
    Delete { client: ConnId, team: TeamName, force: bool },
}

/// What became of a job.
#[derive(Debug)]
pub(crate) enum FileDone {
    Created {
        client: ConnId,
        result: Result<CreateReply, Fault>,
    },
    Registered {
        spawn: SpawnId,
        result: Result<TaskId, Fault>,
    },
    Asked {
        spawn: SpawnId,
        result: Result<(), Fault>,
    },
    Answers {
        team: TeamName,
        answers: Result<Vec<Answer>, Fault>,
    },
    /// `approved`: it had said yes before it went. `left`: what could not be put in order.
    Farewelled {
        spawn: SpawnId,
        approved: bool,
        left: Option<Fault>,
    },
    LastWords {
        spawn: SpawnId,
        ended: Option<Ended>,
    },
    Tasks {
        team: TeamName,
        result: Result<Vec<Task>, Fault>,
    },
    Deleted {
        client: ConnId,
        team: TeamName,
        result: Result<(), Fault>,
    },
}

/// An agent's answer to a shutdown request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) request: RequestId,
    pub(crate) from: AgentName,
    /// Its reason, where it said no.
    pub(crate) rejected: Option<String>,
}

/// The thread's own things.
struct Files {
    root: Root,
    state: StateDir,
    seen: Seen,
    events: UnboundedSender<Event>,
}

/// Starts the thread; it ends when the sender is dropped and all jobs are done.
pub(crate) fn start(
    root: Root,
    state: StateDir,
    events: UnboundedSender<Event>,
) -> (Sender<FileJob>, std::thread::JoinHandle<()>) {
    let (jobs, queue) = channel();
    let mut files = Files { root, state, seen: Seen::default(), events };
    let thread = std::thread::Builder::new().name("files".into()).spawn(move || files.run(&queue));
    (jobs, thread.expect("a thread can be started where the daemon itself could"))
}

impl Files {
    fn run(&mut self, queue: &Receiver<FileJob>) {
        for job in queue {
            if let Some(done) = self.job(job) {
                // The loop has ended: nobody is left to be told.
                self.events.send(Event::Filed(done)).ok();
            }
        }
    }

    fn job(&mut self, job: FileJob) -> Option<FileDone> {
        match job {
            FileJob::Roster(roster) => self.note("write the roster", self.roster(&roster)),
            FileJob::Log(line) => self.note("log", self.state.append_line(EVENTS, &line, EVENTS_LIMIT)),
            FileJob::Create { client, create, created_at } => {
                let result = self.create(&create, created_at).map_err(fault);
                return Some(FileDone::Created { client, result });
            }
            FileJob::Register { spawn, record, at } => {
                let result = self.register(&record, at).map_err(fault);
                return Some(FileDone::Registered { spawn, result });
            }
            FileJob::Ask { spawn, team, name, request, reason, unless_unread, at } => {
                let result = self.ask(&team, &name, &request, reason, &unless_unread, at).map_err(fault);
                return Some(FileDone::Asked { spawn, result });
            }
            FileJob::Answers { team, requests } => {
                let answers = self.answers(&team, &requests).map_err(fault);
                return Some(FileDone::Answers { team, answers });
            }
            FileJob::Farewell { record } => return Some(self.farewell(&record)),
            FileJob::LastWords { spawn, token } => {
                return Some(FileDone::LastWords { ended: self.last_words(&spawn, &token), spawn });
            }
            FileJob::Tasks { team } => {
                let result = self.root.team(&team).and_then(|team| team.tasks().list()).map_err(fault);
                return Some(FileDone::Tasks { team, result });
            }
            FileJob::Activity { team, name, active } => {
                let result =
                    self.root.team(&team).and_then(|t| t.set_member(&name, &[("isActive", json!(active))]));
                self.note("write isActive", result);
            }
            FileJob::Repair { team, living } => {
                let result = self.repair(&team, &living);
                self.note("repair config.json", result);
            }
            FileJob::Probe => self.note("probe the watcher", self.root.probe()),
            FileJob::Rescan { teams } => self.rescan(&teams),
            FileJob::Delete { client, team, force } => {
                let result = self.delete(&team, force);
                return Some(FileDone::Deleted { client, team, result });
            }
        }
        None
    }

    /// For what has nobody to answer to.
    fn note(&self, what: &str, result: Result<(), Error>) {
        if let Err(error) = result {
            tracing::warn!("cannot {what}: {error}");
        }
    }

    fn roster(&self, roster: &Roster) -> Result<(), Error> {
        let bytes = serde_json::to_vec(roster).expect("a roster has nothing that JSON cannot hold");
        self.state.replace(ROSTER, &bytes)
    }

    fn create(&self, create: &Create, at: u64) -> Result<CreateReply, Error> {
        let mut wanted = create.team.clone();
        for n in 2.. {
            match self.root.create_team(&first_config(create, &wanted, at)) {
                Err(Error::Exists { .. }) if create.unique && n < TRIES => {
                    wanted = numbered(&create.team, n)?;
                }
                Err(error) => return Err(error),
                Ok(team) => {
                    let lead_agent_id = AgentId { name: AgentName::lead(), team: wanted.clone() }.to_string();
                    return Ok(CreateReply {
                        team_file_path: team.path().join("config.json"),
                        team_name: wanted,
                        lead_agent_id,
                    });
                }
            }
        }
        unreachable!("the last try returns")
    }

    /// Inbox first: an agent that is on the team can be written to. A name that somebody else's member has is
    /// taken, although the roster does not know it.
    fn register(&self, record: &Record, at: u64) -> Result<TaskId, Error> {
        let team = self.root.team(&record.team)?;
        if team.config()?.member(&record.name).is_some() {
            return Err(Error::Exists { what: format!("member {}", record.name) });
        }
        let inbox = team.inbox(&record.name);
        inbox.retire()?;
        if !record.prompt.is_empty() {
            inbox.append(&Message::new(&AgentName::lead(), record.prompt.clone(), at))?;
        }
        team.add_member(&member(record))?;
        let task = team.tasks().create_internal(&record.name, &record.prompt)?;
        Ok(task.id)
    }

    fn ask(
        &self,
        team: &TeamName,
        name: &AgentName,
        request: &RequestId,
        reason: Option<String>,
        unless_unread: &[RequestId],
        at: u64,
    ) -> Result<(), Error> {
        let inbox = self.root.team(team)?.inbox(name);
        let waits = |entry: &Entry| {
            entry.unread().is_some_and(|m| unless_unread.iter().any(|id| m.text.contains(id.as_str())))
        };
        if !unless_unread.is_empty() && inbox.read()?.iter().any(waits) {
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

    fn answers(&self, team: &TeamName, requests: &[RequestId]) -> Result<Vec<Answer>, Error> {
        let entries = self.root.team(team)?.inbox(&AgentName::lead()).read()?;
        let messages = entries.iter().filter_map(|entry| entry.message.as_ref().ok());
        let concerned = messages.filter(|m| requests.iter().any(|request| m.text.contains(request.as_str())));
        Ok(concerned.filter_map(answer).collect())
    }

    fn farewell(&self, record: &Record) -> FileDone {
        // The word may stand in the lead's inbox, and not have been read yet, when the end is seen.
        let approved = record.approved || self.has_approved(record);
        let left = match self.root.team(&record.team) {
            Ok(team) => take_off(&team, record, approved).err().map(fault),
            Err(Error::NoSuchTeam { .. }) => None,
            Err(error) => Some(fault(error)),
        };
        if left.is_none() {
            self.note("remove an end record", self.state.remove(&end_record(&record.spawn)));
        }
        FileDone::Farewelled { spawn: record.spawn.clone(), approved, left }
    }

    fn has_approved(&self, record: &Record) -> bool {
        let hers = |answer: &Answer| answer.rejected.is_none() && answer.from == record.name;
        !record.asked.is_empty()
            && self.answers(&record.team, &record.asked).is_ok_and(|all| all.iter().any(hers))
    }

    /// None and nothing swept where the words can't be read: that is not the same as none.
    fn last_words(&self, spawn: &SpawnId, token: &str) -> Option<Ended> {
        match self.state.read(&end_record(spawn)) {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).ok(),
            Ok(None) => {
                crate::sweep::sweep(token);
                None
            }
            Err(error) => {
                tracing::warn!("cannot read a join's last words: {error}");
                None
            }
        }
    }

    fn repair(&self, team: &TeamName, living: &[Record]) -> Result<(), Error> {
        let team = self.root.team(team)?;
        let there = team.config()?.members;
        for record in living.iter().filter(|record| !there.iter().any(|m| m.name == record.name)) {
            tracing::warn!(member = %record.name, "config.json lost a living member: putting it back");
            team.add_member(&member(record))?;
        }
        Ok(())
    }

    /// Members that somebody else has put there may live, for all that we know.
    fn delete(&self, name: &TeamName, force: bool) -> Result<(), Fault> {
        let team = self.root.team(name).map_err(fault)?;
        let members = if force { Vec::new() } else { team.config().map_err(fault)?.members };
        let others: Vec<String> =
            members.iter().filter(|m| !m.name.is_lead()).map(|m| m.name.to_string()).collect();
        if others.is_empty() { team.delete().map_err(fault) } else { Err(still_living(name, &others)) }
    }

    fn rescan(&mut self, teams: &[TeamName]) {
        for event in self.seen.changes(self.root.path(), teams) {
            self.events.send(event).ok();
        }
    }
}

/// Each part is tried, whatever became of the others: a damaged inbox must not keep a member on the team. All
/// of it can be done again. An entry of that name from another life is not ours to remove.
fn take_off(team: &Team, record: &Record, approved: bool) -> Result<(), Error> {
    let told = if approved { Ok(()) } else { tell_lead(team, record) };
    let ours =
        team.config().map(|config| config.member(&record.name).is_some_and(|m| m.joined_at == record.born));
    let removed = match ours {
        Ok(true) => complete_tracking(team, record).and(team.remove_member(&record.name)),
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    told.and(removed)
}

/// Without its id on record (a daemon was killed between the two) it is found by what it is.
fn complete_tracking(team: &Team, record: &Record) -> Result<(), Error> {
    let tasks = team.tasks();
    if let Some(id) = &record.tracking {
        return tasks.complete(id, &record.name).map(drop);
    }
    let hers = |task: &&Task| {
        task.is_internal() && task.subject == record.name.as_str() && task.status == TaskStatus::InProgress
    };
    tasks.list()?.iter().filter(hers).try_for_each(|task| tasks.complete(&task.id, &record.name).map(drop))
}

fn fault(error: Error) -> Fault {
    Fault { kind: error.kind(), message: error.to_string(), hint: error.hint() }
}

/// Where a team's files are refused while members live.
pub(crate) fn still_living(team: &TeamName, names: &[String]) -> Fault {
    let message = format!("Cannot cleanup team with {} active member(s): {}", names.len(), names.join(", "));
    Fault::new(Kind::Refused, message).hinted(format!("end them with: teamctl shutdown --all -t {team}"))
}

/// Where a join leaves word if nobody listens when its agent ends.
pub(crate) fn end_record(spawn: &SpawnId) -> String {
    format!("end-{}.json", spawn.as_str())
}

/// `NAME-n`, the name cut where both would be longer than a name may be.
fn numbered(team: &TeamName, n: u32) -> Result<TeamName, Error> {
    let suffix = format!("-{n}");
    let base: String = team.as_str().chars().take(64 - suffix.len()).collect();
    Ok(TeamName::sanitize(&format!("{base}{suffix}"))?)
}

fn first_config(create: &Create, name: &TeamName, at: u64) -> TeamConfig {
    let model = create.model.clone().unwrap_or_default();
    let cwd = create.cwd.to_string_lossy().into_owned();
    let lead = Member::lead(name, create.agent_type.clone(), model, cwd, at);
    TeamConfig {
        name: name.to_string(),
        description: create.description.clone(),
        created_at: at,
        lead_agent_id: lead.agent_id.clone(),
        lead_session_id: uuid::Uuid::new_v4().to_string(),
        members: vec![lead],
        hidden_pane_ids: Vec::new(),
    }
}

fn member(record: &Record) -> Member {
    let entry = TeammateEntry {
        name: record.name.clone(),
        agent_type: record.agent_type.clone(),
        model: record.model.clone(),
        prompt: record.prompt.clone(),
        // Registration is what gives one.
        color: record.color.unwrap_or_else(|| Color::nth(0)),
        plan_mode_required: record.plan_mode_required,
        joined_at: record.born,
        tmux_pane_id: record.pane.as_ref().map(|pane| pane.pane.clone()).unwrap_or_default(),
        cwd: record.cwd.to_string_lossy().into_owned(),
        backend_type: "tmux".to_owned(),
        worktree_path: None,
    };
    Member::teammate(&record.team, entry)
}

fn answer(message: &Message) -> Option<Answer> {
    let from = AgentName::foreign(&message.from);
    match Payload::parse(&message.text)? {
        Payload::ShutdownApproved(it) => Some(Answer { request: it.request_id, from, rejected: None }),
        Payload::ShutdownRejected(it) => {
            Some(Answer { request: it.request_id, from, rejected: Some(it.reason) })
        }
        _ => None,
    }
}

/// Once: a farewell that is repeated after a crash finds its own message, which carries the time of the end.
fn tell_lead(team: &Team, record: &Record) -> Result<(), Error> {
    let Some(end) = record.ended.as_ref().filter(|end| end.told == Told::Lead) else { return Ok(()) };
    let message = format!("{} has ended: {}", record.name, end.how);
    let payload = Payload::TeammateTerminated(TeammateTerminated { message });
    let mut message = Message::new(&record.name, payload.to_text(), end.at);
    message.color = record.color.map(|color| color.to_string());
    let inbox = team.inbox(&AgentName::lead());
    let told = |entry: &Entry| {
        entry.message.as_ref().is_ok_and(|m| {
            m.timestamp == message.timestamp && m.from == message.from && m.text == message.text
        })
    };
    if inbox.read()?.iter().any(told) { Ok(()) } else { inbox.append(&message) }
}

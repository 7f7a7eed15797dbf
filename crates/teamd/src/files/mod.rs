//! The files thread: one job after the other, in order, so that the loop never waits for a disk or a lock.
//!
//! The only place of the daemon that changes files under the root. Jobs carry all they need; what they find
//! goes back as an event.

mod config;
mod environment;
mod inbox;
mod job;
mod member;
mod queue;
mod root;
mod roster;
mod team;
#[cfg(test)]
mod tests;
mod together;

pub(crate) use environment::{drop_unknown, environment};
pub(crate) use job::{
    ConfigSeen, Enrolled, FileDone, FileJob, Guard, Letter, Living, Mail, Ours, ShutdownAnswer, Which,
};
pub(crate) use member::end_record;
pub(crate) use queue::Jobs;
pub(crate) use team::{forget_team, still_living};
pub(crate) use together::gather;
use together::is_aside;

use crate::event::Event;
use crate::roster::SpawnId;
use crate::seen::Seen;
use crate::tale::Tale;
use inbox::Inboxes;
use protocol::control::LeadProcess;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, TaskStatus};
use queue::Queue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use store::{BaseVersion, Error, Root, StateDir, Team};
use tokio::sync::mpsc::UnboundedSender;

/// The file that holds the roster, in the state directory.
pub(crate) const ROSTER: &str = protocol::capabilities::RosterFile::FILE_NAME;
/// The event log, in the state directory.
const EVENTS: &str = "events.jsonl";
/// Beyond this the event log starts anew and the old one gets `.1`, bytes. Small enough to be read whole at the
/// start.
const EVENTS_LIMIT: u64 = 7 * 1024 * 1024;

/// The thread's own things.
struct Files {
    root: Root,
    state: StateDir,
    seen: Seen,
    inboxes: Inboxes,
    /// Handles that are kept, for what they remember of the tasks.
    teams: BTreeMap<TeamName, Team>,
    /// The configs whose faces were remembered last: those that have no other need not be looked at for one.
    faces: BTreeMap<TeamName, BaseVersion>,
    /// Members that were taken off lately, with the time of their birth.
    gone: VecDeque<(TeamName, AgentName, u64)>,
    /// The environments that the last roster named; none where that is not known, nor what an earlier daemon left.
    environments: Option<BTreeSet<String>>,
    /// The environments that could not be kept, and why, until whoever was to have them is told.
    unkept: BTreeMap<String, ErrorReport>,
    /// Why the roster on disk is not the last one.
    unsaved: Option<ErrorReport>,
    /// Who leads, as the hooks find it; none: not written yet.
    leads: Option<Vec<LeadProcess>>,
    /// The root is not ours any more.
    lost: bool,
    events: UnboundedSender<Event>,
}

/// Starts the thread; it ends when the sender is dropped and all jobs are done.
pub(crate) fn start(
    root: Root,
    state: StateDir,
    told: BTreeMap<(TeamName, AgentName), usize>,
    events: UnboundedSender<Event>,
) -> Result<(Jobs, std::thread::JoinHandle<()>), ErrorReport> {
    let (jobs, queue) = queue::queue();
    let mut files = Files::new(root, state, told, events);
    let thread = std::thread::Builder::new().name("files".into()).spawn(move || files.run(queue));
    thread.map(|thread| (jobs, thread)).map_err(|error| no_thread(&error))
}

/// The daemon does not start without its threads.
pub(crate) fn no_thread(error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, format!("cannot start a thread: {error}"))
        .with_help("are there too many processes? see: ulimit -u")
}

/// What the event log has told so far; a part that can't be read is told anew.
pub(crate) fn told(state: &StateDir) -> Tale {
    let read = |name: &str| {
        state.read(name).unwrap_or_else(|error| {
            tracing::warn!("cannot read the event log: {error}");
            None
        })
    };
    let parts = [format!("{EVENTS}.1"), EVENTS.to_owned()].map(|name| read(&name).unwrap_or_default());
    Tale::of(parts.iter().flat_map(|part| part.split(|byte| *byte == b'\n')))
}

impl Files {
    fn new(
        root: Root,
        state: StateDir,
        told: BTreeMap<(TeamName, AgentName), usize>,
        events: UnboundedSender<Event>,
    ) -> Files {
        Files {
            root,
            state,
            seen: Seen::default(),
            inboxes: Inboxes::new(told),
            teams: BTreeMap::new(),
            faces: BTreeMap::new(),
            gone: VecDeque::new(),
            environments: None,
            unkept: BTreeMap::new(),
            unsaved: None,
            leads: None,
            lost: false,
            events,
        }
    }

    fn run(&mut self, mut queue: Queue) {
        while let Some(job) = queue.next() {
            failpoint::hit("files.job");
            if !is_aside(&job) && !matches!(job, FileJob::Settled { .. }) {
                self.see_root(&job);
            }
            let all = gather(job, |is_wanted| queue.next_if(is_wanted), |aside| self.alone(aside));
            self.members_done(all).into_iter().for_each(|done| self.tell(done));
        }
    }

    fn alone(&mut self, job: FileJob) {
        failpoint::hit("files.job");
        self.job(job).into_iter().for_each(|done| self.tell(done));
    }

    fn tell(&self, done: FileDone) {
        failpoint::hit("files.done");
        // The loop has ended: nobody is left to be told.
        self.events.send(Event::Filed(done)).ok();
    }

    /// None where nobody waits to be told.
    fn job(&mut self, job: FileJob) -> Option<FileDone> {
        let done = match job {
            FileJob::Roster(roster) => return self.save(&roster).err().map(FileDone::Unsaved),
            FileJob::Log(line) => return self.unasked("log", |it| it.append(&line)),
            FileJob::Environment { file, env } => {
                match or_fault(self.keep_environment(&file, &env)) {
                    Ok(()) => self.unkept.remove(&file),
                    Err(fault) => self.unkept.insert(file, fault),
                };
                return None;
            }
            FileJob::ModeIs { team, name, mode } => {
                return self.unasked("write a mode", |it| it.set(&team, &name, "mode", json!(mode)));
            }
            FileJob::Activity { team, name, active } => {
                return self.unasked("write isActive", |it| it.set(&team, &name, "isActive", json!(active)));
            }
            FileJob::LeadSession { team, session } => {
                let session = [("leadSessionId", json!(session))];
                return self.unasked("write leadSessionId", |it| it.team(&team)?.set_fields(&session));
            }
            FileJob::Hidden { team, panes, tell: None } => {
                return self.unasked("write hiddenPaneIds", |it| it.hidden(&team, &panes));
            }
            FileJob::Probe => return self.unasked("probe the watcher", |it| it.root.create_probe()),
            FileJob::Rescan { teams } => {
                self.rescan(&teams);
                return None;
            }
            FileJob::Config { team, ours } => {
                let seen = self.look_at_config(&team, &ours);
                FileDone::Config { team, seen: self.note("repair config.json", seen).unwrap_or_default() }
            }
            FileJob::Sessions => {
                let teams = self.note("look for sessions", self.root.teams())?;
                let there: Vec<TeamName> = teams.into_iter().filter(TeamName::is_claude_session).collect();
                self.note("forget answers to sessions", self.root.delete_session_records(&there));
                FileDone::Sessions { there }
            }
            FileJob::Hidden { team, panes, tell: Some((client, reply)) } => {
                FileDone::Noted { client, reply, result: or_fault(self.hidden(&team, &panes)) }
            }
            FileJob::Create { client, create, created_at } => {
                let result = or_fault(self.create(&create, created_at));
                FileDone::Created { client, policy: create.policy, result }
            }
            job @ (FileJob::Register { .. } | FileJob::Farewell { .. }) => {
                return self.members_done(vec![job]).pop();
            }
            FileJob::Ask { spawn, team, name, request, reason, unless_unread, at } => {
                // The next daemon would not know the answer for one.
                let ask = |()| or_fault(self.ask(&team, &name, &request, reason, &unless_unread, at));
                FileDone::Asked { spawn, result: self.saved().and_then(ask) }
            }
            FileJob::Answers { team, requests } => {
                FileDone::Answers { answers: or_fault(self.answers(&team, &requests)), team }
            }
            FileJob::LastWords { spawn, token } => {
                FileDone::LastWords { ended: self.last_words(&spawn, &token), spawn }
            }
            FileJob::Tasks { team, which, asks } => {
                let result = or_fault(self.tasks(&team, which));
                let owned = result.as_ref().is_ok_and(|tasks| tasks.iter().any(|task| is_held(task)));
                let members = if owned { self.members(&team) } else { Vec::new() };
                FileDone::Tasks { members, team, result, asks }
            }
            FileJob::Inbox { team, inbox, guard } => {
                let guard = self.guard(&team, &inbox, guard);
                let result = self.team(&team).and_then(|team| self.inboxes.look(&team, &inbox, guard));
                FileDone::Inbox { team, inbox, result: or_fault(result) }
            }
            FileJob::Requests { team } => {
                let result = self.team(&team).and_then(|team| team.requests_for_repairer().scan());
                FileDone::Requests { team, result: or_fault(result) }
            }
            FileJob::Answer { team, request, answer, by, at } => {
                let given = self
                    .team(&team)
                    .and_then(|team| team.requests_for_repairer().answer(&request, &answer, by, at));
                let (from, id) = (request.from.clone(), request.request.id().clone());
                FileDone::Answered { team, from, request: id, result: or_fault(given) }
            }
            FileJob::Mode { client, team, name, mode, telling, at } => {
                let result = or_fault(self.set_mode(&team, &name, mode, telling, at));
                FileDone::ModeSet { client, who: (team, name, mode), result }
            }
            FileJob::Policy { client, order } => {
                let result = or_fault(self.replace_policy(&order.team, &order.policy));
                FileDone::PolicySet { client, order, result }
            }
            FileJob::Written { logs } => FileDone::Written { written: written(logs) },
            FileJob::Settled { client, reply } => FileDone::Settled { client, reply },
            FileJob::Heard { conn } => FileDone::Heard { conn, result: self.saved() },
            FileJob::Recorded { making } => FileDone::Recorded { making, result: self.saved() },
            FileJob::MayDelete { client, order } => {
                let result = self.may_delete(&order.team, order.force);
                return Some(FileDone::MayDelete { client, order, result });
            }
            FileJob::Delete { client, team, force, swept } => {
                FileDone::Deleted { client, result: self.delete(&team, force), team, swept }
            }
        };
        Some(done)
    }

    /// What is done without anybody asking; a failure is for the log.
    fn unasked(&mut self, what: &str, act: impl FnOnce(&mut Files) -> Result<(), Error>) -> Option<FileDone> {
        let result = act(self);
        self.note(what, result);
        None
    }

    fn append(&self, line: &str) -> Result<(), Error> {
        self.state.append_line(EVENTS, line, EVENTS_LIMIT)
    }

    /// A field of a member.
    fn set(&mut self, team: &TeamName, name: &AgentName, field: &str, value: Value) -> Result<(), Error> {
        self.team(team)?.set_member_fields(name, &[(field, value)])
    }

    fn tasks(&mut self, name: &TeamName, which: Which) -> Result<Arc<Vec<Arc<Task>>>, Error> {
        let tasks = self.team(name)?.tasks();
        match which {
            Which::These(changed) => tasks.list_after_changes(&Vec::from_iter(changed)),
            Which::All => tasks.list_cached().map(Arc::new),
        }
    }

    /// Nobody where the config can't be read: that is told elsewhere. That of a session is nobody's to wait for.
    fn members(&mut self, name: &TeamName) -> Vec<AgentName> {
        if name.is_claude_session() {
            return Vec::new();
        }
        let config = self.team(name).and_then(|team| team.config_for_repairer());
        config
            .map(|config| config.members.iter().map(|member| member.name.clone()).collect())
            .unwrap_or_default()
    }

    /// The handle of this team, or of the one that somebody has put in its place.
    fn team(&mut self, name: &TeamName) -> Result<Team, Error> {
        if let Some(team) = self.teams.get(name).filter(|team| team.is_current()) {
            return Ok(team.clone());
        }
        if self.teams.remove(name).is_some() {
            self.inboxes.forget(name);
        }
        let team = self.root.team(name)?;
        self.teams.insert(name.clone(), team.clone());
        Ok(team)
    }

    /// For what has nobody to answer to: a failure is logged.
    fn note<T>(&self, what: &str, result: Result<T, Error>) -> Option<T> {
        result.inspect_err(|error| tracing::warn!("cannot {what}: {error}")).ok()
    }

    fn rescan(&mut self, teams: &[TeamName]) {
        self.note("forget a team", self.forget_deleted(teams));
        self.note("remove a probe", self.root.remove_probes());
        for event in self.seen.changes(self.root.path(), teams) {
            self.events.send(event).ok();
        }
        for name in teams.iter().filter(|name| !name.is_claude_session()) {
            let unseen = self.team(name).and_then(|team| self.inboxes.unseen(&team)).unwrap_or_default();
            for file in unseen {
                let inbox = file.trim_end_matches(".json").to_owned();
                self.events.send(Event::InboxChanged { team: name.clone(), inbox, rung: false }).ok();
            }
        }
    }

    /// The lead of a team that another program made reads its inbox as that program does.
    fn guard(&self, team: &TeamName, inbox: &str, guard: Guard) -> Guard {
        let lead = AgentName::new_unchecked(inbox).is_lead() && guard == Guard::Looks;
        if lead && self.face(team).is_none() { Guard::Never } else { guard }
    }
}

/// Whether somebody may have left it: then it is asked who is there.
fn is_held(task: &Task) -> bool {
    task.status == TaskStatus::InProgress && task.owner.is_some()
}

/// When each grew last, as far as that can be told. There is none of who has never written anything.
fn written(logs: Vec<(SpawnId, PathBuf)>) -> Vec<(SpawnId, u64)> {
    let at = |path: &Path| match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(0),
        log => {
            let at = log.ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(at.as_millis()).ok()
        }
    };
    logs.into_iter().filter_map(|(spawn, log)| Some((spawn, at(&log)?))).collect()
}

/// A failure as whoever waits for it is told.
fn or_fault<T>(result: Result<T, Error>) -> Result<T, ErrorReport> {
    result.map_err(ErrorReport::from)
}

//! The files thread: one job after the other, in order, so that the loop never waits for a disk or a lock.
//!
//! The only place of the daemon that changes files under the root. Jobs carry all they need; what they find
//! goes back as an event.

mod config;
mod environment;
mod inbox;
mod job;
mod member;
mod team;
#[cfg(test)]
mod tests;

pub(crate) use environment::{drop_unknown, environment};
pub(crate) use job::{
    ConfigSeen, Enrolled, FileDone, FileJob, Letter, Living, Mail, Ours, ShutdownAnswer, Which,
};
pub(crate) use member::end_record;
pub(crate) use team::still_living;

use crate::event::Event;
use crate::roster::Roster;
use crate::seen::Seen;
use crate::tale::Tale;
use inbox::Inboxes;
use protocol::control::{Lead, Leads};
use protocol::fault::Fault;
use protocol::name::{AgentName, TeamName};
use protocol::task::Task;
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::{Error, Root, StateDir, Team};
use tokio::sync::mpsc::UnboundedSender;

/// The file that holds the roster, in the state directory.
pub(crate) const ROSTER: &str = "roster.json";
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
    /// Members that were taken off lately, with the time of their birth.
    gone: VecDeque<(TeamName, AgentName, u64)>,
    /// How many environments the last roster named.
    environments: usize,
    /// Why the roster on disk is not the last one.
    unsaved: Option<Fault>,
    /// Who leads, as the hooks find it; none: not written yet.
    leads: Option<Vec<Lead>>,
    events: UnboundedSender<Event>,
}

/// Starts the thread; it ends when the sender is dropped and all jobs are done.
pub(crate) fn start(
    root: Root,
    state: StateDir,
    told: BTreeMap<(TeamName, AgentName), usize>,
    events: UnboundedSender<Event>,
) -> (Sender<FileJob>, std::thread::JoinHandle<()>) {
    let (jobs, queue) = channel();
    let mut files = Files::new(root, state, told, events);
    let thread = std::thread::Builder::new().name("files".into()).spawn(move || files.run(&queue));
    (jobs, thread.expect("a thread can be started where the daemon itself could"))
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
            gone: VecDeque::new(),
            environments: 0,
            unsaved: None,
            leads: None,
            events,
        }
    }

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
            FileJob::Roster(roster) => {
                self.unsaved = self.roster(&roster).map_err(Fault::from).err();
                if self.unsaved.is_none() {
                    let dropped = self.drop_environments(&roster);
                    self.note("remove the environment of an agent that is gone", dropped);
                }
                return self.unsaved.clone().map(FileDone::Unsaved);
            }
            FileJob::Log(line) => self.note("log", self.state.append_line(EVENTS, &line, EVENTS_LIMIT)),
            FileJob::Create { client, create, created_at } => {
                let result = self.create(&create, created_at).map_err(Fault::from);
                return Some(FileDone::Created { client, policy: create.policy, result });
            }
            FileJob::Environment { file, env } => {
                self.note("keep the environment of an agent", self.keep_environment(&file, &env));
            }
            FileJob::Register { spawn, record, again, at } => {
                // No agent runs that the next daemon would not know.
                let saved = self.unsaved.clone().map_or(Ok(()), Err);
                let result = saved
                    .and_then(|()| crate::worktrees::check(&record))
                    .and_then(|()| self.register(&record, again, at).map_err(Fault::from));
                return Some(FileDone::Registered { spawn, result });
            }
            FileJob::Ask { spawn, team, name, request, reason, unless_unread, at } => {
                let result =
                    self.ask(&team, &name, &request, reason, &unless_unread, at).map_err(Fault::from);
                return Some(FileDone::Asked { spawn, result });
            }
            FileJob::Answers { team, requests } => {
                let answers = self.answers(&team, &requests).map_err(Fault::from);
                return Some(FileDone::Answers { team, answers });
            }
            FileJob::Farewell { record } => return Some(self.farewell(&record)),
            FileJob::LastWords { spawn, token } => {
                return Some(FileDone::LastWords { ended: self.last_words(&spawn, &token), spawn });
            }
            FileJob::Tasks { team, which } => {
                let result = self.tasks(&team, which).map_err(Fault::from);
                let members = self.members(&team);
                return Some(FileDone::Tasks { team, members, result });
            }
            FileJob::Inbox { team, inbox } => {
                let result = self.team(&team).and_then(|team| self.inboxes.look(&team, &inbox));
                return Some(FileDone::Inbox { team, inbox, result: result.map_err(Fault::from) });
            }
            FileJob::Requests { team } => {
                let result = self.team(&team).and_then(|team| team.requests().open()).map_err(Fault::from);
                return Some(FileDone::Requests { team, result });
            }
            FileJob::Answer { team, request, answer, at } => {
                let given = self.team(&team).and_then(|team| team.requests().answer(&request, &answer, at));
                let (from, id) = (request.from.clone(), request.asked.id().clone());
                return Some(FileDone::Answered {
                    team,
                    from,
                    request: id,
                    result: given.map_err(Fault::from),
                });
            }
            FileJob::Mode { client, team, name, mode, telling, at } => {
                let result = self.set_mode(&team, &name, mode, telling, at).map_err(Fault::from);
                return Some(FileDone::ModeSet { client, who: (team, name, mode), result });
            }
            FileJob::Policy { client, order } => {
                let result = self.replace_policy(&order.team, &order.policy).map_err(Fault::from);
                return Some(FileDone::PolicySet { client, order, result });
            }
            FileJob::ModeIs { team, name, mode } => {
                let result =
                    self.team(&team).and_then(|team| team.set_member(&name, &[("mode", json!(mode))]));
                self.note("write a mode", result);
            }
            FileJob::Activity { team, name, active } => {
                let result =
                    self.root.team(&team).and_then(|t| t.set_member(&name, &[("isActive", json!(active))]));
                self.note("write isActive", result);
            }
            FileJob::Config { team, ours } => match self.look_at_config(&team, &ours) {
                Ok(seen) => return Some(FileDone::Config { team, seen }),
                Err(error) => self.note("repair config.json", Err(error)),
            },
            FileJob::Hidden { team, panes, tell } => {
                let result = self.hidden(&team, &panes);
                match tell {
                    None => self.note("write hiddenPaneIds", result),
                    Some((client, reply)) => {
                        return Some(FileDone::Noted { client, reply, result: result.map_err(Fault::from) });
                    }
                }
            }
            FileJob::Sessions => match self.root.teams() {
                Ok(teams) => {
                    let there = teams.into_iter().filter(TeamName::is_foreign).collect();
                    return Some(FileDone::Sessions { there });
                }
                Err(error) => self.note("look for sessions", Err(error)),
            },
            FileJob::Led { client } => return Some(FileDone::Led { client }),
            FileJob::LeadSession { team, session } => {
                let result = self.root.team(&team).and_then(|t| t.set(&[("leadSessionId", json!(session))]));
                self.note("write leadSessionId", result);
            }
            FileJob::Probe => self.note("probe the watcher", self.root.probe()),
            FileJob::Rescan { teams } => self.rescan(&teams),
            FileJob::Recorded { making } => {
                let result = self.unsaved.clone().map_or(Ok(()), Err);
                return Some(FileDone::Recorded { making, result });
            }
            FileJob::Delete { client, team, force, swept } => {
                let result = self.delete(&team, force);
                return Some(FileDone::Deleted { client, team, result, swept });
            }
        }
        None
    }

    fn tasks(&mut self, name: &TeamName, which: Which) -> Result<Vec<Arc<Task>>, Error> {
        let tasks = self.team(name)?.tasks();
        match which {
            Which::These(changed) => tasks.list_changed(&Vec::from_iter(changed)),
            Which::All => tasks.list_shared(),
        }
    }

    /// Nobody where the config can't be read: that is told elsewhere. That of a session is nobody's to wait for.
    fn members(&mut self, name: &TeamName) -> Vec<AgentName> {
        if name.is_foreign() {
            return Vec::new();
        }
        let config = self.team(name).and_then(|team| team.config());
        config
            .map(|config| config.members.into_iter().map(|member| member.name).collect())
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

    /// For what has nobody to answer to.
    fn note(&self, what: &str, result: Result<(), Error>) {
        if let Err(error) = result {
            tracing::warn!("cannot {what}: {error}");
        }
    }

    fn roster(&mut self, roster: &Roster) -> Result<(), Error> {
        let bytes = serde_json::to_vec(roster).expect("a roster has nothing that JSON cannot hold");
        self.state.replace(ROSTER, &bytes)?;
        self.leads(&roster.leads)
    }

    /// For the hooks of other programs: most of them belong to no team, and find no such file.
    fn leads(&mut self, leads: &[Lead]) -> Result<(), Error> {
        if self.leads.as_deref() == Some(leads) {
            return Ok(());
        }
        let all = Leads { leads: leads.to_vec() };
        let bytes = serde_json::to_vec(&all).expect("leads have nothing that JSON cannot hold");
        match leads.is_empty() {
            true => self.state.remove(Leads::FILE)?,
            false => self.state.replace(Leads::FILE, &bytes)?,
        }
        self.leads = Some(all.leads);
        Ok(())
    }

    fn rescan(&mut self, teams: &[TeamName]) {
        for event in self.seen.changes(self.root.path(), teams) {
            self.events.send(event).ok();
        }
    }
}

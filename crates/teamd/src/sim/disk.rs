//! What lies on the disk, and the files thread that writes it.

use super::trees::Woods;
use crate::event::Event;
use crate::files::{ConfigSeen, Enrolled, FileDone, FileJob, Mail, Ours, ShutdownAnswer};
use crate::roster::{Record, Roster, SpawnId};
use protocol::control::{CreateReply, Ended};
use protocol::fault::{Fault, Kind};
use protocol::id::{RequestId, TaskId};
use protocol::name::{AgentName, TeamName};
use std::collections::{BTreeMap, BTreeSet};

/// A team's files.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Those that config.json has, and for which life.
    pub(super) members: BTreeMap<AgentName, SpawnId>,
    /// Shutdown requests that lie in members' inboxes.
    pub(super) asked: BTreeMap<AgentName, Vec<RequestId>>,
    /// What the lead's inbox says of them: a reason where it is a no.
    pub(super) answers: BTreeMap<RequestId, (AgentName, Option<String>)>,
    /// Panes that are out of sight, as config.json has them.
    pub(super) hidden: Vec<String>,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// As it was written last.
    pub(super) roster: Roster,
    pub(super) teams: BTreeMap<TeamName, Files>,
    /// What joins left in writing.
    pub(super) words: BTreeMap<SpawnId, Ended>,
    /// All that have ever been written to a team; somebody else may have taken them off again.
    pub(super) registered: BTreeSet<SpawnId>,
    /// Beside the repository, in which they all work.
    pub(super) woods: Woods,
    /// The environments of agents.
    pub(super) environments: BTreeMap<String, BTreeMap<String, String>>,
    /// Nothing can be written.
    pub(super) full: bool,
    /// The last roster is not on it.
    unsaved: bool,
}

fn full() -> Fault {
    Fault::new(Kind::Io, "cannot write: no space left on device")
}

impl Disk {
    /// The roster as the next daemon will find it.
    pub(super) fn read_roster(&self) -> Roster {
        let bytes = serde_json::to_vec(&self.roster).expect("it can be written");
        serde_json::from_slice(&bytes).expect("it can be read")
    }

    fn writable(&self) -> Result<(), Fault> {
        if self.full { Err(full()) } else { Ok(()) }
    }

    fn team(&mut self, team: &TeamName) -> Result<&mut Files, Fault> {
        let missing = || Fault::new(Kind::NotFound, format!("cannot find the team {team}"));
        self.teams.get_mut(team).ok_or_else(missing)
    }

    /// What the thread does, and tells.
    pub(super) fn job(&mut self, job: FileJob) -> Option<Event> {
        match job {
            // Events arrive on this file system.
            FileJob::Probe => Some(Event::WatchProven),
            job => self.done(job).map(Event::Filed),
        }
    }

    fn done(&mut self, job: FileJob) -> Option<FileDone> {
        Some(match job {
            FileJob::Roster(roster) => {
                self.unsaved = self.full;
                if !self.full {
                    self.roster = roster;
                    return None;
                }
                FileDone::Unsaved(full())
            }
            FileJob::Create { client, create, .. } => {
                let result = self.create(&create.team);
                FileDone::Created { client, policy: create.policy, result }
            }
            FileJob::Register { spawn, record, .. } => {
                let result = self.register(&record);
                FileDone::Registered { spawn, result }
            }
            FileJob::Ask { spawn, team, name, request, unless_unread, .. } => {
                let result = self.ask(&team, &name, request, &unless_unread);
                FileDone::Asked { spawn, result }
            }
            FileJob::Answers { team, requests } => {
                let answers = self.answers(&team, &requests);
                FileDone::Answers { team, answers }
            }
            FileJob::Farewell { record } => self.farewell(&record),
            FileJob::LastWords { spawn, .. } => {
                FileDone::LastWords { ended: self.words.remove(&spawn), spawn }
            }
            FileJob::Tasks { team, .. } => {
                let known = self.teams.get(&team).into_iter();
                let members = known.flat_map(|team| team.members.keys().cloned()).collect();
                FileDone::Tasks { team, members, result: Ok(Vec::new()) }
            }
            FileJob::Inbox { team, inbox, .. } => {
                let result = self.team(&team).map(|_| Mail::default());
                FileDone::Inbox { team, inbox, result }
            }
            FileJob::Requests { team } => FileDone::Requests { team, result: Ok(Default::default()) },
            FileJob::Answer { team, request, .. } => {
                let (from, id) = (request.from.clone(), request.asked.id().clone());
                FileDone::Answered { team, from, request: id, result: Ok(()) }
            }
            FileJob::Mode { client, team, name, mode, .. } => {
                FileDone::ModeSet { client, who: (team, name, mode), result: self.writable() }
            }
            FileJob::Policy { client, order } => {
                FileDone::PolicySet { client, order, result: self.writable() }
            }
            FileJob::Config { team, ours } => {
                self.mend(&team, ours);
                FileDone::Config { team, seen: ConfigSeen::default() }
            }
            FileJob::Hidden { team, panes, tell } => {
                let writable = self.writable();
                let files = writable.and_then(|()| self.team(&team));
                let result = files.map(|files| files.hidden = panes);
                let (client, reply) = tell?;
                FileDone::Noted { client, reply, result }
            }
            FileJob::Sessions => FileDone::Sessions { there: Vec::new() },
            FileJob::Led { client } => FileDone::Led { client },
            FileJob::Recorded { making } => {
                let result = if self.unsaved { Err(full()) } else { Ok(()) };
                FileDone::Recorded { making, result }
            }
            FileJob::MayDelete { client, order } => {
                FileDone::MayDelete { client, order, result: self.writable() }
            }
            FileJob::Delete { client, team, force: _, swept } => {
                let result = self.writable();
                if result.is_ok() {
                    self.teams.remove(&team);
                }
                FileDone::Deleted { client, team, result, swept }
            }
            FileJob::Environment { file, env } => {
                if !self.full {
                    self.environments.insert(file, env);
                }
                return None;
            }
            FileJob::Log(_)
            | FileJob::ModeIs { .. }
            | FileJob::Activity { .. }
            | FileJob::LeadSession { .. }
            | FileJob::Probe
            | FileJob::Rescan { .. } => return None,
        })
    }

    fn create(&mut self, team: &TeamName) -> Result<CreateReply, Fault> {
        self.writable()?;
        if self.teams.contains_key(team) {
            return Err(Fault::new(Kind::Exists, format!("cannot create {team}: it is there")));
        }
        self.teams.insert(team.clone(), Files::default());
        Ok(CreateReply {
            team_name: team.clone(),
            team_file_path: "/root/teams".into(),
            lead_agent_id: format!("team-lead@{team}"),
        })
    }

    fn register(&mut self, record: &Record) -> Result<Enrolled, Fault> {
        let writable = if self.unsaved { Err(full()) } else { self.writable() };
        writable?;
        if let Some(tree) = &record.worktree
            && !self.woods.is_there(tree)
        {
            return Err(Fault::new(Kind::Refused, "cannot start it in its worktree: it is gone"));
        }
        let team = self.team(&record.team)?;
        if team.members.contains_key(&record.name) {
            return Err(Fault::new(Kind::Exists, format!("cannot spawn {}: it is on the team", record.name)));
        }
        team.members.insert(record.name.clone(), record.spawn.clone());
        self.registered.insert(record.spawn.clone());
        Ok(Enrolled { tracking: TaskId::parse("1").expect("it is one"), lead_session: "s".to_owned() })
    }

    fn ask(
        &mut self,
        team: &TeamName,
        name: &AgentName,
        request: RequestId,
        unless: &[RequestId],
    ) -> Result<(), Fault> {
        self.writable()?;
        let inbox = self.team(team)?.asked.entry(name.clone()).or_default();
        if !inbox.iter().any(|request| unless.contains(request)) {
            inbox.push(request);
        }
        Ok(())
    }

    fn answers(&mut self, team: &TeamName, requests: &[RequestId]) -> Result<Vec<ShutdownAnswer>, Fault> {
        let files = self.team(team)?;
        let of = |request: &RequestId| {
            let (from, rejected) = files.answers.get(request)?.clone();
            Some(ShutdownAnswer { request: request.clone(), from, rejected })
        };
        Ok(requests.iter().filter_map(of).collect())
    }

    fn farewell(&mut self, record: &Record) -> FileDone {
        let spawn = record.spawn.clone();
        if self.full {
            return FileDone::Farewelled { spawn, approved: false, left: Some(full()) };
        }
        let mut approved = false;
        if let Some(team) = self.teams.get_mut(&record.team) {
            team.members.retain(|_, life| *life != spawn);
            approved = record.asked.iter().any(|id| matches!(team.answers.get(id), Some((_, None))));
            team.asked.remove(&record.name);
        }
        FileDone::Farewelled { spawn, approved, left: None }
    }

    /// What a foreign writer dropped comes back.
    fn mend(&mut self, team: &TeamName, ours: Ours) {
        let Some(team) = self.teams.get_mut(team).filter(|_| !self.full) else { return };
        for living in ours.living {
            team.members.entry(living.record.name.clone()).or_insert(living.record.spawn);
        }
    }
}

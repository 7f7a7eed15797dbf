//! What lies on the disk, and the files thread that writes it.

use super::letters::{Files, Member, Standing};
use super::looks::{Looks, News, Part};
use super::trees::Woods;
use crate::event::Event;
use crate::files::{ConfigSeen, Enrolled, FileDone, FileJob, Living, Ours, ShutdownAnswer};
use crate::roster::{Record, Roster, SpawnId};
use crate::step::Telling;
use protocol::control::{Activity, CreateTeamReply, CreateTeamRequest, ExitReport};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::{RequestId, TaskId};
use protocol::member_request::Answer;
use protocol::name::{AgentName, TeamName};
use protocol::payload::{ModeSetRequest, Payload};
use protocol::permission_mode::PermissionMode;
use protocol::policy::{AnsweredBy, Policy};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use store::OpenRequest;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// As it was written last.
    pub(super) roster: Roster,
    pub(super) teams: BTreeMap<TeamName, Files>,
    /// Those of Claude Code's own sessions.
    pub(super) sessions: BTreeMap<TeamName, Files>,
    /// What joins left in writing.
    pub(super) words: BTreeMap<SpawnId, ExitReport>,
    /// All that have ever been written to a team; somebody else may have taken them off again.
    pub(super) registered: BTreeSet<SpawnId>,
    /// Beside the repository, in which they all work.
    pub(super) woods: Woods,
    /// The environment that could not be kept last.
    unkept: Option<String>,
    /// The environments of agents.
    pub(super) environments: BTreeMap<String, BTreeMap<String, String>>,
    /// Which change each file has had last.
    pub(super) versions: BTreeMap<(TeamName, Part), u64>,
    pub(super) writes: u64,
    /// What no watcher has told yet.
    pub(super) news: VecDeque<News>,
    /// Events arrive on this file system.
    pub(super) tells: bool,
    /// The event log; none where nobody keeps one, which is quicker.
    pub(super) log: Option<Vec<String>>,
    /// Nothing can be written.
    pub(super) full: bool,
    /// The last roster is not on it.
    unsaved: bool,
}

fn full() -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, "cannot write: no space left on device")
}

impl Disk {
    pub(super) fn new(rng: &mut fastrand::Rng) -> Disk {
        Disk { tells: rng.u8(..) < 240, log: (rng.u8(..) < 30).then(Vec::new), ..Disk::default() }
    }

    /// The roster as the next daemon will find it.
    pub(super) fn read_roster(&self) -> Roster {
        let bytes = serde_json::to_vec(&self.roster).expect("it can be written");
        serde_json::from_slice(&bytes).expect("it can be read")
    }

    fn writable(&self) -> Result<(), ErrorReport> {
        if self.full { Err(full()) } else { Ok(()) }
    }

    fn saved(&self) -> Result<(), ErrorReport> {
        if self.unsaved { Err(full()) } else { Ok(()) }
    }

    fn team(&mut self, team: &TeamName) -> Result<&mut Files, ErrorReport> {
        let missing = || ErrorReport::new(ErrorKind::NotFound, format!("cannot find the team {team}"));
        let teams = if team.is_claude_session() { &mut self.sessions } else { &mut self.teams };
        teams.get_mut(team).ok_or_else(missing)
    }

    /// What the thread does, and tells.
    pub(super) fn job(&mut self, job: FileJob, looks: &mut Looks, told: &mut VecDeque<Event>) {
        match job {
            FileJob::Probe if self.tells => told.push_back(Event::WatchProven),
            FileJob::Rescan { teams } => told.extend(looks.rescan(&teams, &self.versions)),
            FileJob::Tasks { team, which, asks } => {
                let known = self.teams.get(&team).into_iter();
                let members = known.flat_map(|team| team.members.keys().cloned()).collect();
                let result = self.team(&team).map(|files| looks.tasks(&team, which, &files.tasks));
                told.push_back(Event::Filed(FileDone::Tasks { team, members, result, asks }));
            }
            FileJob::Inbox { team, inbox, .. } => {
                let name = AgentName::new_unchecked(&inbox);
                let files = self.team(&team);
                let letters = files.map(|files| files.inboxes.get(&name).map_or(&[][..], Vec::as_slice));
                let result = letters.map(|letters| looks.mail(&team, &name, letters));
                told.push_back(Event::Filed(FileDone::Inbox { team, inbox, result }));
            }
            job => {
                let anew = match &job {
                    FileJob::Create { create: CreateTeamRequest { team, .. }, .. }
                    | FileJob::Delete { team, .. } => Some(team.clone()),
                    _ => None,
                };
                told.extend(self.done(job).map(Event::Filed));
                anew.iter().for_each(|team| looks.forget(team));
            }
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
                let result = self.create(&create.team, &create.policy);
                FileDone::Created { client, policy: create.policy, result }
            }
            FileJob::Register { spawn, record, again, at } => {
                let result = self.register(&record, again, at);
                FileDone::Registered { spawn, result }
            }
            FileJob::Ask { spawn, team, name, request, unless_unread, .. } => {
                let result = self.saved().and_then(|()| self.ask(&team, &name, request, &unless_unread));
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
            FileJob::Requests { team } => {
                let result = self.team(&team).map(|files| files.asking());
                FileDone::Requests { team, result }
            }
            FileJob::Answer { team, request, answer, by, at } => {
                let result = self.answer(&team, &request, &answer, by, at);
                let (from, id) = (request.from.clone(), request.request.id().clone());
                FileDone::Answered { team, from, request: id, result }
            }
            FileJob::Mode { client, team, name, mode, telling, at } => {
                let result = self.set_mode(&team, &name, mode, telling, at);
                FileDone::ModeSet { client, who: (team, name, mode), result }
            }
            FileJob::Policy { client, order } => {
                let writable = self.writable();
                let files = writable.and_then(|()| self.team(&order.team));
                let result = files.map(|files| files.policy = order.policy.clone());
                FileDone::PolicySet { client, order, result }
            }
            FileJob::Config { team, ours } => {
                let seen = self.config(&team, ours);
                FileDone::Config { team, seen }
            }
            FileJob::Hidden { team, panes, tell } => {
                let writable = self.writable();
                let files = writable.and_then(|()| self.team(&team));
                let result = files.map(|files| files.hidden = panes);
                let (client, reply) = tell?;
                FileDone::Noted { client, reply, result }
            }
            FileJob::Sessions => FileDone::Sessions { there: self.sessions.keys().cloned().collect() },
            FileJob::Written { logs } => {
                FileDone::Written { written: logs.into_iter().map(|(spawn, _)| (spawn, 0)).collect() }
            }
            FileJob::Settled { client, reply } => FileDone::Settled { client, reply },
            FileJob::Heard { conn } => FileDone::Heard { conn, result: self.saved() },
            FileJob::Recorded { making } => FileDone::Recorded { making, result: self.saved() },
            FileJob::MayDelete { client, order } => {
                FileDone::MayDelete { client, order, result: self.writable() }
            }
            FileJob::Delete { client, team, force: _, swept } => {
                let result = self.writable();
                if result.is_ok() {
                    self.teams.remove(&team);
                    self.versions.retain(|(of, _), _| *of != team);
                }
                FileDone::Deleted { client, team, result, swept }
            }
            FileJob::Environment { file, env } => {
                match self.full {
                    true => self.unkept = Some(file),
                    false => drop(self.environments.insert(file, env)),
                }
                return None;
            }
            FileJob::Activity { team, name, active } => {
                self.member(&team, &name, |member| member.active = active);
                return None;
            }
            FileJob::ModeIs { team, name, mode } => {
                self.member(&team, &name, |member| member.mode = Some(mode.to_string()));
                return None;
            }
            FileJob::Log(line) => {
                self.log.iter_mut().filter(|_| !self.full).for_each(|log| log.push(line.clone()));
                return None;
            }
            FileJob::LeadSession { .. }
            | FileJob::Probe
            | FileJob::Rescan { .. }
            | FileJob::Inbox { .. }
            | FileJob::Tasks { .. } => return None,
        })
    }

    fn create(&mut self, team: &TeamName, policy: &Policy) -> Result<CreateTeamReply, ErrorReport> {
        self.writable()?;
        if self.teams.contains_key(team) {
            return Err(ErrorReport::new(
                ErrorKind::AlreadyExists,
                format!("cannot create {team}: it is there"),
            ));
        }
        self.teams.insert(team.clone(), Files { policy: policy.clone(), ..Files::default() });
        self.touch(team, Part::Config);
        Ok(CreateTeamReply {
            team_name: team.clone(),
            team_file_path: "/root/teams".into(),
            lead_agent_id: format!("team-lead@{team}"),
        })
    }

    fn register(&mut self, record: &Record, again: bool, at: u64) -> Result<Enrolled, ErrorReport> {
        let unkept = self.unkept.as_ref() == Some(&record.env);
        let writable = if self.unsaved || unkept { Err(full()) } else { self.writable() };
        writable?;
        if let Some(tree) = &record.worktree
            && !self.woods.is_there(tree)
        {
            return Err(ErrorReport::new(ErrorKind::Refused, "cannot start it in its worktree: it is gone"));
        }
        let team = self.team(&record.team)?;
        if team.members.contains_key(&record.name) {
            return Err(ErrorReport::new(
                ErrorKind::AlreadyExists,
                format!("cannot spawn {}: it is on the team", record.name),
            ));
        }
        if !again {
            team.inboxes.remove(&record.name);
            if !record.prompt.is_empty() {
                team.put(&record.name, &AgentName::lead(), None, at);
            }
        }
        let (life, mode) = (record.spawn.clone(), record.mode.clone());
        team.members.insert(record.name.clone(), Member { life, born: record.born, active: true, mode });
        self.registered.insert(record.spawn.clone());
        self.touch(&record.team, Part::Inbox(record.name.clone()));
        self.touch(&record.team, Part::Config);
        Ok(Enrolled { tracking: TaskId::parse("1").expect("it is one"), lead_session: "s".to_owned() })
    }

    fn answer(
        &mut self,
        team: &TeamName,
        request: &OpenRequest,
        answer: &Answer,
        by: AnsweredBy,
        at: u64,
    ) -> Result<(), ErrorReport> {
        self.writable()?;
        match self.team(team)?.answer(request, answer, by, at) {
            Standing::Open => {
                self.touch(team, Part::Inbox(request.from.clone()));
                Ok(())
            }
            Standing::Answered(..) => Err(ErrorReport::new(ErrorKind::AlreadyExists, "it was answered")),
            Standing::TakenBack | Standing::Gone => {
                Err(ErrorReport::new(ErrorKind::NotFound, "nobody waits for it"))
            }
        }
    }

    fn set_mode(
        &mut self,
        team: &TeamName,
        name: &AgentName,
        mode: PermissionMode,
        telling: Telling,
        at: u64,
    ) -> Result<(), ErrorReport> {
        self.writable()?;
        self.team(team)?;
        if telling == Telling::Told {
            let request = ModeSetRequest { mode: mode.to_string(), from: AgentName::lead().to_string() };
            self.send(team, name, &AgentName::lead(), Some(Payload::ModeSetRequest(request)), at);
        }
        Ok(())
    }

    /// Stores a message, if it can be; whether it could.
    pub(super) fn send(
        &mut self,
        team: &TeamName,
        to: &AgentName,
        from: &AgentName,
        payload: Option<Payload>,
        at: u64,
    ) -> bool {
        let Some(files) = self.teams.get_mut(team).filter(|_| !self.full) else { return false };
        files.put(to, from, payload, at);
        self.touch(team, Part::Inbox(to.clone()));
        true
    }

    /// Changes an entry of config.json.
    pub(super) fn member(&mut self, team: &TeamName, name: &AgentName, change: impl FnOnce(&mut Member)) {
        let files = self.teams.get_mut(team).filter(|_| !self.full);
        if let Some(member) = files.and_then(|files| files.members.get_mut(name)) {
            change(member);
            self.touch(team, Part::Config);
        }
    }

    fn ask(
        &mut self,
        team: &TeamName,
        name: &AgentName,
        request: RequestId,
        unless: &[RequestId],
    ) -> Result<(), ErrorReport> {
        self.writable()?;
        let inbox = self.team(team)?.asked.entry(name.clone()).or_default();
        if !inbox.iter().any(|request| unless.contains(request)) {
            inbox.push(request);
            self.touch(team, Part::Inbox(name.clone()));
        }
        Ok(())
    }

    fn answers(
        &mut self,
        team: &TeamName,
        requests: &[RequestId],
    ) -> Result<Vec<ShutdownAnswer>, ErrorReport> {
        let files = self.team(team)?;
        let of = |request: &RequestId| {
            let (from, rejected) = files.answers.get(request)?.clone();
            Some(ShutdownAnswer { request: request.clone(), from, rejected })
        };
        Ok(requests.iter().filter_map(of).collect())
    }

    fn farewell(&mut self, record: &Record) -> FileDone {
        let spawn = record.spawn.clone();
        if self.full || self.unsaved {
            return FileDone::Farewelled { spawn, approved: false, left: Some(full()) };
        }
        let mut approved = false;
        if let Some(team) = self.teams.get_mut(&record.team) {
            team.members.retain(|_, member| member.life != spawn);
            approved = record.asked.iter().any(|id| matches!(team.answers.get(id), Some((_, None))));
            team.asked.remove(&record.name);
            self.touch(&record.team, Part::Config);
        }
        self.words.remove(&spawn);
        FileDone::Farewelled { spawn, approved, left: None }
    }

    /// What a foreign writer dropped comes back; then what config.json says.
    fn config(&mut self, name: &TeamName, ours: Ours) -> ConfigSeen {
        let Some(team) = self.teams.get_mut(name) else { return ConfigSeen::default() };
        let missing = ours.living.into_iter().filter(|_| !self.full);
        let missing: Vec<_> =
            missing.filter(|living| !team.members.contains_key(&living.record.name)).collect();
        for Living { record, activity } in &missing {
            let (life, mode) = (record.spawn.clone(), record.mode.clone());
            let member = Member { life, born: record.born, active: *activity == Activity::Active, mode };
            team.members.insert(record.name.clone(), member);
        }
        let active = team.members.iter().map(|(name, member)| (name.clone(), member.active)).collect();
        let modes =
            team.members.iter().filter_map(|(name, member)| Some((name.clone(), member.mode.clone()?)));
        let seen =
            ConfigSeen { active, modes: modes.collect(), mended: None, members_back: !missing.is_empty() };
        if !missing.is_empty() {
            self.touch(name, Part::Config);
        }
        seen
    }
}

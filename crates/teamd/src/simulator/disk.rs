//! The simulated disk, and the file jobs that read and write it.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::core_event::CoreEvent;
use crate::core::exit_record::{ExitRecord, ReportTo};
use crate::core::jobs::file_jobs::{
    FileJob, ModeChange, ModeRoute, RegisteredMember, Registration, RosterMembers,
};
use crate::core::jobs::file_results::{ConfigSnapshot, FileResult, ShutdownAnswer};
use crate::core::roster::Roster;
use crate::core::roster::agent_record::AgentRecord;
use crate::core::stop_and_exit_of_spawn::ShutdownApproval;
use crate::simulator::scan_memory::{ScanMemory, TeamFile, WatcherEvent};
use crate::simulator::team_files::{RequestState, SimulatedMember, SimulatedTeamFiles};
use crate::simulator::worktrees::Worktrees;
use protocol::control_socket::{Activity, CreateTeamReply, CreateTeamRequest, DeleteTeamRequest, ExitReport};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_message_payload::{ModeSetRequest, Payload};
use protocol::member_request::Answer;
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::policy::AnsweredBy;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use store::OpenRequest;

/// The files of the daemon and of all teams.
#[derive(Debug, Default)]
pub(super) struct SimulatedDisk {
    /// The roster that was last written.
    pub(super) roster: Roster,
    pub(super) teams: BTreeMap<TeamName, SimulatedTeamFiles>,
    /// The teams of Claude Code sessions.
    pub(super) session_teams: BTreeMap<TeamName, SimulatedTeamFiles>,
    /// The exit reports that shims have written.
    pub(super) exit_reports: BTreeMap<SpawnId, ExitReport>,
    /// All spawns that were ever registered in config.json. Another program may have removed their
    /// entries since.
    pub(super) registered: BTreeSet<SpawnId>,
    /// All worktrees. They belong to the same repository.
    pub(super) worktrees: Worktrees,
    /// The file of the last environment that could not be written.
    failed_environment: Option<String>,
    /// The environments of agents, by file name.
    pub(super) environments: BTreeMap<String, BTreeMap<String, String>>,
    /// The number of the last write of each file.
    pub(super) versions: BTreeMap<(TeamName, TeamFile), u64>,
    /// Number of all writes.
    pub(super) writes: u64,
    /// File events that the watcher has not reported yet.
    pub(super) pending_events: VecDeque<WatcherEvent>,
    /// The file system reports changes.
    pub(super) is_reporting_changes: bool,
    /// The event log. Most simulations have none, which is faster.
    pub(super) log: Option<Vec<String>>,
    /// Every write fails.
    pub(super) is_full: bool,
    /// The last roster could not be written.
    pub(super) is_roster_unsaved: bool,
}

fn disk_full_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, "cannot write: no space left on device")
}

impl SimulatedDisk {
    /// A disk with an event log, whose file system reports changes.
    pub(super) fn with_event_log() -> SimulatedDisk {
        SimulatedDisk { is_reporting_changes: true, log: Some(Vec::new()), ..SimulatedDisk::default() }
    }

    /// The roster as the next daemon reads it from the disk.
    pub(super) fn read_roster(&self) -> Roster {
        let bytes = serde_json::to_vec(&self.roster).expect("a roster is serializable");
        serde_json::from_slice(&bytes).expect("the bytes are a roster")
    }

    fn check_writable(&self) -> Result<(), ErrorReport> {
        if self.is_full { Err(disk_full_error()) } else { Ok(()) }
    }

    fn check_saved(&self) -> Result<(), ErrorReport> {
        if self.is_roster_unsaved { Err(disk_full_error()) } else { Ok(()) }
    }

    fn team(&mut self, team: &TeamName) -> Result<&mut SimulatedTeamFiles, ErrorReport> {
        let missing = || ErrorReport::new(ErrorKind::NotFound, format!("cannot find the team {team}"));
        let teams = if team.is_claude_session() { &mut self.session_teams } else { &mut self.teams };
        teams.get_mut(team).ok_or_else(missing)
    }

    /// Runs a file job. Adds its results to `results`.
    pub(super) fn run_job(
        &mut self,
        job: FileJob,
        scans: &mut ScanMemory,
        results: &mut VecDeque<CoreEvent>,
    ) {
        match job {
            FileJob::ProbeWatcher if self.is_reporting_changes => results.push_back(CoreEvent::ProbeSeen),
            FileJob::RescanFiles { teams } => results.extend(scans.diff(&teams, &self.versions)),
            FileJob::FindMissingMessages { .. } => {}
            FileJob::ScanTasks { team, selection, queries } => {
                let files = self.teams.get(&team).into_iter();
                let members = files.flat_map(|files| files.members.keys().cloned()).collect();
                let result = self.team(&team).map(|files| scans.scan_tasks(&team, selection, &files.tasks));
                results.push_back(CoreEvent::FileJobDone(FileResult::TasksScanned {
                    team,
                    members,
                    result,
                    queries,
                }));
            }
            FileJob::ScanInbox { team, inbox, content, .. } => {
                let name = MemberName::new_unchecked(&inbox);
                let files = self.team(&team);
                let messages = files.map(|files| files.inboxes.get(&name).map_or(&[][..], Vec::as_slice));
                let result = messages.map(|messages| scans.scan_inbox(&team, &name, messages, content));
                results.push_back(CoreEvent::FileJobDone(FileResult::InboxScanned { team, inbox, result }));
            }
            job => {
                let changed_team = match &job {
                    FileJob::CreateTeam(creation) => Some(creation.name.clone()),
                    FileJob::DeleteTeam { request, .. } => Some(request.team.clone()),
                    _ => None,
                };
                results.extend(self.run_plain_job(job).map(CoreEvent::FileJobDone));
                changed_team.iter().for_each(|team| scans.forget_team(team));
            }
        }
    }

    fn run_plain_job(&mut self, job: FileJob) -> Option<FileResult> {
        Some(match job {
            FileJob::SaveRoster(roster) => {
                self.is_roster_unsaved = self.is_full;
                if !self.is_full {
                    self.roster = roster;
                    return None;
                }
                FileResult::RosterNotSaved(disk_full_error())
            }
            FileJob::CreateTeam(creation) => {
                let result = self.create(&creation.name, &creation.request);
                FileResult::TeamCreated { creation, result }
            }
            FileJob::RegisterMember { record, at } => {
                let result = self.register(&record, at);
                FileResult::MemberRegistered { spawn: record.spawn_id.clone(), result }
            }
            FileJob::SendShutdownRequest { spawn, team, name, request, unless_unread, .. } => {
                let result = self
                    .check_saved()
                    .and_then(|()| self.send_shutdown_request(&team, &name, request, &unless_unread));
                FileResult::ShutdownRequestSent { spawn, result }
            }
            FileJob::ReadShutdownAnswers { team, requests } => {
                let answers = self.read_shutdown_answers(&team, &requests);
                FileResult::ShutdownAnswers { team, answers }
            }
            FileJob::DeregisterMember { record } => self.deregister(&record),
            FileJob::ReadExitReport { spawn, .. } => {
                FileResult::ExitReportRead { report: self.exit_reports.remove(&spawn), spawn }
            }
            FileJob::ScanRequests { team } => {
                let result = self.team(&team).map(|files| files.scan_requests());
                FileResult::RequestsScanned { team, result }
            }
            FileJob::WriteAnswer { team, request, answer, by, at } => {
                let result = self.write_answer(&team, &request, &answer, by, at);
                let (from, id) = (request.from.clone(), request.request.id().clone());
                FileResult::AnswerWritten { team, from, request: id, result }
            }
            FileJob::ApplyModeChange { client, change, route, at } => {
                let result = self.set_mode(&change, route, at);
                FileResult::ModeSet { client, change, result }
            }
            FileJob::SavePolicy { client, request } => {
                let writable = self.check_writable();
                let files = writable.and_then(|()| self.team(&request.team));
                let result = files.map(|files| files.policy = request.policy.clone());
                FileResult::PolicySaved { client, request, result }
            }
            FileJob::CheckConfig { team, members } => {
                let snapshot = self.check_config(&team, members);
                FileResult::ConfigChecked { team, snapshot }
            }
            FileJob::WriteHiddenPanes { team, panes, reply_to } => {
                let writable = self.check_writable();
                let files = writable.and_then(|()| self.team(&team));
                let result = files.map(|files| files.hidden_panes = panes);
                let (client, reply) = reply_to?;
                FileResult::HiddenPanesWritten { client, reply, result }
            }
            FileJob::AwaitLogged { team, inbox } => FileResult::Logged { team, inbox },
            FileJob::AwaitLoggedForMirror { link, job } => FileResult::LoggedForMirror { link, job },
            FileJob::ListTeams => {
                let teams = self.session_teams.keys().chain(self.teams.keys()).cloned().collect();
                FileResult::TeamsListed { teams }
            }
            FileJob::FindTeam { team, waiting } => {
                let member_count = self.teams.get(&team).map(|files| files.members.len() + 1);
                FileResult::TeamFound { team, member_count: Ok(member_count), waiting }
            }
            FileJob::ReadOutputTimes { logs } => {
                FileResult::OutputTimes { times: logs.into_iter().map(|(spawn, _)| (spawn, 0)).collect() }
            }
            FileJob::ReplyWhenSaved { client, reply } => FileResult::ReplyReady { client, reply },
            FileJob::AcknowledgeExit { conn } => {
                FileResult::ExitAcknowledged { conn, result: self.check_saved() }
            }
            FileJob::AwaitStopRecorded { spawn, conn } => FileResult::StopRecorded { spawn, conn },
            FileJob::ConfirmWorktreeRecorded { creation } => {
                FileResult::WorktreeRecorded { creation, result: self.check_saved() }
            }
            FileJob::CheckDeletable { client, request } => {
                FileResult::DeletableChecked { client, request, result: self.check_writable() }
            }
            FileJob::DeleteTeam { client, request: DeleteTeamRequest { team, .. }, removed_worktrees } => {
                let result = self.check_writable().and_then(|()| self.check_saved());
                if result.is_ok() {
                    self.teams.remove(&team);
                    self.versions.retain(|(owner, _), _| *owner != team);
                }
                FileResult::TeamDeleted { client, team, result, worktrees: removed_worktrees }
            }
            FileJob::SaveEnvironment { file, env } => {
                match self.is_full {
                    true => self.failed_environment = Some(file),
                    false => drop(self.environments.insert(file, env)),
                }
                return None;
            }
            FileJob::WriteActivity { team, name, is_active } => {
                self.change_member(&team, &name, |member| member.is_active = is_active);
                return None;
            }
            FileJob::WriteMode { team, name, mode } => {
                self.change_member(&team, &name, |member| member.mode = Some(mode.to_string()));
                return None;
            }
            FileJob::AppendToRecord(batch) => {
                let (team, error) = (batch.team, self.check_writable().err()?);
                FileResult::RecordNotWritten { team, error }
            }
            FileJob::AppendEvent(line) => {
                self.log.iter_mut().filter(|_| !self.is_full).for_each(|log| log.push(line.clone()));
                return None;
            }
            FileJob::WriteLeadSession { .. }
            | FileJob::ProbeWatcher
            | FileJob::RescanFiles { .. }
            | FileJob::FindMissingMessages { .. }
            | FileJob::ScanInbox { .. }
            | FileJob::ScanTasks { .. } => return None,
        })
    }

    fn create(
        &mut self,
        team: &TeamName,
        request: &CreateTeamRequest,
    ) -> Result<CreateTeamReply, ErrorReport> {
        let (policy, is_recorded) = (&request.policy, request.record);
        self.check_writable()?;
        if self.teams.contains_key(team) {
            return Err(ErrorReport::new(
                ErrorKind::AlreadyExists,
                format!("cannot create {team}: it is there"),
            ));
        }
        self.teams.insert(
            team.clone(),
            SimulatedTeamFiles { policy: policy.clone(), ..SimulatedTeamFiles::default() },
        );
        self.record_change(team, TeamFile::Config);
        Ok(CreateTeamReply {
            team_name: team.clone(),
            team_file_path: "/root/teams".into(),
            lead_agent_id: format!("team-lead@{team}"),
            record: is_recorded.then(|| format!("/state/records/{team}.jsonl").into()),
        })
    }

    fn register(&mut self, record: &AgentRecord, at: u64) -> Result<Registration, ErrorReport> {
        let is_environment_lost = self.failed_environment.as_ref() == Some(&record.respawn.environment_file);
        let writable = if self.is_roster_unsaved || is_environment_lost {
            Err(disk_full_error())
        } else {
            self.check_writable()
        };
        writable?;
        if let Some(worktree) = &record.worktree
            && !self.worktrees.exists(worktree)
        {
            return Err(ErrorReport::new(ErrorKind::Refused, "cannot start it in its worktree: it is gone"));
        }
        let team = self.team(&record.request.team)?;
        if team.members.contains_key(&record.request.name) {
            return Err(ErrorReport::new(
                ErrorKind::AlreadyExists,
                format!("cannot spawn {}: it is on the team", record.request.name),
            ));
        }
        if !record.is_respawn() {
            team.inboxes.remove(&record.request.name);
            if !record.request.prompt.is_empty() {
                team.add_message(&record.request.name, &MemberName::lead(), None, at);
            }
        }
        let (spawn_id, mode) = (record.spawn_id.clone(), record.config_mode.clone());
        team.members.insert(
            record.request.name.clone(),
            SimulatedMember { spawn_id, spawned_at: record.spawned_at, is_active: true, mode },
        );
        self.registered.insert(record.spawn_id.clone());
        self.record_change(&record.request.team, TeamFile::Inbox(record.request.name.clone()));
        self.record_change(&record.request.team, TeamFile::Config);
        Ok(Registration {
            tracking_task: TaskId::parse("1").expect("the id is valid"),
            lead_session: "s".to_owned(),
        })
    }

    fn write_answer(
        &mut self,
        team: &TeamName,
        request: &OpenRequest,
        answer: &Answer,
        by: AnsweredBy,
        at: u64,
    ) -> Result<(), ErrorReport> {
        self.check_writable()?;
        match self.team(team)?.add_answer(request, answer, by, at) {
            RequestState::Open => {
                self.record_change(team, TeamFile::Inbox(request.from.clone()));
                Ok(())
            }
            RequestState::Answered(..) => Err(ErrorReport::new(ErrorKind::AlreadyExists, "it was answered")),
            RequestState::Withdrawn | RequestState::AskerGone => {
                Err(ErrorReport::new(ErrorKind::NotFound, "no member waits for the answer"))
            }
        }
    }

    fn set_mode(
        &mut self,
        ModeChange { team, name, mode }: &ModeChange,
        route: ModeRoute,
        at: u64,
    ) -> Result<(), ErrorReport> {
        self.check_writable()?;
        self.team(team)?;
        if route == ModeRoute::ByMessage {
            let request = ModeSetRequest { mode: mode.to_string(), from: MemberName::lead().to_string() };
            self.send(team, name, &MemberName::lead(), Some(Payload::ModeSetRequest(request)), at);
        }
        Ok(())
    }

    /// Records a write of a file, and queues its file event.
    pub(super) fn record_change(&mut self, team: &TeamName, part: TeamFile) {
        self.writes += 1;
        let change = WatcherEvent::Changed(team.clone(), part.clone());
        if self.pending_events.back() != Some(&change) {
            self.pending_events.push_back(change);
        }
        self.versions.insert((team.clone(), part), self.writes);
    }

    /// Adds a message to an inbox. Returns false if the disk is full or the team does not exist.
    pub(super) fn send(
        &mut self,
        team: &TeamName,
        to: &MemberName,
        from: &MemberName,
        payload: Option<Payload>,
        at: u64,
    ) -> bool {
        let Some(files) = self.teams.get_mut(team).filter(|_| !self.is_full) else { return false };
        files.add_message(to, from, payload, at);
        self.record_change(team, TeamFile::Inbox(to.clone()));
        true
    }

    /// Changes the entry of a member in config.json.
    pub(super) fn change_member(
        &mut self,
        team: &TeamName,
        name: &MemberName,
        change: impl FnOnce(&mut SimulatedMember),
    ) {
        let files = self.teams.get_mut(team).filter(|_| !self.is_full);
        if let Some(member) = files.and_then(|files| files.members.get_mut(name)) {
            change(member);
            self.record_change(team, TeamFile::Config);
        }
    }

    fn send_shutdown_request(
        &mut self,
        team: &TeamName,
        name: &MemberName,
        request: RequestId,
        unless: &[RequestId],
    ) -> Result<(), ErrorReport> {
        self.check_writable()?;
        let inbox = self.team(team)?.shutdown_requests.entry(name.clone()).or_default();
        if !inbox.iter().any(|request| unless.contains(request)) {
            inbox.push(request);
            self.record_change(team, TeamFile::Inbox(name.clone()));
        }
        Ok(())
    }

    fn read_shutdown_answers(
        &mut self,
        team: &TeamName,
        requests: &BTreeSet<RequestId>,
    ) -> Result<Vec<ShutdownAnswer>, ErrorReport> {
        let files = self.team(team)?;
        let find_answer = |request: &RequestId| {
            let (from, rejection_reason) = files.shutdown_answers.get(request)?.clone();
            Some(ShutdownAnswer { request: request.clone(), from, rejection_reason })
        };
        Ok(requests.iter().filter_map(find_answer).collect())
    }

    fn deregister(&mut self, record: &AgentRecord) -> FileResult {
        let spawn = record.spawn_id.clone();
        if self.is_full || self.is_roster_unsaved {
            return FileResult::MemberDeregistered {
                spawn,
                approval: ShutdownApproval::NotGiven,
                error: Some(disk_full_error()),
            };
        }
        let mut approval = ShutdownApproval::NotGiven;
        if let Some(team) = self.teams.get_mut(&record.request.team) {
            team.members.retain(|_, member| member.spawn_id != spawn);
            let is_approval = |id: &RequestId| matches!(team.shutdown_answers.get(id), Some((_, None)));
            let has_open_request = |exit: &ExitRecord| exit.report_to == ReportTo::LeadUnlessApproved;
            if record.lifecycle.exit().is_some_and(has_open_request)
                && record.lifecycle.shutdown_ids().iter().any(is_approval)
            {
                approval = ShutdownApproval::Given;
            }
            team.shutdown_requests.remove(&record.request.name);
            self.record_change(&record.request.team, TeamFile::Config);
        }
        self.exit_reports.remove(&spawn);
        FileResult::MemberDeregistered { spawn, approval, error: None }
    }

    /// Restores members that a foreign program removed from config.json. Returns its content.
    fn check_config(&mut self, name: &TeamName, roster: RosterMembers) -> ConfigSnapshot {
        let Some(team) = self.teams.get_mut(name) else { return ConfigSnapshot::default() };
        let missing = roster.registered.into_iter().filter(|_| !self.is_full);
        let missing: Vec<_> =
            missing.filter(|member| !team.members.contains_key(&member.record.request.name)).collect();
        for RegisteredMember { record, activity } in &missing {
            let (spawn_id, mode) = (record.spawn_id.clone(), record.config_mode.clone());
            let member = SimulatedMember {
                spawn_id,
                spawned_at: record.spawned_at,
                is_active: *activity == Activity::Active,
                mode,
            };
            team.members.insert(record.request.name.clone(), member);
        }
        let activities = team.members.iter().map(|(name, member)| (name.clone(), member.is_active)).collect();
        let modes =
            team.members.iter().filter_map(|(name, member)| Some((name.clone(), member.mode.clone()?)));
        let snapshot = ConfigSnapshot {
            activities,
            modes: modes.collect(),
            repaired: None,
            has_restored_members: !missing.is_empty(),
        };
        if !missing.is_empty() {
            self.record_change(name, TeamFile::Config);
        }
        snapshot
    }
}

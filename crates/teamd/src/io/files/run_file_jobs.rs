//! Runs each file job: reads or writes the files of its team, and makes the result for the event
//! loop.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::core_event::CoreEvent;
use crate::core::effect::Wake;
use crate::core::jobs::file_jobs::{FileJob, RestoreRule, TaskSelection, WaitingCall};
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::host_jobs::MirrorJob;
use crate::io::files::files_thread::FilesThread;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::{MemberName, TeamName};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use store::Error;

impl FilesThread {
    /// Runs one job. `None` if the job has no result to report.
    pub(super) fn run_job(&mut self, job: FileJob) -> Option<FileResult> {
        let done = match job {
            FileJob::SaveRoster(roster) => {
                let saved = self.save_roster(&roster);
                self.shared.count_save();
                return saved.err().map(FileResult::RosterNotSaved);
            }
            FileJob::AppendEvent(line) => {
                return self.run_unanswered("log", |files| files.unlogged_events.append(&files.state, line));
            }
            FileJob::AppendToRecord(batch) => return self.append_to_record(*batch),
            FileJob::SaveEnvironment { file, env } => {
                let saved = to_error(self.save_environment(&file, &env));
                self.shared.saves().record_environment(file, saved);
                self.shared.count_save();
                return None;
            }
            FileJob::WriteMode { team, name, mode } => {
                return self.run_unanswered("write a mode", |files| {
                    files.set_member_field(&team, &name, "mode", json!(mode))
                });
            }
            FileJob::WriteActivity { team, name, is_active } => {
                return self.run_unanswered("write isActive", |files| {
                    files.set_member_field(&team, &name, "isActive", json!(is_active))
                });
            }
            FileJob::WriteLeadSession { team, session } => {
                let session = [("leadSessionId", json!(session))];
                return self.run_unanswered("write leadSessionId", |files| {
                    files.open_team(&team)?.set_fields(&session)
                });
            }
            FileJob::WriteHiddenPanes { team, panes, reply_to: None } => {
                return self
                    .run_unanswered("write hiddenPaneIds", |files| files.write_hidden_panes(&team, &panes));
            }
            FileJob::ProbeWatcher => {
                return self.run_unanswered("probe the watcher", |files| files.root.create_probe());
            }
            FileJob::RescanFiles { teams } => {
                self.rescan(&teams);
                return None;
            }
            FileJob::FindMissingMessages { team } => {
                self.find_missing_messages(&team);
                return None;
            }
            FileJob::CheckConfig { team, members } => {
                let snapshot = self.check_config(&team, &members);
                let snapshot = self.log_error("repair config.json", snapshot).unwrap_or_default();
                FileResult::ConfigChecked { team, snapshot }
            }
            FileJob::AwaitLogged { team, inbox } => FileResult::Logged { team, inbox },
            // The mirror keeps the events until the log has them, and the roster what they count.
            FileJob::AwaitLoggedForMirror { job: MirrorJob::NoteEventsLogged { .. }, .. }
                if !self.unlogged_events.is_empty() || self.check_saved().is_err() =>
            {
                return None;
            }
            FileJob::AwaitLoggedForMirror { link, job } => FileResult::LoggedForMirror { link, job },
            FileJob::ListTeams => {
                let teams = self.log_error("list the teams", self.root.teams())?;
                let sessions: Vec<TeamName> =
                    teams.iter().filter(|team| team.is_claude_session()).cloned().collect();
                self.log_error(
                    "delete records of ended sessions",
                    self.root.delete_session_records(&sessions),
                );
                FileResult::TeamsListed { teams }
            }
            FileJob::FindTeam { team, waiting } => {
                let member_count = self.count_config_members(&team, waiting.as_ref());
                FileResult::TeamFound { team, member_count, waiting }
            }
            FileJob::WriteHiddenPanes { team, panes, reply_to: Some((client, reply)) } => {
                FileResult::HiddenPanesWritten {
                    client,
                    reply,
                    result: to_error(self.write_hidden_panes(&team, &panes)),
                }
            }
            FileJob::CreateTeam(creation) => {
                let result = to_error(self.create(&creation));
                FileResult::TeamCreated { creation, result }
            }
            job @ (FileJob::RegisterMember { .. } | FileJob::DeregisterMember { .. }) => {
                return self.run_member_batch(vec![job]).pop();
            }
            FileJob::SendShutdownRequest { spawn, team, name, request, reason, unless_unread, at } => {
                // The roster must be on disk before the shutdown request is sent. Otherwise the
                // next daemon would not recognize the member's answer.
                let send = |()| {
                    to_error(self.send_shutdown_request(&team, &name, &request, reason, &unless_unread, at))
                };
                FileResult::ShutdownRequestSent { spawn, result: self.check_saved().and_then(send) }
            }
            FileJob::ReadShutdownAnswers { team, requests } => FileResult::ShutdownAnswers {
                answers: to_error(self.read_shutdown_answers(&team, &requests)),
                team,
            },
            FileJob::ReadExitReport { spawn, token } => {
                FileResult::ExitReportRead { report: self.read_exit_report(&spawn, &token), spawn }
            }
            FileJob::ScanTasks { team, selection, queries } => {
                let result = to_error(self.scan_tasks(&team, selection));
                let has_claimed =
                    result.as_ref().is_ok_and(|tasks| tasks.iter().any(|task| is_claimed(task)));
                let members = if has_claimed { self.member_names(&team) } else { Vec::new() };
                FileResult::TasksScanned { members, team, result, queries }
            }
            FileJob::ScanInbox { team, inbox, restore_rule, content } => {
                let rule = self.restore_rule(&team, &inbox, restore_rule);
                let result =
                    self.open_team(&team).and_then(|team| self.inboxes.scan(&team, &inbox, rule, content));
                FileResult::InboxScanned { team, inbox, result: to_error(result) }
            }
            FileJob::ScanRequests { team } => {
                let result = self.open_team(&team).and_then(|team| team.as_repairer().requests().scan());
                FileResult::RequestsScanned { team, result: to_error(result) }
            }
            FileJob::WriteAnswer { team, request, answer, by, at } => {
                let written = self
                    .open_team(&team)
                    .and_then(|team| team.as_repairer().requests().answer(&request, &answer, by, at));
                let (from, id) = (request.from.clone(), request.request.id().clone());
                FileResult::AnswerWritten { team, from, request: id, result: to_error(written) }
            }
            FileJob::ApplyModeChange { client, change, route, at } => {
                let result = to_error(self.set_mode(&change, route, at));
                FileResult::ModeSet { client, change, result }
            }
            FileJob::SavePolicy { client, request } => {
                let result = to_error(self.replace_policy(&request.team, &request.policy));
                FileResult::PolicySaved { client, request, result }
            }
            FileJob::ReadOutputTimes { logs } => FileResult::OutputTimes { times: output_times(logs) },
            FileJob::ReplyWhenSaved { client, reply } => FileResult::ReplyReady { client, reply },
            FileJob::AcknowledgeExit { conn } => {
                FileResult::ExitAcknowledged { conn, result: self.check_saved() }
            }
            FileJob::AwaitStopRecorded { spawn, conn } => FileResult::StopRecorded { spawn, conn },
            FileJob::ConfirmWorktreeRecorded { creation } => {
                FileResult::WorktreeRecorded { creation, result: self.check_saved() }
            }
            FileJob::CheckDeletable { client, request } => {
                let result = self.check_deletable(&request);
                return Some(FileResult::DeletableChecked { client, request, result });
            }
            FileJob::DeleteTeam { client, request, removed_worktrees } => {
                let result = self.delete(&request);
                FileResult::TeamDeleted { client, result, team: request.team, worktrees: removed_worktrees }
            }
        };
        Some(done)
    }

    /// Sets one field of a member in config.json.
    pub(super) fn set_member_field(
        &mut self,
        team: &TeamName,
        name: &MemberName,
        field: &str,
        value: Value,
    ) -> Result<(), Error> {
        self.open_team(team)?.set_member_fields(name, &[(field, value)])
    }

    /// Returns all tasks of a team. Reads the tasks in `selection` from their files, and takes the
    /// other tasks from the cache.
    pub(super) fn scan_tasks(
        &mut self,
        name: &TeamName,
        selection: TaskSelection,
    ) -> Result<Arc<Vec<Arc<Task>>>, Error> {
        let tasks = self.open_team(name)?.tasks();
        match selection {
            TaskSelection::Only(changed) => tasks.list_after_changes(&Vec::from_iter(changed)),
            TaskSelection::All => tasks.list_cached().map(Arc::new),
        }
    }

    /// The names of a team's members in config.json. The list is empty if config.json cannot be
    /// read; the config scan reports that error. It is also empty for a team of a Claude Code
    /// session, because the daemon does not read the config.json of such a team.
    pub(super) fn member_names(&mut self, name: &TeamName) -> Vec<MemberName> {
        if name.is_claude_session() {
            return Vec::new();
        }
        let config = self.open_team(name).and_then(|team| team.as_repairer().cached_config());
        config
            .map(|config| config.members.iter().map(|member| member.name.clone()).collect())
            .unwrap_or_default()
    }

    /// Returns the number of members, including the lead, in the config.json of a team that the
    /// daemon does not know yet. `None` if there is no such team.
    ///
    /// If config.json is not valid now, another program may be writing it. If a client waits for
    /// the result (`waiting`), this function waits until that program has finished, and reads
    /// config.json again. If no client waits, it returns `None` at once.
    ///
    /// # Errors
    ///
    /// Only if a client waits: `InvalidData` if config.json is damaged, other kinds if it cannot be
    /// read.
    fn count_config_members(
        &mut self,
        name: &TeamName,
        waiting: Option<&WaitingCall>,
    ) -> Result<Option<usize>, ErrorReport> {
        let Ok(team) = self.open_team(name) else { return Ok(None) };
        match (team.config_if_valid(), waiting) {
            (Some(config), _) => Ok(Some(config.members.len())),
            (None, None) => Ok(None),
            (None, Some(_)) => match team.config() {
                Ok(config) => Ok(Some(config.members.len())),
                Err(Error::NoSuchTeam { .. }) => Ok(None),
                Err(error) => Err(unreadable_config_error(name, error)),
            },
        }
    }

    /// Rescans the files of `teams`. Sends an event for each file that has changed since the last
    /// rescan. Also removes stale files of deleted teams.
    pub(super) fn rescan(&mut self, teams: &[TeamName]) {
        self.log_error("forget a team", self.remove_orphaned_files(teams));
        self.log_error("remove a probe", self.root.remove_probes());
        for event in self.rescan_cache.diff(self.root.path(), teams) {
            self.events.send(event).ok();
        }
    }

    /// Sends an event for each inbox of a team from which a message of the journal is missing.
    pub(super) fn find_missing_messages(&mut self, name: &TeamName) {
        let inboxes = self
            .open_team(name)
            .and_then(|team| self.inboxes.inboxes_with_missing(&team))
            .unwrap_or_default();
        for file in inboxes {
            let inbox = file.trim_end_matches(".json").to_owned();
            self.events
                .send(CoreEvent::InboxChanged { team: name.clone(), inbox, owner_wake: Wake::Needed })
                .ok();
        }
    }

    /// Decides whether messages that an inbox has lost are restored. Returns `rule`, except for a
    /// lead that reads its inbox itself ([`RestoreRule::ForeignProgram`]) in a team that another
    /// program created. Such a lead may remove messages that it has read, so the function then
    /// returns [`RestoreRule::Never`].
    pub(super) fn restore_rule(&self, team: &TeamName, inbox: &str, rule: RestoreRule) -> RestoreRule {
        let is_lead = MemberName::new_unchecked(inbox).is_lead() && rule == RestoreRule::ForeignProgram;
        if is_lead && self.read_backup(team).is_none() { RestoreRule::Never } else { rule }
    }
}

/// Whether a task is in progress and has an owner. The core then checks whether the owner is still
/// a member.
pub(super) fn is_claimed(task: &Task) -> bool {
    task.status == TaskStatus::InProgress && task.owner.is_some()
}

/// When each output log was last written, in milliseconds since the epoch. The time is 0 if the log
/// does not exist, because its agent has not written any output. A log whose time cannot be read is
/// not in the result.
pub(super) fn output_times(logs: Vec<(SpawnId, PathBuf)>) -> Vec<(SpawnId, u64)> {
    let write_time = |path: &Path| match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(0),
        metadata => {
            let time = metadata.ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(time.as_millis()).ok()
        }
    };
    logs.into_iter().filter_map(|(spawn, log)| Some((spawn, write_time(&log)?))).collect()
}

fn unreadable_config_error(team: &TeamName, error: Error) -> ErrorReport {
    let error = ErrorReport::from(error);
    match error.kind {
        ErrorKind::InvalidData => {
            let help = "what is damaged: teamctl doctor; remove the team with: teamctl delete";
            error.with_help(format!("{help} {team} --force"))
        }
        _ => error,
    }
}

/// Converts an error of the store to the error that a client gets.
pub(super) fn to_error<T>(result: Result<T, Error>) -> Result<T, ErrorReport> {
    result.map_err(ErrorReport::from)
}

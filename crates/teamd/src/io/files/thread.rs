//! The files thread: one job after the other, in order, so that the loop never waits for a disk or a lock.
//!
//! The only place of the daemon that changes files under the root. Jobs carry all they need; what they find
//! goes back as an event.

use crate::core::event::CoreEvent;
use crate::core::id::SpawnId;
use crate::core::jobs::files::{
    FileJob, FileResult, RestoreRule, TaskSelection, collect_batch, is_independent,
};
use crate::core::state::event_log_cursor::EventLogCursor;
use crate::io::files::inbox_scan::InboxScanner;
use crate::io::files::queue;
use crate::io::files::queue::{JobReceiver, JobSender};
use crate::io::files::rescan_cache::RescanCache;
use crate::io::threads::thread_error;
use protocol::control::LeadProcess;
use protocol::error::ErrorReport;
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, TaskStatus};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use store::{BaseVersion, Error, Root, StateDir, Team};
use tokio::sync::mpsc::UnboundedSender;

/// The file that holds the roster, in the state directory.
pub(crate) const ROSTER_FILE: &str = protocol::roster_file::RosterFile::FILE_NAME;
/// The event log, in the state directory.
pub(super) const EVENT_LOG_FILE: &str = "events.jsonl";
/// Beyond this the event log starts anew and the old one gets `.1`, bytes. Small enough to be read whole at the
/// start.
pub(super) const EVENT_LOG_LIMIT: u64 = 7 * 1024 * 1024;

/// The thread's own things.
pub(super) struct FilesThread {
    pub(super) root: Root,
    pub(super) state: StateDir,
    pub(super) rescan_cache: RescanCache,
    pub(super) inboxes: InboxScanner,
    /// Handles that are kept, for what they remember of the tasks.
    pub(super) teams: BTreeMap<TeamName, Team>,
    /// The configs whose faces were remembered last: those that have no other need not be looked at for one.
    pub(super) config_backups: BTreeMap<TeamName, BaseVersion>,
    /// Members that were taken off lately, with the time of their birth.
    pub(super) deregistered: VecDeque<(TeamName, AgentName, u64)>,
    /// The environments that the last roster named; none where that is not known, nor what an earlier daemon left.
    pub(super) environments: Option<BTreeSet<String>>,
    /// The environments that could not be kept, and why, until whoever was to have them is told.
    pub(super) failed_environments: BTreeMap<String, ErrorReport>,
    /// Why the roster on disk is not the last one.
    pub(super) roster_error: Option<ErrorReport>,
    /// Who leads, as the hooks find it; none: not written yet.
    pub(super) leads: Option<Vec<LeadProcess>>,
    /// The root is not ours any more.
    pub(super) is_root_lost: bool,
    pub(super) events: UnboundedSender<CoreEvent>,
}

/// Starts the thread; it ends when the sender is dropped and all jobs are done.
pub(crate) fn start(
    root: Root,
    state: StateDir,
    told: BTreeMap<(TeamName, AgentName), usize>,
    events: UnboundedSender<CoreEvent>,
) -> Result<(JobSender, std::thread::JoinHandle<()>), ErrorReport> {
    let (jobs, queue) = queue::new_queue();
    let mut files = FilesThread::new(root, state, told, events);
    let thread = std::thread::Builder::new().name("files".into()).spawn(move || files.run(queue));
    thread.map(|thread| (jobs, thread)).map_err(|error| thread_error(&error))
}

/// What the event log has told so far; a part that can't be read is told anew.
pub(crate) fn read_event_log(state: &StateDir) -> EventLogCursor {
    let read = |name: &str| {
        state.read(name).unwrap_or_else(|error| {
            tracing::warn!("cannot read the event log: {error}");
            None
        })
    };
    let parts = [format!("{EVENT_LOG_FILE}.1"), EVENT_LOG_FILE.to_owned()]
        .map(|name| read(&name).unwrap_or_default());
    EventLogCursor::from_lines(parts.iter().flat_map(|part| part.split(|byte| *byte == b'\n')))
}

impl FilesThread {
    pub(super) fn new(
        root: Root,
        state: StateDir,
        told: BTreeMap<(TeamName, AgentName), usize>,
        events: UnboundedSender<CoreEvent>,
    ) -> FilesThread {
        FilesThread {
            root,
            state,
            rescan_cache: RescanCache::default(),
            inboxes: InboxScanner::new(told),
            teams: BTreeMap::new(),
            config_backups: BTreeMap::new(),
            deregistered: VecDeque::new(),
            environments: None,
            failed_environments: BTreeMap::new(),
            roster_error: None,
            leads: None,
            is_root_lost: false,
            events,
        }
    }

    pub(super) fn run(&mut self, mut queue: JobReceiver) {
        while let Some(job) = queue.next() {
            failpoint::hit("files.job");
            if !is_independent(&job) && !matches!(job, FileJob::ReplyWhenSaved { .. }) {
                self.check_root(&job);
            }
            let all =
                collect_batch(job, |is_wanted| queue.next_if(is_wanted), |aside| self.run_single(aside));
            self.run_member_batch(all).into_iter().for_each(|done| self.report(done));
        }
    }

    pub(super) fn run_single(&mut self, job: FileJob) {
        failpoint::hit("files.job");
        self.run_job(job).into_iter().for_each(|done| self.report(done));
    }

    pub(super) fn report(&self, done: FileResult) {
        failpoint::hit("files.done");
        // The loop has ended: nobody is left to be told.
        self.events.send(CoreEvent::FileJobDone(done)).ok();
    }

    /// None where nobody waits to be told.
    pub(super) fn run_job(&mut self, job: FileJob) -> Option<FileResult> {
        let done = match job {
            FileJob::SaveRoster(roster) => {
                return self.save_roster(&roster).err().map(FileResult::RosterNotSaved);
            }
            FileJob::AppendEvent(line) => return self.run_unanswered("log", |it| it.append_event(&line)),
            FileJob::SaveEnvironment { file, env } => {
                match to_error(self.save_environment(&file, &env)) {
                    Ok(()) => self.failed_environments.remove(&file),
                    Err(fault) => self.failed_environments.insert(file, fault),
                };
                return None;
            }
            FileJob::WriteMode { team, name, mode } => {
                return self.run_unanswered("write a mode", |it| {
                    it.set_member_field(&team, &name, "mode", json!(mode))
                });
            }
            FileJob::WriteActivity { team, name, is_active: active } => {
                return self.run_unanswered("write isActive", |it| {
                    it.set_member_field(&team, &name, "isActive", json!(active))
                });
            }
            FileJob::WriteLeadSession { team, session } => {
                let session = [("leadSessionId", json!(session))];
                return self
                    .run_unanswered("write leadSessionId", |it| it.open_team(&team)?.set_fields(&session));
            }
            FileJob::WriteHiddenPanes { team, panes, reply_to: None } => {
                return self.run_unanswered("write hiddenPaneIds", |it| it.write_hidden_panes(&team, &panes));
            }
            FileJob::ProbeWatcher => {
                return self.run_unanswered("probe the watcher", |it| it.root.create_probe());
            }
            FileJob::RescanFiles { teams } => {
                self.rescan(&teams);
                return None;
            }
            FileJob::CheckConfig { team, members: ours } => {
                let seen = self.check_config(&team, &ours);
                FileResult::ConfigChecked {
                    team,
                    snapshot: self.log_error("repair config.json", seen).unwrap_or_default(),
                }
            }
            FileJob::ListSessionTeams => {
                let teams = self.log_error("look for sessions", self.root.teams())?;
                let there: Vec<TeamName> = teams.into_iter().filter(TeamName::is_claude_session).collect();
                self.log_error("forget answers to sessions", self.root.delete_session_records(&there));
                FileResult::SessionTeamsListed { teams: there }
            }
            FileJob::WriteHiddenPanes { team, panes, reply_to: Some((client, reply)) } => {
                FileResult::HiddenPanesWritten {
                    client,
                    reply,
                    result: to_error(self.write_hidden_panes(&team, &panes)),
                }
            }
            FileJob::CreateTeam { client, create, created_at } => {
                let result = to_error(self.create(&create, created_at));
                FileResult::TeamCreated { client, policy: create.policy, result }
            }
            job @ (FileJob::RegisterMember { .. } | FileJob::DeregisterMember { .. }) => {
                return self.run_member_batch(vec![job]).pop();
            }
            FileJob::SendShutdownRequest { spawn, team, name, request, reason, unless_unread, at } => {
                // The next daemon would not know the answer for one.
                let ask = |()| {
                    to_error(self.send_shutdown_request(&team, &name, &request, reason, &unless_unread, at))
                };
                FileResult::ShutdownRequestSent { spawn, result: self.check_saved().and_then(ask) }
            }
            FileJob::ReadShutdownAnswers { team, requests } => FileResult::ShutdownAnswers {
                answers: to_error(self.read_shutdown_answers(&team, &requests)),
                team,
            },
            FileJob::ReadExitReport { spawn, token } => {
                FileResult::ExitReportRead { ended: self.read_exit_report(&spawn, &token), spawn }
            }
            FileJob::ScanTasks { team, selection: which, queries: asks } => {
                let result = to_error(self.scan_tasks(&team, which));
                let owned = result.as_ref().is_ok_and(|tasks| tasks.iter().any(|task| is_claimed(task)));
                let members = if owned { self.member_names(&team) } else { Vec::new() };
                FileResult::TasksScanned { members, team, result, asks }
            }
            FileJob::ScanInbox { team, inbox, restore_rule: guard } => {
                let guard = self.restore_rule(&team, &inbox, guard);
                let result = self.open_team(&team).and_then(|team| self.inboxes.scan(&team, &inbox, guard));
                FileResult::InboxScanned { team, inbox, result: to_error(result) }
            }
            FileJob::ScanRequests { team } => {
                let result = self.open_team(&team).and_then(|team| team.as_repairer().requests().scan());
                FileResult::RequestsScanned { team, result: to_error(result) }
            }
            FileJob::WriteAnswer { team, request, answer, by, at } => {
                let given = self
                    .open_team(&team)
                    .and_then(|team| team.as_repairer().requests().answer(&request, &answer, by, at));
                let (from, id) = (request.from.clone(), request.request.id().clone());
                FileResult::AnswerWritten { team, from, request: id, result: to_error(given) }
            }
            FileJob::ApplyModeChange { client, team, name, mode, route: telling, at } => {
                let result = to_error(self.set_mode(&team, &name, mode, telling, at));
                FileResult::ModeSet { client, change: (team, name, mode), result }
            }
            FileJob::SavePolicy { client, order } => {
                let result = to_error(self.replace_policy(&order.team, &order.policy));
                FileResult::PolicySaved { client, order, result }
            }
            FileJob::ReadOutputTimes { logs } => FileResult::OutputTimes { written: output_times(logs) },
            FileJob::ReplyWhenSaved { client, reply } => FileResult::ReplyReady { client, reply },
            FileJob::AcknowledgeExit { conn } => {
                FileResult::ExitAcknowledged { conn, result: self.check_saved() }
            }
            FileJob::ConfirmWorktreeRecorded { making } => {
                FileResult::WorktreeRecorded { making, result: self.check_saved() }
            }
            FileJob::CheckDeletable { client, order } => {
                let result = self.check_deletable(&order.team, order.force);
                return Some(FileResult::DeletableChecked { client, order, result });
            }
            FileJob::DeleteTeam { client, team, force, swept } => {
                FileResult::TeamDeleted { client, result: self.delete(&team, force), team, worktrees: swept }
            }
        };
        Some(done)
    }

    /// What is done without anybody asking; a failure is for the log.
    pub(super) fn run_unanswered(
        &mut self,
        what: &str,
        act: impl FnOnce(&mut FilesThread) -> Result<(), Error>,
    ) -> Option<FileResult> {
        let result = act(self);
        self.log_error(what, result);
        None
    }

    pub(super) fn append_event(&self, line: &str) -> Result<(), Error> {
        self.state.append_line(EVENT_LOG_FILE, line, EVENT_LOG_LIMIT)
    }

    /// A field of a member.
    pub(super) fn set_member_field(
        &mut self,
        team: &TeamName,
        name: &AgentName,
        field: &str,
        value: Value,
    ) -> Result<(), Error> {
        self.open_team(team)?.set_member_fields(name, &[(field, value)])
    }

    pub(super) fn scan_tasks(
        &mut self,
        name: &TeamName,
        which: TaskSelection,
    ) -> Result<Arc<Vec<Arc<Task>>>, Error> {
        let tasks = self.open_team(name)?.tasks();
        match which {
            TaskSelection::Only(changed) => tasks.list_after_changes(&Vec::from_iter(changed)),
            TaskSelection::All => tasks.list_cached().map(Arc::new),
        }
    }

    /// Nobody where the config can't be read: that is told elsewhere. That of a session is nobody's to wait for.
    pub(super) fn member_names(&mut self, name: &TeamName) -> Vec<AgentName> {
        if name.is_claude_session() {
            return Vec::new();
        }
        let config = self.open_team(name).and_then(|team| team.as_repairer().cached_config());
        config
            .map(|config| config.members.iter().map(|member| member.name.clone()).collect())
            .unwrap_or_default()
    }

    /// The handle of this team, or of the one that somebody has put in its place.
    pub(super) fn open_team(&mut self, name: &TeamName) -> Result<Team, Error> {
        if let Some(team) = self.teams.get(name).filter(|team| team.is_current()) {
            return Ok(team.clone());
        }
        if self.teams.remove(name).is_some() {
            self.inboxes.forget_team(name);
        }
        let team = self.root.team(name)?;
        self.teams.insert(name.clone(), team.clone());
        Ok(team)
    }

    /// For what has nobody to answer to: a failure is logged.
    pub(super) fn log_error<T>(&self, what: &str, result: Result<T, Error>) -> Option<T> {
        result.inspect_err(|error| tracing::warn!("cannot {what}: {error}")).ok()
    }

    pub(super) fn rescan(&mut self, teams: &[TeamName]) {
        self.log_error("forget a team", self.remove_orphaned_files(teams));
        self.log_error("remove a probe", self.root.remove_probes());
        for event in self.rescan_cache.diff(self.root.path(), teams) {
            self.events.send(event).ok();
        }
        for name in teams.iter().filter(|name| !name.is_claude_session()) {
            let unseen = self
                .open_team(name)
                .and_then(|team| self.inboxes.inboxes_with_missing(&team))
                .unwrap_or_default();
            for file in unseen {
                let inbox = file.trim_end_matches(".json").to_owned();
                self.events
                    .send(CoreEvent::InboxChanged { team: name.clone(), inbox, is_owner_woken: false })
                    .ok();
            }
        }
    }

    /// The lead of a team that another program made reads its inbox as that program does.
    pub(super) fn restore_rule(&self, team: &TeamName, inbox: &str, guard: RestoreRule) -> RestoreRule {
        let lead = AgentName::new_unchecked(inbox).is_lead() && guard == RestoreRule::ForeignProgram;
        if lead && self.read_backup(team).is_none() { RestoreRule::Never } else { guard }
    }
}

/// Whether somebody may have left it: then it is asked who is there.
pub(super) fn is_claimed(task: &Task) -> bool {
    task.status == TaskStatus::InProgress && task.owner.is_some()
}

/// When each grew last, as far as that can be told. There is none of who has never written anything.
pub(super) fn output_times(logs: Vec<(SpawnId, PathBuf)>) -> Vec<(SpawnId, u64)> {
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
pub(super) fn to_error<T>(result: Result<T, Error>) -> Result<T, ErrorReport> {
    result.map_err(ErrorReport::from)
}

//! The mutable state of a run: the last snapshot of the team, the decision that follows from the
//! snapshot, and the reports to the observer.

use crate::decide_task_retries::{RetryRules, RunDecision, TaskFate, evaluate, run_file_key};
use crate::event_lines_and_task_times::TaskTimes;
use crate::existing_team::{all_running, is_complete};
use crate::run_file::RunFile;
use crate::run_observer::RunObserver;
use crate::run_progress::{RunProgress, TaskProgress, member_progress, printable_line};
use crate::stall_detector::StallDetector;
use crate::team_snapshot::{HostedActivity, TeamSnapshot};
use protocol::control_socket::{Activity, MemberStatus};
use protocol::error_kind_and_report::ErrorReport;
use protocol::escape_control_chars::visible;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use protocol::team_and_member_names::MemberName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use store::Team;
use store::now;

/// The interval at which progress is redrawn, and the pause before a retry after a temporary error.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// The members are shut down.
    ShutDown(EndReason),
    /// The team stays as it is, because members are suspended or the budget is exhausted. The error
    /// says what a person can do.
    Suspended(ErrorReport),
}

/// Why the members of a run are shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// No task is left to do.
    Finished,
    /// The run got SIGINT (Ctrl-C) or SIGTERM.
    Stopped,
    /// The time of `--timeout` has passed.
    TimedOut,
}

/// Whether the team existed before this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TeamOrigin {
    Created,
    Existing,
}

/// The mutable state of a run.
pub(crate) struct RunState<'a> {
    observer: &'a dyn RunObserver,
    pub(crate) team: Team,
    pub(crate) team_origin: TeamOrigin,
    pub(crate) task_times: TaskTimes,
    /// The last known version of every task that was in any snapshot.
    pub(crate) all_tasks: BTreeMap<TaskId, Task>,
    pub(crate) snapshot: TeamSnapshot,
    pub(crate) decision: RunDecision,
    /// Why the run is ending, for people. `None` if the run is not ending.
    end_reason: Option<String>,
    /// The error that was reported last. `None` after a step without an error.
    last_error: Option<String>,
    stall: StallDetector,
    /// When the team counts as stalled. `None` while the team is working.
    pub(crate) stall_deadline: Option<Instant>,
    /// The members of kind once whose shutdown was requested since their start.
    pub(crate) ended_once_members: BTreeSet<MemberName>,
}

impl<'a> RunState<'a> {
    pub(crate) fn new(
        observer: &'a dyn RunObserver,
        task_times: TaskTimes,
        team: Team,
        team_origin: TeamOrigin,
    ) -> RunState<'a> {
        RunState {
            observer,
            team,
            team_origin,
            task_times,
            all_tasks: BTreeMap::new(),
            snapshot: TeamSnapshot::default(),
            decision: RunDecision::default(),
            end_reason: None,
            last_error: None,
            stall: StallDetector::default(),
            stall_deadline: None,
            ended_once_members: BTreeSet::new(),
        }
    }

    /// Ends a run that has found a team with no work left: each task is completed, has failed for
    /// good, or can never start. The results are computed from the task list.
    ///
    /// All members count as running, although they have ended. Otherwise a task that waits for a
    /// failed task would be reported with a wrong reason: that its owner is gone.
    pub(crate) fn finish_without_work(&mut self, file: &RunFile) -> Result<RunEnd, ErrorReport> {
        self.snapshot.members = all_running(file);
        self.remember_tasks(&self.team.tasks().list()?);
        Ok(RunEnd::ShutDown(EndReason::Finished))
    }

    /// Reports the new lines of the event log.
    pub(crate) fn report_new_events(&mut self) -> Result<(), ErrorReport> {
        for line in self.task_times.new_lines()? {
            self.observer.show_event(line);
        }
        Ok(())
    }

    /// Reports one line, with the current time before it.
    pub(crate) fn report(&self, text: &str) {
        let line = format!("{} {}", protocol::timestamp::iso8601(now()), visible(&text.replace('\n', " ")));
        self.observer.show_event(line);
    }

    /// Reports an error, unless it is the same as the last reported one.
    pub(crate) fn report_error_once(&mut self, error: String) {
        if self.last_error.as_ref() != Some(&error) {
            self.report(&error);
            self.last_error = Some(error);
        }
    }

    /// Forgets the last reported error, so that the next error is reported even if it has the same
    /// text. Called after a step of the main loop that had no error.
    pub(crate) fn forget_last_error(&mut self) {
        self.last_error = None;
    }

    /// Records that the run is ending, and why. If progress is shown on a live screen, the screen
    /// shows this reason until the program ends. Otherwise the reason is reported as a line.
    pub(crate) fn begin_ending(&mut self, reason: String) {
        if !self.observer.is_live() {
            self.report(&reason);
        }
        self.end_reason = Some(reason);
    }

    /// Stores a new snapshot and the decision that follows from it.
    pub(crate) fn update(&mut self, rules: &RetryRules, mut snapshot: TeamSnapshot) {
        self.task_times.hosted_members().apply(&mut snapshot);
        self.decision = evaluate(rules, &snapshot.tasks, &snapshot.members);
        self.take_tasks(&snapshot.tasks);
        self.snapshot = snapshot;
    }

    /// Stores a new snapshot that was taken during the shutdown. Members that ran before the
    /// shutdown still count as running, so that their open tasks do not count as failed.
    pub(crate) fn update_while_ending(&mut self, rules: &RetryRules, snapshot: TeamSnapshot) {
        self.decide_at_end(rules, &snapshot.tasks);
        let members = std::mem::take(&mut self.snapshot.members);
        self.snapshot = TeamSnapshot { members, ..snapshot };
    }

    /// Evaluates the task list at the end of a run. Members that ran before the shutdown still
    /// count as running, so that their open tasks do not count as failed.
    pub(crate) fn decide_at_end(&mut self, rules: &RetryRules, tasks: &[Task]) {
        self.decision = evaluate(rules, tasks, &self.snapshot.members);
        self.take_tasks(tasks);
    }

    fn take_tasks(&mut self, tasks: &[Task]) {
        self.task_times.update_from_tasks(tasks, now());
        self.remember_tasks(tasks);
    }

    fn remember_tasks(&mut self, tasks: &[Task]) {
        let visible_tasks = tasks.iter().filter(|task| !task.is_internal());
        self.all_tasks.extend(visible_tasks.map(|task| (task.id, task.clone())));
    }

    /// The tasks on which members are working.
    pub(crate) fn running_tasks(&self) -> Vec<TaskId> {
        let fates = self.decision.fates.iter();
        fates.filter(|(_, fate)| **fate == TaskFate::Running).map(|(id, _)| *id).collect()
    }

    /// Returns `tasks` without the tasks whose agent has reported a failure.
    pub(crate) fn tasks_without_failure(&self, tasks: Vec<TaskId>) -> Vec<TaskId> {
        let has_failed = |id: &TaskId| self.all_tasks.get(id).is_some_and(|task| task.failure().is_some());
        tasks.into_iter().filter(|id| !has_failed(id)).collect()
    }

    /// Whether the run has nothing left to do. If the team has tasks, each of them must be
    /// completed, have failed for good, or be impossible to do. If the team has no tasks, all
    /// running members must be idle, and no member may be about to respawn.
    pub(crate) fn is_finished(&self) -> bool {
        let is_idle = |agent: &MemberStatus| agent.activity == Activity::Idle;
        let has_ended = !self.decision.fates.is_empty()
            || (self.snapshot.running.iter().all(is_idle)
                && self
                    .snapshot
                    .hosted
                    .iter()
                    .all(|member| member.activity != HostedActivity::ActiveOrUnknown)
                && !self.snapshot.members.any_respawning());
        has_ended && self.decision.releases.is_empty() && self.decision.fates.values().all(TaskFate::is_final)
    }

    /// Whether the team has been idle for so long that it will not complete its open tasks by
    /// itself.
    pub(crate) fn is_stalled(&mut self, now: Instant) -> bool {
        self.stall_deadline = self.stall.update_deadline(&self.snapshot, now);
        !self.is_finished() && self.stall_deadline.is_some_and(|deadline| deadline <= now)
    }

    /// If the run must end because the team's budget is exhausted, returns the reason, such as the
    /// exceeded limit. `None` while members are running, because they may still complete tasks.
    /// Also `None` if no task is left to do.
    pub(crate) fn exhausted_budget(&self, file: &RunFile) -> Option<String> {
        let reason = self
            .snapshot
            .exhausted_budget
            .clone()
            .filter(|_| self.snapshot.running.is_empty() && self.snapshot.hosted.is_empty())?;
        let is_finished = self.is_finished() && is_complete(file, &self.snapshot.tasks);
        (!is_finished).then_some(reason)
    }

    /// Reports the state of all tasks and members, if a live screen shows progress.
    pub(crate) fn report_progress(&self, file: &RunFile) {
        if self.observer.is_live() {
            self.observer.show_progress(&self.progress(file));
        }
    }

    fn progress(&self, file: &RunFile) -> RunProgress {
        let task = |(id, fate): (&TaskId, &TaskFate)| {
            let task = self.all_tasks.get(id)?;
            let owner = task.owner.as_ref().map(ToString::to_string).unwrap_or_default();
            Some(TaskProgress {
                name: printable_line(&run_file_key(task).map_or_else(|| id.to_string(), str::to_owned)),
                subject: printable_line(&task.subject),
                owner: printable_line(&owner),
                fate: fate.with_text(printable_line),
                duration_ms: self.task_times.duration(*id, now()),
            })
        };
        RunProgress {
            team: self.team.name().to_string(),
            ending: self.end_reason.clone(),
            tasks: self.decision.fates.iter().filter_map(task).collect(),
            members: member_progress(file, &self.snapshot.running),
        }
    }
}

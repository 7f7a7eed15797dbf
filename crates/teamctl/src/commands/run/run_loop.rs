//! The course of a run: look, decide, carry out, wait; until every task is over or somebody stops it.

use super::daemon_keeper::Takedown;
use super::display::RunDisplay;
use super::existing_team::{all_running, is_complete};
use super::progress_table::{MemberProgress, RunProgress, TaskProgress};
use super::run_file::RunFile;
use super::stall_detector::StallDetector;
use super::task_fate::{RETRIES_KEY, RetryRules, RunDecision, TaskFate, evaluate, run_file_key};
use super::task_times::TaskTimes;
use super::team_snapshot::{self, TeamSnapshot};
use super::{RunContext, team_setup, team_shutdown};
use crate::output::sanitize;
use client::suggested_commands::SuggestedCommands;
use protocol::control::{Activity, MemberFlag, MemberStatus};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::Task;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use store::now;
use store::{Root, Team};

/// Looking takes at most a fifth of the time, so that a long list leaves room for those who work.
const SCAN_SHARE: u32 = 4;
/// But a look is never later than this.
const MAX_PAUSE: Duration = Duration::from_millis(200);
/// The clock of the table.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Why a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// Nothing is left to wait for.
    Finished,
    /// Somebody stopped it.
    Stopped,
    /// The time is over.
    TimedOut,
    /// Its members rest, and nothing of it moves before somebody does what this says.
    Suspended(ErrorReport),
}

/// A team, and what was seen of it.
pub(super) struct RunState {
    pub(super) team: Team,
    pub(super) log: TaskTimes,
    pub(super) show: RunDisplay,
    /// Every task that ever was, as it was last seen.
    pub(super) all_tasks: BTreeMap<TaskId, Task>,
    pub(super) snapshot: TeamSnapshot,
    pub(super) decision: RunDecision,
    team_origin: TeamOrigin,
    /// Why it ends, for people, once it does.
    end_reason: Option<String>,
    /// What was complained of last.
    last_error: Option<String>,
    stall: StallDetector,
    /// When a team that does nothing is given up.
    stall_deadline: Option<Instant>,
}

/// Whether the team was there before this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TeamOrigin {
    Created,
    Existing,
}

impl RunState {
    /// The team that was found, or one that is made.
    pub(super) fn new(
        run: &mut RunContext,
        root: &Root,
        found: Option<Team>,
    ) -> Result<RunState, ErrorReport> {
        let log = TaskTimes::open(run.here.state_dir()?.path(), &run.file.name)?;
        let (team, made) = match found {
            Some(team) => (team, TeamOrigin::Existing),
            None => (team_setup::create_team(run, root)?, TeamOrigin::Created),
        };
        let show = RunDisplay::for_output(run.here);
        let (known, look, decision) = (BTreeMap::new(), TeamSnapshot::default(), RunDecision::default());
        let (ending, trouble) = (None, None);
        let (stall, patience) = (StallDetector::default(), None);
        Ok(RunState {
            team,
            log,
            show,
            all_tasks: known,
            snapshot: look,
            decision,
            team_origin: made,
            end_reason: ending,
            last_error: trouble,
            stall,
            stall_deadline: patience,
        })
    }

    /// Nothing is left to do: that its members have ended is no reason why a task is not done.
    pub(super) fn finish_without_work(&mut self, file: &RunFile) -> Result<RunEnd, ErrorReport> {
        self.snapshot.lives = all_running(file);
        let tasks = self.team.tasks().list()?.into_iter();
        self.all_tasks.extend(tasks.filter(|task| !task.is_internal()).map(|task| (task.id, task)));
        Ok(RunEnd::Finished)
    }

    /// Prints what happened.
    pub(super) fn print_new_events(&mut self) -> Result<(), ErrorReport> {
        for line in self.log.new_lines()? {
            self.show.show_event(line);
        }
        Ok(())
    }

    fn print_line(&mut self, text: &str) {
        let line = format!("{} {}", protocol::timestamp::iso8601(now()), sanitize(&text.replace('\n', " ")));
        self.show.show_event(line);
    }

    /// From now on it ends, and this is why: on the table for as long as that takes.
    pub(super) fn begin_ending(&mut self, why: String) {
        if !self.show.needs_clock() {
            self.print_line(&why);
        }
        self.end_reason = Some(why);
    }

    /// What became of the tasks while the members end; who lived before counts, as it does in the result.
    pub(super) fn update_while_ending(&mut self, file: &RunFile, rules: &RetryRules, look: TeamSnapshot) {
        self.decision = evaluate(rules, &look.tasks, &self.snapshot.lives);
        self.log.update_from_tasks(&look.tasks, now());
        let tasks = look.tasks.iter().filter(|task| !task.is_internal());
        self.all_tasks.extend(tasks.map(|task| (task.id, task.clone())));
        self.snapshot = TeamSnapshot { lives: std::mem::take(&mut self.snapshot.lives), ..look };
        self.show.show_progress(&progress(file, self));
    }

    /// Once, however often it is so.
    fn print_error_once(&mut self, trouble: String) {
        if self.last_error.as_ref() != Some(&trouble) {
            self.print_line(&trouble);
            self.last_error = Some(trouble);
        }
    }

    /// Takes in a look: what it decides stands in `decision`.
    pub(super) fn update(&mut self, run: &RunContext, look: TeamSnapshot) {
        self.decision = evaluate(&run.rules, &look.tasks, &look.lives);
        self.log.update_from_tasks(&look.tasks, now());
        let tasks = look.tasks.iter().filter(|task| !task.is_internal());
        self.all_tasks.extend(tasks.map(|task| (task.id, task.clone())));
        self.snapshot = look;
    }

    fn is_finished(&self) -> bool {
        let idle = |agent: &MemberStatus| agent.activity == Activity::Idle;
        // Where there are no tasks there is what the members were told, and that is done when all are idle.
        let done = !self.decision.fates.is_empty()
            || (self.snapshot.running.iter().all(idle) && !self.snapshot.lives.any_respawning());
        done && self.decision.releases.is_empty() && self.decision.fates.values().all(TaskFate::is_final)
    }

    /// Why nobody will do what is left, where the daemon starts nobody any more and all have ended.
    fn exhausted_budget(&self, file: &RunFile) -> Option<String> {
        let why = self.snapshot.exhausted_budget.clone().filter(|_| self.snapshot.running.is_empty())?;
        let finished = self.is_finished() && is_complete(file, &self.snapshot.tasks);
        (!finished).then_some(why)
    }
}

/// From an empty stage to the end of the work. A team that was made now and can't be filled is taken down.
pub(super) fn run_to_end(run: &mut RunContext, stage: &mut RunState) -> Result<RunEnd, ErrorReport> {
    let begun = match stage.team_origin {
        TeamOrigin::Existing => team_setup::set_policy(run),
        TeamOrigin::Created => Ok(()),
    };
    match begun.and_then(|()| team_setup::populate(run, stage)) {
        Ok(()) => run_loop(run, stage).map_err(|fault| with_resume_help(run, stage, fault)),
        // Nobody more is started for it, and whoever was asked to end can own nothing; who lives is waited for.
        Err(fault)
            if [ErrorKind::Refused, ErrorKind::NotFound].contains(&fault.kind)
                && is_budget_exhausted(run, stage) =>
        {
            run_loop(run, stage).map_err(|fault| with_resume_help(run, stage, fault))
        }
        // Nobody is there who could take it down.
        Err(fault) if fault.kind == ErrorKind::NoDaemon => Err(with_resume_help(run, stage, fault)),
        Err(fault) if stage.team_origin == TeamOrigin::Created => {
            team_shutdown::remove_unfilled_team(run, stage);
            Err(fault)
        }
        Err(fault) => Err(with_resume_help(run, stage, fault)),
    }
}

fn is_budget_exhausted(run: &mut RunContext, stage: &RunState) -> bool {
    team_snapshot::take(run, &stage.team).is_ok_and(|look| look.exhausted_budget.is_some())
}

/// A run that can't go on leaves everything as it is: nothing is lost, and somebody can go on with it.
pub(super) fn with_resume_help(run: &RunContext, stage: &RunState, fault: ErrorReport) -> ErrorReport {
    if run.daemon.takedown() == Takedown::Seen {
        let next = "its agents end with it, and the team's files are left as they are; go on with the run: teamctl run FILE --resume";
        return fault.with_help(next);
    }
    let living: Vec<&str> = stage.snapshot.running.iter().map(|agent| agent.name.as_str()).collect();
    let living = if living.is_empty() { "nobody".to_owned() } else { living.join(", ") };
    let next = format!(
        "the team is left as it is ({living} may still run); go on with it: teamctl run FILE --resume"
    );
    let hint = fault.help.as_ref().map_or_else(|| next.clone(), |hint| format!("{hint}; {next}"));
    fault.with_help(hint)
}

fn run_loop(run: &mut RunContext, stage: &mut RunState) -> Result<RunEnd, ErrorReport> {
    loop {
        if run.signals.count() > 0 {
            return Ok(RunEnd::Stopped);
        }
        if run.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(RunEnd::TimedOut);
        }
        let began = Instant::now();
        match run_step(run, stage) {
            Ok(NextStep::RepeatNow) => continue,
            Ok(NextStep::Finish) => return Ok(RunEnd::Finished),
            Ok(NextStep::Suspend(end)) => return Ok(RunEnd::Suspended(end)),
            Ok(NextStep::Wait) => {
                stage.last_error = None;
                wait_for_change(run, stage, (began.elapsed() * SCAN_SHARE).min(MAX_PAUSE))?;
            }
            Ok(NextStep::RetrySoon) => drop(run.follow.wait(Some(Instant::now() + TICK))?),
            // A disk that is full for a while, a daemon that is stopped, a file that somebody damaged: told once, and
            // looked at again.
            Err(fault)
                if [ErrorKind::Io, ErrorKind::Timeout, ErrorKind::InvalidData].contains(&fault.kind) =>
            {
                stage.print_error_once(fault.message);
                run.follow.wait(Some(Instant::now() + TICK))?;
            }
            Err(fault) => return Err(fault),
        }
    }
}

/// What follows from a look.
enum NextStep {
    /// Something was changed by it: look again at once.
    RepeatNow,
    /// Something could not be changed just now, and nothing may tell when it can.
    RetrySoon,
    /// Look again when something happens.
    Wait,
    /// Nothing is left to wait for.
    Finish,
    /// Nobody is there who could go on, and this is why.
    Suspend(ErrorReport),
}

fn run_step(run: &mut RunContext, stage: &mut RunState) -> Result<NextStep, ErrorReport> {
    stage.print_new_events()?;
    let look = team_snapshot::take(run, &stage.team)?;
    stage.update(run, look);
    if let Some(step) = release_tasks(stage)? {
        return Ok(step);
    }
    stage.show.show_progress(&progress(&run.file, stage));
    if let Some(why) = stage.exhausted_budget(&run.file) {
        return Ok(NextStep::Suspend(suspended_error(
            run,
            &why,
            "give it more in [policy] of its file, then go on with it",
        )));
    }
    let now = Instant::now();
    stage.stall_deadline = stage.stall.update_deadline(&stage.snapshot, now);
    let given_up = !stage.is_finished() && stage.stall_deadline.is_some_and(|patience| patience <= now);
    if given_up && stage.snapshot.lives.any_suspended() {
        let why =
            if stage.snapshot.running.is_empty() { "its members rest" } else { "some of its members rest" };
        return Ok(NextStep::Suspend(suspended_error(run, why, "go on with it")));
    }
    if given_up {
        stage.print_line("everybody is idle and nothing moves: what is left will not be done by itself");
    }
    Ok(if given_up || stage.is_finished() { NextStep::Finish } else { NextStep::Wait })
}

/// Some tasks are not completed, and the team stays for whoever goes on.
fn suspended_error(run: &RunContext, why: &str, next: &str) -> ErrorReport {
    let message = format!("cannot run team {} to its end: {why}", run.file.name);
    let again =
        SuggestedCommands::default().command_for_name("run", &run.path.display().to_string(), &["--resume"]);
    ErrorReport::new(ErrorKind::Partial, message).with_help(format!("the team stays; {next}: {again}"))
}

/// None where there was nothing to give back.
fn release_tasks(stage: &mut RunState) -> Result<Option<NextStep>, ErrorReport> {
    let mut step = None;
    for given in std::mem::take(&mut stage.decision.releases) {
        if !team_snapshot::release_task(&stage.team, &given)? {
            step.get_or_insert(NextStep::RetrySoon);
            continue;
        }
        let why = if given.why == RETRIES_KEY { "failed" } else { "was left by its worker" };
        let times = if given.times == 1 { "once".to_owned() } else { format!("{} times", given.times) };
        stage.print_line(&format!("task {} {why}, and is given back ({times} so far)", given.id));
        step = Some(NextStep::RepeatNow);
    }
    Ok(step)
}

/// Until there is a reason to look, but not before `rest` is over.
fn wait_for_change(run: &mut RunContext, stage: &RunState, rest: Duration) -> Result<(), ErrorReport> {
    let not_before = Instant::now() + rest;
    let running = stage.decision.fates.values().any(|fate| *fate == TaskFate::Running);
    let tick = (running && stage.show.needs_clock()).then(|| Instant::now() + TICK);
    run.follow.wait([tick, run.deadline, stage.stall_deadline].into_iter().flatten().min())?;
    while run.signals.count() == 0 && Instant::now() < not_before {
        run.follow.wait(Some(not_before))?;
    }
    Ok(())
}

fn progress(file: &RunFile, stage: &RunState) -> RunProgress {
    if !stage.show.needs_clock() {
        return RunProgress::default();
    }
    let task = |(id, fate): (&TaskId, &TaskFate)| {
        let task = stage.all_tasks.get(id)?;
        let owner = task.owner.as_ref().map(ToString::to_string).unwrap_or_default();
        Some(TaskProgress {
            name: single_line(run_file_key(task).map_or_else(|| id.to_string(), str::to_owned)),
            subject: single_line(task.subject.clone()),
            owner: single_line(owner),
            fate: fate.clone(),
            duration_ms: stage.log.duration(*id, now()),
        })
    };
    RunProgress {
        team: stage.team.name().to_string(),
        ending: stage.end_reason.clone(),
        tasks: stage.decision.fates.iter().filter_map(task).collect(),
        members: sort_members(file, &stage.snapshot.running).into_iter().map(member_progress).collect(),
    }
}

/// Who works before who does not, each in the file's order: where not all fit, these are seen.
fn sort_members<'a>(file: &RunFile, living: &'a [MemberStatus]) -> Vec<&'a MemberStatus> {
    let place = |name: &AgentName| file.members.iter().position(|member| member.name == *name);
    let mut all: Vec<&MemberStatus> = living.iter().collect();
    all.sort_by_key(|agent| {
        (agent.activity == Activity::Idle, place(&agent.name).unwrap_or(file.members.len()))
    });
    all
}

fn member_progress(agent: &MemberStatus) -> MemberProgress {
    let asks = agent
        .flags
        .iter()
        .any(|flag| matches!(flag, MemberFlag::AwaitingPlanApproval | MemberFlag::AwaitingPermission));
    let doing = match (agent.lifecycle.as_str(), agent.activity, &agent.task) {
        ("running", _, Some(task)) if asks => format!("asks: {task}"),
        ("running", _, None) if asks => "asks".to_owned(),
        ("running", Activity::Idle, _) => "idle".to_owned(),
        ("running", Activity::Active, Some(task)) => format!("active: {task}"),
        ("running", Activity::Active, None) => "active".to_owned(),
        (phase, _, _) => phase.to_owned(),
    };
    MemberProgress {
        name: single_line(agent.name.to_string()),
        doing: single_line(doing),
        is_awaiting_answer: asks,
    }
}

fn single_line(text: String) -> String {
    sanitize(&text.replace(['\n', '\t'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_an_answer_asks() {
        let agent = r#"{"name":"ann","agent_id":"","phase":"running","activity":"active","since":0,"feed":"turn","backend":"","color":"","task":"x","flags":["awaiting_permission"]}"#;
        let mut agent: MemberStatus = serde_json::from_str(agent).unwrap();
        let seen = member_progress(&agent);
        assert_eq!((seen.doing.as_str(), seen.is_awaiting_answer), ("asks: x", true));
        agent.flags.clear();
        let seen = member_progress(&agent);
        assert_eq!((seen.doing.as_str(), seen.is_awaiting_answer), ("active: x", false));
    }

    #[test]
    fn who_works_stands_before_who_does_not_in_the_files_order() {
        let member = |name: &str| format!("[[member]]\nname = '{name}'\ncommand = ['sh']\n");
        let members: String = ["zoe", "cat", "bob", "ann"].map(member).concat();
        let file = super::super::run_file::parse_valid(&format!("name = 't'\n{members}"));
        let agent = |(name, activity): (&str, &str)| {
            let text = format!(
                r#"{{"name":"{name}","agent_id":"","phase":"running","activity":"{activity}","since":0,"feed":"turn","backend":"","color":""}}"#
            );
            serde_json::from_str::<MemberStatus>(&text).unwrap()
        };
        let living =
            [("ann", "active"), ("bob", "idle"), ("eve", "active"), ("zoe", "idle"), ("cat", "active")];
        let living = living.map(agent);
        let names: Vec<_> = sort_members(&file, &living).iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["cat", "ann", "eve", "zoe", "bob"]);
    }
}

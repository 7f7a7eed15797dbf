//! The course of a run: look, decide, carry out, wait; until every task is over or somebody stops it.

use super::daemon::Taken;
use super::decide::{Decision, Fate, RETRIED, Rules, decide, key};
use super::file::RunFile;
use super::frame::{MemberView, TaskView, View};
use super::lives::{self, Look};
use super::log::Log;
use super::show::Show;
use super::stall::Stall;
use super::taken_up::{everybody, is_nothing_left};
use super::{Run, begin, finish};
use crate::here::{fault, now};
use crate::output::clean;
use protocol::control::{Activity, MemberFlag, MemberStatus};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::Task;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use store::{Root, Team};
use view::suggested_commands::SuggestedCommands;

/// Looking takes at most a fifth of the time, so that a long list leaves room for those who work.
const REST: u32 = 4;
/// But a look is never later than this.
const LATEST: Duration = Duration::from_millis(200);
/// The clock of the table.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Why a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing is left to wait for.
    Over,
    /// Somebody stopped it.
    Stopped,
    /// The time is over.
    TimedOut,
    /// Its members rest, and nothing of it moves before somebody does what this says.
    Rests(ErrorReport),
}

/// A team, and what was seen of it.
pub(super) struct Stage {
    pub(super) team: Team,
    pub(super) log: Log,
    pub(super) show: Show,
    /// Every task that ever was, as it was last seen.
    pub(super) known: BTreeMap<TaskId, Task>,
    pub(super) look: Look,
    pub(super) decision: Decision,
    made: Made,
    /// Why it ends, for people, once it does.
    ending: Option<String>,
    /// What was complained of last.
    trouble: Option<String>,
    stall: Stall,
    /// When a team that does nothing is given up.
    patience: Option<Instant>,
}

/// Whether the team was there before this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Now,
    Before,
}

impl Stage {
    /// The team that was found, or one that is made.
    pub(super) fn new(run: &mut Run, root: &Root, found: Option<Team>) -> Result<Stage, ErrorReport> {
        let log = Log::open(run.here.state()?.path(), &run.file.name)?;
        let (team, made) = match found {
            Some(team) => (team, Made::Before),
            None => (begin::create(run, root)?, Made::Now),
        };
        let show = Show::of(run.here);
        let (known, look, decision) = (BTreeMap::new(), Look::default(), Decision::default());
        let (ending, trouble) = (None, None);
        let (stall, patience) = (Stall::default(), None);
        Ok(Stage { team, log, show, known, look, decision, made, ending, trouble, stall, patience })
    }

    /// Nothing is left to do: that its members have ended is no reason why a task is not done.
    pub(super) fn is_over_for(&mut self, file: &RunFile) -> Result<End, ErrorReport> {
        self.look.lives = everybody(file);
        let tasks = self.team.tasks().list().map_err(fault)?.into_iter();
        self.known.extend(tasks.filter(|task| !task.is_internal()).map(|task| (task.id, task)));
        Ok(End::Over)
    }

    /// Prints what happened.
    pub(super) fn news(&mut self) -> Result<(), ErrorReport> {
        for line in self.log.news()? {
            self.show.line(line);
        }
        Ok(())
    }

    fn say(&mut self, text: &str) {
        let line = format!("{} {}", protocol::timestamp::iso8601(now()), clean(&text.replace('\n', " ")));
        self.show.line(line);
    }

    /// From now on it ends, and this is why: on the table for as long as that takes.
    pub(super) fn ends(&mut self, why: String) {
        if !self.show.ticks() {
            self.say(&why);
        }
        self.ending = Some(why);
    }

    /// What became of the tasks while the members end; who lived before counts, as it does in the result.
    pub(super) fn saw_ending(&mut self, file: &RunFile, rules: &Rules, look: Look) {
        self.decision = decide(rules, &look.tasks, &self.look.lives);
        self.log.saw(&look.tasks, now());
        let tasks = look.tasks.iter().filter(|task| !task.is_internal());
        self.known.extend(tasks.map(|task| (task.id, task.clone())));
        self.look = Look { lives: std::mem::take(&mut self.look.lives), ..look };
        self.show.view(&view(file, self));
    }

    /// Once, however often it is so.
    fn complain(&mut self, trouble: String) {
        if self.trouble.as_ref() != Some(&trouble) {
            self.say(&trouble);
            self.trouble = Some(trouble);
        }
    }

    /// Takes in a look: what it decides stands in `decision`.
    pub(super) fn saw(&mut self, run: &Run, look: Look) {
        self.decision = decide(&run.rules, &look.tasks, &look.lives);
        self.log.saw(&look.tasks, now());
        let tasks = look.tasks.iter().filter(|task| !task.is_internal());
        self.known.extend(tasks.map(|task| (task.id, task.clone())));
        self.look = look;
    }

    fn is_over(&self) -> bool {
        let idle = |agent: &MemberStatus| agent.activity == Activity::Idle;
        // Where there are no tasks there is what the members were told, and that is done when all are idle.
        let done = !self.decision.fates.is_empty()
            || (self.look.living.iter().all(idle) && !self.look.lives.anybody_returns());
        done && self.decision.give_back.is_empty() && self.decision.fates.values().all(Fate::is_over)
    }

    /// Why nobody will do what is left, where the daemon starts nobody any more and all have ended.
    fn spent(&self, file: &RunFile) -> Option<String> {
        let why = self.look.spent.clone().filter(|_| self.look.living.is_empty())?;
        let finished = self.is_over() && is_nothing_left(file, &self.look.tasks);
        (!finished).then_some(why)
    }
}

/// From an empty stage to the end of the work. A team that was made now and can't be filled is taken down.
pub(super) fn from_start_to_end(run: &mut Run, stage: &mut Stage) -> Result<End, ErrorReport> {
    let begun = match stage.made {
        Made::Before => begin::set_policy(run),
        Made::Now => Ok(()),
    };
    match begun.and_then(|()| begin::fill(run, stage)) {
        Ok(()) => follow(run, stage).map_err(|fault| left(run, stage, fault)),
        // Nobody more is started for it, and whoever was asked to end can own nothing; who lives is waited for.
        Err(fault)
            if [ErrorKind::Refused, ErrorKind::NotFound].contains(&fault.kind) && is_spent(run, stage) =>
        {
            follow(run, stage).map_err(|fault| left(run, stage, fault))
        }
        // Nobody is there who could take it down.
        Err(fault) if fault.kind == ErrorKind::NoDaemon => Err(left(run, stage, fault)),
        Err(fault) if stage.made == Made::Now => {
            finish::take_down(run, stage);
            Err(fault)
        }
        Err(fault) => Err(left(run, stage, fault)),
    }
}

fn is_spent(run: &mut Run, stage: &Stage) -> bool {
    lives::of(run, &stage.team).is_ok_and(|look| look.spent.is_some())
}

/// A run that can't go on leaves everything as it is: nothing is lost, and somebody can go on with it.
pub(super) fn left(run: &Run, stage: &Stage, fault: ErrorReport) -> ErrorReport {
    if run.daemon.taken() == Taken::Down {
        let next = "its agents end with it, and the team's files are left as they are; go on with the run: teamctl run FILE --resume";
        return fault.with_help(next);
    }
    let living: Vec<&str> = stage.look.living.iter().map(|agent| agent.name.as_str()).collect();
    let living = if living.is_empty() { "nobody".to_owned() } else { living.join(", ") };
    let next = format!(
        "the team is left as it is ({living} may still run); go on with it: teamctl run FILE --resume"
    );
    let hint = fault.help.as_ref().map_or_else(|| next.clone(), |hint| format!("{hint}; {next}"));
    fault.with_help(hint)
}

fn follow(run: &mut Run, stage: &mut Stage) -> Result<End, ErrorReport> {
    loop {
        if run.signals.count() > 0 {
            return Ok(End::Stopped);
        }
        if run.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(End::TimedOut);
        }
        let began = Instant::now();
        match step(run, stage) {
            Ok(Step::Again) => continue,
            Ok(Step::Over) => return Ok(End::Over),
            Ok(Step::Rests(end)) => return Ok(End::Rests(end)),
            Ok(Step::Wait) => {
                stage.trouble = None;
                wait(run, stage, (began.elapsed() * REST).min(LATEST))?;
            }
            Ok(Step::Soon) => drop(run.follow.wait(Some(Instant::now() + TICK))?),
            // A disk that is full for a while, a daemon that is stopped, a file that somebody damaged: told once, and
            // looked at again.
            Err(fault)
                if [ErrorKind::Io, ErrorKind::Timeout, ErrorKind::InvalidData].contains(&fault.kind) =>
            {
                stage.complain(fault.message);
                run.follow.wait(Some(Instant::now() + TICK))?;
            }
            Err(fault) => return Err(fault),
        }
    }
}

/// What follows from a look.
enum Step {
    /// Something was changed by it: look again at once.
    Again,
    /// Something could not be changed just now, and nothing may tell when it can.
    Soon,
    /// Look again when something happens.
    Wait,
    /// Nothing is left to wait for.
    Over,
    /// Nobody is there who could go on, and this is why.
    Rests(ErrorReport),
}

fn step(run: &mut Run, stage: &mut Stage) -> Result<Step, ErrorReport> {
    stage.news()?;
    let look = lives::of(run, &stage.team)?;
    stage.saw(run, look);
    if let Some(step) = give_back(stage)? {
        return Ok(step);
    }
    stage.show.view(&view(&run.file, stage));
    if let Some(why) = stage.spent(&run.file) {
        return Ok(Step::Rests(rests(run, &why, "give it more in [policy] of its file, then go on with it")));
    }
    let now = Instant::now();
    stage.patience = stage.stall.deadline(&stage.look, now);
    let given_up = !stage.is_over() && stage.patience.is_some_and(|patience| patience <= now);
    if given_up && stage.look.lives.anybody_rests() {
        let why = if stage.look.living.is_empty() { "its members rest" } else { "some of its members rest" };
        return Ok(Step::Rests(rests(run, why, "go on with it")));
    }
    if given_up {
        stage.say("everybody is idle and nothing moves: what is left will not be done by itself");
    }
    Ok(if given_up || stage.is_over() { Step::Over } else { Step::Wait })
}

/// Some tasks are not completed, and the team stays for whoever goes on.
fn rests(run: &Run, why: &str, next: &str) -> ErrorReport {
    let message = format!("cannot run team {} to its end: {why}", run.file.name);
    let again =
        SuggestedCommands::default().command_for_name("run", &run.path.display().to_string(), &["--resume"]);
    ErrorReport::new(ErrorKind::Partial, message).with_help(format!("the team stays; {next}: {again}"))
}

/// None where there was nothing to give back.
fn give_back(stage: &mut Stage) -> Result<Option<Step>, ErrorReport> {
    let mut step = None;
    for given in std::mem::take(&mut stage.decision.give_back) {
        if !lives::give_back(&stage.team, &given)? {
            step.get_or_insert(Step::Soon);
            continue;
        }
        let why = if given.why == RETRIED { "failed" } else { "was left by its worker" };
        let times = if given.times == 1 { "once".to_owned() } else { format!("{} times", given.times) };
        stage.say(&format!("task {} {why}, and is given back ({times} so far)", given.id));
        step = Some(Step::Again);
    }
    Ok(step)
}

/// Until there is a reason to look, but not before `rest` is over.
fn wait(run: &mut Run, stage: &Stage, rest: Duration) -> Result<(), ErrorReport> {
    let not_before = Instant::now() + rest;
    let running = stage.decision.fates.values().any(|fate| *fate == Fate::Running);
    let tick = (running && stage.show.ticks()).then(|| Instant::now() + TICK);
    run.follow.wait([tick, run.deadline, stage.patience].into_iter().flatten().min())?;
    while run.signals.count() == 0 && Instant::now() < not_before {
        run.follow.wait(Some(not_before))?;
    }
    Ok(())
}

fn view(file: &RunFile, stage: &Stage) -> View {
    if !stage.show.ticks() {
        return View::default();
    }
    let task = |(id, fate): (&TaskId, &Fate)| {
        let task = stage.known.get(id)?;
        let owner = task.owner.as_ref().map(ToString::to_string).unwrap_or_default();
        Some(TaskView {
            name: one_line(key(task).map_or_else(|| id.to_string(), str::to_owned)),
            subject: one_line(task.subject.clone()),
            owner: one_line(owner),
            fate: fate.clone(),
            took: stage.log.took(*id, now()),
        })
    };
    View {
        team: stage.team.name().to_string(),
        ending: stage.ending.clone(),
        tasks: stage.decision.fates.iter().filter_map(task).collect(),
        members: ordered(file, &stage.look.living).into_iter().map(member).collect(),
    }
}

/// Who works before who does not, each in the file's order: where not all fit, these are seen.
fn ordered<'a>(file: &RunFile, living: &'a [MemberStatus]) -> Vec<&'a MemberStatus> {
    let place = |name: &AgentName| file.members.iter().position(|member| member.name == *name);
    let mut all: Vec<&MemberStatus> = living.iter().collect();
    all.sort_by_key(|agent| {
        (agent.activity == Activity::Idle, place(&agent.name).unwrap_or(file.members.len()))
    });
    all
}

fn member(agent: &MemberStatus) -> MemberView {
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
    MemberView { name: one_line(agent.name.to_string()), doing: one_line(doing), asks }
}

fn one_line(text: String) -> String {
    clean(&text.replace(['\n', '\t'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_an_answer_asks() {
        let agent = r#"{"name":"ann","agent_id":"","phase":"running","activity":"active","since":0,"feed":"turn","backend":"","color":"","task":"x","flags":["awaiting_permission"]}"#;
        let mut agent: MemberStatus = serde_json::from_str(agent).unwrap();
        let seen = member(&agent);
        assert_eq!((seen.doing.as_str(), seen.asks), ("asks: x", true));
        agent.flags.clear();
        let seen = member(&agent);
        assert_eq!((seen.doing.as_str(), seen.asks), ("active: x", false));
    }

    #[test]
    fn who_works_stands_before_who_does_not_in_the_files_order() {
        let member = |name: &str| format!("[[member]]\nname = '{name}'\ncommand = ['sh']\n");
        let members: String = ["zoe", "cat", "bob", "ann"].map(member).concat();
        let file = super::super::file::of_text(&format!("name = 't'\n{members}"));
        let agent = |(name, activity): (&str, &str)| {
            let text = format!(
                r#"{{"name":"{name}","agent_id":"","phase":"running","activity":"{activity}","since":0,"feed":"turn","backend":"","color":""}}"#
            );
            serde_json::from_str::<MemberStatus>(&text).unwrap()
        };
        let living =
            [("ann", "active"), ("bob", "idle"), ("eve", "active"), ("zoe", "idle"), ("cat", "active")];
        let living = living.map(agent);
        let names: Vec<_> = ordered(&file, &living).iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["cat", "ann", "eve", "zoe", "bob"]);
    }
}

//! The causes in words: a sentence, and below it the evidence, a line each.

use super::cause::Cause;
use super::evidence::{Ask, Daemon, Evidence};
use super::machine::{Halted, Server};
use super::tasks::Wait;
use protocol::delivery::Delivery;
use protocol::event::EventKind;
use protocol::message::Message;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use protocol::timestamp::{iso8601, parse_iso8601};
use store::LockInfo;
use view::text::short_duration;

pub(super) fn sentence(cause: &Cause, e: &Evidence) -> String {
    let name = &e.name;
    match cause {
        Cause::DiskFull(room) => {
            format!("There is no room on the disk of {}: nothing can be stored.", room.path.display())
        }
        Cause::NoDaemon => format!("teamd is not running: nobody supervises {name}, or wakes it."),
        Cause::DaemonSilent(_) => "teamd does not answer.".to_owned(),
        Cause::ConfigDamaged(_) => format!("The config of {} can't be read.", e.team),
        Cause::GivenUp(_) => format!("{name} has failed too often, and is not started again."),
        Cause::Restarting { at, .. } => {
            format!(
                "{name} has failed, and is started again in {}.",
                short_duration(at.saturating_sub(e.now))
            )
        }
        Cause::AtRest(_) => format!("{name} rests until somebody brings it back."),
        Cause::BudgetSpent(why, _) => format!("{name} rests, and nobody is started for {}: {why}.", e.team),
        Cause::TmuxGone(_) => format!("{name} has ended: its tmux server went away."),
        Cause::PaneClosed(_) => format!("{name} has ended: somebody closed its pane."),
        Cause::ProgramMissing { .. } => format!("{name} has ended: its program can't be started."),
        Cause::Ended { how, .. } => format!("{name} has ended: {how}."),
        Cause::NotOurs => format!("teamd runs no agent for {name}, though {} lists it.", e.team),
        Cause::Lead => format!("{name} is the lead: a person, or a program that teamd does not run."),
        Cause::Starting => format!("{name} is being started."),
        Cause::CutOff => {
            format!("teamd has lost the connection to the first process of {name}, and waits for it.")
        }
        Cause::ShuttingDown(_) => {
            format!("{name} was asked to shut down, and has not answered: whoever asked waits for it.")
        }
        Cause::Ending => format!("{name} is being ended."),
        Cause::ProcessStopped { name: program, .. } => format!("{program}, a process of {name}, is stopped."),
        Cause::InboxDamaged(whose, _) => format!("The inbox of {whose} can't be read."),
        Cause::InboxAbandoned(whose, _) => {
            format!("The inbox of {whose} is locked by a process that is dead.")
        }
        Cause::InboxLocked(whose, ..) => format!("The inbox of {whose} is locked by another process."),
        Cause::InboxBarred(whose, _) => {
            format!("Nobody can write to the inbox of {whose}: what stands at the place of its lock is none.")
        }
        Cause::Permission(ask) => asked(e, ask.as_ref(), "asks for permission"),
        Cause::PlanApproval(ask) => asked(e, ask.as_ref(), "hands in a plan"),
        Cause::Dialog(_) => format!("The program of {name} waits at a dialog of its own."),
        Cause::TmuxSilent(_) => {
            format!("tmux does not answer: what {name} shows is not known, and it may be held up.")
        }
        Cause::NeverReady => format!(
            "The program of {name} runs, and none of its hooks has said anything: mail and tasks wait for that."
        ),
        Cause::TurnsFailed { count: 1, .. } => format!("The last turn of {name} has failed."),
        Cause::TurnsFailed { count, .. } => format!("The last {count} turns of {name} have failed."),
        Cause::Interrupted { .. } => format!("The last turn of {name} was interrupted."),
        Cause::Unfed(messages) => {
            format!("{name} has {} unread, and nothing has given it to it.", many(messages.len(), "message"))
        }
        Cause::Blocked(waits) => {
            format!("{name} has nothing that it can start: {} for others.", tasks_wait(waits))
        }
        Cause::BlockersUnowned(waits) => {
            format!("{name} has nothing that it can start: {} for what nobody works on.", tasks_wait(waits))
        }
        Cause::PlanMode => {
            format!("{name} is in the mode plan: it carries nothing out until a plan of its is approved.")
        }
        Cause::Silent(since) => {
            format!(
                "{name} is in a turn, and has written nothing for {}.",
                short_duration(e.now.saturating_sub(*since))
            )
        }
        Cause::OthersTasks(tasks) => {
            format!("{name} has nothing to do: {} others', and not begun.", all_are(tasks.len()))
        }
        Cause::Hidden => format!("The pane of {name} is out of sight; it goes on there."),
        Cause::Works => works(e),
        Cause::Rests => format!("{name} is idle and waits for a message or a task: that is its rest."),
    }
}

pub(super) fn evidence(cause: &Cause, e: &Evidence) -> Vec<String> {
    match cause {
        Cause::DiskFull(room) => match room.files {
            Some(0) => vec!["no file can be made there any more".to_owned()],
            _ => vec![format!("{} bytes are left", room.bytes)],
        },
        Cause::NoDaemon => vec![stopped_daemon(e)],
        Cause::DaemonSilent(server) | Cause::TmuxSilent(server) => vec![server_of(server)],
        Cause::ConfigDamaged(why) | Cause::InboxDamaged(_, why) => vec![why.clone()],
        Cause::GivenUp(why) => std::iter::once(why.clone()).chain(ends(e)).collect(),
        Cause::AtRest(how) | Cause::BudgetSpent(_, how) | Cause::Restarting { how, .. } => {
            let down = matches!(e.daemon, Daemon::Absent).then(|| "teamd is not running".to_owned());
            down.into_iter().chain([format!("its last life: {how}")]).chain(ends(e)).collect()
        }
        Cause::TmuxGone(at) | Cause::PaneClosed(at) => lines([Some(when("ended", *at, e)), left(e)]),
        Cause::ProgramMissing { why, at } => lines([Some(why.clone()), Some(when("ended", *at, e))]),
        Cause::Ended { at, .. } => lines([Some(when("ended", *at, e)), left(e)]),
        Cause::NotOurs => lines([e.member.as_ref().ok().and_then(|member| {
            Some(format!("in config.json it is in pane {:?}", member.as_ref()?.tmux_pane_id))
        })]),
        Cause::Lead => vec![
            format!("{} of members without an answer", many(e.asks.len(), "request")),
            format!("{} unread in its inbox", many(e.unread.len(), "message")),
        ],
        Cause::Starting | Cause::Ending => lines([since(e)]),
        Cause::CutOff => e.stopped.iter().map(halted).chain(since(e)).collect(),
        Cause::ShuttingDown(asked) => lines([
            asked.as_ref().map(|(request, at)| when(&format!("request {request}, asked"), *at, e)),
            closing(e),
        ]),
        Cause::ProcessStopped { pid, .. } => {
            vec![format!("process {pid}: by a signal (SIGSTOP, Ctrl-Z), or a debugger holds it")]
        }
        Cause::InboxAbandoned(_, held) => vec![lock(held, e)],
        Cause::InboxLocked(_, held, holder) => {
            lines([Some(lock(held, e)), holder.as_ref().map(|(_, words)| words.clone())])
        }
        Cause::InboxBarred(_, path) => vec![path.display().to_string()],
        Cause::Permission(ask) | Cause::PlanApproval(ask) => {
            ask.iter().flat_map(|ask| lines([Some(request(ask, e)), end(ask, e)])).collect()
        }
        Cause::Dialog(text) => vec![text.clone().unwrap_or_else(|| "its screen shows it".to_owned())],
        Cause::NeverReady => lines([since(e)]),
        Cause::TurnsFailed { since, task, .. } => lines([
            e.failure.clone(),
            task.as_ref().map(named),
            Some(when("the first of them ended", *since, e)),
        ]),
        Cause::Interrupted { at, task } => lines([Some(when("ended", *at, e)), task.as_ref().map(named)]),
        Cause::Unfed(messages) => lines([oldest(messages, e), fed(e)]),
        Cause::Blocked(waits) | Cause::BlockersUnowned(waits) => {
            waits.iter().flat_map(|wait| blockers(wait, e)).collect()
        }
        Cause::PlanMode => lines([since(e)]),
        Cause::Silent(_) => lines([since(e)]),
        Cause::OthersTasks(tasks) => tasks.iter().map(named).collect(),
        Cause::Hidden => {
            lines([e.agent.as_ref().and_then(|agent| agent.pane.clone()).map(|pane| format!("pane {pane}"))])
        }
        Cause::Works | Cause::Rests => lines([since(e)]),
    }
}

fn lines<const N: usize>(lines: [Option<String>; N]) -> Vec<String> {
    lines.into_iter().flatten().filter(|line| !line.is_empty()).collect()
}

fn asked(e: &Evidence, ask: Option<&Ask>, plainly: &str) -> String {
    let about = ask.map_or(plainly, |ask| ask.about.as_str());
    let whose = if ask.is_some_and(|ask| ask.is_a_persons) { "a person" } else { "the lead or a person" };
    format!("{} {about}, and waits for the answer of {whose}.", e.name)
}

fn request(ask: &Ask, e: &Evidence) -> String {
    when(&format!("request {} in the inbox of team-lead,", ask.id), ask.since, e)
}

fn end(ask: &Ask, e: &Evidence) -> Option<String> {
    let (at, approved) = ask.ends?;
    let answers = if approved { "approves" } else { "denies" };
    Some(format!("the team's policy {answers} it in {}", short_duration(at.saturating_sub(e.now))))
}

fn halted(halted: &Halted) -> String {
    format!("process {} ({}) is stopped", halted.pid, halted.name)
}

/// `05:10:01 UTC, 3m ago`.
fn when(what: &str, at: u64, e: &Evidence) -> String {
    if at == 0 {
        return what.trim_end_matches(',').to_owned();
    }
    let whole = iso8601(at);
    let clock = whole.get(11..19).unwrap_or_default();
    let (ago, day) = (e.now.saturating_sub(at), whole.get(..10).unwrap_or_default());
    let date = if ago >= 43_200_000 { format!("{day} ") } else { String::new() };
    format!("{what} {date}{clock} UTC, {} ago", short_duration(ago))
}

fn many(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn all_are(count: usize) -> String {
    if count == 1 { "the one open task is".to_owned() } else { format!("all {count} open tasks are") }
}

/// What the daemon knows of its activity.
fn since(e: &Evidence) -> Option<String> {
    let agent = e.agent.as_ref()?;
    Some(when(&format!("{}; since", agent.evidence), agent.activity_since, e))
}

fn works(e: &Evidence) -> String {
    let task = e.agent.as_ref().and_then(|agent| agent.task.clone());
    match (task, e.agent.as_ref().map(|agent| agent.delivery)) {
        (Some(task), _) => format!("{} works: {task}.", e.name),
        (None, Some(Delivery::Pull)) => format!("{} runs, and looks for mail by itself.", e.name),
        _ => format!("{} is in a turn.", e.name),
    }
}

fn stopped_daemon(e: &Evidence) -> String {
    let last = e.chronicle.last(|what| match what {
        EventKind::DaemonStopped { reason: why } => Some(Some(why.clone())),
        EventKind::DaemonReady { .. } => Some(None),
        _ => None,
    });
    match last {
        Some((Some(why), at)) => when(&format!("it stopped ({why})"), at, e),
        Some((None, at)) => when("it went without a word; it was started", at, e),
        None => "the event log knows of none".to_owned(),
    }
}

fn closing(e: &Evidence) -> Option<String> {
    match &e.daemon {
        Daemon::Answers(daemon) if daemon.is_stopping => {
            Some("teamd itself goes down as soon as all have ended".to_owned())
        }
        _ => None,
    }
}

fn server_of(server: &Server) -> String {
    match server {
        Server::Silent { pid: Some(pid), stopped: true } => format!("its process {pid} is stopped"),
        Server::Silent { pid: Some(pid), .. } => {
            format!("its process {pid} takes connections, and says nothing")
        }
        _ => "it can't be asked".to_owned(),
    }
}

fn ends(e: &Evidence) -> Vec<String> {
    e.chronicle.ends().into_iter().map(|(how, at)| when(&format!("{how},"), at, e)).collect()
}

fn left(e: &Evidence) -> Option<String> {
    let task =
        super::tasks::works_on(&e.tasks, &e.name).or_else(|| super::tasks::failed(&e.tasks, &e.name))?;
    Some(format!("it left {}", named(task)))
}

fn lock(held: &LockInfo, e: &Evidence) -> String {
    when(&format!("{}, touched", held.path.display()), held.touched_at, e)
}

fn oldest(messages: &[Message], e: &Evidence) -> Option<String> {
    let first = messages.first()?;
    let at = parse_iso8601(&first.timestamp).unwrap_or(0);
    Some(when(&format!("the oldest is from {},", first.from), at, e))
}

fn fed(e: &Evidence) -> Option<String> {
    let agent = e.agent.as_ref()?;
    Some(match agent.delivery {
        Delivery::Pull => "its feed is pull: its program reads its inbox itself, or nobody does".to_owned(),
        feed => format!("its feed is {}; {}", feed.as_str(), agent.evidence),
    })
}

fn tasks_wait(waits: &[Wait]) -> String {
    let ids: Vec<String> = waits.iter().map(|wait| wait.task.to_string()).collect();
    match ids.as_slice() {
        [one] => format!("task {one} waits"),
        several => format!("tasks {} wait", several.join(", ")),
    }
}

fn blockers(wait: &Wait, e: &Evidence) -> Vec<String> {
    let line = |task: &Task| format!("task {} waits for {}", wait.task, whose(task, e));
    wait.blockers.iter().map(line).collect()
}

/// `task 3 (count the lines)`.
fn named(task: &Task) -> String {
    match &task.owner {
        Some(owner) => format!("task {} ({}), which is {owner}'s", task.id, task.subject),
        None => format!("task {} ({})", task.id, task.subject),
    }
}

fn whose(task: &Task, e: &Evidence) -> String {
    let lives = |owner: &AgentName| e.members.contains(owner);
    let stage = match (&task.status, task.failure()) {
        (_, Some(failure)) => format!(", has failed ({failure})"),
        (TaskStatus::InProgress, None) => ", in progress".to_owned(),
        _ => ", not begun".to_owned(),
    };
    let owner = match &task.owner {
        None => "which nobody has".to_owned(),
        Some(owner) if lives(owner) => format!("which is {owner}'s"),
        Some(owner) => format!("which {owner} left"),
    };
    format!("task {} ({}), {owner}{stage}", task.id, task.subject)
}

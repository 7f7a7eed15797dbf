//! The causes in words: a sentence, and below it the evidence, a line each.

use super::cause::Cause;
use super::evidence::{DaemonProbe, Evidence, OpenRequestEvidence};
use super::system_probe::{ServerState, StoppedProcess};
use super::task_waits::TaskWait;
use client::text::short_duration;
use protocol::delivery::Delivery;
use protocol::event::EventKind;
use protocol::message::Message;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use protocol::timestamp::{iso8601, parse_iso8601};
use store::LockInfo;

pub(super) fn sentence(cause: &Cause, e: &Evidence) -> String {
    let name = &e.name;
    match cause {
        Cause::DiskFull(room) => {
            format!("There is no room on the disk of {}: nothing can be stored.", room.path.display())
        }
        Cause::NoDaemon => format!("teamd is not running: nobody supervises {name}, or wakes it."),
        Cause::DaemonUnresponsive(_) => "teamd does not answer.".to_owned(),
        Cause::ConfigDamaged(_) => format!("The config of {} can't be read.", e.team),
        Cause::RespawnsExhausted(_) => format!("{name} has failed too often, and is not started again."),
        Cause::Restarting { at, .. } => {
            format!(
                "{name} has failed, and is started again in {}.",
                short_duration(at.saturating_sub(e.now))
            )
        }
        Cause::Suspended(_) => format!("{name} rests until somebody brings it back."),
        Cause::BudgetExhausted(why, _) => {
            format!("{name} rests, and nobody is started for {}: {why}.", e.team)
        }
        Cause::TmuxGone(_) => format!("{name} has ended: its tmux server went away."),
        Cause::PaneClosed(_) => format!("{name} has ended: somebody closed its pane."),
        Cause::ProgramMissing { .. } => format!("{name} has ended: its program can't be started."),
        Cause::Ended { how, .. } => format!("{name} has ended: {how}."),
        Cause::Unsupervised => format!("teamd runs no agent for {name}, though {} lists it.", e.team),
        Cause::Lead => format!("{name} is the lead: a person, or a program that teamd does not run."),
        Cause::Starting => format!("{name} is being started."),
        Cause::ShimDisconnected => {
            format!("teamd has lost the connection to the first process of {name}, and waits for it.")
        }
        Cause::ShuttingDown(_) => {
            format!("{name} was asked to shut down, and has not answered: whoever asked waits for it.")
        }
        Cause::Stopping => format!("{name} is being ended."),
        Cause::ProcessStopped { name: program, .. } => format!("{program}, a process of {name}, is stopped."),
        Cause::InboxDamaged(whose, _) => format!("The inbox of {whose} can't be read."),
        Cause::InboxLockStale(whose, _) => {
            format!("The inbox of {whose} is locked by a process that is dead.")
        }
        Cause::InboxLocked(whose, ..) => format!("The inbox of {whose} is locked by another process."),
        Cause::InboxLockBlocked(whose, _) => {
            format!("Nobody can write to the inbox of {whose}: what stands at the place of its lock is none.")
        }
        Cause::AwaitingPermission(ask) => request_sentence(e, ask.as_ref(), "asks for permission"),
        Cause::AwaitingPlanApproval(ask) => request_sentence(e, ask.as_ref(), "hands in a plan"),
        Cause::AtDialog(_) => format!("The program of {name} waits at a dialog of its own."),
        Cause::TmuxUnresponsive(_) => {
            format!("tmux does not answer: what {name} shows is not known, and it may be held up.")
        }
        Cause::NoHookEvents => format!(
            "The program of {name} runs, and none of its hooks has said anything: mail and tasks wait for that."
        ),
        Cause::TurnsFailed { count: 1, .. } => format!("The last turn of {name} has failed."),
        Cause::TurnsFailed { count, .. } => format!("The last {count} turns of {name} have failed."),
        Cause::Interrupted { .. } => format!("The last turn of {name} was interrupted."),
        Cause::Undelivered(messages) => {
            format!(
                "{name} has {} unread, and nothing has given it to it.",
                count_noun(messages.len(), "message")
            )
        }
        Cause::Blocked(waits) => {
            format!("{name} has nothing that it can start: {} for others.", waiting_tasks_text(waits))
        }
        Cause::BlockersUnowned(waits) => {
            format!(
                "{name} has nothing that it can start: {} for what nobody works on.",
                waiting_tasks_text(waits)
            )
        }
        Cause::PlanMode => {
            format!("{name} is in the mode plan: it carries nothing out until a plan of its is approved.")
        }
        Cause::NoOutput(since) => {
            format!(
                "{name} is in a turn, and has written nothing for {}.",
                short_duration(e.now.saturating_sub(*since))
            )
        }
        Cause::TasksOwnedByOthers(tasks) => {
            format!("{name} has nothing to do: {} others', and not begun.", open_tasks_text(tasks.len()))
        }
        Cause::Hidden => format!("The pane of {name} is out of sight; it goes on there."),
        Cause::Working => working_sentence(e),
        Cause::Idle => format!("{name} is idle and waits for a message or a task: that is its rest."),
    }
}

pub(super) fn evidence(cause: &Cause, e: &Evidence) -> Vec<String> {
    match cause {
        Cause::DiskFull(room) => match room.files {
            Some(0) => vec!["no file can be made there any more".to_owned()],
            _ => vec![format!("{} bytes are left", room.bytes)],
        },
        Cause::NoDaemon => vec![daemon_end_line(e)],
        Cause::DaemonUnresponsive(server) | Cause::TmuxUnresponsive(server) => vec![server_line(server)],
        Cause::ConfigDamaged(why) | Cause::InboxDamaged(_, why) => vec![why.clone()],
        Cause::RespawnsExhausted(why) => std::iter::once(why.clone()).chain(past_end_lines(e)).collect(),
        Cause::Suspended(how) | Cause::BudgetExhausted(_, how) | Cause::Restarting { how, .. } => {
            let down = matches!(e.daemon, DaemonProbe::NotRunning).then(|| "teamd is not running".to_owned());
            down.into_iter().chain([format!("its last life: {how}")]).chain(past_end_lines(e)).collect()
        }
        Cause::TmuxGone(at) | Cause::PaneClosed(at) => {
            non_empty([Some(with_time("ended", *at, e)), abandoned_task_line(e)])
        }
        Cause::ProgramMissing { why, at } => non_empty([Some(why.clone()), Some(with_time("ended", *at, e))]),
        Cause::Ended { at, .. } => non_empty([Some(with_time("ended", *at, e)), abandoned_task_line(e)]),
        Cause::Unsupervised => non_empty([e.member.as_ref().ok().and_then(|member| {
            Some(format!("in config.json it is in pane {:?}", member.as_ref()?.tmux_pane_id))
        })]),
        Cause::Lead => vec![
            format!("{} of members without an answer", count_noun(e.asks.len(), "request")),
            format!("{} unread in its inbox", count_noun(e.unread.len(), "message")),
        ],
        Cause::Starting | Cause::Stopping => non_empty([activity_line(e)]),
        Cause::ShimDisconnected => e.stopped.iter().map(stopped_line).chain(activity_line(e)).collect(),
        Cause::ShuttingDown(asked) => non_empty([
            asked.as_ref().map(|(request, at)| with_time(&format!("request {request}, asked"), *at, e)),
            daemon_closing_line(e),
        ]),
        Cause::ProcessStopped { pid, .. } => {
            vec![format!("process {pid}: by a signal (SIGSTOP, Ctrl-Z), or a debugger holds it")]
        }
        Cause::InboxLockStale(_, held) => vec![lock_line(held, e)],
        Cause::InboxLocked(_, held, holder) => {
            non_empty([Some(lock_line(held, e)), holder.as_ref().map(|(_, words)| words.clone())])
        }
        Cause::InboxLockBlocked(_, path) => vec![path.display().to_string()],
        Cause::AwaitingPermission(ask) | Cause::AwaitingPlanApproval(ask) => ask
            .iter()
            .flat_map(|ask| non_empty([Some(request_line(ask, e)), policy_timeout_line(ask, e)]))
            .collect(),
        Cause::AtDialog(text) => vec![text.clone().unwrap_or_else(|| "its screen shows it".to_owned())],
        Cause::NoHookEvents => non_empty([activity_line(e)]),
        Cause::TurnsFailed { since, task, .. } => non_empty([
            e.failure.clone(),
            task.as_ref().map(task_label),
            Some(with_time("the first of them ended", *since, e)),
        ]),
        Cause::Interrupted { at, task } => {
            non_empty([Some(with_time("ended", *at, e)), task.as_ref().map(task_label)])
        }
        Cause::Undelivered(messages) => non_empty([oldest_message_line(messages, e), delivery_line(e)]),
        Cause::Blocked(waits) | Cause::BlockersUnowned(waits) => {
            waits.iter().flat_map(|wait| blocker_lines(wait, e)).collect()
        }
        Cause::PlanMode => non_empty([activity_line(e)]),
        Cause::NoOutput(_) => non_empty([activity_line(e)]),
        Cause::TasksOwnedByOthers(tasks) => tasks.iter().map(task_label).collect(),
        Cause::Hidden => non_empty([e
            .agent
            .as_ref()
            .and_then(|agent| agent.pane.clone())
            .map(|pane| format!("pane {pane}"))]),
        Cause::Working | Cause::Idle => non_empty([activity_line(e)]),
    }
}

fn non_empty<const N: usize>(lines: [Option<String>; N]) -> Vec<String> {
    lines.into_iter().flatten().filter(|line| !line.is_empty()).collect()
}

fn request_sentence(e: &Evidence, ask: Option<&OpenRequestEvidence>, plainly: &str) -> String {
    let about = ask.map_or(plainly, |ask| ask.about.as_str());
    let whose =
        if ask.is_some_and(|ask| ask.is_left_to_person) { "a person" } else { "the lead or a person" };
    format!("{} {about}, and waits for the answer of {whose}.", e.name)
}

fn request_line(ask: &OpenRequestEvidence, e: &Evidence) -> String {
    with_time(&format!("request {} in the inbox of team-lead,", ask.id), ask.since, e)
}

fn policy_timeout_line(ask: &OpenRequestEvidence, e: &Evidence) -> Option<String> {
    let (at, approved) = ask.ends?;
    let answers = if approved { "approves" } else { "denies" };
    Some(format!("the team's policy {answers} it in {}", short_duration(at.saturating_sub(e.now))))
}

fn stopped_line(halted: &StoppedProcess) -> String {
    format!("process {} ({}) is stopped", halted.pid, halted.name)
}

/// `05:10:01 UTC, 3m ago`.
fn with_time(what: &str, at: u64, e: &Evidence) -> String {
    if at == 0 {
        return what.trim_end_matches(',').to_owned();
    }
    let whole = iso8601(at);
    let clock = whole.get(11..19).unwrap_or_default();
    let (ago, day) = (e.now.saturating_sub(at), whole.get(..10).unwrap_or_default());
    let date = if ago >= 43_200_000 { format!("{day} ") } else { String::new() };
    format!("{what} {date}{clock} UTC, {} ago", short_duration(ago))
}

fn count_noun(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn open_tasks_text(count: usize) -> String {
    if count == 1 { "the one open task is".to_owned() } else { format!("all {count} open tasks are") }
}

/// What the daemon knows of its activity.
fn activity_line(e: &Evidence) -> Option<String> {
    let agent = e.agent.as_ref()?;
    Some(with_time(&format!("{}; since", agent.evidence), agent.activity_since, e))
}

fn working_sentence(e: &Evidence) -> String {
    let task = e.agent.as_ref().and_then(|agent| agent.task.clone());
    match (task, e.agent.as_ref().map(|agent| agent.delivery)) {
        (Some(task), _) => format!("{} works: {task}.", e.name),
        (None, Some(Delivery::Pull)) => format!("{} runs, and looks for mail by itself.", e.name),
        _ => format!("{} is in a turn.", e.name),
    }
}

fn daemon_end_line(e: &Evidence) -> String {
    let last = e.chronicle.find_last(|what| match what {
        EventKind::DaemonStopped { reason: why } => Some(Some(why.clone())),
        EventKind::DaemonReady { .. } => Some(None),
        _ => None,
    });
    match last {
        Some((Some(why), at)) => with_time(&format!("it stopped ({why})"), at, e),
        Some((None, at)) => with_time("it went without a word; it was started", at, e),
        None => "the event log knows of none".to_owned(),
    }
}

fn daemon_closing_line(e: &Evidence) -> Option<String> {
    match &e.daemon {
        DaemonProbe::Running(daemon) if daemon.is_stopping => {
            Some("teamd itself goes down as soon as all have ended".to_owned())
        }
        _ => None,
    }
}

fn server_line(server: &ServerState) -> String {
    match server {
        ServerState::Unresponsive { pid: Some(pid), stopped: true } => {
            format!("its process {pid} is stopped")
        }
        ServerState::Unresponsive { pid: Some(pid), .. } => {
            format!("its process {pid} takes connections, and says nothing")
        }
        _ => "it can't be asked".to_owned(),
    }
}

fn past_end_lines(e: &Evidence) -> Vec<String> {
    e.chronicle.ends().into_iter().map(|(how, at)| with_time(&format!("{how},"), at, e)).collect()
}

fn abandoned_task_line(e: &Evidence) -> Option<String> {
    let task = super::task_waits::current_task(&e.tasks, &e.name)
        .or_else(|| super::task_waits::failed_task(&e.tasks, &e.name))?;
    Some(format!("it left {}", task_label(task)))
}

fn lock_line(held: &LockInfo, e: &Evidence) -> String {
    with_time(&format!("{}, touched", held.path.display()), held.touched_at, e)
}

fn oldest_message_line(messages: &[Message], e: &Evidence) -> Option<String> {
    let first = messages.first()?;
    let at = parse_iso8601(&first.timestamp).unwrap_or(0);
    Some(with_time(&format!("the oldest is from {},", first.from), at, e))
}

fn delivery_line(e: &Evidence) -> Option<String> {
    let agent = e.agent.as_ref()?;
    Some(match agent.delivery {
        Delivery::Pull => "its feed is pull: its program reads its inbox itself, or nobody does".to_owned(),
        feed => format!("its feed is {}; {}", feed.as_str(), agent.evidence),
    })
}

fn waiting_tasks_text(waits: &[TaskWait]) -> String {
    let ids: Vec<String> = waits.iter().map(|wait| wait.task.to_string()).collect();
    match ids.as_slice() {
        [one] => format!("task {one} waits"),
        several => format!("tasks {} wait", several.join(", ")),
    }
}

fn blocker_lines(wait: &TaskWait, e: &Evidence) -> Vec<String> {
    let line = |task: &Task| format!("task {} waits for {}", wait.task, blocker_text(task, e));
    wait.blockers.iter().map(line).collect()
}

/// `task 3 (count the lines)`.
fn task_label(task: &Task) -> String {
    match &task.owner {
        Some(owner) => format!("task {} ({}), which is {owner}'s", task.id, task.subject),
        None => format!("task {} ({})", task.id, task.subject),
    }
}

fn blocker_text(task: &Task, e: &Evidence) -> String {
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

//! What to type next: each a command that works as it is printed, in the shell and at the place of whoever asked.

use super::cause::Cause;
use super::evidence::{Evidence, OpenRequestEvidence};
use super::system_probe::ServerState;
use super::task_waits::{TaskWait, is_unowned};
use client::suggested_commands::SuggestedCommands;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use protocol::text::shell_quote;
use std::path::Path;

/// The first is the one to type; the others are ways besides.
pub(super) fn next_commands(cause: &Cause, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    match e.asker.is_lead() {
        true => commands_for_lead(cause, e, typed),
        false => commands_for_member(cause, e, typed),
    }
}

/// A member answers and mends nothing: its lead does, once that knows.
fn commands_for_member(cause: &Cause, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    match cause {
        Cause::Undelivered(_) => vec![typed.command_for_name("inbox", e.name.as_str(), &["--unread"])],
        Cause::Blocked(_) | Cause::BlockersUnowned(_) | Cause::TasksOwnedByOthers(_) => {
            vec![typed.command(&["task", "list"])]
        }
        cause if !cause.blocks_member() => Vec::new(),
        _ => vec![typed.command(&["send", AgentName::lead().as_str(), "TEXT"])],
    }
}

fn commands_for_lead(cause: &Cause, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let name = e.name.as_str();
    let one = |words: &[&str]| vec![typed.command(words)];
    let of_it = |verb: &str, options: &[&str]| vec![typed.command_for_name(verb, name, options)];
    match cause {
        Cause::DiskFull(room) => vec![format!("df -h {}", quoted_path(&room.path))],
        Cause::NoDaemon => one(&["up"]),
        Cause::DaemonUnresponsive(server) | Cause::TmuxUnresponsive(server) => {
            commands_for_server(server, typed)
        }
        Cause::ConfigDamaged(_)
        | Cause::InboxDamaged(..)
        | Cause::Unsupervised
        | Cause::InboxLocked(_, _, None) => one(&["doctor"]),
        Cause::InboxLocked(_, _, Some((pid, _))) => vec![format!("ps -o pid,stat,etime,args -p {pid}")],
        Cause::InboxLockStale(..) => one(&["doctor", "--fix"]),
        Cause::InboxLockBlocked(_, place) => vec![format!("ls -la {}", quoted_path(place))],
        Cause::RespawnsExhausted(_) | Cause::Restarting { .. } | Cause::ProgramMissing { .. } => {
            vec![logs(e, typed)]
        }
        Cause::BudgetExhausted(..) => {
            [&["policy", "FILE"], &["up", "--resume"]].map(|words| typed.command(words)).to_vec()
        }
        Cause::Suspended(_) => one(&["up", "--resume"]),
        Cause::TmuxGone(_) if e.is_suspended() => one(&["up", "--resume"]),
        Cause::Ended { .. } | Cause::TmuxGone(_) | Cause::PaneClosed(_) => commands_after_end(e, typed),
        Cause::Lead | Cause::AwaitingPlanApproval(None) | Cause::AwaitingPermission(None) => {
            one(&["requests"])
        }
        Cause::AwaitingPermission(Some(ask)) | Cause::AwaitingPlanApproval(Some(ask)) => {
            answer_commands(ask, typed)
        }
        Cause::Starting | Cause::Stopping => one(&["events", "--since", "2m"]),
        Cause::ShimDisconnected => continue_stopped(e).unwrap_or_else(|| one(&["doctor"])),
        Cause::ShuttingDown(_) => of_it("shutdown", &["--force"]),
        Cause::ProcessStopped { pid, .. } => vec![format!("kill -CONT {pid}")],
        Cause::AtDialog(_) => [of_it("capture", &[]), of_it("attach", &[])].concat(),
        Cause::NoHookEvents | Cause::NoOutput(_) | Cause::Working => look_at_output(e, typed),
        Cause::TurnsFailed { task, .. } | Cause::Interrupted { task, .. } => {
            release_and_logs(task.as_ref(), e, typed)
        }
        Cause::Undelivered(_) => of_it("inbox", &["--unread"]),
        Cause::Blocked(waits) | Cause::BlockersUnowned(waits) => commands_for_blocker(waits, e, typed),
        Cause::TasksOwnedByOthers(tasks) => {
            tasks.first().map_or_else(Vec::new, |task| assign_command(task, e, typed))
        }
        Cause::Hidden => of_it("show", &[]),
        // It hands in its plan at the end of its next turn.
        Cause::PlanMode | Cause::Idle => vec![format!("{} TEXT", typed.command_for_name("send", name, &[]))],
    }
}

fn quoted_path(path: &Path) -> String {
    shell_quote(&path.display().to_string())
}

fn commands_for_server(server: &ServerState, typed: &SuggestedCommands) -> Vec<String> {
    match server {
        ServerState::Unresponsive { pid: Some(pid), stopped: true } => vec![format!("kill -CONT {pid}")],
        ServerState::Unresponsive { pid: Some(pid), .. } => {
            vec![format!("ps -o pid,stat,wchan,etime,args -p {pid}")]
        }
        _ => vec![typed.command(&["doctor"])],
    }
}

fn continue_stopped(e: &Evidence) -> Option<Vec<String>> {
    Some(vec![format!("kill -CONT {}", e.stopped.first()?.pid)])
}

/// What it left is given back first.
fn commands_after_end(e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let task = super::task_waits::current_task(&e.tasks, &e.name)
        .or_else(|| super::task_waits::failed_task(&e.tasks, &e.name));
    release_and_logs(task, e, typed)
}

fn release_and_logs(task: Option<&Task>, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let release = task.map(|task| typed.command(&["task", "release", &task.id.to_string()]));
    release.into_iter().chain([logs(e, typed)]).collect()
}

/// Shown whole first: nobody should say yes to what he has not read.
fn answer_commands(ask: &OpenRequestEvidence, typed: &SuggestedCommands) -> Vec<String> {
    let deny = typed.command_for_name("deny", &ask.id, &["--reason", "R"]);
    vec![typed.command(&["requests"]), typed.command_for_name("approve", &ask.id, &[]), deny]
}

/// Where it has a pane that is its screen, else what it has written.
fn look_at_output(e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let pane = e.agent.as_ref().is_some_and(|agent| agent.pane.is_some());
    vec![if pane { typed.command_for_name("capture", e.name.as_str(), &[]) } else { logs(e, typed) }]
}

/// Who has written nothing has no log.
fn logs(e: &Evidence, typed: &SuggestedCommands) -> String {
    match e.last_output {
        Some(_) => typed.command_for_name("logs", e.name.as_str(), &[]),
        None => typed.command(&["events", "--since", "10m"]),
    }
}

/// About the first thing that stands in the way, what is nobody's ahead of the others: a failed one is given back, one
/// without an owner given to somebody, else its owner is asked after.
fn commands_for_blocker(waits: &[TaskWait], e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let lives = |name: &AgentName| e.members.contains(name);
    let all = || waits.iter().flat_map(|wait| &wait.blockers);
    let first = all().find(|task| is_unowned(task, lives)).or_else(|| all().next());
    let Some(task) = first else { return vec![typed.command(&["task", "list"])] };
    match task.owner.as_ref() {
        _ if task.failure().is_some() => release_and_logs(Some(task), e, typed)[..1].to_vec(),
        Some(owner) if lives(owner) => vec![typed.command_for_name("why", owner.as_str(), &[])],
        Some(_) if task.status == TaskStatus::InProgress => {
            vec![typed.command(&["task", "release", &task.id.to_string()])]
        }
        _ => assign_command(task, e, typed),
    }
}

fn assign_command(task: &Task, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    vec![typed.command(&["task", "update", &task.id.to_string(), &format!("--owner={}", e.name)])]
}

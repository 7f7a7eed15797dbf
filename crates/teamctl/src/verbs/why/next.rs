//! What to type next: each a command that works as it is printed, in the shell and at the place of whoever asked.

use super::cause::Cause;
use super::evidence::{Ask, Evidence};
use super::machine::Server;
use super::tasks::{Wait, is_nobodys};
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use std::path::Path;
use view::suggested_commands::SuggestedCommands;
use view::text::shell_quote;

/// The first is the one to type; the others are ways besides.
pub(super) fn commands(cause: &Cause, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    match e.asker.is_lead() {
        true => of_lead(cause, e, typed),
        false => of_itself(cause, e, typed),
    }
}

/// A member answers and mends nothing: its lead does, once that knows.
fn of_itself(cause: &Cause, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    match cause {
        Cause::Unfed(_) => vec![typed.command_for_name("inbox", e.name.as_str(), &["--unread"])],
        Cause::Blocked(_) | Cause::BlockersUnowned(_) | Cause::OthersTasks(_) => {
            vec![typed.command(&["task", "list"])]
        }
        cause if !cause.keeps() => Vec::new(),
        _ => vec![typed.command(&["send", AgentName::lead().as_str(), "TEXT"])],
    }
}

fn of_lead(cause: &Cause, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let name = e.name.as_str();
    let one = |words: &[&str]| vec![typed.command(words)];
    let of_it = |verb: &str, options: &[&str]| vec![typed.command_for_name(verb, name, options)];
    match cause {
        Cause::DiskFull(room) => vec![format!("df -h {}", path(&room.path))],
        Cause::NoDaemon => one(&["up"]),
        Cause::DaemonSilent(server) | Cause::TmuxSilent(server) => go_on(server, typed),
        Cause::ConfigDamaged(_)
        | Cause::InboxDamaged(..)
        | Cause::NotOurs
        | Cause::InboxLocked(_, _, None) => one(&["doctor"]),
        Cause::InboxLocked(_, _, Some((pid, _))) => vec![format!("ps -o pid,stat,etime,args -p {pid}")],
        Cause::InboxAbandoned(..) => one(&["doctor", "--fix"]),
        Cause::InboxBarred(_, place) => vec![format!("ls -la {}", path(place))],
        Cause::GivenUp(_) | Cause::Restarting { .. } | Cause::ProgramMissing { .. } => vec![logs(e, typed)],
        Cause::BudgetSpent(..) => {
            [&["policy", "FILE"], &["up", "--resume"]].map(|words| typed.command(words)).to_vec()
        }
        Cause::AtRest(_) => one(&["up", "--resume"]),
        Cause::TmuxGone(_) if e.rests() => one(&["up", "--resume"]),
        Cause::Ended { .. } | Cause::TmuxGone(_) | Cause::PaneClosed(_) => left(e, typed),
        Cause::Lead | Cause::PlanApproval(None) | Cause::Permission(None) => one(&["requests"]),
        Cause::Permission(Some(ask)) | Cause::PlanApproval(Some(ask)) => answers(ask, typed),
        Cause::Starting | Cause::Ending => one(&["events", "--since", "2m"]),
        Cause::CutOff => stopped(e).unwrap_or_else(|| one(&["doctor"])),
        Cause::ShuttingDown(_) => of_it("shutdown", &["--force"]),
        Cause::ProcessStopped { pid, .. } => vec![format!("kill -CONT {pid}")],
        Cause::Dialog(_) => [of_it("capture", &[]), of_it("attach", &[])].concat(),
        Cause::NeverReady | Cause::Silent(_) | Cause::Works => look(e, typed),
        Cause::TurnsFailed { task, .. } | Cause::Interrupted { task, .. } => {
            given_back(task.as_ref(), e, typed)
        }
        Cause::Unfed(_) => of_it("inbox", &["--unread"]),
        Cause::Blocked(waits) | Cause::BlockersUnowned(waits) => blocker(waits, e, typed),
        Cause::OthersTasks(tasks) => tasks.first().map_or_else(Vec::new, |task| assign(task, e, typed)),
        Cause::Hidden => of_it("show", &[]),
        // It hands in its plan at the end of its next turn.
        Cause::PlanMode | Cause::Rests => vec![format!("{} TEXT", typed.command_for_name("send", name, &[]))],
    }
}

fn path(path: &Path) -> String {
    shell_quote(&path.display().to_string())
}

fn go_on(server: &Server, typed: &SuggestedCommands) -> Vec<String> {
    match server {
        Server::Silent { pid: Some(pid), stopped: true } => vec![format!("kill -CONT {pid}")],
        Server::Silent { pid: Some(pid), .. } => vec![format!("ps -o pid,stat,wchan,etime,args -p {pid}")],
        _ => vec![typed.command(&["doctor"])],
    }
}

fn stopped(e: &Evidence) -> Option<Vec<String>> {
    Some(vec![format!("kill -CONT {}", e.stopped.first()?.pid)])
}

/// What it left is given back first.
fn left(e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let task = super::tasks::works_on(&e.tasks, &e.name).or_else(|| super::tasks::failed(&e.tasks, &e.name));
    given_back(task, e, typed)
}

fn given_back(task: Option<&Task>, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let release = task.map(|task| typed.command(&["task", "release", &task.id.to_string()]));
    release.into_iter().chain([logs(e, typed)]).collect()
}

/// Shown whole first: nobody should say yes to what he has not read.
fn answers(ask: &Ask, typed: &SuggestedCommands) -> Vec<String> {
    let deny = typed.command_for_name("deny", &ask.id, &["--reason", "R"]);
    vec![typed.command(&["requests"]), typed.command_for_name("approve", &ask.id, &[]), deny]
}

/// Where it has a pane that is its screen, else what it has written.
fn look(e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let pane = e.agent.as_ref().is_some_and(|agent| agent.pane.is_some());
    vec![if pane { typed.command_for_name("capture", e.name.as_str(), &[]) } else { logs(e, typed) }]
}

/// Who has written nothing has no log.
fn logs(e: &Evidence, typed: &SuggestedCommands) -> String {
    match e.wrote {
        Some(_) => typed.command_for_name("logs", e.name.as_str(), &[]),
        None => typed.command(&["events", "--since", "10m"]),
    }
}

/// About the first thing that stands in the way, what is nobody's ahead of the others: a failed one is given back, one
/// without an owner given to somebody, else its owner is asked after.
fn blocker(waits: &[Wait], e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    let lives = |name: &AgentName| e.members.contains(name);
    let all = || waits.iter().flat_map(|wait| &wait.blockers);
    let first = all().find(|task| is_nobodys(task, lives)).or_else(|| all().next());
    let Some(task) = first else { return vec![typed.command(&["task", "list"])] };
    match task.owner.as_ref() {
        _ if task.failure().is_some() => given_back(Some(task), e, typed)[..1].to_vec(),
        Some(owner) if lives(owner) => vec![typed.command_for_name("why", owner.as_str(), &[])],
        Some(_) if task.status == TaskStatus::InProgress => {
            vec![typed.command(&["task", "release", &task.id.to_string()])]
        }
        _ => assign(task, e, typed),
    }
}

fn assign(task: &Task, e: &Evidence, typed: &SuggestedCommands) -> Vec<String> {
    vec![typed.command(&["task", "update", &task.id.to_string(), &format!("--owner={}", e.name)])]
}

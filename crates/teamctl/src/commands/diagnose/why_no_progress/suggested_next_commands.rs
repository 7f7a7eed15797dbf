//! The commands that `why` suggests. Each can be typed as printed, in the caller's shell.

use super::cause::Cause;
use super::member_evidence::{MemberEvidence, OpenRequestEvidence};
use super::probe_servers_processes_and_disks::ServerState;
use super::task_waits_and_unfinished_tasks::{TaskWait, is_unowned};
use protocol::shell_quote::shell_quote;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use std::path::Path;

/// Returns the commands that `why` suggests to a teammate. A teammate cannot remove most causes
/// itself, so the command for such a cause sends a message to the lead. The lead and people get
/// different suggestions.
pub(super) fn commands_for_member(cause: Cause, evidence: &MemberEvidence) -> Vec<String> {
    match cause {
        Cause::Undelivered => vec![evidence.command("inbox", &["--unread"])],
        Cause::Blocked | Cause::TaskCycle | Cause::BlockersUnowned | Cause::TasksOwnedByOthers => {
            vec![evidence.commands.command(&["task", "list"])]
        }
        cause if !cause.is_blocking() => Vec::new(),
        _ => vec![evidence.commands.command(&["send", MemberName::lead().as_str(), "TEXT"])],
    }
}

/// The path as one word for the shell.
pub(super) fn quoted_path(path: &Path) -> String {
    shell_quote(&path.display().to_string())
}

/// Continues or inspects a server that does not answer.
pub(super) fn inspect_server(server: &ServerState, evidence: &MemberEvidence) -> String {
    match server {
        ServerState::Unresponsive { pid: Some(pid), stopped: true } => format!("kill -CONT {pid}"),
        ServerState::Unresponsive { pid: Some(pid), .. } => {
            format!("ps -o pid,stat,wchan,etime,args -p {pid}")
        }
        _ => evidence.commands.command(&["doctor"]),
    }
}

/// Makes the task pending again, if there is one, and shows the member's output.
pub(super) fn release_and_logs(task: Option<&Task>, evidence: &MemberEvidence) -> Vec<String> {
    task.map(|task| release(task, evidence)).into_iter().chain([logs(evidence)]).collect()
}

fn release(task: &Task, evidence: &MemberEvidence) -> String {
    evidence.commands.command(&["task", "release", &task.id.to_string()])
}

/// Shows the whole request, then approves or denies it.
pub(super) fn answer_commands(request: &OpenRequestEvidence, evidence: &MemberEvidence) -> [String; 3] {
    [
        evidence.commands.command(&["requests"]),
        evidence.commands.command_for_name("approve", &request.id, &[]),
        evidence.commands.command_for_name("deny", &request.id, &["--reason", "TEXT"]),
    ]
}

/// Shows the screen of the member's pane, or its output log if it has no pane.
pub(super) fn look_at_output(evidence: &MemberEvidence) -> String {
    let has_pane = evidence.agent.as_ref().is_some_and(|agent| agent.pane.is_some());
    if has_pane { evidence.command("capture", &[]) } else { logs(evidence) }
}

/// Shows the member's output log, or the event log if the member has written no output.
pub(super) fn logs(evidence: &MemberEvidence) -> String {
    match evidence.last_output {
        Some(_) => evidence.command("logs", &[]),
        None => evidence.commands.command(&["events", "--since", "10m"]),
    }
}

/// Returns a command that helps with one of the tasks that block the waiting tasks. Prefers a
/// blocker that no member of the team owns. The command makes a failed or abandoned blocker pending
/// again, assigns a blocker without an owner, or runs `why` for the blocker's owner.
pub(super) fn resolve_blocker(waits: &[TaskWait], evidence: &MemberEvidence) -> String {
    let blockers = || waits.iter().flat_map(|wait| &wait.blockers);
    let blocker = blockers().find(|task| is_unowned(task, &evidence.members)).or_else(|| blockers().next());
    let Some(task) = blocker else { return evidence.commands.command(&["task", "list"]) };
    match task.owner.as_ref() {
        _ if task.failure().is_some() => release(task, evidence),
        Some(owner) if !is_unowned(task, &evidence.members) => {
            evidence.commands.command_for_name("why", owner.as_str(), &[])
        }
        Some(_) if task.status == TaskStatus::InProgress => release(task, evidence),
        _ => assign_task(task, evidence),
    }
}

/// Makes the member the owner of the task.
pub(super) fn assign_task(task: &Task, evidence: &MemberEvidence) -> String {
    evidence.commands.command(&[
        "task",
        "update",
        &task.id.to_string(),
        &format!("--owner={}", evidence.name),
    ])
}

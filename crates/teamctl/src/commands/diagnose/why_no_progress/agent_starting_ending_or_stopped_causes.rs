//! Causes in the processes of a running agent: it starts, stops, or cannot run.

use super::cause::Cause;
use super::cause_with_evidence_and_commands::Diagnosis;
use super::format_evidence_lines::{activity_line, with_time};
use super::member_evidence::MemberEvidence;
use super::probe_servers_processes_and_disks::StoppedProcess;
use super::system_snapshot::DaemonProbe;
use protocol::control_socket::{MemberFlag, MemberStatus};
use protocol::event_log_line::EventKind;

/// The cause for an agent that is being started or stopped. `transition` ends the sentence.
pub(super) fn transition_cause(evidence: &MemberEvidence, cause: Cause, transition: &str) -> Diagnosis {
    Diagnosis::new(cause, format!("{} is being {transition}.", evidence.name))
        .with_evidence(activity_line(evidence))
        .with_next([evidence.commands.command(&["events", "--since", "2m"])])
}

pub(super) fn disconnected_cause(evidence: &MemberEvidence) -> Diagnosis {
    let sentence =
        format!("teamd has lost the connection to the first process of {}, and waits for it.", evidence.name);
    let stopped_line =
        |process: &StoppedProcess| format!("process {} ({}) is stopped", process.pid, process.name);
    let first = evidence.stopped_processes.first();
    let next =
        first.map_or_else(|| evidence.commands.command(&["doctor"]), |process| continue_command(process.pid));
    Diagnosis::new(Cause::ShimDisconnected, sentence)
        .with_evidence(evidence.stopped_processes.iter().map(stopped_line).chain(activity_line(evidence)))
        .with_next([next])
}

pub(super) fn shutdown_cause(evidence: &MemberEvidence, agent: &MemberStatus) -> Option<Diagnosis> {
    if !agent.flags.contains(&MemberFlag::ShutdownRequested) {
        let is_stopping = agent.lifecycle == "stopping";
        return is_stopping.then(|| transition_cause(evidence, Cause::Stopping, "ended"));
    }
    let request = evidence.history.find_last(|event| match event {
        EventKind::ShutdownRequested { request_id } => Some(request_id),
        _ => None,
    });
    let request = request.map(|(id, at)| with_time(&format!("request {id}, asked"), at, evidence));
    let sentence = format!("{} was asked to shut down, and has not answered yet.", evidence.name);
    let diagnosis = Diagnosis::new(Cause::ShuttingDown, sentence);
    Some(
        diagnosis
            .with_evidence([request, daemon_stopping_line(evidence)])
            .with_next([evidence.command("shutdown", &["--force"])]),
    )
}

fn daemon_stopping_line(evidence: &MemberEvidence) -> Option<String> {
    match &evidence.daemon {
        DaemonProbe::Running(daemon) if daemon.is_stopping => {
            Some("teamd itself goes down as soon as all have ended".to_owned())
        }
        _ => None,
    }
}

/// A stopped process without which the member cannot work.
pub(super) fn stopped_process_cause(evidence: &MemberEvidence) -> Option<Diagnosis> {
    let process = evidence.stopped_processes.iter().find(|process| process.is_essential)?;
    Some(process_stopped(evidence, process))
}

/// A stopped process that the member's program has started and may wait for.
pub(super) fn stopped_descendant_cause(evidence: &MemberEvidence) -> Option<Diagnosis> {
    let process = evidence.stopped_processes.iter().find(|process| !process.is_essential)?;
    Some(process_stopped(evidence, process))
}

fn process_stopped(evidence: &MemberEvidence, process: &StoppedProcess) -> Diagnosis {
    let StoppedProcess { pid, name, .. } = process;
    let line = format!("process {pid}: by a signal (SIGSTOP, Ctrl-Z), or a debugger holds it");
    Diagnosis::new(Cause::ProcessStopped, format!("{name}, a process of {}, is stopped.", evidence.name))
        .with_evidence([line])
        .with_next([continue_command(*pid)])
}

fn continue_command(pid: u32) -> String {
    format!("kill -CONT {pid}")
}

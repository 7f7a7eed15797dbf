//! Causes that concern the whole team: full disks, the daemon, tmux, and the config.

use super::cause::Cause;
use super::cause_with_evidence_and_commands::Diagnosis;
use super::format_evidence_lines::{server_line, with_time};
use super::member_evidence::MemberEvidence;
use super::probe_servers_processes_and_disks::ServerState;
use super::suggested_next_commands::{inspect_server, quoted_path};
use super::system_snapshot::DaemonProbe;
use protocol::event_log_line::EventKind;

pub(super) fn disk_causes(evidence: &MemberEvidence) -> impl Iterator<Item = Diagnosis> {
    evidence.full_disks.iter().map(|disk| {
        let path_text = disk.path.display();
        let details = match disk.files {
            Some(0) => "no file can be made there any more".to_owned(),
            _ => format!("{} bytes are left", disk.bytes),
        };
        let sentence = format!("There is no room on the disk of {path_text}: nothing can be stored.");
        Diagnosis::new(Cause::DiskFull, sentence)
            .with_evidence([details])
            .with_next([format!("df -h {}", quoted_path(&disk.path))])
    })
}

pub(super) fn daemon_cause(evidence: &MemberEvidence) -> Option<Diagnosis> {
    match &evidence.daemon {
        DaemonProbe::Running(_) => None,
        // Another cause suggests `up --resume`, which starts the daemon too.
        DaemonProbe::NotRunning if evidence.is_suspended() => None,
        DaemonProbe::NotRunning => {
            let sentence =
                format!("teamd is not running: {} is not supervised, and is not woken.", evidence.name);
            let diagnosis = Diagnosis::new(Cause::NoDaemon, sentence);
            Some(
                diagnosis
                    .with_evidence([daemon_exit_line(evidence)])
                    .with_next([evidence.commands.command(&["up"])]),
            )
        }
        DaemonProbe::Unresponsive(server) => {
            let diagnosis = Diagnosis::new(Cause::DaemonUnresponsive, "teamd does not answer.");
            Some(diagnosis.with_evidence([server_line(server)]).with_next([inspect_server(server, evidence)]))
        }
    }
}

fn daemon_exit_line(evidence: &MemberEvidence) -> String {
    let last = evidence.history.find_last(|event| match event {
        EventKind::DaemonStopped { reason } => Some(Some(reason)),
        EventKind::DaemonReady { .. } => Some(None),
        _ => None,
    });
    match last {
        Some((Some(reason), at)) => with_time(&format!("it stopped ({reason})"), at, evidence),
        Some((None, at)) => with_time("it went without a word; it was started", at, evidence),
        None => "the event log knows of none".to_owned(),
    }
}

pub(super) fn config_cause(evidence: &MemberEvidence) -> Option<Diagnosis> {
    let error = evidence.member.as_ref().err()?;
    let diagnosis =
        Diagnosis::new(Cause::ConfigDamaged, format!("The config of {} can't be read.", evidence.team));
    Some(diagnosis.with_evidence([error.message.clone()]).with_next([evidence.commands.command(&["doctor"])]))
}

pub(super) fn tmux_cause(evidence: &MemberEvidence) -> Option<Diagnosis> {
    let ServerState::Unresponsive { .. } = &evidence.tmux else { return None };
    let sentence = format!(
        "tmux does not answer, so teamd cannot see what {} shows. This may also hold up the agent.",
        evidence.name
    );
    let diagnosis = Diagnosis::new(Cause::TmuxUnresponsive, sentence);
    Some(
        diagnosis
            .with_evidence([server_line(&evidence.tmux)])
            .with_next([inspect_server(&evidence.tmux, evidence)]),
    )
}

//! Causes for a member that has no running agent: how its last spawn ended, and whether the daemon
//! will respawn the member.

use super::cause::Cause;
use super::cause_with_evidence_and_commands::Diagnosis;
use super::format_evidence_lines::{abandoned_task_line, with_time};
use super::member_event_history::SpawnExit;
use super::member_evidence::MemberEvidence;
use super::suggested_next_commands::{logs, release_and_logs};
use super::system_snapshot::DaemonProbe;
use super::task_waits_and_unfinished_tasks::unfinished_task;
use client::short_duration::short_duration;

/// The daemon's description of an exit contains this if the tmux server has exited.
const TMUX_GONE: &str = "tmux gone";

/// The cause for a member that the config lists and for which the daemon has no record.
pub(super) fn unsupervised_cause(evidence: &MemberEvidence) -> Diagnosis {
    let member = evidence.member.as_ref().ok().and_then(Option::as_ref);
    let sentence = format!("teamd runs no agent for {}, though {} lists it.", evidence.name, evidence.team);
    Diagnosis::new(Cause::Unsupervised, sentence)
        .with_evidence(member.map(|member| format!("in config.json it is in pane {:?}", member.tmux_pane_id)))
        .with_next([evidence.commands.command(&["doctor"])])
}

/// The cause for a member that another host runs. Its daemon knows more.
pub(super) fn other_host_cause(evidence: &MemberEvidence) -> Diagnosis {
    let host = evidence.other_host.as_deref().unwrap_or("another host");
    Diagnosis::new(Cause::OnOtherHost, format!("{} runs on {host}.", evidence.name))
        .with_next([evidence.command("why", &[])])
}

/// Why the member has no running agent.
pub(super) fn exit_cause(evidence: &MemberEvidence) -> Diagnosis {
    let past_exit = || {
        let past_member = evidence.past_member.as_ref()?;
        Some(SpawnExit { description: past_member.description.clone(), at: past_member.ended_at })
    };
    let unknown = || SpawnExit { description: "there is no exit report".to_owned(), at: 0 };
    let exit = past_exit().or_else(|| evidence.history.last_exit()).unwrap_or_else(unknown);
    respawn_cause(evidence, &exit)
        .or_else(|| suspension_cause(evidence, &exit))
        .or_else(|| exhaustion_cause(evidence))
        .unwrap_or_else(|| final_exit_cause(evidence, &exit))
}

fn respawn_cause(evidence: &MemberEvidence, exit: &SpawnExit) -> Option<Diagnosis> {
    let respawns_at = evidence.past_member.as_ref()?.respawns_at?;
    let delay = short_duration(respawns_at.saturating_sub(evidence.now));
    let sentence = format!("{} has failed, and is started again in {delay}.", evidence.name);
    let diagnosis = Diagnosis::new(Cause::Restarting, sentence);
    Some(diagnosis.with_evidence(last_spawn_lines(evidence, exit)).with_next([logs(evidence)]))
}

fn suspension_cause(evidence: &MemberEvidence, exit: &SpawnExit) -> Option<Diagnosis> {
    if !evidence.is_suspended() {
        return None;
    }
    let resume = evidence.commands.command(&["up", "--resume"]);
    let diagnosis = if let Some(reason) = &evidence.exhausted_budget {
        let sentence = format!(
            "{} is suspended, and no member of {} is started: {reason}.",
            evidence.name, evidence.team
        );
        Diagnosis::new(Cause::BudgetExhausted, sentence)
            .with_next([evidence.commands.command(&["policy", "FILE"]), resume])
    } else if !exit.description.contains(TMUX_GONE) {
        let sentence = format!("{} is suspended until it is resumed.", evidence.name);
        Diagnosis::new(Cause::Suspended, sentence).with_next([resume])
    } else {
        return None;
    };
    Some(diagnosis.with_evidence(last_spawn_lines(evidence, exit)))
}

fn exhaustion_cause(evidence: &MemberEvidence) -> Option<Diagnosis> {
    let reason = evidence.history.respawn_refusal()?;
    let sentence = format!("{} has failed too often, and is not started again.", evidence.name);
    let diagnosis = Diagnosis::new(Cause::RespawnsExhausted, sentence);
    Some(diagnosis.with_evidence([reason]).with_evidence(exit_lines(evidence)).with_next([logs(evidence)]))
}

fn final_exit_cause(evidence: &MemberEvidence, exit: &SpawnExit) -> Diagnosis {
    let description = exit.description.as_str();
    let (cause, reason) = match description {
        text if text.contains(TMUX_GONE) => (Cause::TmuxGone, "its tmux server went away"),
        text if text.contains("pane killed") => (Cause::PaneClosed, "its pane was closed"),
        text if text.starts_with("cannot start") || text.contains("no such program") => {
            (Cause::ProgramMissing, "its program can't be started")
        }
        text => (Cause::Exited, text),
    };
    let diagnosis = Diagnosis::new(cause, format!("{} has ended: {reason}.", evidence.name));
    let end_line = with_time("ended", exit.at, evidence);
    match cause {
        Cause::ProgramMissing => {
            diagnosis.with_evidence([description.to_owned(), end_line]).with_next([logs(evidence)])
        }
        Cause::TmuxGone if evidence.is_suspended() => diagnosis
            .with_evidence([Some(end_line), abandoned_task_line(evidence)])
            .with_next([evidence.commands.command(&["up", "--resume"])]),
        _ => diagnosis
            .with_evidence([Some(end_line), abandoned_task_line(evidence)])
            .with_next(release_and_logs(unfinished_task(&evidence.tasks, &evidence.name), evidence)),
    }
}

fn last_spawn_lines(evidence: &MemberEvidence, exit: &SpawnExit) -> Vec<String> {
    let is_down = matches!(evidence.daemon, DaemonProbe::NotRunning);
    let daemon = is_down.then(|| "teamd is not running".to_owned());
    let last_exit = format!("its last exit: {}", exit.description);
    daemon.into_iter().chain([last_exit]).chain(exit_lines(evidence)).collect()
}

fn exit_lines(evidence: &MemberEvidence) -> Vec<String> {
    let exits = evidence.history.recent_exits().into_iter();
    exits.map(|exit| with_time(&format!("{},", exit.description), exit.at, evidence)).collect()
}

//! Exits of agents: finds out how an agent ended, reports the exit to the lead once, and decides
//! whether the member is respawned or suspended.

use crate::core::agent_process::OnExit;
use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::Effect;
use crate::core::exit_record::{APPROVED, ExitOutcome, ExitRecord, ReportTo, describe_approved_exit};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::iterm2_jobs::Iterm2Job;
use crate::core::jobs::pane_jobs::{PaneJob, PanePresence};
use crate::core::members::cleanup_after_exit::{exit_event, start_cleanup};
use crate::core::members::decide_respawns_and_suspensions::NextSpawn;
use crate::core::members::forced_termination::STOPPED_WHILE_STARTING;
use crate::core::members::plan_approval_respawn::PLAN_APPROVED;
use crate::core::members::{decide_respawns_and_suspensions, plan_approval_respawn, undo_failed_start};
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::roster::UNKNOWN_START;
use crate::core::roster::agent_record::AgentRecord;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::DaemonShutdown;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::stop_and_exit_of_spawn::{StopCause, StopStage, Stopping};
use crate::core::turns::interrupt_turn;
use protocol::control_socket::{ExitReport, SpawnRequest};

/// Handles the exit report of a shim. If the terminal went away or the shim was killed, the whole
/// tmux server may have ended. So the daemon first asks tmux about the pane, and records the exit
/// after the answer.
pub(crate) fn handle_exit_report(context: &mut Context, id: &SpawnId, report: ExitReport) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    agent.record.lifecycle.process_mut().exit_report = Some(report.clone());
    context.state.has_roster_changed = true;
    match (&report, &agent.record.pane) {
        (ExitReport::TerminalGone | ExitReport::ShimKilled, Some(pane)) => {
            let (spawn, pane) = (id.clone(), pane.clone());
            context.effects.push(Effect::Pane(match pane.iterm2_session() {
                Some(session) => PaneJob::Iterm2(Iterm2Job::Inspect { spawn, session }),
                None => PaneJob::InspectPane { spawn, pane },
            }));
        }
        _ => record_exit(context, id, report),
    }
}

/// Records the exit of an agent whose terminal went away, or whose shim was killed. `presence` is
/// what tmux reports about the pane.
pub(crate) fn handle_pane_inspected(context: &mut Context, id: &SpawnId, presence: PanePresence) {
    let Some(agent) = context.state.agents.get(id) else { return };
    let report = agent.record.lifecycle.process().exit_report.clone().unwrap_or(ExitReport::TerminalGone);
    let report = match (report, presence) {
        // A kernel without memory kills the shims together with their tmux server.
        (_, PanePresence::ServerGone) => ExitReport::TmuxServerGone,
        (ExitReport::TerminalGone, PanePresence::Absent) => ExitReport::PaneClosed,
        (report, _) => report,
    };
    record_exit(context, id, report);
}

/// Handles the death of a shim. The files thread reads the exit report that the shim may have left
/// in a file. If there is none, the shim was killed, and the files thread also kills the processes
/// that the agent has left behind.
pub(crate) fn handle_shim_died(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get(id) else { return };
    match &agent.record.lifecycle {
        Lifecycle::Exited(_) => {}
        // The shim reported the exit of its agent, and then died itself. The daemon has asked tmux
        // about the pane, and records the exit after the answer. So there is nothing to do here.
        Lifecycle::Running(process) | Lifecycle::Stopping(Stopping { process, .. })
            if process.exit_report.is_some() => {}
        Lifecycle::Starting(_) => {
            // The agent may have started without the daemon's knowledge, and left processes.
            let token = agent.record.token.clone();
            context.effects.push(Effect::File(FileJob::ReadExitReport { spawn: id.clone(), token }));
            undo_failed_start::fail_start(context, id, undo_failed_start::shim_exited_error());
        }
        Lifecycle::Running(_) | Lifecycle::Stopping(_) => {
            let token = agent.record.token.clone();
            context.effects.push(Effect::File(FileJob::ReadExitReport { spawn: id.clone(), token }));
        }
    }
}

/// Handles the exit report from the file of a dead shim. `report` is `None` if the shim left no
/// report, because it was killed.
pub(crate) fn handle_exit_report_read(context: &mut Context, id: &SpawnId, report: Option<ExitReport>) {
    // If this agent ran before a reboot of the machine, the reboot ended it. Its shim may have
    // written another report during the machine's shutdown, which does not matter.
    let is_from_before_reboot = |agent: &Agent| {
        agent.record.lifecycle.process().shim.is_some_and(|shim| shim.start_time == UNKNOWN_START)
    };
    let report = match context.state.agents.get(id).is_some_and(is_from_before_reboot) {
        true => ExitReport::Rebooted,
        false => report.unwrap_or(ExitReport::ShimKilled),
    };
    handle_exit_report(context, id, report);
}

/// Records the exit of an agent: logs it, decides what follows, and starts the cleanup.
pub(crate) fn record_exit(context: &mut Context, id: &SpawnId, report: ExitReport) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    if agent.record.lifecycle.is_exited() {
        return;
    }
    if report == ExitReport::TmuxServerGone {
        // The pane is gone, and a new tmux server can give its id to another pane.
        agent.record.pane = None;
    }
    match &agent.record.lifecycle {
        // The spawn has ended before its shim reported that the agent runs. So the start has
        // failed, and the client that waits for the start gets an error.
        Lifecycle::Starting(_) => {
            return undo_failed_start::fail_start(context, id, undo_failed_start::shim_exited_error());
        }
        Lifecycle::Running(_) | Lifecycle::Stopping(_) | Lifecycle::Exited(_) => {}
    }
    let record = agent.record.clone();
    let cause = ExitCause::new(&record, &report, context.state.daemon_shutdown);
    let summary = ExitSummary::new(&record.lifecycle, cause, &report);
    if summary.report_to != ReportTo::LeadUnlessApproved {
        context.effects.push(exit_event(&record, summary.outcome, &summary.description));
    }
    let next_spawn = start_next_spawn(context, &record, cause, &report);
    let SpawnRequest { team, name, .. } = &*record.request;
    let notice = exit_notice(&report, &next_spawn).filter(|_| record.lifecycle.is_running());
    notice.into_iter().for_each(|notice| context.state.notices.add(team, name, None, notice));
    let exit = ExitRecord {
        description: summary.description,
        outcome: summary.outcome,
        next_step: next_spawn.describe_for_lead(team),
        ended_at: context.now.wall,
        report_to: summary.report_to,
    };
    context.state.add_past_member(team, next_spawn.past_member(&record, &exit));
    interrupt_turn::fail_interrupt_waiters(context, id);
    start_cleanup(context, id, Some(exit));
}

/// What the exit of an agent means for its next spawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExitCause {
    /// The agent's plan was approved, and the member is respawned in the approved mode.
    PlanApprovalRespawn,
    /// The agent failed, and nobody had asked it to end.
    Failure,
    /// The agent's tmux server ended, and nobody had asked the agent to end.
    TmuxGone,
    /// The agent was asked to end, or ended without an error.
    Other,
}

impl ExitCause {
    fn new(record: &AgentRecord, report: &ExitReport, shutdown: DaemonShutdown) -> ExitCause {
        let is_running = record.lifecycle.is_running();
        if !shutdown.is_in_progress() && plan_approval_respawn::is_scheduled(&record.lifecycle) {
            ExitCause::PlanApprovalRespawn
        } else if is_running && is_failure(report) && has_run(record, report) {
            ExitCause::Failure
        } else if is_running && *report == ExitReport::TmuxServerGone && has_run(record, report) {
            ExitCause::TmuxGone
        } else {
            ExitCause::Other
        }
    }
}

/// The description of an exit, and who is notified.
struct ExitSummary {
    description: String,
    outcome: ExitOutcome,
    report_to: ReportTo,
}

impl ExitSummary {
    fn new(lifecycle: &Lifecycle, cause: ExitCause, report: &ExitReport) -> ExitSummary {
        let (description, outcome, report_to) = match (cause, lifecycle) {
            (ExitCause::PlanApprovalRespawn, _) => {
                (PLAN_APPROVED.to_owned(), ExitOutcome::Completed, ReportTo::Nobody)
            }
            (_, Lifecycle::Stopping(Stopping { process, stage, .. })) => match stage {
                StopStage::Approved { .. } => {
                    let description = describe_approved_exit(&report.to_string());
                    (description, ExitOutcome::Completed, ReportTo::Nobody)
                }
                StopStage::Terminating { cause: StopCause::Approved, .. } => {
                    (APPROVED.to_owned(), ExitOutcome::Completed, ReportTo::Nobody)
                }
                StopStage::Terminating { cause: StopCause::Forced, .. } if process.agent_pid.is_none() => {
                    (STOPPED_WHILE_STARTING.to_owned(), ExitOutcome::Killed, ReportTo::Lead)
                }
                StopStage::Terminating { cause: StopCause::Forced, .. } => {
                    (format!("killed ({report})"), ExitOutcome::Killed, ReportTo::Lead)
                }
                StopStage::Requested(_) => {
                    (report.to_string(), classify_exit(report), ReportTo::LeadUnlessApproved)
                }
                StopStage::Terminating { cause: StopCause::PlanApprovalRespawn, .. } => {
                    (report.to_string(), classify_exit(report), ReportTo::Lead)
                }
            },
            _ => (report.to_string(), classify_exit(report), ReportTo::Lead),
        };
        ExitSummary { description, outcome, report_to }
    }
}

/// Decides what follows the exit: schedules the next spawn of the member, suspends the member, or
/// does neither.
fn start_next_spawn(
    context: &mut Context,
    record: &AgentRecord,
    cause: ExitCause,
    report: &ExitReport,
) -> NextSpawn {
    let process = record.lifecycle.process();
    match cause {
        _ if process.on_exit == OnExit::Suspend => decide_respawns_and_suspensions::suspend(context, record),
        ExitCause::PlanApprovalRespawn => plan_approval_respawn::respawn_for_plan(context, record),
        ExitCause::Failure => match decide_respawns_and_suspensions::respawn_after_failure(context, record) {
            // The restart policy allows no respawn. But if the machine was rebooted, or the shim
            // never reported the start of the agent, the agent itself has not failed. Then the
            // member is suspended, so that it can be resumed.
            NextSpawn::NoRespawn if *report == ExitReport::Rebooted || process.agent_pid.is_none() => {
                decide_respawns_and_suspensions::suspend(context, record)
            }
            next_spawn => next_spawn,
        },
        ExitCause::TmuxGone => {
            match decide_respawns_and_suspensions::respawn_after_failure(context, record) {
                NextSpawn::NoRespawn | NextSpawn::RespawnsExhausted(_) => {
                    decide_respawns_and_suspensions::suspend(context, record)
                }
                next_spawn => next_spawn,
            }
        }
        ExitCause::Other => NextSpawn::NoRespawn,
    }
}

fn classify_exit(report: &ExitReport) -> ExitOutcome {
    match report {
        ExitReport::Exit(0) => ExitOutcome::Completed,
        ExitReport::PaneClosed => ExitOutcome::Killed,
        _ => ExitOutcome::Failed,
    }
}

/// The notice for an exit that nobody requested. `None` if people need no notice, for example
/// because a person closed the pane or the member is respawned.
fn exit_notice(report: &ExitReport, next_spawn: &NextSpawn) -> Option<NoticeKind> {
    match (report, next_spawn) {
        (ExitReport::TerminalGone, NextSpawn::NoRespawn) => Some(NoticeKind::Exited),
        (_, NextSpawn::NoRespawn | NextSpawn::RespawnsExhausted(_)) => {
            is_failure(report).then_some(NoticeKind::Exited)
        }
        (ExitReport::Rebooted | ExitReport::TmuxServerGone, NextSpawn::Suspended) => {
            Some(NoticeKind::Suspended)
        }
        (_, NextSpawn::Respawn { .. } | NextSpawn::Suspended) => None,
    }
}

/// Whether the exit is a failure, after which the restart policy may respawn the member. A closed
/// pane is no failure, because a person closed it on purpose. The end of the tmux server is no
/// failure either: the cause of the exit is then [`ExitCause::TmuxGone`].
fn is_failure(report: &ExitReport) -> bool {
    match report {
        ExitReport::Exit(code) => *code != 0,
        ExitReport::Signal(_)
        | ExitReport::ShimKilled
        | ExitReport::Rebooted
        | ExitReport::TurnNotStarted(_) => true,
        ExitReport::TerminalGone | ExitReport::PaneClosed | ExitReport::TmuxServerGone => false,
    }
}

/// Whether the agent has run, as far as the daemon knows. If not, its exit does not count as a
/// failure.
///
/// Either of two things shows that an agent has run: a pid in the roster, or the exit report of its
/// shim. A respawned agent always counts as one that has run.
fn has_run(record: &AgentRecord, report: &ExitReport) -> bool {
    let process = record.lifecycle.process();
    // Only the exit report of the shim says whether the shim was killed. If the daemon has asked
    // tmux about the pane, `report` comes from tmux's answer, and the shim's report is in
    // `exit_report`.
    let shim_report = process.exit_report.as_ref().unwrap_or(report);
    let lacks_exit_status = matches!(shim_report, ExitReport::ShimKilled | ExitReport::Rebooted);
    process.agent_pid.is_some() || !lacks_exit_status || record.is_respawn()
}

//! The lifecycle of an agent as roster.json has it, for `#[serde(with)]`.
//!
//! Connections, waiting clients and deadlines are left out, because they mean nothing to another
//! daemon. Recovery sets new deadlines.

use crate::core::agent_process::AgentProcess;
use crate::core::exit_record::ExitRecord;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::stop_and_exit_of_spawn::{Exited, ShutdownRequests, StopStage, Stopping};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedLifecycle<'a> {
    /// The agent runs, or was about to start. Recovery finds out which, by the pid of the agent.
    Running(Cow<'a, AgentProcess>),
    Stopping {
        process: Cow<'a, AgentProcess>,
        shutdown: Cow<'a, ShutdownRequests>,
        stage: Cow<'a, StopStage>,
    },
    Exited {
        process: Cow<'a, AgentProcess>,
        shutdown: Cow<'a, ShutdownRequests>,
        exit: Option<Cow<'a, ExitRecord>>,
    },
}

pub(crate) fn serialize<S: Serializer>(lifecycle: &Lifecycle, serializer: S) -> Result<S::Ok, S::Error> {
    let process = Cow::Borrowed(lifecycle.process());
    let saved = match lifecycle {
        Lifecycle::Starting(_) | Lifecycle::Running(_) => SavedLifecycle::Running(process),
        Lifecycle::Stopping(Stopping { shutdown, stage, .. }) => SavedLifecycle::Stopping {
            process,
            shutdown: Cow::Borrowed(shutdown),
            stage: Cow::Borrowed(stage),
        },
        Lifecycle::Exited(Exited { shutdown, exit, .. }) => SavedLifecycle::Exited {
            process,
            shutdown: Cow::Borrowed(shutdown),
            exit: exit.as_ref().map(Cow::Borrowed),
        },
    };
    saved.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Lifecycle, D::Error> {
    Ok(match SavedLifecycle::deserialize(deserializer)? {
        SavedLifecycle::Running(process) => Lifecycle::Running(process.into_owned()),
        SavedLifecycle::Stopping { process, shutdown, stage } => Lifecycle::Stopping(Stopping {
            process: process.into_owned(),
            shutdown: shutdown.into_owned(),
            stage: stage.into_owned(),
        }),
        SavedLifecycle::Exited { process, shutdown, exit } => Lifecycle::Exited(Exited::new(
            process.into_owned(),
            shutdown.into_owned(),
            exit.map(Cow::into_owned),
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent_process::{OnExit, PlanApprovalRespawn};
    use crate::core::exit_record::{ExitOutcome, ReportTo};
    use crate::core::stop_and_exit_of_spawn::{PendingShutdown, StopCause, WithoutApproval};
    use protocol::control_socket::{ExitReport, Process};
    use protocol::member_task_and_request_ids::RequestId;

    fn process() -> AgentProcess {
        AgentProcess {
            shim: Some(Process { pid: 7, start_time: 70 }),
            conn: Some(3),
            agent_pid: Some(8),
            exit_report: Some(ExitReport::TerminalGone),
            on_exit: OnExit::Suspend,
            plan_approval_respawn: Some(PlanApprovalRespawn { deadline: 5 }),
        }
    }

    fn stopping(stage: StopStage) -> Lifecycle {
        let shutdown = ShutdownRequests { ids: vec![RequestId::parse("shutdown-1@ann").unwrap()] };
        Lifecycle::Stopping(Stopping { process: process(), shutdown, stage })
    }

    fn save_and_read(lifecycle: &Lifecycle) -> Lifecycle {
        let text = serialize(lifecycle, serde_json::value::Serializer).unwrap();
        deserialize(text).unwrap()
    }

    #[test]
    fn next_daemon_reads_everything_but_connections_and_deadlines() {
        let pending = PendingShutdown {
            reason: Some("enough".to_owned()),
            deadline: 5,
            resend_at: 6,
            without_approval: WithoutApproval::Terminate,
        };
        let exit = ExitRecord {
            description: "exit 1".to_owned(),
            outcome: ExitOutcome::Failed,
            next_step: None,
            ended_at: 9,
            report_to: ReportTo::Lead,
        };
        for lifecycle in [
            Lifecycle::Running(process()),
            stopping(StopStage::Requested(pending)),
            stopping(StopStage::Approved { deadline: 5 }),
            stopping(StopStage::Terminating { cause: StopCause::Forced, deadline: 5 }),
            stopping(StopStage::Terminating { cause: StopCause::PlanApprovalRespawn, deadline: 5 }),
            Lifecycle::Exited(Exited::new(process(), ShutdownRequests::default(), Some(exit))),
            Lifecycle::Exited(Exited::new(process(), ShutdownRequests::default(), None)),
        ] {
            let mut without = lifecycle.clone();
            forget_connections_and_deadlines(&mut without);
            assert_eq!(format!("{:?}", save_and_read(&lifecycle)), format!("{without:?}"));
        }
    }

    fn forget_connections_and_deadlines(lifecycle: &mut Lifecycle) {
        let process = lifecycle.process_mut();
        process.conn = None;
        process.plan_approval_respawn = Some(PlanApprovalRespawn { deadline: 0 });
        if let Lifecycle::Stopping(Stopping { stage, .. }) = lifecycle {
            match stage {
                StopStage::Requested(pending) => (pending.deadline, pending.resend_at) = (0, 0),
                StopStage::Approved { deadline } | StopStage::Terminating { deadline, .. } => *deadline = 0,
            }
        }
    }
}

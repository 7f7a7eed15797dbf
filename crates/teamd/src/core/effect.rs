//! Effects: what the core wants done. `crate::io::effect_runner` runs them in order.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId, WatchId};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_watcher_command::WatchPurpose;
use crate::core::jobs::host_jobs::HostJob;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::jobs::worktree_jobs::WorktreeJob;
use crate::core::roster::agent_record::AgentRecord;
use protocol::control_socket::{Process, Response, ToShim};
use protocol::event_log_line::{Event, EventKind};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::path::PathBuf;

/// The effects of one event, in the order in which they run. This list is not a part of the state,
/// so a function can add an effect while it has borrowed an agent of the state mutably.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    list: Vec<Effect>,
    /// The agents that this event wakes. An agent is listed once for each effect `WakeAgent`.
    woken_agents: Vec<SpawnId>,
}

impl Effects {
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    pub(crate) fn extend(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.list.extend(effects);
    }

    /// Puts an effect before all others.
    pub(crate) fn insert_first(&mut self, effect: Effect) {
        self.list.insert(0, effect);
    }

    /// Wakes an agent through its wake socket. If a hook of the agent waits in a long poll, the
    /// daemon answers the long poll too, at the end of the present event.
    pub(crate) fn wake_agent(&mut self, spawn: &SpawnId, wake: Wake) {
        self.list.push(Effect::WakeAgent { spawn: spawn.clone(), wake });
        self.woken_agents.push(spawn.clone());
    }

    /// The events that are logged.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.list.iter().filter_map(|effect| match effect {
            Effect::Log(event) => Some(event),
            _ => None,
        })
    }

    /// The events that are logged, to change them.
    pub(crate) fn events_mut(&mut self) -> impl Iterator<Item = &mut Event> {
        self.list.iter_mut().filter_map(|effect| match effect {
            Effect::Log(event) => Some(event),
            _ => None,
        })
    }

    /// Whether the daemon ends.
    pub(crate) fn is_exit(&self) -> bool {
        self.list.iter().any(|effect| matches!(effect, Effect::Exit))
    }

    /// The agents that were woken since the last call.
    pub(crate) fn take_woken_agents(&mut self) -> Vec<SpawnId> {
        std::mem::take(&mut self.woken_agents)
    }

    pub(crate) fn into_vec(self) -> Vec<Effect> {
        self.list
    }
}

/// One action outside the core.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Reply to a client and close its connection.
    Reply { client: ConnId, response: Response },
    /// Send a message to a shim.
    SendToShim { conn: ConnId, message: ToShim },
    /// Close a connection that the daemon does not want.
    CloseConnection { conn: ConnId },
    /// Watch the shim of an agent, and use the wake socket that came over its connection.
    SuperviseShim { conn: ConnId, spawn: SpawnId, team: TeamName, name: MemberName, process: Process },
    /// Watch a shim that is known only from the roster, or the process of a lead session.
    WatchProcess { watch: WatchId, process: Process },
    /// End the watch of a process.
    UnwatchProcess { watch: WatchId },
    /// Retry the process watches that have failed.
    RetryProcessWatches,
    /// Wake an agent by one byte on its wake socket. Does nothing if `wake` says that the watcher
    /// has woken the agent already.
    WakeAgent { spawn: SpawnId, wake: Wake },
    /// Kill a shim.
    KillShim { spawn: SpawnId },
    /// Close the file descriptors of an agent, and end the watch of its shim.
    CloseHandles { spawn: SpawnId },
    /// Watch a root directory that was opened again. One more effect for each team follows.
    WatchRoot,
    /// Watch the directories of a team.
    WatchTeam { team: TeamName },
    /// Remove the watches of a team that does not exist, and end its files thread.
    UnwatchTeam { team: TeamName },
    /// Let the watcher report when all watches that were requested before are in place.
    ConfirmWatches(WatchPurpose),
    /// Create a barrier file. The watcher reports it after all earlier changes.
    CreateBarrier { barrier: u64 },
    /// A job for the files thread.
    File(FileJob),
    /// A job for the panes thread.
    Pane(PaneJob),
    /// A job for the links to other hosts.
    Host(HostJob),
    /// A git job, on a thread of its own.
    Worktree(WorktreeJob),
    /// End the setup command in a worktree that is being created, or do not start it.
    CancelSetup { worktree: PathBuf },
    /// Start a shim without a pane.
    StartShim { spawn: SpawnId, argv: Vec<String>, log: PathBuf },
    /// Show a notice in the daemon's terminal, and run the user's notify command `argv`.
    ShowNotice { text: String, argv: Vec<String> },
    /// At the home: run the command `argv`, which fetches the branch of a member on another host.
    /// Does nothing if the file `record` does not exist. This file says into which repository on
    /// this host the branch is fetched.
    FetchBranch { team: TeamName, member: MemberName, record: PathBuf, argv: Vec<String> },
    /// Write an event to the event log and the daemon's terminal. If the event has no time yet, the
    /// effect runner sets the time first.
    Log(Event),
    /// Make the control socket again if it was removed.
    CheckSocket,
    /// End the event loop.
    Exit,
}

impl Effect {
    /// The name of the failpoint that is reached before the effect runs.
    pub(crate) fn failpoint(&self) -> &'static str {
        match self {
            Effect::Reply { .. } => "effect.reply",
            Effect::SendToShim { .. } => "effect.send-to-shim",
            Effect::CloseConnection { .. } => "effect.close-connection",
            Effect::SuperviseShim { .. } => "effect.supervise-shim",
            Effect::WatchProcess { .. } | Effect::UnwatchProcess { .. } | Effect::RetryProcessWatches => {
                "effect.watch-process"
            }
            Effect::WakeAgent { .. } => "effect.wake-agent",
            Effect::KillShim { .. } => "effect.kill-shim",
            Effect::CloseHandles { .. } => "effect.close-handles",
            Effect::WatchRoot
            | Effect::WatchTeam { .. }
            | Effect::UnwatchTeam { .. }
            | Effect::ConfirmWatches(_) => "effect.watch-team",
            Effect::CreateBarrier { .. } => "effect.create-barrier",
            Effect::File(_) => "effect.file-job",
            Effect::Pane(_) => "effect.pane-job",
            Effect::Host(_) => "effect.host-job",
            Effect::Worktree(_) => "effect.worktree-job",
            Effect::CancelSetup { .. } => "effect.cancel-setup",
            Effect::StartShim { .. } => "effect.start-shim",
            Effect::ShowNotice { .. } => "effect.show-notice",
            Effect::FetchBranch { .. } => "effect.fetch-branch",
            Effect::Log(_) => "effect.log",
            Effect::CheckSocket => "effect.check-socket",
            Effect::Exit => "effect.exit",
        }
    }

    /// Logs an event of the daemon.
    pub(crate) fn log_daemon(kind: EventKind) -> Effect {
        Effect::Log(Event::for_daemon(kind))
    }

    /// Logs an event of a team.
    pub(crate) fn log_team(team: &TeamName, kind: EventKind) -> Effect {
        Effect::Log(Event::for_team(team, kind))
    }

    /// Logs an event of a member.
    pub(crate) fn log_member(record: &AgentRecord, kind: EventKind) -> Effect {
        Effect::Log(Event::for_member(&record.request.team, &record.request.name, kind))
    }
}

/// Whether the wake socket of an agent must be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Needed,
    /// The watcher has written to the wake socket.
    Done,
}

//! What the step function wants done. It does nothing itself; `crate::act` carries these out in order.

use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::files::FileJob;
use crate::core::jobs::panes::PaneJob;
use crate::core::jobs::watcher::WatchPurpose;
use crate::core::jobs::worktrees::WorktreeJob;
use crate::core::roster::record::AgentRecord;
use protocol::control::{Process, Response, ToShim};
use protocol::event::{Event, EventKind};
use protocol::name::{AgentName, TeamName};
use std::path::PathBuf;

/// The effects of one event, in the order in which they are run. It is a type of its own, so that it can be borrowed beside
/// an agent of the state.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    list: Vec<Effect>,
    /// The agents with an effect `WakeAgent`, once for each effect.
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

    /// Wakes an agent through its wake socket, and after the event through its hook, if one waits.
    pub(crate) fn wake_agent(&mut self, spawn: &SpawnId, wake: Wake) {
        self.list.push(Effect::WakeAgent { spawn: spawn.clone(), wake });
        self.woken_agents.push(spawn.clone());
    }

    /// The agents that were woken since the last call.
    pub(crate) fn take_woken_agents(&mut self) -> Vec<SpawnId> {
        std::mem::take(&mut self.woken_agents)
    }

    pub(crate) fn into_vec(self) -> Vec<Effect> {
        self.list
    }
}

/// One thing to do outside.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Answer a client, and close.
    Reply { client: ConnId, response: Response },
    /// Tell a join.
    SendToShim { conn: ConnId, message: ToShim },
    /// Hang up on somebody who has no business here.
    CloseConnection { conn: ConnId },
    /// The wake line that came over this connection is this agent's from now on; watch its join's life.
    SuperviseShim { conn: ConnId, spawn: SpawnId, team: TeamName, name: AgentName, process: Process },
    /// Watch the life of a join that we know from the roster alone.
    WatchProcess { spawn: SpawnId, process: Process },
    /// Try again to watch the joins that could not be watched.
    RetryProcessWatches,
    /// Wake an agent: one byte into its wake socket, unless the watcher has written it already.
    WakeAgent { spawn: SpawnId, wake: Wake },
    /// End a join that does not listen.
    KillShim { spawn: SpawnId },
    /// Drop the agent's descriptors.
    CloseHandles { spawn: SpawnId },
    /// Watch the root anew, and no team yet.
    WatchRoot,
    /// Watch the team's directories, or leave them.
    WatchTeam { team: TeamName },
    /// The team is gone.
    UnwatchTeam { team: TeamName },
    /// Say so once all is watched that was to be until now.
    ConfirmWatches(WatchPurpose),
    /// Put a mark behind what has been written, for the watcher to tell of.
    CreateBarrier { mark: u64 },
    /// For the files thread.
    File(FileJob),
    /// For the panes thread.
    Pane(PaneJob),
    /// Something to do with git, on a thread of its own.
    Worktree(WorktreeJob),
    /// A process without a pane, with join in it.
    StartShim { spawn: SpawnId, argv: Vec<String>, log: PathBuf },
    /// Told to people who are elsewhere: rung, and `argv` has their own command tell it.
    ShowNotice { text: String, argv: Vec<String> },
    /// For the event log and the daemon's own pane; the time is filled in when it is written.
    Log(Event),
    /// End the loop.
    Exit,
}

impl Effect {
    /// The crash point ahead of it.
    pub(crate) fn failpoint(&self) -> &'static str {
        match self {
            Effect::Reply { .. } => "act.reply",
            Effect::SendToShim { .. } => "act.tell",
            Effect::CloseConnection { .. } => "act.hang-up",
            Effect::SuperviseShim { .. } => "act.adopt",
            Effect::WatchProcess { .. } | Effect::RetryProcessWatches => "act.watch",
            Effect::WakeAgent { .. } => "act.wake",
            Effect::KillShim { .. } => "act.kill",
            Effect::CloseHandles { .. } => "act.forget",
            Effect::WatchRoot
            | Effect::WatchTeam { .. }
            | Effect::UnwatchTeam { .. }
            | Effect::ConfirmWatches(_) => "act.watch-team",
            Effect::CreateBarrier { .. } => "act.mark",
            Effect::File(_) => "act.file",
            Effect::Pane(_) => "act.pane",
            Effect::Worktree(_) => "act.worktree",
            Effect::StartShim { .. } => "act.launch",
            Effect::ShowNotice { .. } => "act.ring",
            Effect::Log(_) => "act.log",
            Effect::Exit => "act.exit",
        }
    }

    /// An event of the daemon's own.
    pub(crate) fn log_daemon(what: EventKind) -> Effect {
        Effect::Log(Event::for_daemon(what))
    }

    /// An event of a team.
    pub(crate) fn log_team(team: &TeamName, what: EventKind) -> Effect {
        Effect::Log(Event::for_team(team, what))
    }

    /// An event of a member.
    pub(crate) fn log_member(record: &AgentRecord, what: EventKind) -> Effect {
        Effect::Log(Event::for_member(&record.request.team, &record.request.name, what))
    }
}

/// Whether the wake socket of an agent is still to be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Needed,
    /// The watcher has written to it.
    Done,
}

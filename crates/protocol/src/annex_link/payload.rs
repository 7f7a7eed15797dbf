//! The contents of items.
//!
//! The home is the host whose files are true for a team. The annex has a mirror (a copy) of these
//! files for the members that it runs.
//!
//! A new kind of item needs a new [`LINK_VERSION`](super::LINK_VERSION), because an end can't store
//! an item that it can't read. The crate `mirror` sends the new kind in `compare_files.rs` and
//! stores it in `apply_items.rs`. If the item must survive a crash, `record_kept_items.rs` must
//! handle the new kind too.

use super::config_change::ConfigChange;
use super::home_budget::HomeBudget;
use super::home_handover::HomeHandover;
use super::member_entry::ConfigForAnnex;
use super::task_change::TaskChange;
use crate::error_kind_and_report::ErrorReport;
use crate::event_log_line::Event;
use crate::hosts_file_entry::HostName;
use crate::inbox_file::Message;
use crate::member_task_and_request_ids::TaskId;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::team_home::LocalWork;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The content of an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ItemPayload {
    /// From the home: the team's config.json, without the members that the annex runs. The annex
    /// reports these members with `Members`. The annex creates its mirror of the team when it gets
    /// the first `Team`.
    Team {
        /// The team.
        team: TeamName,
        /// The fields of config.json.
        #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
        config: ConfigForAnnex,
        /// Version of this config: the number of the item that carries it. Numbers of items are
        /// never used twice.
        #[serde(default)]
        version: u64,
        /// The epoch of the team's home.
        epoch: u64,
    },
    /// From the home: what has changed in the team's config.json since the last `Team` or
    /// `TeamChange`. Also sent whenever the link has connected, even if nothing has changed.
    TeamChange {
        /// The team.
        team: TeamName,
        /// The change.
        change: ConfigChange,
    },
    /// From the annex: it cannot apply a `TeamChange`, because it lacks the config before that
    /// change. The home answers with `Team` and the tasks.
    TeamWanted {
        /// The team.
        team: TeamName,
    },
    /// From the home: asks the annex to become the team's home. The home has already sent all other
    /// changes of the team's files. The annex answers with `HomeMoved` or `HomeDeclined`.
    HomeOffered {
        /// The team.
        team: TeamName,
        /// When the team was created. Another team of this name is not meant.
        created_at: u64,
        /// The team's epoch at the new home. Each new offer has a higher epoch, but the same offer
        /// may arrive twice.
        epoch: u64,
        /// What the mirror lacks.
        handover: Box<HomeHandover>,
    },
    /// From the annex: it does not become the team's home.
    HomeDeclined {
        /// The team.
        team: TeamName,
        /// The offered epoch.
        epoch: u64,
        /// Why.
        error: ErrorReport,
    },
    /// From the annex: it is the team's home now, or has a mirror of another home.
    HomeMoved {
        /// The team.
        team: TeamName,
        /// When the team was created. Another team of this name is not meant.
        created_at: u64,
        /// The epoch of the new home.
        epoch: u64,
        /// The home. `None` if it is the annex.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        home: Option<HostName>,
        /// Whether the home has what was done at the old home.
        #[serde(default)]
        work: LocalWork,
    },
    /// From a machine that was the home: another machine than the annex is the team's home.
    OtherHome {
        /// The team.
        team: TeamName,
        /// When the team was created. Another team of this name is not meant.
        created_at: u64,
        /// The epoch of the home.
        epoch: u64,
        /// The home.
        home: HostName,
    },
    /// From the home: the team was deleted.
    TeamDeleted {
        /// The team.
        team: TeamName,
    },
    /// From the home: the budget of the team as it is now.
    Budget {
        /// The team.
        team: TeamName,
        /// What the annex must know about it.
        budget: HomeBudget,
    },
    /// From the annex: it can't create its mirror of the team, for example because it has another
    /// team of this name.
    TeamRefused {
        /// The team.
        team: TeamName,
        /// When the team was created. An item about an earlier team of this name has no effect.
        created_at: u64,
        /// Why.
        error: ErrorReport,
    },
    /// From the annex: the members that it runs.
    Members {
        /// The team.
        team: TeamName,
        /// When the team was created. An item about an earlier team of this name has no effect.
        created_at: u64,
        /// Their entries in the mirror's config.json.
        members: Vec<Map<String, Value>>,
    },
    /// A message for an inbox.
    Message {
        /// The team of the recipient.
        team: TeamName,
        /// When the team was created. An item about an earlier team of this name has no effect.
        created_at: u64,
        /// The recipient.
        to: MemberName,
        /// The message.
        message: Message,
    },
    /// The owner of an inbox has read these messages. The annex sends this for the members that it
    /// runs. For all other members, the home sends it just before a `HomeOffered`.
    Read {
        /// The team.
        team: TeamName,
        /// When the team was created. An item about an earlier team of this name has no effect.
        created_at: u64,
        /// The owner of the inbox.
        owner: MemberName,
        /// The ids of the messages: hashes of sender, time and text.
        messages: Vec<String>,
    },
    /// From the home: a task as it is now.
    Task {
        /// The task's team.
        team: TeamName,
        /// The task.
        id: TaskId,
        /// The fields of its file. `None` if the task was deleted.
        task: Option<Map<String, Value>>,
    },
    /// From the home, after its tasks: the ids of all its tasks.
    TaskIds {
        /// The team.
        team: TeamName,
        /// The ids of the tasks.
        ids: Vec<TaskId>,
    },
    /// From the annex: a task in the mirror was changed. The home decides.
    TaskChange {
        /// The task's team.
        team: TeamName,
        /// When the team was created. An item about an earlier team of this name has no effect.
        created_at: u64,
        /// The task.
        id: TaskId,
        /// The change.
        change: TaskChange,
    },
    /// From the home: the answer to a change.
    TaskChangeAnswer {
        /// The task's team.
        team: TeamName,
        /// The task.
        id: TaskId,
        /// The change.
        change: TaskChange,
        /// The task as it is at the home after the decision. `None` if it does not exist there.
        task: Option<Map<String, Value>>,
        /// Which part of the change the home has refused, and why; or that the task has got a new
        /// id. `None` if the home has made the change as the annex asked for it.
        error: Option<ErrorReport>,
    },
    /// From the annex: events that it has logged, each with its number.
    Events {
        /// The team of the events.
        team: TeamName,
        /// When the team was created. An item about an earlier team of this name has no effect.
        created_at: u64,
        /// The events, lowest number first.
        events: Vec<Event>,
    },
    /// Asks for a [`ItemPayload::BarrierReached`] once all earlier items were handled.
    Barrier {
        /// Chosen by the sender.
        number: u64,
    },
    /// The answer to a [`ItemPayload::Barrier`]. The sender of the answer has handled all items
    /// that came before the barrier, and has sent all items that result from them.
    BarrierReached {
        /// The number of the barrier.
        number: u64,
    },
}

impl ItemPayload {
    /// The team that the item concerns. `None` for barriers.
    pub fn team(&self) -> Option<&TeamName> {
        match self {
            ItemPayload::Team { team, .. }
            | ItemPayload::TeamChange { team, .. }
            | ItemPayload::TeamWanted { team }
            | ItemPayload::HomeOffered { team, .. }
            | ItemPayload::HomeDeclined { team, .. }
            | ItemPayload::HomeMoved { team, .. }
            | ItemPayload::OtherHome { team, .. }
            | ItemPayload::TeamDeleted { team }
            | ItemPayload::Budget { team, .. }
            | ItemPayload::TeamRefused { team, .. }
            | ItemPayload::Members { team, .. }
            | ItemPayload::Message { team, .. }
            | ItemPayload::Read { team, .. }
            | ItemPayload::Events { team, .. }
            | ItemPayload::Task { team, .. }
            | ItemPayload::TaskIds { team, .. }
            | ItemPayload::TaskChange { team, .. }
            | ItemPayload::TaskChangeAnswer { team, .. } => Some(team),
            ItemPayload::Barrier { .. } | ItemPayload::BarrierReached { .. } => None,
        }
    }

    /// When the team of the item was created. If the home now has a newer team of the same name, it
    /// recognizes by this creation time that the item is about the earlier team, and ignores the
    /// item. `None` for barriers, and for items that only the home sends.
    pub fn created_at(&self) -> Option<u64> {
        match self {
            ItemPayload::HomeMoved { created_at, .. }
            | ItemPayload::TeamRefused { created_at, .. }
            | ItemPayload::Members { created_at, .. }
            | ItemPayload::Message { created_at, .. }
            | ItemPayload::Read { created_at, .. }
            | ItemPayload::Events { created_at, .. }
            | ItemPayload::TaskChange { created_at, .. } => Some(*created_at),
            _ => None,
        }
    }
}

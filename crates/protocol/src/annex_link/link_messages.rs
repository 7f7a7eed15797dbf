//! The frames of the link. In JSON, the key of a frame is its kind.

use super::payload::ItemPayload;
use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Version of the link's protocol. Both ends must have the same version.
pub const LINK_VERSION: u32 = 5;

/// One frame.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkFrame {
    /// The first frame in each direction. The home sends its hello first.
    Hello(LinkHello),
    /// An item for the other end.
    Item(Arc<LinkItem>),
    /// The sender has stored all items up to this sequence number.
    Ack {
        /// The sequence number of the last stored item.
        number: u64,
    },
    /// The sender has nothing to send, and the link works.
    KeepAlive,
    /// Whether the sender can write its files. If not, it stores no items, and keeps its own.
    Storage {
        /// Why it cannot, as a text for people. `None`: it can again.
        error: Option<String>,
    },
    /// The sender refuses the link and closes the connection.
    Refused(LinkRefusal),
}

/// What each end says first about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkHello {
    /// [`LINK_VERSION`] of the sender.
    pub version: u32,
    /// The release of the sender's program, for messages to people.
    pub program_version: String,
    /// Identity of the home's root. The annex has mirrors of some of its teams.
    pub root: String,
    /// The epoch of the link. It is not the epoch of a team ([`crate::team_home::TeamHome`]). The
    /// home sends its own epoch, which is always 1 in this version. The annex sends the highest
    /// epoch that a home has sent to it, or 0 if there is none.
    pub epoch: u64,
    /// Identity of the annex: the name of its host in the hosts file of the home.
    pub annex: String,
    /// Sequence number of the last item from the other end that the sender has stored. 0: none.
    pub received: u64,
}

/// One item and its place among the items of its sender.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkItem {
    /// Sequence number. The items of a sender are numbered from 1 without gaps, over all
    /// connections and restarts.
    pub number: u64,
    /// The spawn that the item concerns. `None` if it concerns no spawn. In this version the daemon
    /// always sends `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawn: Option<MemberGeneration>,
    /// The content.
    pub payload: ItemPayload,
}

/// One spawn of a member. The home counts the spawns of each member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberGeneration {
    /// The member's team.
    pub team: TeamName,
    /// The member.
    pub member: MemberName,
    /// Higher for each spawn. An item of an earlier spawn than the last one is dropped.
    pub generation: u64,
}

/// Why an end refuses the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkRefusal {
    /// The sender has another [`LINK_VERSION`].
    Version {
        /// The version of the sender.
        version: u32,
        /// The release of the sender's program.
        program_version: String,
    },
    /// The home was moved to another host: the annex has accepted a home with a higher epoch.
    EpochFenced {
        /// The highest epoch.
        epoch: u64,
    },
    /// The sender is not this annex, or belongs to another root, or does not expect this annex.
    UnknownAnnex,
    /// The two ends disagree about the items that the sender of this refusal has sent. Either the
    /// other end says that it has stored an item that was never sent, or it no longer has an item
    /// that it acknowledged. So one of the two ends has lost its files, or has an old copy of them.
    NumbersDiffer {
        /// The last item that the sender remembers as acknowledged.
        acknowledged: u64,
        /// The last item that the sender has numbered.
        last: u64,
    },
}

impl fmt::Display for LinkRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkRefusal::Version { version, program_version } => {
                write!(f, "it speaks version {version} of the link, as release {program_version} does")
            }
            LinkRefusal::EpochFenced { epoch } => write!(f, "the home was moved, and has epoch {epoch} now"),
            LinkRefusal::UnknownAnnex => f.write_str("it is another annex, or belongs to another root"),
            LinkRefusal::NumbersDiffer { acknowledged, last } => write!(
                f,
                "its items {acknowledged} to {last} do not continue the received ones, so a file was lost or is old"
            ),
        }
    }
}

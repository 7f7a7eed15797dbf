//! The link between the daemons of a home and of one annex. The home has a team's true files. The
//! annex is another host that runs members of the team.
//!
//! The link is a byte stream in both directions, which may be cut at any byte and made again. It
//! carries [`LinkFrame`]s, each with its length before it ([`encode_frame`], [`FrameDecoder`]).
//! Both ends first send [`LinkFrame::Hello`]. Afterwards each end sends items, and acknowledges the
//! items that it has stored. The crate `link` has the rules.
//!
//! Promise to later versions: the frames `hello` and `refused` keep the fields that they have now,
//! so that two programs of different versions can refuse each other with a reason.

mod config_change;
mod home_budget;
mod home_handover;
mod length_prefix;
mod link_messages;
mod member_entry;
mod payload;
mod task_change;

pub use config_change::{ConfigChange, MemberChange};
pub use home_budget::HomeBudget;
pub use home_handover::HomeHandover;
pub use length_prefix::{FrameDecoder, LinkFrameError, MAX_FRAME_BYTES, encode_frame};
pub use link_messages::{LINK_VERSION, LinkFrame, LinkHello, LinkItem, LinkRefusal, MemberGeneration};
pub use member_entry::{ConfigForAnnex, MemberEntry};
pub use payload::ItemPayload;
pub use task_change::{AppliedChange, FieldChange, FieldPath, TaskChange};

/// How many items an end may send before the first of them is acknowledged. The other end keeps as
/// many in memory until it has stored them.
pub const WINDOW_ITEMS: usize = 256;

/// How many bytes of items an end may send before the first of them is acknowledged, measured as
/// JSON. A longer item is sent if no other one waits for its acknowledgement.
pub const WINDOW_BYTES: usize = 1024 * 1024;

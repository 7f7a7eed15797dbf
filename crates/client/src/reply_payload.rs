//! Takes the payload out of a reply of the daemon. A reply whose payload does not fit the request
//! is an error.

use crate::daemon_call_error::unexpected_reply;
use protocol::control_socket::{
    CapturePaneReply, CreateTeamReply, DeleteTeamReply, ExitsReply, InterruptReply, LocatePaneReply,
    PlaceMemberReply, Reply, ResumeMembersReply, SetLayoutReply, SetModeReply, SpawnReply, StatusReply,
    VisibilityReply, WorktreeReply,
};
use protocol::error_kind_and_report::ErrorReport;

/// The payload of one kind of reply.
pub trait ReplyPayload: Sized {
    /// The payload of `reply`. `None` if the reply is of another kind.
    fn from_reply(reply: Reply) -> Option<Self>;
}

/// The payload of the daemon's reply.
///
/// # Errors
///
/// `Internal` if the reply has another kind of payload.
pub fn payload_of<T: ReplyPayload>(reply: Reply) -> Result<T, ErrorReport> {
    T::from_reply(reply).ok_or_else(unexpected_reply)
}

macro_rules! impl_reply_payload {
    ($($kind:ident($payload:ty),)*) => {
        $(impl ReplyPayload for $payload {
            fn from_reply(reply: Reply) -> Option<Self> {
                match reply {
                    Reply::$kind(payload) => Some(payload),
                    _ => None,
                }
            }
        })*
    };
}

impl_reply_payload! {
    CapturePane(CapturePaneReply),
    CreateTeam(CreateTeamReply),
    CreateWorktree(WorktreeReply),
    DeleteTeam(DeleteTeamReply),
    Exits(ExitsReply),
    Interrupt(InterruptReply),
    LocatePane(LocatePaneReply),
    PlaceMember(PlaceMemberReply),
    ResumeMembers(ResumeMembersReply),
    SetLayout(SetLayoutReply),
    SetMode(SetModeReply),
    Spawn(SpawnReply),
    Status(StatusReply),
    Visibility(VisibilityReply),
}

/// The payload for a request whose reply has no data.
impl ReplyPayload for () {
    fn from_reply(reply: Reply) -> Option<()> {
        matches!(reply, Reply::Ack).then_some(())
    }
}

//! What can happen to the driver: one closed list, and one queue, in the order of what happened.

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    PromptResponse, ReadTextFileRequest, ReadTextFileResponse, RequestPermissionRequest,
    RequestPermissionResponse, SessionUpdate, WriteTextFileRequest, WriteTextFileResponse,
};
use protocol::driver_protocol::ToDriver;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// See the head of this file.
#[derive(Debug)]
pub(crate) enum AcpEvent {
    /// join said something.
    ShimMessage(ToDriver),
    /// join is gone, or says what nobody understands.
    ShimClosed(String),
    /// The agent goes on with its turn.
    Update(Box<SessionUpdate>),
    /// It wants leave.
    PermissionRequested(Box<RequestPermissionRequest>, Responder<RequestPermissionResponse>),
    /// It wants to know a file.
    ReadFile(ReadTextFileRequest, Responder<ReadTextFileResponse>),
    /// It wants to change one.
    WriteFile(WriteTextFileRequest, Responder<WriteTextFileResponse>),
    /// Its turn has ended, or never began.
    TurnEnded(Result<PromptResponse, Error>),
    /// It was asked to change its mode.
    ModeSet(String, Result<(), String>),
    /// A line of its output that is none of the protocol's.
    StrayLine(String),
    /// It will say nothing any more.
    OutputClosed,
    /// Its process has ended; how, for people.
    ProgramExited(String),
}

pub(crate) type EventSender = UnboundedSender<AcpEvent>;
pub(crate) type EventReceiver = UnboundedReceiver<AcpEvent>;

//! The events that the driver handles, as one enum. All events go through one queue, in the order
//! in which they happened.

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    PromptResponse, ReadTextFileRequest, ReadTextFileResponse, RequestPermissionRequest,
    RequestPermissionResponse, SessionUpdate, WriteTextFileRequest, WriteTextFileResponse,
};
use protocol::acp_driver_protocol::ToDriver;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// An input of the driver's event loop.
#[derive(Debug)]
pub(crate) enum AcpEvent {
    /// A message from the shim.
    ShimMessage(ToDriver),
    /// The shim's connection has ended, or a message was invalid; the reason, for people.
    ShimClosed(String),
    /// The program reports progress or a change of its session.
    Update(Box<SessionUpdate>),
    /// The program asks for a permission.
    PermissionRequested(Box<RequestPermissionRequest>, Responder<RequestPermissionResponse>),
    /// The program reads a file.
    ReadFile(ReadTextFileRequest, Responder<ReadTextFileResponse>),
    /// The program writes a file.
    WriteFile(WriteTextFileRequest, Responder<WriteTextFileResponse>),
    /// The program has answered the prompt, or the prompt could not be sent.
    TurnEnded(Result<PromptResponse, Error>),
    /// A mode change has ended: the mode's id, and the reason if it failed.
    ModeSet(String, Result<(), String>),
    /// A line of the program's output that is no message of the protocol.
    StrayLine(String),
    /// The program's output has ended.
    OutputClosed,
    /// The program's process has ended; how, for people.
    ProgramExited(String),
}

pub(crate) type EventSender = UnboundedSender<AcpEvent>;
pub(crate) type EventReceiver = UnboundedReceiver<AcpEvent>;

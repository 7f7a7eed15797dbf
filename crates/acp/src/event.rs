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
pub(crate) enum Event {
    /// join said something.
    Word(ToDriver),
    /// join is gone, or says what nobody understands.
    HungUp(String),
    /// The agent goes on with its turn.
    Update(Box<SessionUpdate>),
    /// It wants leave.
    Permission(Box<RequestPermissionRequest>, Responder<RequestPermissionResponse>),
    /// It wants to know a file.
    Read(ReadTextFileRequest, Responder<ReadTextFileResponse>),
    /// It wants to change one.
    Write(WriteTextFileRequest, Responder<WriteTextFileResponse>),
    /// Its turn has ended, or never began.
    Ended(Result<PromptResponse, Error>),
    /// It was asked to change its mode.
    Mode(String, Result<(), String>),
    /// A line of its output that is none of the protocol's.
    Stray(String),
    /// It will say nothing any more.
    Closed,
    /// Its process has ended; how, for people.
    Exited(String),
}

pub(crate) type Events = UnboundedSender<Event>;
pub(crate) type Queue = UnboundedReceiver<Event>;

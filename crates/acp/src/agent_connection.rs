//! The driver's side of the Agent Client Protocol connection to the agent program. Handler
//! functions receive the program's notifications and requests. A handler only puts a message into
//! the driver's event queue, and never waits. So the next message is read at once, and the events
//! keep their order.

use crate::agent_process::{AgentPipes, message_sink, message_stream};
use crate::driver_event::{AcpEvent, EventSender};
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ReadTextFileRequest, RequestPermissionRequest, SessionNotification, WriteTextFileRequest,
};
use agent_client_protocol::{
    Agent, Client, Error, JsonRpcRequest, Lines, on_receive_notification, on_receive_request,
};
use tokio::sync::oneshot;

/// Opens the connection and runs `session` on it. The connection closes when `session` returns.
pub(crate) async fn with_connection<R>(
    pipes: AgentPipes,
    events: &EventSender,
    session: impl AsyncFnOnce(ConnectionTo<Agent>) -> R,
) -> Result<R, Error> {
    let transport = Lines::new(message_sink(pipes.input), message_stream(pipes.output, events.clone()));
    let [updates, permissions, reads, writes] = [(); 4].map(|()| event_handler(events.clone()));
    Client
        .v1()
        .name("teamd-acp")
        .on_receive_notification(
            async move |notification: SessionNotification, _cx| {
                updates(AcpEvent::Update(Box::new(notification.update)))
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                permissions(AcpEvent::PermissionRequested(Box::new(request), responder))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _cx| {
                reads(AcpEvent::ReadFile(request, responder))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: WriteTextFileRequest, responder, _cx| {
                writes(AcpEvent::WriteFile(request, responder))
            },
            on_receive_request!(),
        )
        .connect_with(transport, async |agent| Ok(session(agent).await))
        .await
}

/// Returns a handler that puts each event of the connection into the driver's event queue. The
/// handler never returns an error. If the event loop has ended, the handler drops the event.
fn event_handler(events: EventSender) -> impl Fn(AcpEvent) -> Result<(), Error> {
    move |event| {
        events.send(event).ok();
        Ok(())
    }
}

/// Sends a request to the program and returns the program's result. When this function returns, all
/// messages that the program sent before the result are already in the event queue.
pub(crate) async fn send_request<Q>(agent: &ConnectionTo<Agent>, request: Q) -> Result<Q::Response, Error>
where
    Q: JsonRpcRequest,
    Q::Response: Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    agent.prepare_request(request).on_receiving_result(async move |result| {
        sender.send(result).ok();
        Ok(())
    })?;
    receiver.await.unwrap_or_else(|_| Err(Error::internal_error().data("the program closed its output")))
}

/// Formats an error of the agent program for people: the message of the error, and its detail if it
/// has one.
pub(crate) fn error_text(error: &Error) -> String {
    let detail = error.data.as_ref().map(|data| match data.as_str() {
        Some(text) => text.to_owned(),
        None => match data.get("details").or_else(|| data.get("message")).and_then(|text| text.as_str()) {
            Some(text) => text.to_owned(),
            None => data.to_string(),
        },
    });
    let detail = detail.filter(|detail| !detail.is_empty() && *detail != error.message);
    detail.map_or_else(|| error.message.clone(), |detail| format!("{}: {detail}", error.message))
}

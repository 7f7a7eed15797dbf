//! Our side of the connection: every message of the agent becomes an event, and nothing is done about it here. So
//! the loop that reads them never waits, and they stay in order.

use crate::agent_process::{AgentPipes, message_sink, message_stream};
use crate::event::{AcpEvent, EventSender};
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ReadTextFileRequest, RequestPermissionRequest, SessionNotification, WriteTextFileRequest,
};
use agent_client_protocol::{
    Agent, Client, Error, JsonRpcRequest, Lines, on_receive_notification, on_receive_request,
};
use tokio::sync::oneshot;

/// Connects, and stays so until `life` ends.
pub(crate) async fn with_connection<R>(
    ends: AgentPipes,
    events: &EventSender,
    life: impl AsyncFnOnce(ConnectionTo<Agent>) -> R,
) -> Result<R, Error> {
    let transport = Lines::new(message_sink(ends.input), message_stream(ends.output, events.clone()));
    let (updates, asks, reads, writes) = (events.clone(), events.clone(), events.clone(), events.clone());
    Client
        .v1()
        .name("teamd-acp")
        .on_receive_notification(
            async move |said: SessionNotification, _cx| {
                updates.send(AcpEvent::Update(Box::new(said.update))).ok();
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |asked: RequestPermissionRequest, responder, _cx| {
                asks.send(AcpEvent::PermissionRequested(Box::new(asked), responder)).ok();
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: ReadTextFileRequest, responder, _cx| {
                reads.send(AcpEvent::ReadFile(asked, responder)).ok();
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: WriteTextFileRequest, responder, _cx| {
                writes.send(AcpEvent::WriteFile(asked, responder)).ok();
                Ok(())
            },
            on_receive_request!(),
        )
        .connect_with(transport, async |agent| Ok(life(agent).await))
        .await
}

/// Sends a request, and gives its answer once all that came before it is in the queue.
pub(crate) async fn send_request<Q>(agent: &ConnectionTo<Agent>, request: Q) -> Result<Q::Response, Error>
where
    Q: JsonRpcRequest,
    Q::Response: Send + 'static,
{
    let (tell, told) = oneshot::channel();
    agent.prepare_request(request).on_receiving_result(async move |result| {
        tell.send(result).ok();
        Ok(())
    })?;
    told.await.unwrap_or_else(|_| Err(Error::internal_error().data("the program closed its output")))
}

/// What an error of the agent's says, for people.
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

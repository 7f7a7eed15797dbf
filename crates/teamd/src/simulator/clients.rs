//! Clients of the daemon: their calls, and the replies to them.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::simulator::simulation::{Conditions, Simulation};
use protocol::control_socket::{Call, Request, Response};

impl<C: Conditions> Simulation<C> {
    /// Sends a call, with the token of an agent if there is one. `None` if no daemon runs.
    pub(super) fn send_call_as(
        &mut self,
        caller: C::Caller,
        token: Option<String>,
        request: Request,
    ) -> Option<ConnId> {
        let client = self.next_conn();
        self.daemon.as_ref()?;
        self.clients.insert(client, caller);
        // Two clients share an idempotency key, as if one client had repeated its call.
        let idempotency_key = matches!(request, Request::Spawn(_)).then(|| format!("once-{}", client / 2));
        let call = Call { token, idempotency_key, ..Call::new(request) };
        self.send_event(CoreEvent::ClientCall { client, call: Box::new(call) });
        Some(client)
    }

    pub(super) fn receive_reply(&mut self, client: ConnId, response: &Response) {
        self.log(|| format!("reply to {client}: {response:?}"));
        let caller = self.clients.remove(&client);
        C::handle_reply(self, client, caller, response);
        if response.keeps_connection() {
            self.send_event(CoreEvent::ConnectionClosed { conn: client });
        }
    }
}

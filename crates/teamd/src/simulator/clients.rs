//! Clients of the daemon: their calls, and what they do with the replies.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::simulator::simulation::Simulation;
use protocol::control_socket::{
    Call, LeadProcess, PROTOCOL_VERSION, Reply, Request, Response, SetLeadRequest, WorktreeReply,
};
use protocol::team_and_member_names::TeamName;

/// Which client sent a call.
#[derive(Debug, Clone)]
pub(super) enum CallOrigin {
    /// A user, or a program without further state.
    Person,
    /// A hook of the program with this pid.
    Hook(u32),
    /// An agent with `turn` delivery, by its shim's pid.
    TurnAgent(u32),
    /// A session that takes the lead of a team, by its pid.
    NewLead(TeamName, u32),
    /// A client that requests a worktree and then spawns a member into it.
    WorktreeSpawner(TeamName),
}

impl Simulation {
    /// Sends a call of a user.
    pub(super) fn send_call(&mut self, request: Request) {
        self.send_call_as(CallOrigin::Person, None, request);
    }

    /// Sends a call, with the token of an agent if there is one. `None` if no daemon runs.
    pub(super) fn send_call_as(
        &mut self,
        origin: CallOrigin,
        token: Option<String>,
        request: Request,
    ) -> Option<ConnId> {
        let client = self.next_conn();
        self.daemon.as_ref()?;
        self.clients.insert(client, origin);
        // Two clients share an idempotency key, as if one client had repeated its call.
        let idempotency_key = matches!(request, Request::Spawn(_)).then(|| format!("once-{}", client / 2));
        let call = Call { token, idempotency_key, ..Call::new(request) };
        self.send_event(CoreEvent::ClientCall { client, call: Box::new(call) });
        Some(client)
    }

    /// Sends a call that the daemon cannot parse.
    pub(super) fn send_invalid_call(&mut self) {
        let client = self.next_conn();
        if self.daemon.is_some() {
            self.clients.insert(client, CallOrigin::Person);
            let version = self.rng.bool().then_some(PROTOCOL_VERSION + 1);
            self.send_event(CoreEvent::InvalidCall { client, version, error: "no JSON".to_owned() });
        }
    }

    /// A client closes its connection before it gets its reply.
    pub(super) fn drop_client(&mut self) {
        let client = self.clients.iter().find(|(_, origin)| !matches!(origin, CallOrigin::Hook(_)));
        let Some(client) = client.map(|(client, _)| *client) else { return };
        let origin = self.clients.remove(&client);
        self.dropped_clients.insert(client);
        self.send_event(CoreEvent::ConnectionClosed { conn: client });
        if let Some(CallOrigin::TurnAgent(pid)) = origin {
            self.scan_files(pid);
        }
    }

    /// Handles a reply. Invariant: each client gets at most one reply. The assertion checks this.
    pub(super) fn handle_reply(&mut self, client: ConnId, response: &Response) {
        self.log(|| format!("reply to {client}: {response:?}"));
        let origin = self.clients.remove(&client);
        assert!(
            origin.is_some() || self.dropped_clients.remove(&client),
            "client {client} got a reply without a call, or a second reply"
        );
        match (origin, response) {
            (Some(CallOrigin::WorktreeSpawner(team)), Response::Done(reply)) => {
                if let Reply::CreateWorktree(reply) = &**reply {
                    self.spawn_in_worktree(team, reply);
                }
            }
            (Some(CallOrigin::NewLead(team, pid)), Response::Done(_)) => self.start_lead(pid, team),
            (Some(CallOrigin::TurnAgent(pid)), response) => self.handle_next_task(pid, response),
            (Some(CallOrigin::Hook(pid)), response) => self.handle_hook_response(pid, client, response),
            _ => {}
        }
    }

    /// The second call of `spawn --worktree`. Some clients are killed before they send it.
    fn spawn_in_worktree(&mut self, team: TeamName, reply: &WorktreeReply) {
        if self.rng.u8(..) < 220 {
            let request = self.spawn_request(team, Some(reply));
            self.send_call(request);
        }
    }

    /// A session takes the lead of a team, or releases it.
    pub(super) fn take_or_release_lead(&mut self, team: TeamName) {
        if self.rng.u8(..) < 50 {
            return self.send_call(Request::SetLead(SetLeadRequest::Release(team)));
        }
        let pid = self.next_pid();
        let lead = LeadProcess {
            team: team.clone(),
            pid,
            start_time: 1,
            pane: None,
            tmux_socket: None,
            session_id: None,
        };
        self.lead_processes.insert(pid);
        self.send_call_as(CallOrigin::NewLead(team, pid), None, Request::SetLead(SetLeadRequest::Take(lead)));
    }

    /// A lead session ends.
    pub(super) fn kill_random_lead(&mut self) {
        let leaders: Vec<u32> = self.lead_processes.iter().copied().collect();
        if let Some(pid) = self.rng.choice(leaders) {
            self.log(|| format!("the session of {pid} ends"));
            self.lead_processes.remove(&pid);
            self.end_program(pid);
        }
    }
}

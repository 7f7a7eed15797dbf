//! The clients of a random simulation, and lead sessions.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::simulator::random::conditions::RandomSimulation;
use protocol::control_socket::{
    LeadProcess, PROTOCOL_VERSION, Reply, Request, Response, SetLeadRequest, WorktreeReply,
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

impl RandomSimulation {
    /// Sends a call of a user.
    pub(super) fn send_call(&mut self, request: Request) {
        self.send_call_as(CallOrigin::Person, None, request);
    }

    /// Handles a reply. Invariant: each client gets at most one reply. The assertion checks this.
    pub(super) fn handle_reply_of(
        &mut self,
        client: ConnId,
        origin: Option<CallOrigin>,
        response: &Response,
    ) {
        assert!(
            origin.is_some() || self.conditions.dropped_clients.remove(&client),
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

    /// Sends a call that the daemon cannot parse.
    pub(super) fn send_invalid_call(&mut self) {
        let client = self.next_conn();
        if self.daemon.is_some() {
            self.clients.insert(client, CallOrigin::Person);
            let version = self.conditions.rng.bool().then_some(PROTOCOL_VERSION + 1);
            self.send_event(CoreEvent::InvalidCall { client, version, error: "no JSON".to_owned() });
        }
    }

    /// A client closes its connection before it gets its reply.
    pub(super) fn drop_client(&mut self) {
        let client = self.clients.iter().find(|(_, origin)| !matches!(origin, CallOrigin::Hook(_)));
        let Some(client) = client.map(|(client, _)| *client) else { return };
        let origin = self.clients.remove(&client);
        self.conditions.dropped_clients.insert(client);
        self.send_event(CoreEvent::ConnectionClosed { conn: client });
        if let Some(CallOrigin::TurnAgent(pid)) = origin {
            self.scan_files(pid);
        }
    }

    /// The second call of `spawn --worktree`. Some clients are killed before they send it.
    fn spawn_in_worktree(&mut self, team: TeamName, reply: &WorktreeReply) {
        if self.conditions.rng.u8(..) < 220 {
            let request = self.spawn_request(team, Some(reply));
            self.send_call(request);
        }
    }

    /// A session takes the lead of a team, or releases it.
    pub(super) fn take_or_release_lead(&mut self, team: TeamName) {
        if self.conditions.rng.u8(..) < 50 {
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
        self.conditions.lead_processes.insert(pid);
        self.send_call_as(CallOrigin::NewLead(team, pid), None, Request::SetLead(SetLeadRequest::Take(lead)));
    }

    /// A lead session ends.
    pub(super) fn kill_random_lead(&mut self) {
        let leaders: Vec<u32> = self.conditions.lead_processes.iter().copied().collect();
        if let Some(pid) = self.conditions.rng.choice(leaders) {
            self.log(|| format!("the session of {pid} ends"));
            self.conditions.lead_processes.remove(&pid);
            self.end_program(pid);
        }
    }
}

//! Calls with an idempotency key. A client that repeats such a call, for example after a lost
//! connection, gets the reply to the first call.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use protocol::control_socket::Response;
use std::collections::{BTreeMap, VecDeque};

/// How many replies are kept.
const MAX_REPLIES: usize = 256;

/// The calls with an idempotency key that are under way, and the replies to the latest finished
/// ones.
#[derive(Debug, Default)]
pub(crate) struct RetryCache {
    /// The replies, the newest last.
    replies: VecDeque<CachedReply>,
    /// The keys of the calls under way, by client.
    running: BTreeMap<ConnId, String>,
    /// The calls that repeat a call that is under way.
    repeated: Vec<RepeatedCall>,
}

#[derive(Debug)]
struct CachedReply {
    key: String,
    response: Response,
}

#[derive(Debug)]
struct RepeatedCall {
    client: ConnId,
    key: String,
}

/// What is to be done with a call.
pub(crate) enum CallStart {
    /// The call is new, and must be handled.
    New,
    /// The call repeats an earlier call, and gets the reply of that call.
    Replay(Response),
    /// The call repeats a call that is under way, and will get the same reply.
    Wait,
}

impl RetryCache {
    /// Registers a call. `finish` must follow for each new one.
    pub(crate) fn begin(&mut self, client: ConnId, key: &str) -> CallStart {
        if let Some(cached) = self.replies.iter().find(|cached| cached.key == key) {
            return CallStart::Replay(cached.response.clone());
        }
        if self.running.values().any(|running| running == key) {
            self.repeated.push(RepeatedCall { client, key: key.to_owned() });
            return CallStart::Wait;
        }
        self.running.insert(client, key.to_owned());
        CallStart::New
    }

    /// Keeps the reply to a client's call. Returns the other clients that have sent the same call
    /// and wait for this reply. Does nothing for a call without an idempotency key.
    pub(crate) fn finish(&mut self, client: ConnId, response: &Response) -> Vec<ConnId> {
        let Some(key) = self.running.remove(&client) else { return Vec::new() };
        let (same, other) =
            std::mem::take(&mut self.repeated).into_iter().partition(|call: &RepeatedCall| call.key == key);
        self.repeated = other;
        if self.replies.len() == MAX_REPLIES {
            self.replies.pop_front();
        }
        self.replies.push_back(CachedReply { key, response: response.clone() });
        Vec::into_iter(same).map(|call| call.client).collect()
    }

    /// Whether no call is under way.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.repeated.is_empty()
    }
}

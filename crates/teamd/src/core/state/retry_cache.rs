//! Calls with an idempotency key: a client that repeats such a call gets the reply of the first
//! one.

use crate::core::id::ConnId;
use protocol::control::Response;
use std::collections::{BTreeMap, VecDeque};

/// How many replies are kept.
const MAX_REPLIES: usize = 256;

/// The calls with an idempotency key: those under way, and the replies to the latest others.
#[derive(Debug, Default)]
pub(crate) struct RetryCache {
    /// The newest last.
    replies: VecDeque<CachedReply>,
    /// The keys of the calls under way, by client.
    running: BTreeMap<ConnId, String>,
    /// Calls that repeat one that is under way.
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
    /// It must be handled.
    New,
    /// It repeats a call that has its reply.
    Replay(Response),
    /// It repeats a call that is under way, and gets the same reply.
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

    /// Keeps the reply to a client's call. Returns the other clients that wait for it. A call
    /// without a key is ignored.
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

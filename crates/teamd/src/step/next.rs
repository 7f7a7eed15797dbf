//! Which task is next for a member: asked by those who claim, who would have to look at every file.
//!
//! The answer takes in all that was written before it was asked: a mark is put behind that, the watcher tells of both in
//! their order, and once it has told of the mark, what is known to have changed is looked at.

use super::request::answer;
use crate::effect::Effect;
use crate::event::ConnId;
use crate::files::FileJob;
use crate::state::{State, Watch};
use protocol::control::{Next, NextTask, Reply};

/// What is asked, and how far the watcher is.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    /// Who asks, and behind which mark the answer lies.
    waiting: Vec<(ConnId, NextTask, u64)>,
    /// The last mark that was made.
    made: u64,
    /// The last one that was told of, or that nobody will tell of any more.
    told: u64,
}

impl Asks {
    /// One at a time: who asks meanwhile shares the next.
    fn mark(&mut self, out: &mut Vec<Effect>) {
        if self.made == self.told && !self.waiting.is_empty() {
            self.made += 1;
            out.push(Effect::Mark { mark: self.made });
        }
    }

    /// Whose answer lies behind no later mark.
    fn take(&mut self, told: u64) -> Vec<(ConnId, NextTask)> {
        self.told = self.told.max(told);
        let all = std::mem::take(&mut self.waiting);
        let (ready, waiting) = all.into_iter().partition(|(.., mark)| *mark <= told);
        self.waiting = waiting;
        ready.into_iter().map(|(client, asked, _)| (client, asked)).collect()
    }
}

pub(super) fn asked(state: &mut State, client: ConnId, asked: NextTask, out: &mut Vec<Effect>) {
    if state.watch != Watch::Events || state.watched_mut(&asked.team).is_none() {
        return found(state, client, Next::Unknown, out);
    }
    let mark = state.asks.made + 1;
    state.asks.waiting.push((client, asked, mark));
    state.asks.mark(out);
}

/// All that was written ahead of the mark has been told.
pub(super) fn marked(state: &mut State, mark: u64, out: &mut Vec<Effect>) {
    for (client, asked) in state.asks.take(mark) {
        match state.watched_mut(&asked.team) {
            // Those are looked at again by whoever tells of them.
            Some(team) => {
                let which = team.unseen.clone();
                out.push(Effect::File(FileJob::Next { client, asked, which }));
            }
            None => found(state, client, Next::Unknown, out),
        }
    }
    state.asks.mark(out);
}

/// Nobody will tell: there is no watcher, or it has lost what it was to tell of.
pub(super) fn missed(state: &mut State, out: &mut Vec<Effect>) {
    state.asks.told = state.asks.made;
    for (client, ..) in std::mem::take(&mut state.asks.waiting) {
        found(state, client, Next::Unknown, out);
    }
}

pub(super) fn found(state: &mut State, client: ConnId, next: Next, out: &mut Vec<Effect>) {
    answer(state, client, Ok(Reply::NextTask(next)), out);
}

/// It does not wait any longer.
pub(super) fn closed(state: &mut State, client: ConnId) {
    state.asks.waiting.retain(|(waiting, ..)| *waiting != client);
}

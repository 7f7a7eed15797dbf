//! Which task is next for a member: asked by those who claim, who would have to look at every file.
//!
//! The answer takes in all that was written before it was asked: a mark is put behind that, the watcher tells of both in
//! their order, and once it has told of the mark, what is known to have changed is looked at.

use super::request::answer;
use super::tasks;
use crate::effect::Effect;
use crate::event::ConnId;
use crate::state::{Board, State, Watch};
use protocol::control::{NextTaskHint, NextTaskRequest, Reply};
use protocol::name::TeamName;

/// What is asked, and how far the watcher is.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    /// Who asks, and behind which mark the answer lies.
    waiting: Vec<(ConnId, NextTaskRequest, u64)>,
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
    fn take(&mut self, told: u64) -> Vec<(ConnId, NextTaskRequest)> {
        // One that nobody has made is another daemon's.
        self.told = self.told.max(told.min(self.made));
        let all = std::mem::take(&mut self.waiting);
        let (ready, waiting) = all.into_iter().partition(|(.., mark)| *mark <= told);
        self.waiting = waiting;
        ready.into_iter().map(|(client, asked, _)| (client, asked)).collect()
    }
}

pub(super) fn asked(state: &mut State, client: ConnId, asked: NextTaskRequest, out: &mut Vec<Effect>) {
    if state.watch != Watch::Events || state.watched_mut(&asked.team).is_none() {
        return found(state, client, NextTaskHint::Unknown, out);
    }
    let mark = state.asks.made + 1;
    state.asks.waiting.push((client, asked, mark));
    state.asks.mark(out);
}

/// All that was written ahead of the mark has been told. Of a list that nobody has written to since it was looked at all is
/// known; else there is a look first.
pub(super) fn marked(state: &mut State, mark: u64, out: &mut Vec<Effect>) {
    for (client, asked) in state.asks.take(mark) {
        let team = asked.team.clone();
        match state.watched_mut(&team) {
            None => found(state, client, NextTaskHint::Unknown, out),
            Some(known) if known.is_seen() => {
                let next = known.board.next(&asked);
                found(state, client, next, out);
            }
            Some(known) => {
                known.asks.push((client, asked));
                tasks::again(state, &team, out);
            }
        }
    }
    state.asks.mark(out);
}

/// After the look for which they have waited.
pub(super) fn told(
    state: &mut State,
    board: &Board,
    asks: Vec<(ConnId, NextTaskRequest)>,
    out: &mut Vec<Effect>,
) {
    for (client, asked) in asks {
        found(state, client, board.next(&asked), out);
    }
}

/// The look came to nothing.
pub(super) fn unknown(state: &mut State, asks: Vec<(ConnId, NextTaskRequest)>, out: &mut Vec<Effect>) {
    asks.into_iter().for_each(|(client, _)| found(state, client, NextTaskHint::Unknown, out));
}

/// The team is gone.
pub(super) fn forget(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    let asks = state.watched_mut(team).map(|known| std::mem::take(&mut known.asks));
    unknown(state, asks.unwrap_or_default(), out);
}

/// Nobody will tell: there is no watcher, or it has lost what it was to tell of.
pub(super) fn missed(state: &mut State, out: &mut Vec<Effect>) {
    state.asks.told = state.asks.made;
    for (client, ..) in std::mem::take(&mut state.asks.waiting) {
        found(state, client, NextTaskHint::Unknown, out);
    }
}

fn found(state: &mut State, client: ConnId, next: NextTaskHint, out: &mut Vec<Effect>) {
    answer(state, client, Ok(Reply::NextTask(next)), out);
}

/// It does not wait any longer.
pub(super) fn closed(state: &mut State, client: ConnId) {
    state.asks.waiting.retain(|(waiting, ..)| *waiting != client);
}

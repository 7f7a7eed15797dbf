//! The one place where a pane is killed.
//!
//! Killing is one guarded step inside the server, and "gone" is what tmux says behind it, never a failure. Both are asked for
//! in one round trip, also of several panes where no two are in one window and no session ends with them; the next pane's of
//! that window comes after it, see [`crate::mark`].
//! A pane's end is a hang-up for its processes and no more; who must be sure of those has to see to them before.

use tmux_interface::{DisplayMessage, KillPane, TmuxCommand};

use crate::deadline::Deadline;
use crate::guard::{Guarded, any, both, either, only_if, say};
use crate::hide::{behind_a_zoom, keeping_zoom};
use crate::reply::Reply;
use crate::script::Script;
use crate::{Error, Owner, PaneId, Server, WindowId, nonce};

/// How an attempt to kill a pane ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// It was there and ours, and is gone.
    Killed,
    /// It is not that owner's, or somebody has started it anew with a process of theirs; it lives.
    NotOurs,
    /// There is no such pane.
    Absent,
}

impl Server {
    /// Kills a pane if it is `owner`'s. A zoom of another pane in that window stays. One that somebody has started anew
    /// loses our marks.
    ///
    /// # Errors
    /// `Failed` if it is there all the same; `Timeout` and the like leave it unknown.
    pub fn kill(&mut self, pane: PaneId, owner: &Owner) -> Result<Killed, Error> {
        let deadline = Deadline::of("kill a pane");
        let kill = killing(pane);
        // Whose zoom it is must be known before it ends.
        let waits = nonce::fresh();
        let unless_zoomed = either(&pane.to_string(), &behind_a_zoom(), &say(&waits), &kill)?;
        let (did, there) = match self.act_and_look(pane, owner, &unless_zoomed, deadline)? {
            (Ok(said), true) if said == waits => match self.row(pane, deadline)? {
                None => return Ok(Killed::Absent),
                Some(row) => self.act_and_look(pane, owner, &keeping_zoom(&row, &kill)?, deadline)?,
            },
            tried => tried,
        };
        match (did, there) {
            (Ok(_), false) => Ok(Killed::Killed),
            (Ok(_), true) => {
                Err(Error::Failed { verb: deadline.verb(), cause: format!("pane {pane} is still there") })
            }
            (Err(Error::NotOurs { .. }), false) => Ok(Killed::Absent),
            (Err(Error::NotOurs { .. }), true) => {
                self.let_go(pane, owner, deadline)?;
                Ok(self.row(pane, deadline)?.map_or(Killed::Absent, |_| Killed::NotOurs))
            }
            (Err(other), _) => Err(other),
        }
    }

    /// Which of these panes are gone after one round trip, in which each is killed that is its owner's, in that window still,
    /// behind no zoom, and not the last of its session. No two may be of one window. For who stays there is [`Server::kill`].
    ///
    /// # Errors
    /// `Timeout` and the like leave all of it unknown.
    pub fn kill_each(&mut self, panes: &[(PaneId, Owner, WindowId)]) -> Result<Vec<bool>, Error> {
        let deadline = Deadline::of("kill panes");
        let mut scripts = Vec::new();
        for (pane, owner, window) in panes {
            let in_place = format!("#{{&&:#{{==:#{{window_id}},{window}}},#{{!=:{},1}}}}", behind_a_zoom());
            let condition = both(&self.ours(owner), &both(&in_place, &leaves_its_session()));
            scripts.extend([only_if(&pane.to_string(), &condition, &killing(*pane))?, its_id(*pane)]);
        }
        let answers = self.ask_each(&scripts, deadline)?.into_iter().skip(1).step_by(2);
        answers.zip(panes).map(|(answer, (pane, ..))| Ok(!self.is_there(answer, *pane, deadline)?)).collect()
    }

    /// What came of an act on `owner`'s pane, and whether it is there behind it.
    fn act_and_look(
        &mut self,
        pane: PaneId,
        owner: &Owner,
        act: &Script,
        deadline: Deadline,
    ) -> Result<(Result<String, Error>, bool), Error> {
        let guarded = Guarded::new(pane, &self.ours(owner), act)?;
        let [did, look] = self.ask_all(&[guarded.script.clone(), its_id(pane)], deadline)?;
        Ok((guarded.done(did, deadline), self.is_there(look, pane, deadline)?))
    }

    /// What the answer to [`its_id`] says: asked about a pane that is gone, tmux tells the id of another, or of none; and of one
    /// whose window has just gone with it, its id, but no session.
    fn is_there(&mut self, answer: Reply, pane: PaneId, deadline: Deadline) -> Result<bool, Error> {
        let told = answer.text(deadline.verb()).unwrap_or_else(|_| "an error".to_owned());
        match told.parse::<PaneId>() {
            Ok(id) => Ok(id == pane),
            Err(_) if told.is_empty() => Ok(false),
            // What a user's alias makes of the question.
            Err(_) => Ok(self.row(pane, deadline)?.is_some()),
        }
    }
}

/// With the pane its session does not end: the end of the window that was the current one before it would be told of a session
/// that has none, and up to tmux 3.6 that is the end of the server.
fn leaves_its_session() -> String {
    any("#{!=:#{window_panes},1}", &both("#{!=:#{session_windows},1}", "#{!=:#{window_linked},1}"))
}

fn killing(pane: PaneId) -> Script {
    Script::of(&KillPane::new().target_pane(pane.to_string()).build())
}

/// Asks for the id of what is meant by that of a pane: tmux need not go through all panes for it, as it does for a list.
fn its_id(pane: PaneId) -> Script {
    let id = "#{?session_id,#{pane_id},}";
    Script::of(&DisplayMessage::new().print().target_pane(pane.to_string()).message(id).build())
}

/// Ends the pane that a session of ours began with, in the script that made the session.
pub(crate) fn first_of(session: &str) -> TmuxCommand<'static> {
    KillPane::new().target_pane(format!("={session}:^")).build()
}

//! The one place where a pane is killed.
//!
//! Killing is one guarded step inside the server, and "gone" is what tmux says behind it, never a failure. Both are asked for
//! in one round trip, also of several panes where no two are in one window and no session ends with them; the next pane's of
//! that window comes after it, see [`crate::mark`].
//! A pane's end is a hang-up for its processes and no more; who must be sure of those has to see to them before.

use tmux_interface::{DisplayMessage, KillPane, TmuxCommand};

use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::guarded_command::{GuardedCommand, all_of, any_of, if_else, if_then, print_command};
use crate::hidden_panes::{hidden_by_zoom_condition, with_zoom_restored};
use crate::reply::CommandReply;
use crate::{Error, PaneId, PaneTag, TmuxServer, WindowId, nonce};

/// How an attempt to kill a pane ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillOutcome {
    /// It was there and ours, and is gone.
    Killed,
    /// It is not that owner's, or somebody has started it anew with a process of theirs; it lives.
    NotOwned,
    /// There is no such pane.
    NotFound,
}

impl TmuxServer {
    /// Kills a pane if it is `owner`'s. A zoom of another pane in that window stays. One that somebody has started anew
    /// loses our marks.
    ///
    /// # Errors
    /// `Failed` if it is there all the same; `Timeout` and the like leave it unknown.
    pub fn kill(&mut self, pane: PaneId, owner: &PaneTag) -> Result<KillOutcome, Error> {
        let deadline = Deadline::for_action("kill a pane");
        let kill = kill_command(pane);
        // Whose zoom it is must be known before it ends.
        let waits = nonce::generate();
        let unless_zoomed =
            if_else(&pane.to_string(), &hidden_by_zoom_condition(), &print_command(&waits), &kill)?;
        let (did, there) = match self.run_and_check(pane, owner, &unless_zoomed, deadline)? {
            (Ok(said), true) if said == waits => match self.pane_row(pane, deadline)? {
                None => return Ok(KillOutcome::NotFound),
                Some(row) => self.run_and_check(pane, owner, &with_zoom_restored(&row, &kill)?, deadline)?,
            },
            tried => tried,
        };
        match (did, there) {
            (Ok(_), false) => Ok(KillOutcome::Killed),
            (Ok(_), true) => Err(Error::Rejected {
                action: deadline.action(),
                cause: format!("pane {pane} is still there"),
            }),
            (Err(Error::NotOwned { .. }), false) => Ok(KillOutcome::NotFound),
            (Err(Error::NotOwned { .. }), true) => {
                self.untag(pane, owner, deadline)?;
                Ok(self.pane_row(pane, deadline)?.map_or(KillOutcome::NotFound, |_| KillOutcome::NotOwned))
            }
            (Err(other), _) => Err(other),
        }
    }

    /// Which of these panes are gone after one round trip, in which each is killed that is its owner's, in that window still,
    /// behind no zoom, and not the last of its session. No two may be of one window. For who stays there is [`Server::kill`].
    ///
    /// # Errors
    /// `Timeout` and the like leave all of it unknown.
    pub fn kill_panes(&mut self, panes: &[(PaneId, PaneTag, WindowId)]) -> Result<Vec<bool>, Error> {
        let deadline = Deadline::for_action("kill panes");
        let mut scripts = Vec::new();
        for (pane, owner, window) in panes {
            let in_place =
                format!("#{{&&:#{{==:#{{window_id}},{window}}},#{{!=:{},1}}}}", hidden_by_zoom_condition());
            let condition =
                all_of(&self.tag_condition(owner), &all_of(&in_place, &session_survives_condition()));
            scripts.extend([
                if_then(&pane.to_string(), &condition, &kill_command(*pane))?,
                pane_id_command(*pane),
            ]);
        }
        let answers = self.run_all(&scripts, deadline)?.into_iter().skip(1).step_by(2);
        answers
            .zip(panes)
            .map(|(answer, (pane, ..))| Ok(!self.pane_exists(answer, *pane, deadline)?))
            .collect()
    }

    /// What came of an act on `owner`'s pane, and whether it is there behind it.
    fn run_and_check(
        &mut self,
        pane: PaneId,
        owner: &PaneTag,
        act: &CommandList,
        deadline: Deadline,
    ) -> Result<(Result<String, Error>, bool), Error> {
        let guarded = GuardedCommand::new(pane, &self.tag_condition(owner), act)?;
        let [did, look] = self.run_array(&[guarded.script.clone(), pane_id_command(pane)], deadline)?;
        Ok((guarded.output(did, deadline), self.pane_exists(look, pane, deadline)?))
    }

    /// What the answer to [`its_id`] says: asked about a pane that is gone, tmux tells the id of another, or of none; and of one
    /// whose window has just gone with it, its id, but no session.
    fn pane_exists(&mut self, answer: CommandReply, pane: PaneId, deadline: Deadline) -> Result<bool, Error> {
        let told = answer.text(deadline.action()).unwrap_or_else(|_| "an error".to_owned());
        match told.parse::<PaneId>() {
            Ok(id) => Ok(id == pane),
            Err(_) if told.is_empty() => Ok(false),
            // What a user's alias makes of the question.
            Err(_) => Ok(self.pane_row(pane, deadline)?.is_some()),
        }
    }
}

/// With the pane its session does not end: the end of the window that was the current one before it would be told of a session
/// that has none, and up to tmux 3.6 that is the end of the server.
fn session_survives_condition() -> String {
    any_of("#{!=:#{window_panes},1}", &all_of("#{!=:#{session_windows},1}", "#{!=:#{window_linked},1}"))
}

fn kill_command(pane: PaneId) -> CommandList {
    CommandList::new(&KillPane::new().target_pane(pane.to_string()).build())
}

/// Asks for the id of what is meant by that of a pane: tmux need not go through all panes for it, as it does for a list.
fn pane_id_command(pane: PaneId) -> CommandList {
    let id = "#{?session_id,#{pane_id},}";
    CommandList::new(&DisplayMessage::new().print().target_pane(pane.to_string()).message(id).build())
}

/// Ends the pane that a session of ours began with, in the script that made the session.
pub(crate) fn kill_first_pane_command(session: &str) -> TmuxCommand<'static> {
    KillPane::new().target_pane(format!("={session}:^")).build()
}

//! Kills the panes of agents. Each of these panes has a tag. No other module kills tagged panes.
//!
//! One round trip kills a pane if it has the expected tag, and then asks tmux whether the pane
//! still exists. Only tmux's answer proves that the pane is gone.
//!
//! One round trip may kill panes of several windows, but at most one pane per window, and never the
//! last pane of a session. If several panes of a window, or all panes of a session, closed at once,
//! tmux could crash ([`crate::tag_and_label_pane`]).
//!
//! Killing a pane only sends SIGHUP to its processes, which may ignore the signal. A caller that
//! must be sure that these processes end has to kill them before it kills the pane.

use tmux_interface::{DisplayMessage, KillPane, TmuxCommand};

use crate::command_list::CommandList;
use crate::command_reply::CommandReply;
use crate::guarded_command::GuardedCommand;
use crate::if_shell::{all_of, any_of, if_else, if_then, print_command};
use crate::keep_window_zoomed::{hidden_by_zoom_condition, with_zoom_restored};
use crate::run_commands_of_one_call::{OnDisconnect, TmuxCall};
use crate::{Error, PaneId, PaneTag, TmuxServer, WindowId, nonce};

/// How an attempt to kill a pane ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillOutcome {
    /// The pane had the tag and is gone.
    Killed,
    /// The pane exists, but has another tag or was respawned by a user. It was not killed.
    NotOwned,
    /// The pane does not exist.
    NotFound,
}

/// A pane for [`TmuxServer::kill_panes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneToKill {
    /// The pane.
    pub pane: PaneId,
    /// The tag that the pane must have.
    pub tag: PaneTag,
    /// The window that the pane must be in.
    pub window: WindowId,
}

impl TmuxServer {
    /// Kills a pane that has the tag `tag`. If another pane of the window is zoomed, that pane
    /// stays zoomed. If a user has run `respawn-pane` in the pane, the pane is not killed and only
    /// loses its tag and label.
    ///
    /// # Errors
    ///
    /// `Rejected` if the pane still exists after the kill command. After any other error it is
    /// unknown whether the pane exists.
    pub fn kill(&mut self, pane: PaneId, tag: &PaneTag) -> Result<KillOutcome, Error> {
        let mut call = self.call("kill a pane");
        let kill = kill_command(pane);
        // Killing the pane ends the zoom of another pane in its window. The window can be zoomed
        // again only after its id was looked up. So if another pane is zoomed, tmux does not kill
        // the pane at first, and only prints `zoomed_nonce`.
        let zoomed_nonce = nonce::generate();
        let unless_zoomed =
            if_else(&pane.to_string(), &hidden_by_zoom_condition(), &print_command(&zoomed_nonce), &kill)?;
        let mut attempt = call.run_and_check(pane, tag, &unless_zoomed)?;
        if attempt.pane_exists && attempt.result.as_ref().is_ok_and(|text| *text == zoomed_nonce) {
            let Some(row) = call.pane_row(pane)? else { return Ok(KillOutcome::NotFound) };
            attempt = call.run_and_check(pane, tag, &with_zoom_restored(&row, &kill)?)?;
        }
        match (attempt.result, attempt.pane_exists) {
            (Ok(_), false) => Ok(KillOutcome::Killed),
            (Ok(_), true) => {
                let cause = format!("pane {pane} is still there");
                Err(Error::Rejected { action: call.action(), cause })
            }
            (Err(Error::NotOwned { .. }), false) => Ok(KillOutcome::NotFound),
            (Err(Error::NotOwned { .. }), true) => {
                call.untag(pane, tag)?;
                Ok(call.pane_row(pane)?.map_or(KillOutcome::NotFound, |_| KillOutcome::NotOwned))
            }
            (Err(other), _) => Err(other),
        }
    }

    /// Kills panes of several windows in one round trip. Returns for each pane whether it is gone.
    /// The caller must pass at most one pane per window, and must call [`TmuxServer::kill`] for
    /// each pane that is not gone.
    ///
    /// A pane is not killed in these cases: it has another tag, it was moved to another window,
    /// another pane of its window is zoomed, or it is the last pane of a session.
    ///
    /// # Errors
    ///
    /// After an error it is unknown which of the panes exist.
    pub fn kill_panes(&mut self, panes: &[PaneToKill]) -> Result<Vec<bool>, Error> {
        let mut call = self.call("kill panes");
        let mut command_lists = Vec::new();
        for PaneToKill { pane, tag, window } in panes {
            let in_place =
                format!("#{{&&:#{{==:#{{window_id}},{window}}},#{{!=:{},1}}}}", hidden_by_zoom_condition());
            let condition =
                all_of(&call.tag_condition(tag), &all_of(&in_place, &session_survives_condition()));
            command_lists.extend([
                if_then(&pane.to_string(), &condition, &kill_command(*pane))?,
                pane_id_command(*pane),
            ]);
        }
        let replies = call.run_all(&command_lists, OnDisconnect::Retry)?.into_iter().skip(1).step_by(2);
        replies.zip(panes).map(|(reply, kill)| Ok(!call.pane_exists(reply, kill.pane)?)).collect()
    }
}

/// The replies to an attempt to kill a pane.
struct KillAttempt {
    result: Result<String, Error>,
    /// Whether the pane exists after the attempt.
    pane_exists: bool,
}

impl TmuxCall<'_> {
    /// Runs `commands` if the pane has the tag `tag`, and checks whether the pane still exists.
    fn run_and_check(
        &mut self,
        pane: PaneId,
        tag: &PaneTag,
        commands: &CommandList,
    ) -> Result<KillAttempt, Error> {
        let guarded = GuardedCommand::new(pane, &self.tag_condition(tag), commands)?;
        let [reply, query] = self.run_array(&[guarded.command_list.clone(), pane_id_command(pane)])?;
        let result = guarded.output(reply, self.action());
        Ok(KillAttempt { result, pane_exists: self.pane_exists(query, pane)? })
    }

    /// Whether `pane` exists, according to the reply to [`pane_id_command`].
    ///
    /// The pane exists if tmux has printed its id. If the pane does not exist, tmux prints the id
    /// of another pane, or nothing.
    fn pane_exists(&mut self, reply: CommandReply, pane: PaneId) -> Result<bool, Error> {
        let text = reply.text().unwrap_or_else(|_| "an error".to_owned());
        match text.parse::<PaneId>() {
            Ok(id) => Ok(id == pane),
            Err(_) if text.is_empty() => Ok(false),
            // tmux has printed more than an id. For example, the user has defined an alias for a
            // tmux command, and the alias prints something else. So the pane is looked up in tmux's
            // list of panes.
            Err(_) => Ok(self.pane_row(pane)?.is_some()),
        }
    }
}

/// Returns a tmux condition that is true if the session of a pane will still exist after the pane
/// is killed.
///
/// The condition prevents a crash: when a session ends, tmux sends a notification about the
/// session's current window, although the session has no window left. tmux up to version 3.6
/// crashes in this case.
fn session_survives_condition() -> String {
    any_of("#{!=:#{window_panes},1}", &all_of("#{!=:#{session_windows},1}", "#{!=:#{window_linked},1}"))
}

/// Returns the command that kills a pane without any condition.
fn kill_command(pane: PaneId) -> CommandList {
    CommandList::new(&KillPane::new().target_pane(pane.to_string()).build())
}

/// Returns a command that prints the id of `pane` if the pane exists. If the pane does not exist,
/// the command prints another id or nothing. Listing the panes would be slower, because tmux would
/// go through all panes.
fn pane_id_command(pane: PaneId) -> CommandList {
    // For a short time after a window has closed, tmux still knows the window's panes, but they are
    // in no session. Then `session_id` is empty, and tmux does not print the pane's id.
    let id = "#{?session_id,#{pane_id},}";
    CommandList::new(&DisplayMessage::new().print().target_pane(pane.to_string()).message(id).build())
}

/// Returns the command that kills the first pane of a new session, a placeholder without which tmux
/// cannot create the session. The command must be in the command list that creates the session.
pub(crate) fn kill_first_pane_command(session: &str) -> TmuxCommand<'static> {
    KillPane::new().target_pane(format!("={session}:^")).build()
}

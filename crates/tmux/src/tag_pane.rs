//! Marks on a pane: whose it is, and what its border says.
//!
//! They are pane options, so they stay with the pane when the user moves it to another window or session. Who starts it
//! anew with a command of their own gets it without them.
//!
//! A claimed pane stays when its process ends, until it is killed by its owner. Up to tmux 3.6, two panes of a window
//! that go in the same moment crash a server that has a control client, the active one's end being told when the
//! window has no pane left; so do two windows whose end is that of their session. Kills that come one by one do not.

use std::path::PathBuf;

use tmux_interface::{SetOption, TmuxCommand};

use crate::border_label::set_pane_option;
use crate::command_list::CommandList;
use crate::create_pane::{configure_window_commands, split_commands, split_from_reply};
use crate::deadline::Deadline;
use crate::guarded_command::{GuardedCommand, all_of, any_of, if_then};
use crate::pipe_pane::pipe_commands;
use crate::{BorderLabel, CreatedPane, Error, PaneId, PaneTag, TmuxServer, WindowId};

/// What came of a claim, and with it.
#[derive(Debug)]
pub struct TagOutcome {
    /// As [`Server::claim`].
    pub tagged: Result<(), Error>,
    /// Whether its window, if that is new, is one of ours.
    pub window_configured: Result<(), Error>,
    /// Whether the pane is recorded.
    pub piped: Result<(), Error>,
    /// The pane that was asked for besides, if that was sent; after `Timeout` and `Lost` it may exist.
    pub next_pane: Option<Result<CreatedPane, Error>>,
}

impl TmuxServer {
    /// Makes a pane `owner`'s and labels it, in one go. From now on it stays when its process ends.
    ///
    /// # Errors
    /// `NotOurs` if it is somebody else's already; `Failed` where the pane is gone.
    pub fn tag_pane(&mut self, pane: PaneId, owner: &PaneTag, label: &BorderLabel) -> Result<(), Error> {
        let deadline = Deadline::for_action("claim a pane");
        let claim = self.tag_commands(pane, owner, label.set_commands(pane))?;
        let reply = self.run(&claim.script, deadline)?;
        claim.output(reply, deadline).map(drop)
    }

    /// [`Server::claim`] and [`Server::record`] for a pane that was just made, whose window becomes one of ours if it is new: then
    /// its border shows the panes' labels. And a split for the one that comes next, all in one round trip.
    ///
    /// # Errors
    /// `Invalid` for words that can't be spelled: then nothing was asked for. Else each has its own.
    pub fn tag_and_pipe(
        &mut self,
        CreatedPane { pane, window, is_first_in_window: first, .. }: CreatedPane,
        owner: &PaneTag,
        label: &BorderLabel,
        command: &[PathBuf],
        next: Option<(WindowId, &[String])>,
    ) -> Result<TagOutcome, Error> {
        let deadline = Deadline::for_action("claim a pane");
        let claim =
            self.tag_commands(pane, owner, label.set_commands(pane).extend(pipe_commands(pane, command)?))?;
        let mut scripts: Vec<CommandList> =
            first.then(|| configure_window_commands(window)).into_iter().collect();
        scripts.push(claim.script.clone());
        let ours = scripts.len();
        scripts.extend(next.map(|(window, argv)| split_commands(window, argv)).transpose()?);
        // A pane is not made twice.
        let answers = match self.run_all_once(&scripts, deadline) {
            Err(Error::Disconnected { .. }) => self.run_all(&scripts[..ours], deadline),
            answers => answers,
        };
        let mut answers = match answers {
            Err(error) => {
                let sent = matches!(error, Error::Timeout { .. } | Error::Disconnected { .. });
                let next = next.filter(|_| sent).map(|_| Err(deadline.disconnect_error()));
                let [dressed, recorded] =
                    [Err(deadline.disconnect_error()), Err(deadline.disconnect_error())];
                return Ok(TagOutcome {
                    tagged: Err(error),
                    window_configured: dressed,
                    piped: recorded,
                    next_pane: next,
                });
            }
            Ok(answers) => answers.into_iter(),
        };
        let mut answer = || answers.next().ok_or(deadline.disconnect_error());
        let dressed =
            if first { answer().and_then(|reply| reply.into_result(deadline.action())) } else { Ok(()) };
        let claimed = answer().and_then(|reply| claim.output(reply, deadline).map(drop));
        let next = next.map(|(window, _)| split_from_reply(answer()?, window, deadline));
        let (claimed, recorded) = match claimed {
            Ok(()) => (Ok(()), Ok(())),
            // Which of the two could not be done?
            Err(Error::Rejected { .. }) => {
                (self.tag_pane(pane, owner, label), self.pipe_output(pane, owner, command))
            }
            Err(error) => (Err(error), Err(deadline.disconnect_error())),
        };
        Ok(TagOutcome { tagged: claimed, window_configured: dressed, piped: recorded, next_pane: next })
    }

    /// And what else is to be done if it may be claimed.
    fn tag_commands(
        &self,
        pane: PaneId,
        owner: &PaneTag,
        besides: CommandList,
    ) -> Result<GuardedCommand, Error> {
        let unclaimed = format!("#{{==:#{{{}}},}}", PaneTag::TAG_OPTION);
        let free = any_of(&unclaimed, &owner.owned_condition());
        let act = CommandList::new(&set_pane_option(pane, PaneTag::TAG_OPTION, owner.to_string()))
            .with_command(&set_pid_option(pane))
            .with_command(&set_pane_option(pane, "remain-on-exit", "on".to_owned()))
            .extend(besides);
        GuardedCommand::new(pane, &all_of(&self.epoch().condition(), &free), &act)
    }

    /// Puts another label on a pane of `owner`'s.
    ///
    /// # Errors
    /// `NotOurs`.
    pub fn set_label(&mut self, pane: PaneId, owner: &PaneTag, label: &BorderLabel) -> Result<(), Error> {
        self.run_if_tagged(Deadline::for_action("label a pane"), pane, owner, &label.set_commands(pane))
            .map(drop)
    }

    /// Takes our marks off a pane of `owner`'s that somebody has started anew: it ends with its process again, and its
    /// border says nothing of us. On any other pane nothing is done.
    pub(crate) fn untag(&mut self, pane: PaneId, owner: &PaneTag, deadline: Deadline) -> Result<(), Error> {
        let theirs = all_of(&owner.tag_condition(), &format!("#{{!=:{},1}}", owner.owned_condition()));
        let condition = all_of(&self.epoch().condition(), &theirs);
        let marks = [
            PaneTag::PID_OPTION,
            "remain-on-exit",
            "@teamd_name",
            "@teamd_color",
            "@teamd_state",
            "@teamd_task",
        ];
        let first = CommandList::new(&unset_option(pane, PaneTag::TAG_OPTION));
        let script =
            marks.into_iter().fold(first, |script, mark| script.with_command(&unset_option(pane, mark)));
        let script = if_then(&pane.to_string(), &condition, &script)?;
        self.run(&script, deadline)?.into_result(deadline.action())
    }
}

/// Writes down the process that is in the pane; a format that tmux fills in itself.
fn set_pid_option(pane: PaneId) -> TmuxCommand<'static> {
    let command = SetOption::new().pane().format().target_pane(pane.to_string());
    command.option(PaneTag::PID_OPTION).value("#{pane_pid}").build()
}

fn unset_option(pane: PaneId, mark: &'static str) -> TmuxCommand<'static> {
    SetOption::new().pane().unset().target_pane(pane.to_string()).option(mark).build()
}

//! Sets the tag and the label of a pane.
//!
//! Tag and label are pane options, so they stay with the pane when the user moves the pane to
//! another window or session.
//!
//! After its process has exited, a tagged pane stays open until this crate kills it. If tagged
//! panes closed by themselves, several of them could close at the same moment. While a control
//! client is attached, tmux up to version 3.6 can crash in two such cases:
//!
//! - Two panes of one window close: tmux sends the notification about a new active pane when the
//!   window has no pane left.
//! - Two windows close, and their session ends with them.
//!
//! So this crate kills the panes one after another, which does not crash tmux.

use std::path::PathBuf;

use tmux_interface::{SetOption, TmuxCommand};

use crate::border_label::set_pane_option;
use crate::command_list::CommandList;
use crate::command_reply::CommandReply;
use crate::create_pane::{configure_window_commands, split_commands, split_from_reply};
use crate::guarded_command::GuardedCommand;
use crate::if_shell::{all_of, any_of, if_then};
use crate::pipe_pane::pipe_commands;
use crate::run_commands_of_one_call::{OnDisconnect, TmuxCall};
use crate::{BorderLabel, CreatedPane, Error, PaneId, PaneTag, TmuxServer, WindowId};

/// The results of [`TmuxServer::tag_and_pipe`].
#[derive(Debug)]
pub struct TagOutcome {
    /// Whether the pane was tagged: the result of [`TmuxServer::tag_pane`].
    pub tagged: Result<(), Error>,
    /// Whether the options of a teamd window were set. `Ok` if the window is not new.
    pub window_configured: Result<(), Error>,
    /// Whether the output of the pane is piped.
    pub piped: Result<(), Error>,
    /// The result of creating the [`NextPane`]. `None` if the caller did not ask for one, or if the
    /// commands were not sent. After `Timeout` and `Disconnected` the pane may exist.
    pub next_pane: Option<Result<CreatedPane, Error>>,
}

/// A pane that [`TmuxServer::tag_and_pipe`] creates by a split.
#[derive(Debug, Clone, Copy)]
pub struct NextPane<'a> {
    /// The window to split.
    pub window: WindowId,
    /// The program of the pane and its arguments.
    pub argv: &'a [String],
}

impl TmuxServer {
    /// Tags and labels a pane in one step. From then on the pane stays open after its process has
    /// exited.
    ///
    /// # Errors
    ///
    /// `NotOwned` if the pane already has another tag; `Rejected` if the pane does not exist.
    pub fn tag_pane(&mut self, pane: PaneId, tag: &PaneTag, label: &BorderLabel) -> Result<(), Error> {
        let mut call = self.call("tag a pane");
        let guarded = call.tag_commands(pane, tag, label.set_commands(pane))?;
        let reply = call.run(&guarded.command_list)?;
        guarded.output(reply, call.action()).map(drop)
    }

    /// Tags a new pane, labels it and pipes its output to the program `command`, in one round trip.
    ///
    /// If the window of the pane is new, it becomes a teamd window: the border of each pane shows
    /// the pane's label. If `next` is given, the same round trip also splits the window of `next`,
    /// to create another pane.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a command is not valid or contains NUL; in this case nothing was sent.
    /// All other errors are in [`TagOutcome`], which has one result for each step.
    pub fn tag_and_pipe(
        &mut self,
        created: &CreatedPane,
        tag: &PaneTag,
        label: &BorderLabel,
        command: &[PathBuf],
        next: Option<NextPane<'_>>,
    ) -> Result<TagOutcome, Error> {
        let pane = created.pane;
        let commands = label.set_commands(pane).extend(pipe_commands(pane, command)?);
        let mut call = self.call("tag a pane");
        let guarded = call.tag_commands(pane, tag, commands)?;
        let configure = created.is_first_in_window.then(|| configure_window_commands(created.window));
        let split = next.map(|next| split_commands(next.window, next.argv)).transpose()?;
        let mut replies = match call.run_steps(configure, guarded.command_list.clone(), split) {
            Ok(replies) => replies.into_iter(),
            Err(error) => return Ok(call.outcome_without_replies(error, next)),
        };
        let mut next_reply = || replies.next().ok_or(call.disconnect_error());
        let window_configured = match created.is_first_in_window {
            true => next_reply().and_then(CommandReply::into_result),
            false => Ok(()),
        };
        let tagged = next_reply().and_then(|reply| guarded.output(reply, call.action()).map(drop));
        let next_pane = next.map(|next| split_from_reply(next_reply()?, next.window));
        let (tagged, piped) = match tagged {
            Ok(()) => (Ok(()), Ok(())),
            // Either the tag or the pipe may have failed, so each is tried alone.
            Err(Error::Rejected { .. }) => {
                (self.tag_pane(pane, tag, label), self.pipe_output(pane, tag, command))
            }
            Err(error) => (Err(error), Err(call.disconnect_error())),
        };
        Ok(TagOutcome { tagged, window_configured, piped, next_pane })
    }

    /// Changes the label of a pane with the tag `tag`.
    ///
    /// # Errors
    ///
    /// `NotOwned` if the pane does not have the tag.
    pub fn set_label(&mut self, pane: PaneId, tag: &PaneTag, label: &BorderLabel) -> Result<(), Error> {
        self.call("label a pane").run_if_tagged(pane, tag, &label.set_commands(pane)).map(drop)
    }
}

impl TmuxCall<'_> {
    /// Sends the steps of [`TmuxServer::tag_and_pipe`]. If the connection ends before the replies,
    /// sends the steps again, except the split: repeating it could create a second pane.
    fn run_steps(
        &mut self,
        configure: Option<CommandList>,
        tag: CommandList,
        split: Option<CommandList>,
    ) -> Result<Vec<CommandReply>, Error> {
        let mut command_lists: Vec<CommandList> = configure.into_iter().chain([tag]).collect();
        let retried = command_lists.len();
        command_lists.extend(split);
        match self.run_all(&command_lists, OnDisconnect::Fail) {
            Err(Error::Disconnected { .. }) => self.run_all(&command_lists[..retried], OnDisconnect::Retry),
            replies => replies,
        }
    }

    /// Returns the results of the steps if there are no replies.
    fn outcome_without_replies(&self, error: Error, next: Option<NextPane<'_>>) -> TagOutcome {
        let was_sent = matches!(error, Error::Timeout { .. } | Error::Disconnected { .. });
        TagOutcome {
            tagged: Err(error),
            window_configured: Err(self.disconnect_error()),
            piped: Err(self.disconnect_error()),
            next_pane: next.filter(|_| was_sent).map(|_| Err(self.disconnect_error())),
        }
    }

    /// Returns commands that tag `pane`, followed by the commands `then`. tmux runs all of them
    /// only if the pane has no tag or already has the tag `tag`.
    fn tag_commands(&self, pane: PaneId, tag: &PaneTag, then: CommandList) -> Result<GuardedCommand, Error> {
        let untagged = format!("#{{==:#{{{}}},}}", PaneTag::TAG_OPTION);
        let free = any_of(&untagged, &tag.owned_condition());
        let commands = CommandList::new(&set_pane_option(pane, PaneTag::TAG_OPTION, tag.to_string()))
            .with_command(&set_pid_option(pane))
            .with_command(&set_pane_option(pane, "remain-on-exit", "on".to_owned()))
            .extend(then);
        GuardedCommand::new(pane, &self.on_this_server(&free), &commands)
    }

    /// Removes the tag and the label from a pane that has the tag `tag` and in which a user has run
    /// `respawn-pane`. After that the pane closes when its process exits. Any other pane stays
    /// unchanged.
    pub(crate) fn untag(&mut self, pane: PaneId, tag: &PaneTag) -> Result<(), Error> {
        let respawned = all_of(&tag.tag_condition(), &format!("#{{!=:{},1}}", tag.owned_condition()));
        let condition = self.on_this_server(&respawned);
        let options = [
            PaneTag::PID_OPTION,
            "remain-on-exit",
            "@teamd_name",
            "@teamd_color",
            "@teamd_state",
            "@teamd_task",
        ];
        let first = CommandList::new(&unset_option(pane, PaneTag::TAG_OPTION));
        let commands = options
            .into_iter()
            .fold(first, |commands, option| commands.with_command(&unset_option(pane, option)));
        let guarded = if_then(&pane.to_string(), &condition, &commands)?;
        self.run(&guarded)?.into_result()
    }
}

/// Returns the command that stores the process id of the pane. tmux expands the value itself.
fn set_pid_option(pane: PaneId) -> TmuxCommand<'static> {
    let command = SetOption::new().pane().format().target_pane(pane.to_string());
    command.option(PaneTag::PID_OPTION).value("#{pane_pid}").build()
}

/// Returns the command that removes an option of the pane.
fn unset_option(pane: PaneId, option: &'static str) -> TmuxCommand<'static> {
    SetOption::new().pane().unset().target_pane(pane.to_string()).option(option).build()
}

//! One call of a public method: its commands go to the server and share one time limit.

use crate::command_list::CommandList;
use crate::command_reply::CommandReply;
use crate::deadline::Deadline;
use crate::guarded_command::GuardedCommand;
use crate::if_shell::all_of;
use crate::{Error, PaneId, PaneTag, TmuxServer};

/// What happens if the connection ends before the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDisconnect {
    /// The commands are sent again, so they may run twice.
    Retry,
    /// The call fails. The commands may have run, or may still run.
    Fail,
}

/// Sends the commands of one public call.
pub(crate) struct TmuxCall<'a> {
    server: &'a mut TmuxServer,
    deadline: Deadline,
}

impl TmuxServer {
    /// Starts a call with the usual time limit. `action` says what it does, for errors.
    pub(crate) fn call(&mut self, action: &'static str) -> TmuxCall<'_> {
        self.call_until(Deadline::for_action(action))
    }

    /// Starts a call with this time limit.
    pub(crate) fn call_until(&mut self, deadline: Deadline) -> TmuxCall<'_> {
        TmuxCall { server: self, deadline }
    }
}

impl TmuxCall<'_> {
    /// Returns what the call does, for errors.
    pub(crate) fn action(&self) -> &'static str {
        self.deadline.action()
    }

    /// Returns the error for a connection that ended before the reply.
    pub(crate) fn disconnect_error(&self) -> Error {
        self.deadline.disconnect_error()
    }

    /// Returns a tmux format that is true if `condition` is true and the tmux server has the
    /// expected epoch, which identifies one run of a server. After a restart of the server the
    /// format is false.
    pub(crate) fn on_this_server(&self, condition: &str) -> String {
        all_of(&self.server.epoch().condition(), condition)
    }

    /// Returns a tmux format that is true if the pane has the tag `tag` and no user has run
    /// `respawn-pane` in it. After a restart of the tmux server the format is always false.
    pub(crate) fn tag_condition(&self, tag: &PaneTag) -> String {
        self.on_this_server(&tag.owned_condition())
    }

    /// Runs a command list. If the connection ends before the reply, the list is sent again, so it
    /// may run twice.
    ///
    /// # Errors
    ///
    /// The errors of [`TmuxServer::send`].
    pub(crate) fn run(&mut self, command_list: &CommandList) -> Result<CommandReply, Error> {
        self.run_one(command_list, OnDisconnect::Retry)
    }

    /// Runs a command list that must not run twice. If the connection ends before the reply, the
    /// list is not sent again.
    ///
    /// # Errors
    ///
    /// The errors of [`TmuxServer::send`].
    pub(crate) fn run_once(&mut self, command_list: &CommandList) -> Result<CommandReply, Error> {
        self.run_one(command_list, OnDisconnect::Fail)
    }

    fn run_one(
        &mut self,
        command_list: &CommandList,
        on_disconnect: OnDisconnect,
    ) -> Result<CommandReply, Error> {
        let mut replies = self.run_all(std::slice::from_ref(command_list), on_disconnect)?;
        Ok(replies.pop().expect("one reply per command list"))
    }

    /// Runs several command lists in one round trip. If the connection ends before the replies, all
    /// lists are sent again, so they may run twice.
    ///
    /// # Errors
    ///
    /// The errors of [`TmuxServer::send`].
    pub(crate) fn run_array<const N: usize>(
        &mut self,
        command_lists: &[CommandList; N],
    ) -> Result<[CommandReply; N], Error> {
        let replies = self.run_all(command_lists, OnDisconnect::Retry)?;
        Ok(replies.try_into().expect("one reply per command list"))
    }

    /// Runs any number of command lists in one round trip. `on_disconnect` says whether they are
    /// sent again if the connection ends before the replies.
    ///
    /// # Errors
    ///
    /// The errors of [`TmuxServer::send`].
    pub(crate) fn run_all(
        &mut self,
        command_lists: &[CommandList],
        on_disconnect: OnDisconnect,
    ) -> Result<Vec<CommandReply>, Error> {
        match self.server.send(command_lists, self.deadline) {
            Err(Error::Disconnected { .. }) if on_disconnect == OnDisconnect::Retry => {
                self.server.send(command_lists, self.deadline)
            }
            replies => replies,
        }
    }

    /// Runs `commands` if the pane has the tag `tag`, and returns what the commands printed. The
    /// commands may run twice, because they are sent again if the connection ends before the reply.
    ///
    /// # Errors
    ///
    /// `NotOwned` if the pane does not have the tag; then no command has run. `Rejected` if tmux
    /// refused a command. Otherwise the errors of [`TmuxServer::send`].
    pub(crate) fn run_if_tagged(
        &mut self,
        pane: PaneId,
        tag: &PaneTag,
        commands: &CommandList,
    ) -> Result<String, Error> {
        let guarded = GuardedCommand::new(pane, &self.tag_condition(tag), commands)?;
        let reply = self.run_one(&guarded.command_list, OnDisconnect::Retry)?;
        guarded.output(reply, self.action())
    }
}

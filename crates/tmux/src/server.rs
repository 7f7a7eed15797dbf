//! A handle on one run of a tmux server. All other modules send their commands through this handle.
//!
//! Commands go over the control connection. If that connection has ended, the handle first starts a
//! tmux process that reads the server's epoch (process id, start time and socket). If the epoch is
//! the same, the handle opens a new control connection. If the server accepts no control client,
//! the handle starts one tmux process for each command list.
//!
//! Invariant: a server with another epoch gets no command except the one that reads its epoch.
//! `pane_ids_of_another_server_are_rejected` checks this.

use crate::command_list::CommandList;
use crate::command_reply::CommandReply;
use crate::connect::{self, OpenedConnection};
use crate::control_client_process::ServerStart;
use crate::control_connection::ControlConnection;
use crate::deadline::Deadline;
use crate::if_shell::print_command;
use crate::report_disconnect_or_foreign_use::{NoticeSender, ServerNotice};
use crate::server_address_and_program::TmuxEndpoint;
use crate::{Error, ServerAddress, ServerEpoch, TmuxProgram, TmuxVersion, run_tmux_process};

/// A handle on one run of a tmux server. A method blocks for three seconds at most, except the
/// methods that connect.
pub struct TmuxServer {
    tmux: TmuxEndpoint,
    epoch: ServerEpoch,
    version: TmuxVersion,
    connection: Option<ControlConnection>,
    notices: NoticeSender,
}

impl TmuxServer {
    /// Connects to the server at `address` with the program `tmux` in `PATH`. Starts a server if
    /// none is running. Connecting takes up to ten seconds, because a new server runs the user's
    /// configuration first.
    ///
    /// This crate calls `notice` for each [`ServerNotice`], on the thread that reads tmux's output.
    /// So `notice` must not block: if the output is not read, the tmux server hangs.
    ///
    /// # Errors
    ///
    /// `ProgramNotStarted`, `TooOld`, `Connect`, `Timeout`.
    pub fn connect(
        address: &ServerAddress,
        notice: Box<dyn Fn(ServerNotice) + Send>,
    ) -> Result<TmuxServer, Error> {
        TmuxServer::connect_with(&TmuxProgram::default(), address, notice)
    }

    /// As [`TmuxServer::connect`], with the given tmux program.
    ///
    /// # Errors
    ///
    /// As [`TmuxServer::connect`].
    pub fn connect_with(
        program: &TmuxProgram,
        address: &ServerAddress,
        notice: Box<dyn Fn(ServerNotice) + Send>,
    ) -> Result<TmuxServer, Error> {
        let tmux = TmuxEndpoint { program: program.clone(), address: address.clone() };
        let notices = NoticeSender::new(notice);
        let deadline = Deadline::for_server_start("connect to tmux");
        failpoint::hit("tmux.connect");
        let OpenedConnection { connection, epoch, version } =
            connect::connect_with_retries(&tmux, &notices, deadline)?;
        failpoint::hit("tmux.connected");
        Ok(TmuxServer { tmux, epoch, version, connection: Some(connection), notices })
    }

    /// Returns the epoch of the server to which this handle belongs. An epoch identifies one run of
    /// a server.
    pub fn epoch(&self) -> &ServerEpoch {
        &self.epoch
    }

    /// Returns the version of the server. The tmux program may have another version.
    pub fn version(&self) -> TmuxVersion {
        self.version
    }

    /// Whether this server replies. A server that does not reply may still exist: it may be slow,
    /// or stopped by a signal.
    pub fn is_alive(&mut self) -> bool {
        let reply = self.call("check the tmux server").run(&print_command(ServerEpoch::FORMAT));
        let text = reply.and_then(CommandReply::text);
        text.is_ok_and(|text| text.parse().is_ok_and(|epoch: ServerEpoch| epoch == self.epoch))
    }

    /// Sends command lists in one round trip, and returns a reply for each list. A list runs even
    /// if a list before it fails.
    ///
    /// # Errors
    ///
    /// After `Timeout` and `Disconnected` the commands may have run, or may still run. The other
    /// errors are `OtherServer`, `Connect` and `ProgramNotStarted`, and `InvalidArgument` if a word
    /// contains NUL.
    pub(crate) fn send(
        &mut self,
        command_lists: &[CommandList],
        deadline: Deadline,
    ) -> Result<Vec<CommandReply>, Error> {
        self.reconnect(deadline)?;
        failpoint::hit("tmux.send");
        let Some(connection) = &mut self.connection else {
            return command_lists
                .iter()
                .map(|command_list| run_tmux_process::run(&self.tmux, command_list, deadline))
                .collect();
        };
        let replies = connection.run(command_lists, deadline);
        failpoint::hit("tmux.received");
        if let Err(Error::Timeout { .. } | Error::Disconnected { .. }) = replies {
            // A connection is not used again after a timeout. Otherwise a late reply would be read
            // as part of the next reply.
            self.connection = None;
        }
        replies
    }

    /// Opens a new control connection if there is none. If tmux refuses the connection, this is no
    /// error, as long as the server replies and is still the server of this handle. Commands are
    /// then run by tmux processes.
    fn reconnect(&mut self, deadline: Deadline) -> Result<(), Error> {
        if self.connection.as_ref().is_some_and(ControlConnection::is_open) {
            return Ok(());
        }
        self.connection = None;
        self.check_epoch(deadline)?;
        match connect::try_connect(&self.tmux, ServerStart::Never, &self.notices, deadline) {
            Ok(opened) => {
                self.check_same_epoch(opened.epoch)?;
                self.connection = Some(opened.connection);
                Ok(())
            }
            Err(timeout @ Error::Timeout { .. }) => Err(timeout),
            Err(_) => Ok(()),
        }
    }

    /// Checks that the server at the address is still the server of this handle. A tmux process
    /// reads the server's epoch, which identifies one run of a server. A control client cannot be
    /// used for this: it would create a session before the check, possibly on another server.
    fn check_epoch(&self, deadline: Deadline) -> Result<(), Error> {
        match run_tmux_process::run(&self.tmux, &print_command(ServerEpoch::FORMAT), deadline)?.text() {
            Ok(text) => self.check_same_epoch(text.parse()?),
            Err(Error::Rejected { cause, .. }) => Err(connect::connect_error(&self.tmux, cause)),
            Err(other) => Err(other),
        }
    }

    /// Compares the epoch of a server with the epoch of this handle. An epoch identifies one run of
    /// a server.
    ///
    /// # Errors
    ///
    /// `OtherServer` if `found` is not the epoch of this handle.
    fn check_same_epoch(&self, found: ServerEpoch) -> Result<(), Error> {
        if found == self.epoch {
            return Ok(());
        }
        Err(Error::OtherServer { expected: self.epoch.clone(), found })
    }
}

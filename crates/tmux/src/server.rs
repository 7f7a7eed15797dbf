//! The tmux server as the rest of the program sees it: one address, one epoch, one way in.
//!
//! Commands travel over the control connection. Where that has ended, the server is asked who it is; if it is still the
//! same, the connection is made anew, and where that fails the command goes by a process of its own. A server that
//! is not the same one is never sent anything.

use std::sync::{Arc, Mutex, PoisonError};

use crate::address::TmuxEndpoint;
use crate::command_list::CommandList;
use crate::connect::{self, ServerHandshake};
use crate::control_client::ServerStart;
use crate::control_connection::ControlConnection;
use crate::deadline::Deadline;
use crate::guarded_command::print_command;
use crate::reply::CommandReply;
use crate::{Error, ServerAddress, ServerEpoch, TmuxProgram, TmuxVersion, subprocess};

/// What tmux does by itself, as far as it tells. A hint: changes of other sessions' panes come without any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerNotice {
    /// Something moved: look again.
    Changed,
    /// The connection ended by itself: the server may be gone. The next call tries to connect again.
    Disconnected,
}

/// Passes notices on. Shared by the reader threads of successive connections.
#[derive(Clone)]
pub(crate) struct NoticeSender(Arc<Mutex<NoticeHandler>>);

type NoticeHandler = Box<dyn Fn(ServerNotice) + Send>;

impl NoticeSender {
    pub(crate) fn notify(&self, notice: ServerNotice) {
        let listener = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listener(notice);
    }
}

/// One running tmux server. Its methods block, for three seconds at most.
pub struct TmuxServer {
    tmux: TmuxEndpoint,
    epoch: ServerEpoch,
    version: TmuxVersion,
    connection: Option<ControlConnection>,
    notices: NoticeSender,
}

impl TmuxServer {
    /// Connects to the server at `address` with the tmux in `PATH`; starts a server if there is none. Takes up to
    /// ten seconds, since a new server runs the user's configuration first.
    ///
    /// `notice` is called on a thread of ours and must not block: a client that is not read holds its server up.
    ///
    /// # Errors
    /// `Run`, `TooOld`, `Connect`, `Timeout`.
    pub fn connect(
        address: &ServerAddress,
        notice: Box<dyn Fn(ServerNotice) + Send>,
    ) -> Result<TmuxServer, Error> {
        TmuxServer::connect_with(&TmuxProgram::default(), address, notice)
    }

    /// [`Server::connect`] with a tmux of the caller's choice.
    ///
    /// # Errors
    /// The same.
    pub fn connect_with(
        program: &TmuxProgram,
        address: &ServerAddress,
        notice: Box<dyn Fn(ServerNotice) + Send>,
    ) -> Result<TmuxServer, Error> {
        let tmux = TmuxEndpoint { program: program.clone(), address: address.clone() };
        let herald = NoticeSender(Arc::new(Mutex::new(notice)));
        let deadline = Deadline::for_server_start("connect to tmux");
        failpoint::hit("tmux.connect");
        let (control, hello) = connect::connect_with_retries(&tmux, &herald, deadline)?;
        failpoint::hit("tmux.connected");
        let ServerHandshake { epoch, version } = hello;
        Ok(TmuxServer { tmux, epoch, version, connection: Some(control), notices: herald })
    }

    /// Which life of which server this is.
    pub fn epoch(&self) -> &ServerEpoch {
        &self.epoch
    }

    /// The running server's version.
    pub fn version(&self) -> TmuxVersion {
        self.version
    }

    /// Whether the same server answers. False is no proof of its end: it may be slow or stopped.
    pub fn is_alive(&mut self) -> bool {
        let deadline = Deadline::for_action("ask tmux who it is");
        let answer = self
            .run(&print_command(ServerEpoch::FORMAT), deadline)
            .and_then(|reply| reply.text(deadline.action()));
        answer.is_ok_and(|text| text.parse().is_ok_and(|epoch: ServerEpoch| epoch == self.epoch))
    }

    /// Runs a script that does no harm if it runs twice.
    ///
    /// # Errors
    /// `Timeout`, `Lost`, `Restarted`, `Connect`, `Run`, or `Invalid` for a script that cannot be spelled.
    pub(crate) fn run(&mut self, script: &CommandList, deadline: Deadline) -> Result<CommandReply, Error> {
        match self.run_once(script, deadline) {
            Err(Error::Disconnected { .. }) => self.run_once(script, deadline),
            answer => answer,
        }
    }

    /// The same for several, in one round trip. Each is run and answered, whatever became of those before it.
    ///
    /// # Errors
    /// As [`Server::ask`].
    pub(crate) fn run_array<const N: usize>(
        &mut self,
        scripts: &[CommandList; N],
        deadline: Deadline,
    ) -> Result<[CommandReply; N], Error> {
        Ok(self.run_all(scripts, deadline)?.try_into().expect("one for each"))
    }

    /// The same for any number.
    ///
    /// # Errors
    /// As [`Server::ask`].
    pub(crate) fn run_all(
        &mut self,
        scripts: &[CommandList],
        deadline: Deadline,
    ) -> Result<Vec<CommandReply>, Error> {
        match self.run_all_once(scripts, deadline) {
            Err(Error::Disconnected { .. }) => self.run_all_once(scripts, deadline),
            answers => answers,
        }
    }

    /// Runs a script that must not run twice. After `Timeout` and `Lost` it may have run, or may still run.
    ///
    /// # Errors
    /// As [`Server::ask`].
    pub(crate) fn run_once(
        &mut self,
        script: &CommandList,
        deadline: Deadline,
    ) -> Result<CommandReply, Error> {
        Ok(self.run_all_once(std::slice::from_ref(script), deadline)?.pop().expect("one for one"))
    }

    pub(crate) fn run_all_once(
        &mut self,
        scripts: &[CommandList],
        deadline: Deadline,
    ) -> Result<Vec<CommandReply>, Error> {
        self.reconnect(deadline)?;
        failpoint::hit("tmux.ask");
        let Some(control) = &mut self.connection else {
            return scripts.iter().map(|script| subprocess::run(&self.tmux, script, deadline)).collect();
        };
        let answers = control.run(scripts, deadline);
        failpoint::hit("tmux.answered");
        if let Err(Error::Timeout { .. } | Error::Disconnected { .. }) = answers {
            // Late answers would be taken for those of the next script.
            self.connection = None;
        }
        answers
    }

    /// Leaves no control connection behind only if the same server answers, but takes no client.
    fn reconnect(&mut self, deadline: Deadline) -> Result<(), Error> {
        if self.connection.as_ref().is_some_and(ControlConnection::is_open) {
            return Ok(());
        }
        self.connection = None;
        self.check_epoch(deadline)?;
        match connect::try_connect(&self.tmux, ServerStart::Never, &self.notices, deadline) {
            Ok((control, hello)) => {
                self.check_same_epoch(hello.epoch)?;
                self.connection = Some(control);
                Ok(())
            }
            Err(passed @ Error::Timeout { .. }) => Err(passed),
            Err(_) => Ok(()),
        }
    }

    /// Asks by a process first: a new client would leave its mark on a server that is not ours.
    fn check_epoch(&self, deadline: Deadline) -> Result<(), Error> {
        match subprocess::run(&self.tmux, &print_command(ServerEpoch::FORMAT), deadline)?
            .text(deadline.action())
        {
            Ok(text) => self.check_same_epoch(text.parse()?),
            Err(Error::Rejected { cause, .. }) => Err(connect::connect_error(&self.tmux, cause)),
            Err(other) => Err(other),
        }
    }

    fn check_same_epoch(&self, found: ServerEpoch) -> Result<(), Error> {
        if found == self.epoch {
            return Ok(());
        }
        Err(Error::OtherServer { expected: self.epoch.clone(), found })
    }
}

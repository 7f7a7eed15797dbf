//! The tmux server as the rest of the program sees it: one address, one epoch, one way in.
//!
//! Commands travel over the control connection. Where that has ended, the server is asked who it is; if it is still the
//! same, the connection is made anew, and where that fails the command goes by a process of its own. A server that
//! is not the same one is never sent anything.

use std::sync::{Arc, Mutex, PoisonError};

use crate::address::Tmux;
use crate::client::Start;
use crate::connect::{self, Hello};
use crate::control::Control;
use crate::deadline::Deadline;
use crate::guard::say;
use crate::reply::Reply;
use crate::script::Script;
use crate::{Address, Epoch, Error, Program, Version, exec};

/// What tmux does by itself, as far as it tells. A hint: changes of other sessions' panes come without any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Something moved: look again.
    Changed,
    /// The connection ended by itself: the server may be gone. The next call tries to connect again.
    Lost,
}

/// Passes notices on. Shared by the reader threads of successive connections.
#[derive(Clone)]
pub(crate) struct Herald(Arc<Mutex<Listener>>);

type Listener = Box<dyn Fn(Notice) + Send>;

impl Herald {
    pub(crate) fn tell(&self, notice: Notice) {
        let listener = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listener(notice);
    }
}

/// One running tmux server. Its methods block, for three seconds at most.
pub struct Server {
    tmux: Tmux,
    epoch: Epoch,
    version: Version,
    control: Option<Control>,
    herald: Herald,
}

impl Server {
    /// Connects to the server at `address` with the tmux in `PATH`; starts a server if there is none. Takes up to
    /// ten seconds, since a new server runs the user's configuration first.
    ///
    /// `notice` is called on a thread of ours and must not block: a client that is not read holds its server up.
    ///
    /// # Errors
    /// `Run`, `TooOld`, `Connect`, `Timeout`.
    pub fn connect(address: &Address, notice: Box<dyn Fn(Notice) + Send>) -> Result<Server, Error> {
        Server::connect_with(&Program::default(), address, notice)
    }

    /// [`Server::connect`] with a tmux of the caller's choice.
    ///
    /// # Errors
    /// The same.
    pub fn connect_with(
        program: &Program,
        address: &Address,
        notice: Box<dyn Fn(Notice) + Send>,
    ) -> Result<Server, Error> {
        let tmux = Tmux { program: program.clone(), address: address.clone() };
        let herald = Herald(Arc::new(Mutex::new(notice)));
        let deadline = Deadline::of_a_start("connect to tmux");
        failpoint::hit("tmux.connect");
        let (control, hello) = connect::first(&tmux, &herald, deadline)?;
        failpoint::hit("tmux.connected");
        let Hello { epoch, version } = hello;
        Ok(Server { tmux, epoch, version, control: Some(control), herald })
    }

    /// Which life of which server this is.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// The running server's version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the same server answers. False is no proof of its end: it may be slow or stopped.
    pub fn alive(&mut self) -> bool {
        let deadline = Deadline::of("ask tmux who it is");
        let answer = self.ask(&say(Epoch::FORMAT), deadline).and_then(|reply| reply.text(deadline.verb()));
        answer.is_ok_and(|text| text.parse().is_ok_and(|epoch: Epoch| epoch == self.epoch))
    }

    /// Runs a script that does no harm if it runs twice.
    ///
    /// # Errors
    /// `Timeout`, `Lost`, `Restarted`, `Connect`, `Run`, or `Invalid` for a script that cannot be spelled.
    pub(crate) fn ask(&mut self, script: &Script, deadline: Deadline) -> Result<Reply, Error> {
        match self.ask_once(script, deadline) {
            Err(Error::Lost { .. }) => self.ask_once(script, deadline),
            answer => answer,
        }
    }

    /// The same for several, in one round trip. Each is run and answered, whatever became of those before it.
    ///
    /// # Errors
    /// As [`Server::ask`].
    pub(crate) fn ask_all<const N: usize>(
        &mut self,
        scripts: &[Script; N],
        deadline: Deadline,
    ) -> Result<[Reply; N], Error> {
        Ok(self.ask_each(scripts, deadline)?.try_into().expect("one for each"))
    }

    /// The same for any number.
    ///
    /// # Errors
    /// As [`Server::ask`].
    pub(crate) fn ask_each(&mut self, scripts: &[Script], deadline: Deadline) -> Result<Vec<Reply>, Error> {
        match self.ask_each_once(scripts, deadline) {
            Err(Error::Lost { .. }) => self.ask_each_once(scripts, deadline),
            answers => answers,
        }
    }

    /// Runs a script that must not run twice. After `Timeout` and `Lost` it may have run, or may still run.
    ///
    /// # Errors
    /// As [`Server::ask`].
    pub(crate) fn ask_once(&mut self, script: &Script, deadline: Deadline) -> Result<Reply, Error> {
        Ok(self.ask_each_once(std::slice::from_ref(script), deadline)?.pop().expect("one for one"))
    }

    pub(crate) fn ask_each_once(
        &mut self,
        scripts: &[Script],
        deadline: Deadline,
    ) -> Result<Vec<Reply>, Error> {
        self.reconnect(deadline)?;
        failpoint::hit("tmux.ask");
        let Some(control) = &mut self.control else {
            return scripts.iter().map(|script| exec::run(&self.tmux, script, deadline)).collect();
        };
        let answers = control.ask(scripts, deadline);
        failpoint::hit("tmux.answered");
        if let Err(Error::Timeout { .. } | Error::Lost { .. }) = answers {
            // Late answers would be taken for those of the next script.
            self.control = None;
        }
        answers
    }

    /// Leaves no control connection behind only if the same server answers, but takes no client.
    fn reconnect(&mut self, deadline: Deadline) -> Result<(), Error> {
        if self.control.as_ref().is_some_and(Control::is_open) {
            return Ok(());
        }
        self.control = None;
        self.check_epoch(deadline)?;
        match connect::once(&self.tmux, Start::Forbidden, &self.herald, deadline) {
            Ok((control, hello)) => {
                self.same(hello.epoch)?;
                self.control = Some(control);
                Ok(())
            }
            Err(passed @ Error::Timeout { .. }) => Err(passed),
            Err(_) => Ok(()),
        }
    }

    /// Asks by a process first: a new client would leave its mark on a server that is not ours.
    fn check_epoch(&self, deadline: Deadline) -> Result<(), Error> {
        match exec::run(&self.tmux, &say(Epoch::FORMAT), deadline)?.text(deadline.verb()) {
            Ok(text) => self.same(text.parse()?),
            Err(Error::Failed { cause, .. }) => Err(connect::refused(&self.tmux, cause)),
            Err(other) => Err(other),
        }
    }

    fn same(&self, found: Epoch) -> Result<(), Error> {
        if found == self.epoch {
            return Ok(());
        }
        Err(Error::Restarted { expected: self.epoch.clone(), found })
    }
}

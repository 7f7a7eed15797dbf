//! New panes: a session, a window or a split, always detached, always with an argument vector.
//!
//! The command begins at once, and that is all that an answer proves: tmux gives an id for a missing program too.
//! Whether it runs, its own first word must tell. The directory is always `/`, since tmux expands formats in it.

use tmux_interface::{NewSession, NewWindow, SetOption, SplitWindow, TmuxCommand};

use crate::client::session_option;
use crate::deadline::Deadline;
use crate::guard::either;
use crate::label::BORDER;
use crate::reply::Reply;
use crate::script::Script;
use crate::{Error, PaneId, Server, SessionId, WindowId, word};

/// What was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// The new pane.
    pub pane: PaneId,
    /// Its window.
    pub window: WindowId,
    /// Its session.
    pub session: SessionId,
    /// The process that tmux started in it.
    pub pid: u32,
}

const FORMAT: &str = "#{pane_id} #{window_id} #{session_id} #{pane_pid}";

impl Server {
    /// A session of 200 by 50 with one window, which stays although nobody is attached.
    ///
    /// # Errors
    /// `Invalid` for a name that is not plain or fewer than two words; `Failed` for a name that is taken. After
    /// `Timeout` and `Lost` it may exist.
    pub fn new_session(&mut self, name: &str, window: &str, argv: &[String]) -> Result<Created, Error> {
        let deadline = Deadline::of("make a session");
        let session = NewSession::new().detached().print().format(FORMAT).not_update_env();
        let session = session.start_directory("/").session_name(word::name(name)?);
        let session = session.window_name(word::name(window)?).width(200).height(50).build();
        // In one go: a user may have this option on, and then any client that leaves takes the new session along.
        let script =
            Script::of(&running(session, argv)?).then(&session_option(name, "destroy-unattached", "off"));
        self.create_window(&script, deadline)
    }

    /// A window behind the last one of the session, with a border that shows the panes' labels.
    ///
    /// # Errors
    /// As [`Server::new_session`], but `Failed` where the session is gone.
    pub fn new_window(
        &mut self,
        session: SessionId,
        window: &str,
        argv: &[String],
    ) -> Result<Created, Error> {
        let deadline = Deadline::of("make a window");
        let command = NewWindow::new().after().detached().print().format(FORMAT).start_directory("/");
        let command = command.target_window(format!("{session}:{{end}}")).window_name(word::name(window)?);
        self.create_window(&Script::of(&running(command.build(), argv)?), deadline)
    }

    /// One more pane in a window; a zoomed one stays zoomed. Where there is no space the panes are tiled first.
    ///
    /// # Errors
    /// `NoSpace` if that does not help or the window is zoomed; `Invalid` for fewer than two words; `Failed` where
    /// the window is gone. After `Timeout` and `Lost` the pane may exist.
    pub fn split(&mut self, window: WindowId, argv: &[String]) -> Result<Created, Error> {
        let deadline = Deadline::of("split a window");
        let script = split_script(window, argv)?;
        match self.split_once(window, &script, deadline) {
            Err(Error::NoSpace { .. }) => {
                self.tile(window, deadline)?;
                self.split_once(window, &script, deadline)
            }
            result => result,
        }
    }

    fn split_once(
        &mut self,
        window: WindowId,
        script: &Script,
        deadline: Deadline,
    ) -> Result<Created, Error> {
        made_by_split(self.ask_once(script, deadline)?, window, deadline)
    }

    fn create_window(&mut self, script: &Script, deadline: Deadline) -> Result<Created, Error> {
        let created = self.create(script, deadline)?;
        self.dress_window(created.window, deadline)?;
        Ok(created)
    }

    /// Makes a window one of ours: its border, and that its layout is our affair.
    pub(crate) fn dress_window(&mut self, window: WindowId, deadline: Deadline) -> Result<(), Error> {
        self.ask(&window_options(window), deadline)?.done(deadline.verb())
    }

    fn create(&mut self, script: &Script, deadline: Deadline) -> Result<Created, Error> {
        made(self.ask_once(script, deadline)?, deadline)
    }
}

/// What the answer to [`split_script`] says.
pub(crate) fn made_by_split(answer: Reply, window: WindowId, deadline: Deadline) -> Result<Created, Error> {
    match made(answer, deadline) {
        Err(error) if error.is_no_space() => Err(Error::NoSpace { window }),
        result => result,
    }
}

fn made(answer: Reply, deadline: Deadline) -> Result<Created, Error> {
    let answer = answer.text(deadline.verb())?;
    created(&answer).ok_or_else(|| Error::unexpected(deadline.verb(), &answer))
}

fn created(answer: &str) -> Option<Created> {
    let mut words = answer.split(' ');
    let pane = words.next()?.parse().ok()?;
    let window = words.next()?.parse().ok()?;
    let session = words.next()?.parse().ok()?;
    let pid = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Created { pane, window, session, pid })
}

fn running<'a>(mut command: TmuxCommand<'a>, argv: &'a [String]) -> Result<TmuxCommand<'a>, Error> {
    command.push_param("--");
    for word in word::argv(argv)? {
        command.push_param(word);
    }
    Ok(command)
}

/// `-Z` keeps a zoom, but also makes one where there was none, so it is asked for only on a zoomed window.
pub(crate) fn split_script(window: WindowId, argv: &[String]) -> Result<Script, Error> {
    let window = window.to_string();
    let plain = SplitWindow::new().detached().print().format(FORMAT).start_directory("/");
    let plain = plain.target_pane(window.as_str());
    let zoomed = Script::of(&running(plain.clone().zoom().build(), argv)?);
    let plain = Script::of(&running(plain.build(), argv)?);
    either(&window, "#{window_zoomed_flag}", &zoomed, &plain)
}

/// Options of our window alone: the border, and whatever a user's settings could do to a pane of ours: keep it
/// after its end, rename it, type into all of them at once.
fn window_options(window: WindowId) -> Script {
    let set = |name: &'static str, value: &'static str| {
        SetOption::new().window().target_pane(window.to_string()).option(name).value(value).build()
    };
    Script::of(&set("pane-border-status", "top"))
        .then(&set("pane-border-format", BORDER))
        .then(&set("remain-on-exit", "off"))
        .then(&set("automatic-rename", "off"))
        .then(&set("allow-rename", "off"))
        .then(&set("synchronize-panes", "off"))
        .then(&set("@teamd_window", "1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_is_one() {
        assert_eq!(created("%5 @3 $0 4711").unwrap().pid, 4711);
        for answer in ["", "%5", "%5 @3 $0", "%5 @3 $0 x", "%5 @3 $0 1 2", "@3 %5 $0 1"] {
            assert!(created(answer).is_none(), "{answer:?}");
        }
    }
}

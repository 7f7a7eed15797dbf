//! New panes: a session, a window or a split, always detached, always with an argument vector.
//!
//! The command begins at once, and that is all that an answer proves: tmux gives an id for a missing program too.
//! Whether it runs, its own first word must tell. The directory is always `/`, since tmux expands formats in it.

use tmux_interface::{NewSession, NewWindow, SetOption, SplitWindow, TmuxCommand};

use crate::client::session_option;
use crate::deadline::Deadline;
use crate::guard::either;
use crate::label::BORDER;
use crate::layout::tiling;
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
    /// Columns and rows of its window.
    pub size: (u32, u32),
    /// It is the first one of a new window, which looks as the user's do until it is claimed.
    pub first: bool,
}

const FORMAT: &str = "#{pane_id} #{window_id} #{session_id} #{pane_pid} #{window_width} #{window_height}";

impl Server {
    /// A session of 200 by 50 with one window, which stays although nobody is attached.
    /// [`Server::claim_and_record`] makes that window one of ours.
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
        self.create_first(&script, deadline)
    }

    /// A window behind the last one of the session. [`Server::claim_and_record`] makes it one of ours.
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
        self.create_first(&Script::of(&running(command.build(), argv)?), deadline)
    }

    /// One more pane in a window; a zoomed one stays zoomed. Where there is no space the panes are tiled first.
    ///
    /// # Errors
    /// `NoSpace` if that does not help or the window is zoomed; `Invalid` for fewer than two words; `Failed` where
    /// the window is gone. After `Timeout` and `Lost` the pane may exist.
    pub fn split(&mut self, window: WindowId, argv: &[String]) -> Result<Created, Error> {
        let deadline = Deadline::of("split a window");
        let split = split_script(window, argv)?;
        match made_by_split(self.ask_once(&split, deadline)?, window, deadline) {
            Err(Error::NoSpace { .. }) => self.tile_and_split(window, split, deadline),
            result => result,
        }
    }

    /// As [`Server::split`], where a split has found no space just now: the panes are tiled first.
    ///
    /// # Errors
    /// As there.
    pub fn split_tiled(&mut self, window: WindowId, argv: &[String]) -> Result<Created, Error> {
        self.tile_and_split(window, split_script(window, argv)?, Deadline::of("split a window"))
    }

    fn tile_and_split(
        &mut self,
        window: WindowId,
        split: Script,
        deadline: Deadline,
    ) -> Result<Created, Error> {
        let mut answers = self.ask_each_once(&[tiling(window)?, split], deadline)?.into_iter();
        let mut answer = || answers.next().ok_or(deadline.lost());
        let tiled = answer()?.done(deadline.verb());
        made_by_split(answer()?, window, deadline).or_else(|error| tiled.and(Err(error)))
    }

    fn create_first(&mut self, script: &Script, deadline: Deadline) -> Result<Created, Error> {
        Ok(Created { first: true, ..made(self.ask_once(script, deadline)?, deadline)? })
    }

    /// Makes a window one of ours: its border, and that its layout is our affair.
    pub(crate) fn dress_window(&mut self, window: WindowId, deadline: Deadline) -> Result<(), Error> {
        self.ask(&dressing(window), deadline)?.done(deadline.verb())
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
    let size = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(Created { pane, window, session, pid, size, first: false })
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
pub(crate) fn dressing(window: WindowId) -> Script {
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
        let made = created("%5 @3 $0 4711 80 24").unwrap();
        assert_eq!((made.pid, made.size), (4711, (80, 24)));
        for answer in ["", "%5", "%5 @3 $0 1", "%5 @3 $0 x 8 2", "%5 @3 $0 1 8 2 3", "@3 %5 $0 1 8 2"] {
            assert!(created(answer).is_none(), "{answer:?}");
        }
    }
}

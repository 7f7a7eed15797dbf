//! What the watcher is asked, on a thread of its own: it answers once it has told of all that it has seen, and in a storm of
//! changes that takes as long as the storm. The loop waits for none of it.

use super::{Marks, Missed, Watch};
use crate::event::Event;
use crate::files::no_thread;
use crate::lines::Lines;
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::mpsc::UnboundedSender;

/// One thing to do; they are done in order.
#[derive(Debug, Clone)]
pub(crate) enum Ask {
    /// Watch the root anew, and no team yet.
    Root,
    Team(TeamName),
    Leave(TeamName),
    /// See [`Watch::mark`].
    Mark(u64),
    /// Say [`Event::Watched`] behind all that was asked before.
    Say {
        probe: bool,
    },
}

/// Whom the watcher tells, and what it keeps until they have heard it.
pub(crate) type Told = (Lines, Missed, UnboundedSender<Event>);

/// Who is asked: holds the watcher.
#[derive(Debug)]
pub(crate) struct Asked {
    root: PathBuf,
    marks: Marks,
    told: Told,
    /// None where none can be had.
    watch: Option<Watch>,
}

impl Asked {
    pub(crate) fn new(root: PathBuf, marks: Marks, told: Told) -> Asked {
        Asked { root, marks, told, watch: None }
    }

    /// Starts the thread, with the root as the first that it is asked. Nobody waits for its end.
    pub(crate) fn start(self) -> Result<Sender<Ask>, ErrorReport> {
        let (asks, asked) = channel();
        asks.send(Ask::Root).ok();
        let thread = std::thread::Builder::new().name("watch".into()).spawn(move || self.run(&asked));
        thread.map(|_| asks).map_err(|error| no_thread(&error))
    }

    fn run(mut self, asked: &Receiver<Ask>) {
        for ask in asked {
            failpoint::hit("watch.asked");
            match ask {
                Ask::Root => self.root(),
                Ask::Team(team) => self.team(&team),
                Ask::Leave(team) => self.watch.iter_mut().for_each(|watch| watch.leave(&team)),
                Ask::Mark(mark) => self.mark(mark),
                Ask::Say { probe } => self.tell(Event::Watched { probe }),
            }
        }
    }

    /// The loop may have ended: nobody is left to be told.
    fn tell(&self, event: Event) {
        self.told.2.send(event).ok();
    }

    fn begun(&self) -> notify::Result<Watch> {
        Watch::start(&self.root, self.marks.clone(), self.told.clone())
    }

    fn root(&mut self) {
        let watch = self.begun();
        if let Err(error) = &watch {
            tracing::warn!("cannot watch files, so they are looked at every 2 s: {error}");
        }
        self.watch = watch.ok();
    }

    /// A watcher that could not be had at the start may be had now.
    fn team(&mut self, team: &TeamName) {
        if self.watch.is_none() {
            self.watch = self.begun().ok();
        }
        if !self.watch.as_mut().is_some_and(|watch| watch.team(team)) {
            self.tell(Event::Unwatched);
        }
    }

    fn mark(&self, mark: u64) {
        let made =
            self.watch.as_ref().map_or(Err("there is no watcher".to_owned()), |watch| watch.mark(mark));
        if let Err(why) = made {
            tracing::warn!("cannot mark what has been written, so claims look at all tasks: {why}");
            self.tell(Event::Unmarked);
        }
    }
}

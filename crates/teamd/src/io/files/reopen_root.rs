//! The root, where somebody removes or moves its directories while we work in them.
//!
//! What is open stays the old directory for ever: nothing comes into it, and what we write there nobody reads. So what is
//! at its place is opened before the next job that touches it, and is ours to work in once its lock is: of two daemons one has that.

use crate::core::event::CoreEvent;
use crate::core::jobs::files::FileJob;
use crate::io::files::thread::FilesThread;
use crate::io::single_instance;
use protocol::error::{ErrorKind, ErrorReport};

impl FilesThread {
    pub(super) fn check_root(&mut self, job: &FileJob) {
        if self.is_root_lost || self.root.is_current() {
            return;
        }
        // Whoever moved a directory may be about to put another, or a link, in its place: none is made unasked.
        if !self.root.has_directories() && !matches!(job, FileJob::CreateTeam { .. }) {
            self.events.send(CoreEvent::WatchFailed).ok();
            return;
        }
        let opened = self.reopen_root();
        self.is_root_lost = opened.is_err();
        self.events.send(CoreEvent::RootReopened(opened)).ok();
    }

    fn reopen_root(&mut self) -> Result<(), ErrorReport> {
        let root = self.root.reopen()?;
        let (old, new) = (self.root.path(), root.path());
        if old != new {
            // Whoever asks by that path looks for a daemon in other places.
            let message =
                format!("cannot supervise {} any more: it leads to {}", old.display(), new.display());
            return Err(ErrorReport::new(ErrorKind::MissingPath, message)
                .with_help("start a teamd there: teamctl up"));
        }
        // Where the tasks alone were removed this is the directory that we have locked.
        self.root.unlock()?;
        single_instance::lock_root(&root)?;
        failpoint::hit("files.root");
        std::mem::take(&mut self.teams).keys().for_each(|team| self.inboxes.forget_team(team));
        self.root = root;
        Ok(())
    }
}

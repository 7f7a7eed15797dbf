//! The thread that looks: whenever a file of the team, the event log, a log of a member or the socket's directory has
//! changed, or the daemon has ended; and no more often than four times a second.

use crate::args::ScreenArgs;
use crate::event::{ActionResult, UiEvent};
use crate::snapshot_reader::{SnapshotReader, agent_log_dir};
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use protocol::error::ErrorReport;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// From one look to the next, at least.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Arms the watches, then looks in a thread until nobody listens any more.
pub(crate) fn start_snapshot_thread(
    arguments: &ScreenArgs,
    sender: Sender<UiEvent>,
) -> Result<(), ErrorReport> {
    let team = arguments.root.join("teams").join(arguments.team.as_str());
    let directories = [
        team.join("inboxes"),
        team,
        arguments.root.join("tasks").join(arguments.team.as_str()),
        arguments.state_dir.clone(),
        agent_log_dir(arguments),
        arguments.socket.parent().unwrap_or(Path::new("/")).to_owned(),
    ];
    let mut follow = DirectoryWatcher::new(&directories)?;
    let mut looker = SnapshotReader::new(arguments.clone(), follow.notifier());
    std::thread::spawn(move || {
        let mut saw = WatchEvent::Changed;
        loop {
            let began = Instant::now();
            let sight = Box::new(looker.read(saw));
            if sender.send(UiEvent::SnapshotRead(sight)).is_err() {
                return;
            }
            match follow.wait_at_least_until(began + MIN_INTERVAL) {
                Ok(seen) => saw = seen,
                Err(fault) => {
                    let told = ActionResult::failure(format!("{fault}: what is shown grows old"));
                    sender.send(UiEvent::ActionFinished(told)).ok();
                    return;
                }
            }
        }
    });
    Ok(())
}

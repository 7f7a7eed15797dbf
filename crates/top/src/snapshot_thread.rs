//! The thread that reads snapshots of the team. It watches the team's files, the logs and the
//! directory of the control socket, and reads a snapshot after each change and when the daemon
//! exits. Without a change, it reads a snapshot every 30 s, or every 2 s if it cannot watch the
//! directories. It reads at most four snapshots per second.

use crate::args::ScreenArgs;
use crate::output_log_tail::agent_log_dir;
use crate::snapshot_reader::SnapshotReader;
use crate::ui_events_and_effects::{ActionResult, UiEvent};
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use protocol::error_kind_and_report::ErrorReport;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// The shortest time between the starts of two snapshots.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Watches the directories of the team, the logs and the control socket, and starts the thread that
/// reads snapshots. The thread ends when the event loop ends, or when waiting for file events
/// fails.
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
    let mut watcher = DirectoryWatcher::new(&directories)?;
    let mut reader = SnapshotReader::new(arguments.clone(), watcher.notifier());
    std::thread::spawn(move || {
        let mut event = WatchEvent::Changed;
        loop {
            let started_at = Instant::now();
            let snapshot = Box::new(reader.read(event));
            if sender.send(UiEvent::SnapshotRead(snapshot)).is_err() {
                return;
            }
            match watcher.wait_at_least_until(started_at + MIN_INTERVAL) {
                Ok(next) => event = next,
                Err(error) => {
                    let result = ActionResult::failure(format!("{error}: what is shown grows old"));
                    sender.send(UiEvent::ActionFinished(result)).ok();
                    return;
                }
            }
        }
    });
    Ok(())
}

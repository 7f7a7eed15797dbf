//! The thread that looks: whenever a file of the team, the event log, a log of a member or the socket's directory has
//! changed, or the daemon has ended; and no more often than four times a second.

use crate::args::Arguments;
use crate::event::{Event, Told};
use crate::look::{Looker, logs};
use protocol::error::ErrorReport;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use view::directory_watcher::{DirectoryWatcher, WatchEvent};

/// From one look to the next, at least.
const PACE: Duration = Duration::from_millis(250);

/// Arms the watches, then looks in a thread until nobody listens any more.
pub(crate) fn begin(arguments: &Arguments, sender: Sender<Event>) -> Result<(), ErrorReport> {
    let team = arguments.root.join("teams").join(arguments.team.as_str());
    let directories = [
        team.join("inboxes"),
        team,
        arguments.root.join("tasks").join(arguments.team.as_str()),
        arguments.state.clone(),
        logs(arguments),
        arguments.socket.parent().unwrap_or(Path::new("/")).to_owned(),
    ];
    let mut follow = DirectoryWatcher::new(&directories)?;
    let mut looker = Looker::new(arguments.clone(), follow.notifier());
    std::thread::spawn(move || {
        let mut saw = WatchEvent::Changed;
        loop {
            let began = Instant::now();
            let sight = Box::new(looker.look(saw));
            if sender.send(Event::Seen(sight)).is_err() {
                return;
            }
            match follow.wait_at_least_until(began + PACE) {
                Ok(seen) => saw = seen,
                Err(fault) => {
                    let told = Told::failed(format!("{fault}: what is shown grows old"));
                    sender.send(Event::Told(told)).ok();
                    return;
                }
            }
        }
    });
    Ok(())
}

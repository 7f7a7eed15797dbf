//! The thread that writes the spool and calls the receiver, because both wait for the disk.

use crate::event_and_effect::{LinkEvent, ReceivedPosition};
use crate::spool_file::SpoolFile;
use crate::spool_lines::SpoolWrite;
use crate::trait_to_store_received_items::ItemReceiver;
use protocol::annex_link::LinkItem;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::mpsc;

/// What the thread does next.
#[derive(Debug)]
pub(super) enum StorageJob {
    Spool(SpoolWrite),
    Apply { items: Vec<Arc<LinkItem>>, position: ReceivedPosition },
}

/// Starts the thread. It ends when the sender of jobs is dropped. The result of each job is an event.
pub(super) fn start_storage_thread(
    mut spool: SpoolFile,
    mut receiver: Box<dyn ItemReceiver>,
    results: mpsc::Sender<LinkEvent>,
) -> io::Result<Sender<StorageJob>> {
    let (jobs, queue): (Sender<StorageJob>, Receiver<StorageJob>) = channel();
    let run = move || {
        for job in queue {
            if results.blocking_send(run_job(&mut spool, receiver.as_mut(), job)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("link-storage".to_owned()).spawn(run)?;
    Ok(jobs)
}

fn run_job(spool: &mut SpoolFile, receiver: &mut dyn ItemReceiver, job: StorageJob) -> LinkEvent {
    match job {
        StorageJob::Spool(write) => match spool.write(&write) {
            Ok(()) => LinkEvent::Spooled,
            Err(error) => LinkEvent::SpoolFailed { reason: error.to_string() },
        },
        StorageJob::Apply { items, position } => match receiver.apply(&items, position) {
            Ok(()) => LinkEvent::Applied,
            Err(reason) => LinkEvent::ApplyFailed { reason },
        },
    }
}

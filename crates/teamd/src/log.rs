//! The log goes to a file, never to the terminal: a daemon whose pane was closed must not die of its log.

use crate::args::{Args, LogFormat};
use protocol::fault::{Fault, Kind};
use std::fs::File;
use std::path::Path;
use std::sync::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::Subscriber;

/// Starts logging into `default`, or where the arguments say.
pub(crate) fn start(args: &Args, default: &Path) -> Result<(), Fault> {
    let path = args.log_file.as_deref().unwrap_or(default);
    let file = File::options().create(true).append(true).open(path);
    let file =
        file.map_err(|error| Fault::new(Kind::Io, format!("cannot open {}: {error}", path.display())))?;
    let level = if args.verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let log = Subscriber::builder().with_max_level(level).with_ansi(false).log_internal_errors(false);
    let set = match args.log_format {
        LogFormat::Text => {
            tracing::subscriber::set_global_default(log.with_writer(Mutex::new(file)).finish())
        }
        LogFormat::Json => {
            tracing::subscriber::set_global_default(log.json().with_writer(Mutex::new(file)).finish())
        }
    };
    set.map_err(|error| Fault::new(Kind::Internal, format!("cannot start the log: {error}")))
}

//! `run`: a whole team from a file, to its end, led by nobody but the file.

mod file;

use crate::here::Here;
use protocol::fault::Fault;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a whole team from a file, to its end
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The file
    file: PathBuf,
}

pub(crate) fn run(_here: &Here, args: &Run) -> Result<ExitCode, Fault> {
    let _x = file::read(&args.file)?;
    Ok(ExitCode::SUCCESS)
}

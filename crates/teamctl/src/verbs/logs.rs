//! `logs`: what a member's program wrote, byte for byte: it is the agent's own terminal output, and its
//! escape sequences are part of it. The one verb that prints an agent's bytes uncleaned, and says so.

use super::follow::{Follow, Saw, Tail};
use crate::here::Here;
use crate::output;
use protocol::fault::{Fault, Kind};
use protocol::name::nearest;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print what a member's program wrote, also after its end
///
/// The bytes are printed as they are, escape sequences included: it is the agent's own terminal output. To
/// look at it in safety: teamctl logs NAME | less. With --json each piece is an object on a line of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl logs ann\n  teamctl logs ann -f\n  teamctl logs ann | less -R")]
pub(crate) struct Logs {
    /// The member
    name: String,
    /// Wait for more, until interrupted
    #[arg(short, long)]
    follow: bool,
}

pub(crate) fn run(here: &Here, args: &Logs) -> Result<ExitCode, Fault> {
    let team = super::send::team_of(here, &args.name)?;
    let directory = here.state()?.path().join("logs").join(team.name().as_str());
    let path = log(&directory, args.name.split('@').next().unwrap_or(&args.name))?;
    let mut follow = args.follow.then(|| Follow::streaming(&[directory])).transpose()?;
    let mut tail = Tail::new(path);
    loop {
        while let Some(chunk) = tail.next_chunk()? {
            if !print(here, &chunk) {
                return Ok(ExitCode::SUCCESS);
            }
        }
        let Some(follow) = &mut follow else { return Ok(ExitCode::SUCCESS) };
        if follow.next(None)? == Saw::HungUp {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// The log of that name in any case. It is found in the directory, never made of the name.
fn log(directory: &Path, name: &str) -> Result<PathBuf, Fault> {
    let names: Vec<String> = std::fs::read_dir(directory)
        .map(|entries| entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    let names: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(".log")).collect();
    if let Some(found) = names.iter().find(|found| found.eq_ignore_ascii_case(name)) {
        return Ok(directory.join(format!("{found}.log")));
    }
    let missing =
        Fault::new(Kind::NotFound, format!("cannot find a log of {name} in {}", directory.display()));
    Err(match nearest(name, names).as_slice() {
        [] => missing.hinted("see what its pane shows: teamctl capture NAME"),
        near => missing.hinted(format!("did you mean {}?", near.join(", "))),
    })
}

/// False once nobody reads any more.
fn print(here: &Here, chunk: &[u8]) -> bool {
    if here.global.json {
        output::item(here, &json!({"text": String::from_utf8_lossy(chunk)}), "");
        return true;
    }
    let mut stdout = std::io::stdout().lock();
    here.global.quiet || stdout.write_all(chunk).and_then(|()| stdout.flush()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_found_in_any_case_and_never_outside() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::File::create(dir.path().join("Ann.log")).unwrap();
        assert_eq!(log(dir.path(), "ann"), Ok(dir.path().join("Ann.log")));
        let missing = log(dir.path(), "../ann").unwrap_err();
        assert_eq!((missing.kind, missing.hint.as_deref()), (Kind::NotFound, Some("did you mean Ann?")));
    }
}

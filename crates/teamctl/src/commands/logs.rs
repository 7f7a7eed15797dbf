//! `logs`: what a member's program wrote, byte for byte: it is the agent's own terminal output, and its
//! escape sequences are part of it. The one verb that prints an agent's bytes uncleaned, and says so.

use crate::context::CommandContext;
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::file_tail::FileTail;
use protocol::did_you_mean::did_you_mean;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName, strip_team};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print what a member's program wrote, also after its end
///
/// The bytes are printed as they are, escape sequences included: it is the agent's own terminal output. To
/// look at it in safety: teamctl logs NAME | less. At 10 MiB a log begins anew and one before it is kept; both are
/// printed. With --json each piece is an object on a line of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl logs ann\n  teamctl logs ann -f\n  teamctl logs ann | less -R")]
pub(crate) struct LogsArgs {
    /// The member
    name: String,
    /// Wait for more, until interrupted
    #[arg(short, long)]
    follow: bool,
}

pub(crate) fn run(here: &CommandContext, args: &LogsArgs) -> Result<ExitCode, ErrorReport> {
    let team = team_of_log(here, &args.name)?;
    let path = find_log(&log_directory(here)?.join(team.as_str()), strip_team(&args.name, &team))?;
    if args.follow {
        return follow(here, &path);
    }
    OutputLogReader::open(&path).print(here)?;
    Ok(ExitCode::SUCCESS)
}

fn log_directory(here: &CommandContext) -> Result<PathBuf, ErrorReport> {
    Ok(here.state_dir()?.path().join("logs/agents"))
}

/// Whose logs are meant; they outlive it, so a team that is named need not be there any more.
fn team_of_log(here: &CommandContext, address: &str) -> Result<TeamName, ErrorReport> {
    let all = log_directory(here)?;
    let named = here.args.team.as_deref().or_else(|| Some(address.split_once('@')?.1));
    let past = named.and_then(|name| TeamName::parse(name).ok());
    match past.filter(|past| all.join(past.as_str()).is_dir()) {
        Some(past) => Ok(past),
        None => Ok(super::send::team_of_address(here, address)?.name().clone()),
    }
}

/// Prints what there is, and what comes, until it is interrupted or nobody reads any more.
pub(super) fn follow(here: &CommandContext, path: &Path) -> Result<ExitCode, ErrorReport> {
    let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
    let mut follow = DirectoryWatcher::new_for_stream(&[directory])?;
    let mut output = OutputLogReader::open(path);
    while output.print(here)? == Consumer::Open {
        if follow.wait(None)? == WatchEvent::OutputClosed {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A log and the one before it, which is printed first.
struct OutputLogReader {
    older: Option<FileTail>,
    log: FileTail,
}

/// Who reads what we print.
#[derive(PartialEq, Eq)]
enum Consumer {
    Open,
    Closed,
}

impl OutputLogReader {
    /// Opened before the older one is: where a rotation comes between, both are the same, and none is missed.
    fn open(path: &Path) -> OutputLogReader {
        let log = FileTail::new(path.to_owned());
        let older = FileTail::new(rotated_path(path));
        OutputLogReader { older: Some(older).filter(|older| !older.is_same_file(&log)), log }
    }

    /// All that has come since the last time.
    fn print(&mut self, here: &CommandContext) -> Result<Consumer, ErrorReport> {
        while let Some(chunk) = self.next_chunk()? {
            if !print_chunk(here, &chunk) {
                return Ok(Consumer::Closed);
            }
        }
        Ok(Consumer::Open)
    }

    fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, ErrorReport> {
        if let Some(older) = &mut self.older {
            let chunk = older.next_chunk_of_open_file()?;
            if chunk.is_some() {
                return Ok(chunk);
            }
            self.older = None;
        }
        self.log.next_chunk()
    }
}

fn rotated_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

/// The log of that name in any case. It is found in the directory, never made of the name.
fn find_log(directory: &Path, name: &str) -> Result<PathBuf, ErrorReport> {
    let names: Vec<String> = std::fs::read_dir(directory)
        .map(|entries| entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    // Between two logs there is the older one alone for a moment.
    let stem = |name: &str| Some(name.strip_suffix(".1").unwrap_or(name).strip_suffix(".log")?.to_owned());
    let names: BTreeSet<String> = names.iter().filter_map(|name| stem(name)).collect();
    if let Some(found) = names.iter().find(|found| found.eq_ignore_ascii_case(name)) {
        return Ok(directory.join(format!("{found}.log")));
    }
    let missing = ErrorReport::new(
        ErrorKind::NotFound,
        format!("cannot find a log of {name} in {}", directory.display()),
    );
    let near = did_you_mean(name, &names);
    Err(missing.with_help(near.unwrap_or_else(|| match AgentName::new_unchecked(name).is_lead() {
        true => "teamd did not start the lead: what it writes stands in its own terminal".to_owned(),
        false => "who has printed nothing has none; whether it lives: teamctl status".to_owned(),
    })))
}

/// False once nobody reads any more.
fn print_chunk(here: &CommandContext, chunk: &[u8]) -> bool {
    if here.args.json {
        output::print_item(here, &json!({"text": String::from_utf8_lossy(chunk)}), "");
        return true;
    }
    let mut stdout = std::io::stdout().lock();
    here.args.quiet || stdout.write_all(chunk).and_then(|()| stdout.flush()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_found_in_any_case_and_never_outside() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::File::create(dir.path().join("Ann.log")).unwrap();
        assert_eq!(find_log(dir.path(), "ann"), Ok(dir.path().join("Ann.log")));
        let missing = find_log(dir.path(), "../ann").unwrap_err();
        assert_eq!(missing.kind, ErrorKind::NotFound);
        assert_eq!(find_log(dir.path(), "anm").unwrap_err().help.as_deref(), Some("did you mean Ann?"));
        let hint = |name: &str| find_log(dir.path(), name).unwrap_err().help.unwrap();
        assert!(
            hint("team-lead").contains("its own terminal") && hint("zacharias").contains("teamctl status")
        );
        std::fs::File::create(dir.path().join("bob.log.1")).unwrap();
        assert_eq!(find_log(dir.path(), "bob"), Ok(dir.path().join("bob.log")));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test rotates a log of its own")]
    fn the_older_log_comes_first_and_a_rotation_repeats_and_drops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ann.log");
        let put = |path: &Path, text: &str| std::fs::File::create(path).unwrap().write_all(text.as_bytes());
        let all = |output: &mut OutputLogReader| {
            let chunks = std::iter::from_fn(|| output.next_chunk().unwrap());
            String::from_utf8(chunks.flatten().collect()).unwrap()
        };
        put(&rotated_path(&path), "one ").unwrap();
        put(&path, "two ").unwrap();
        let mut output = OutputLogReader::open(&path);
        assert_eq!(all(&mut output), "one two ");
        std::fs::rename(&path, rotated_path(&path)).unwrap();
        put(&path, "three ").unwrap();
        assert_eq!(all(&mut output), "three ");
        std::fs::rename(&path, rotated_path(&path)).unwrap();
        assert_eq!(all(&mut output), "");
        put(&path, "four").unwrap();
        assert_eq!(all(&mut output), "four");
    }
}

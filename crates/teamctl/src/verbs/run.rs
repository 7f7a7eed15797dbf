//! `run`: a whole team from a file, to its end, led by nobody but the file.
//!
//! The files are the truth: each look reads the task list and asks the daemon who lives, [`decide`] says what
//! follows, and the event log is why there is a look at all, and what is printed. So a run that was killed goes
//! on with `--resume` where the files are.

mod alone;
mod begin;
mod course;
mod daemon;
mod decide;
pub(crate) mod file;
mod finish;
mod frame;
mod lives;
mod log;
mod result;
mod show;
mod signals;
mod stall;
mod taken_up;

use super::typed::placed;
use crate::here::{Here, fault, variable};
use crate::output;
use alone::Note;
use daemon::Daemon;
use decide::Rules;
use file::{Flaw, RunFile};
use protocol::duration;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use serde_json::json;
use signals::Signals;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::Root;
use taken_up::Found;
use view::directory_watcher::DirectoryWatcher;

/// Run a whole team from a file, to its end
///
/// The file is checked as a whole before anything is started; every fault is told, with its line and column (65).
/// Uses the running teamd or starts one, which stays: end it with teamctl down. Exit code 0: every task is
/// completed. 1: some are not, or it was stopped by Ctrl-C: once asks the team to stop, twice ends it; or the team has
/// used up its budget, and stays. 73: there is a team of that name. 75: the work took longer than --timeout.
/// docs/run.md lists the keys of the file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl run survey.toml\n  teamctl run survey.toml --timeout 1h --json\n  teamctl run survey.toml --keep\n  teamctl run survey.toml --resume\n\nA whole file:\n  name = \"survey\"\n  [[member]]\n  name = \"ann\"\n  agent = \"worker\"\n  [[task]]\n  key = \"count\"\n  subject = \"count the lines\"\n  command = \"wc -l *.md\""
)]
pub(crate) struct Args {
    /// The file: TOML, with the team's members and tasks
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Leave the team's files when its members have ended
    #[arg(long)]
    keep: bool,
    /// Go on with a run of this file that was killed; where there is none, begin
    #[arg(long)]
    resume: bool,
    /// The time for the work, as in 500ms, 5s, 10m or 2h; to end the team takes up to the grace more [default: for
    /// ever]
    #[arg(long, value_name = "D", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

/// A run and what it stands on.
struct Run<'a> {
    here: &'a Here,
    /// As it was typed.
    path: &'a Path,
    file: RunFile,
    rules: Rules,
    daemon: Daemon<'a>,
    follow: DirectoryWatcher,
    signals: Signals,
    /// When it is over at the latest.
    deadline: Option<Instant>,
}

pub(crate) fn run(here: &Here, args: &Args) -> Result<ExitCode, ErrorReport> {
    here.lead_only("run a team")?;
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let file = match file::read(&args.file, &here.root_path()?)? {
        Ok(file) => file,
        Err(flaws) => return Ok(told(here, "run", &args.file, &flaws)),
    };
    refuse_another_team(here, &file.name)?;
    let mut own = Here::new(here.global.clone());
    own.global.team = Some(file.name.to_string());
    let (root, state) = (own.root()?, own.state()?);
    let mut alone = alone::alone(&state, &file.name)?;
    let before = alone.before();
    let (found, left) = match (taken_up::found(&root, &file, args.resume)?, before) {
        (Found::Finished(team), before) if args.keep || before == Note::Stays => {
            alone.note(Note::Stays)?;
            return finish::nothing_left(&own, &file, &team);
        }
        (Found::Finished(team), Note::Ended(code)) => (Some(team), Left::Rest(code)),
        (Found::Finished(team), _) => (Some(team), Left::Deletion),
        (Found::Unfinished { is_cut: true, .. }, Note::Ended(code)) => (None, Left::Rest(code)),
        (Found::Nothing, Note::Ended(code)) if args.resume => (None, Left::Rest(code)),
        (Found::Unfinished { team, .. }, _) => (Some(team), Left::Work),
        (Found::Nothing, _) => (None, Left::Work),
    };
    if !matches!(left, Left::Rest(_)) {
        alone.note(if args.keep { Note::Stays } else { Note::Goes })?;
    }
    let rules = match &found {
        Some(team) if left == Left::Work => {
            let tasks = team.tasks().list().map_err(fault)?;
            taken_up::differing(&file, &tasks).iter().for_each(|line| output::complain(line));
            taken_up::rules(&file, &tasks)
        }
        _ => Rules::of(&file),
    };
    warn(here, &file);
    let follow = DirectoryWatcher::new(&directories(&root, &state, &file))?;
    let signals = Signals::catch(follow.notifier())?;
    let daemon = Daemon::begin(&own, follow.notifier())?;
    let mut run = Run { here: &own, path: &args.file, file, rules, daemon, follow, signals, deadline };
    let code = match left {
        Left::Rest(code) => finish::rest_of_deletion(&mut run, found.as_ref(), code)?,
        Left::Work | Left::Deletion => {
            let mut stage = course::Stage::new(&mut run, &root, found)?;
            let end = match left {
                Left::Work => course::from_start_to_end(&mut run, &mut stage)?,
                _ => stage.is_over_for(&run.file)?,
            };
            finish::finish(&mut run, stage, end, &mut alone)?
        }
    };
    alone.note(Note::Stays)?;
    Ok(ExitCode::from(code))
}

/// What is left to do of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Its work, or what it had not come to when it was killed.
    Work,
    /// It was killed between the end of its members and the deletion of its team.
    Deletion,
    /// It was killed in the deletion; what it came to is known.
    Rest(u8),
}

/// The file names its team. A variable that stands in the shell is not meant for it, a flag is.
fn refuse_another_team(here: &Here, name: &TeamName) -> Result<(), ErrorReport> {
    let given = here.global.team.as_deref().filter(|team| variable("TEAMD_TEAM").as_deref() != Some(*team));
    match given {
        Some(team) if team != name.as_str() => {
            let message = format!("cannot run the file as team {team}: it names its team {name}");
            Err(ErrorReport::new(ErrorKind::Usage, message)
                .with_help("leave out -t, or change name in the file"))
        }
        _ => Ok(()),
    }
}

/// Once for each profile that was never tried.
fn warn(here: &Here, file: &RunFile) {
    let warnings: BTreeSet<String> = file.members.iter().flat_map(super::spawn::warnings).collect();
    if !here.global.quiet {
        warnings.iter().for_each(|warning| output::complain(&placed(here, warning)));
    }
}

/// Where a change can be a reason to look.
fn directories(root: &Root, state: &store::StateDir, file: &RunFile) -> [PathBuf; 3] {
    let name = file.name.as_str();
    [
        state.path().to_owned(),
        root.path().join("tasks").join(name),
        root.path().join("teams").join(name).join("inboxes"),
    ]
}

/// What is wrong with the file, for people as compilers do it.
pub(super) fn told(here: &Here, verb: &str, path: &Path, flaws: &[Flaw]) -> ExitCode {
    let count = if flaws.len() == 1 { "1 fault".to_owned() } else { format!("{} faults", flaws.len()) };
    let done = if verb == "run" { "started" } else { "changed" };
    let message = format!("cannot {verb} {}: {count}, and nothing was {done}", path.display());
    if here.global.json {
        let error = json!({"kind": ErrorKind::InvalidData, "message": message, "faults": flaws});
        output::json(&json!({"ok": false, "error": error}).to_string());
    }
    output::complain(&message);
    for flaw in flaws {
        output::place(&format!("{}:{}:{}: {}", path.display(), flaw.line, flaw.column, flaw.message));
    }
    ExitCode::from(ErrorKind::InvalidData.exit_code())
}

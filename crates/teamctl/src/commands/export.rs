//! `export`: a team's files in one archive, at the paths that they have below a root.

use crate::context::CommandContext;
use crate::output;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::policy::Policy;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::{Team, now};
use tar::{Builder, Header};

/// The team's policy, which lies outside the root.
pub(super) const POLICY_ENTRY: &str = "teamd/policy.json";

/// Pack a team's files: its config, inboxes, tasks and policy
///
/// A tar archive with the paths below a root: teamctl import makes a team of it, here under another name or on another
/// machine, and so does any tar. Worktrees are not in it, nor is what the agents' programs keep of their sessions.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl export survey\n  teamctl export survey --output - | ssh host teamctl import -"
)]
pub(crate) struct ExportArgs {
    /// Which [default: the only one]
    #[arg(value_name = "TEAM")]
    name: Option<String>,
    /// Into this file, which must not be there yet; - is standard output [default: TEAM.tar]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(here: &CommandContext, args: &ExportArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("export a team")?;
    let mut global = here.args.clone();
    global.team = args.name.clone().or(global.team);
    let here = CommandContext::new(global);
    let team = here.team()?;
    let policy = here.state_dir()?.read(&Policy::file_name(team.name()))?;
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.tar", team.name())));
    if path == Path::new("-") {
        if std::io::stdout().is_terminal() {
            let message = "cannot write an archive to a terminal";
            return Err(ErrorReport::new(ErrorKind::Usage, message).with_help("name a file: --output FILE"));
        }
        write_archive(&team, policy, std::io::stdout().lock(), &path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = create_private_file(&path)?;
    let count = write_archive(&team, policy, file, &path).inspect_err(|_| {
        // Half an archive is worse than none.
        std::fs::remove_file(&path).ok();
    })?;
    let sentence = format!("{} is packed in {}: {count} files.", team.name(), path.display());
    output::print_result(&here, &json!({"file": path, "files": count}), &output::sanitize(&sentence));
    Ok(ExitCode::SUCCESS)
}

/// For its owner alone: mail is in it.
fn create_private_file(path: &Path) -> Result<File, ErrorReport> {
    File::options().write(true).create_new(true).mode(0o600).open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let message = format!("cannot write {}: it is there already", path.display());
            ErrorReport::new(ErrorKind::AlreadyExists, message)
                .with_help("name another file with --output FILE")
        }
        _ => ErrorReport::from_io("make", path, &error),
    })
}

/// Gives how many files.
fn write_archive(
    team: &Team,
    policy: Option<Vec<u8>>,
    to: impl Write,
    path: &Path,
) -> Result<usize, ErrorReport> {
    let mut archive = Builder::new(BufWriter::new(to));
    let mut count = 0;
    let mut put = |name: &str, bytes: &[u8]| {
        count += 1;
        append_entry(&mut archive, name, bytes).map_err(|error| ErrorReport::from_io("write", path, &error))
    };
    team.export(&mut put)?;
    policy.map_or(Ok(()), |policy| put(POLICY_ENTRY, &policy))?;
    let done = archive.into_inner().and_then(|mut to| to.flush());
    done.map(|()| count).map_err(|error| ErrorReport::from_io("write", path, &error))
}

fn append_entry(archive: &mut Builder<impl Write>, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o600);
    header.set_size(bytes.len() as u64);
    header.set_mtime(now() / 1_000);
    archive.append_data(&mut header, name, bytes)
}

//! `teamctl export`: packs a team's files into a tar archive. Paths in the archive are relative to
//! the root.

use crate::command_context::CommandContext;
use crate::output;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::mask_secrets_in_text::mask_secrets_in_json_text;
use protocol::state_file_names;
use serde_json::json;
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::{Team, now};
use tar::{Builder, Header};

/// The archive's entry for the team's policy, which is a file outside the root.
pub(super) const POLICY_ENTRY: &str = "teamd/policy.json";

/// Save a team in a tar archive
///
/// Example: teamctl export survey
///
/// The archive has the team's configuration, inboxes, tasks and policy, with paths relative to the
/// root. It has no worktrees and no sessions of agent programs. `teamctl import` creates a team
/// from it: on another machine, or on this one under another name.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl export survey --mask\n  teamctl export survey --output - | ssh host teamctl import -"
)]
pub(crate) struct ExportArgs {
    /// The team [default: the only one]
    #[arg(value_name = "TEAM")]
    name: Option<String>,
    /// The archive, as with --output
    #[arg(value_name = "FILE", conflicts_with = "output")]
    file: Option<PathBuf>,
    /// The archive, which must not exist yet; - writes to standard output [default: TEAM.tar]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Mask passwords, keys and tokens in all texts
    #[arg(long)]
    mask: bool,
}

/// What becomes of secrets in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrets {
    Kept,
    Masked,
}

pub(crate) fn run(context: &CommandContext, args: &ExportArgs) -> Result<ExitCode, ErrorReport> {
    let context = context.with_team_argument(args.name.as_deref());
    let team = context.team()?;
    let policy = context.state_dir()?.read(&state_file_names::policy(team.name()))?;
    let secrets = if args.mask { Secrets::Masked } else { Secrets::Kept };
    let path = args
        .output
        .clone()
        .or_else(|| args.file.clone())
        .unwrap_or_else(|| PathBuf::from(format!("{}.tar", team.name())));
    if path == Path::new("-") {
        if std::io::stdout().is_terminal() {
            let message = "cannot write an archive to a terminal";
            return Err(ErrorReport::new(ErrorKind::Usage, message).with_help("name a file: --output FILE"));
        }
        write_archive(&team, policy, secrets, std::io::stdout().lock(), &path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = create_private_file(&path)?;
    let count = write_archive(&team, policy, secrets, file, &path).inspect_err(|_| {
        // An incomplete archive can't be imported.
        std::fs::remove_file(&path).ok();
    })?;
    let sentence = format!("{} is packed in {}: {count} files.", team.name(), path.display());
    output::print_result(&context, &json!({"file": path, "files": count}), &output::sanitize(&sentence));
    Ok(ExitCode::SUCCESS)
}

/// Creates a file that only its owner can read, because it contains messages.
fn create_private_file(path: &Path) -> Result<File, ErrorReport> {
    File::options().write(true).create_new(true).mode(0o600).open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let message = format!("cannot write {}: it exists already", path.display());
            ErrorReport::new(ErrorKind::AlreadyExists, message)
                .with_help("name another file with --output FILE")
        }
        _ => ErrorReport::from_io("make", path, &error),
    })
}

/// Writes the archive and returns the number of files in it. `path` is for errors.
fn write_archive(
    team: &Team,
    policy: Option<Vec<u8>>,
    secrets: Secrets,
    writer: impl Write,
    path: &Path,
) -> Result<usize, ErrorReport> {
    let mut archive = Builder::new(BufWriter::new(writer));
    let mut count = 0;
    let mut add_file = |name: &str, bytes: &[u8]| {
        count += 1;
        let bytes = if secrets == Secrets::Masked { mask_file(name, bytes)? } else { bytes.into() };
        append_entry(&mut archive, name, &bytes).map_err(|error| ErrorReport::from_io("write", path, &error))
    };
    team.export(&mut add_file)?;
    policy.map_or(Ok(()), |policy| add_file(POLICY_ENTRY, &policy))?;
    let result = archive.into_inner().and_then(|mut writer| writer.flush());
    result.map(|()| count).map_err(|error| ErrorReport::from_io("write", path, &error))
}

/// Masks the secrets in a JSON file. `name` is for errors.
fn mask_file<'a>(name: &str, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, ErrorReport> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string());
    let masked = text.and_then(|text| mask_secrets_in_json_text(text).map_err(|error| error.to_string()));
    match masked {
        Ok(Cow::Borrowed(text)) => Ok(text.as_bytes().into()),
        Ok(Cow::Owned(text)) => Ok(text.into_bytes().into()),
        Err(error) => {
            let message = format!("cannot mask the secrets in {name}: {error}");
            Err(ErrorReport::new(ErrorKind::InvalidData, message)
                .with_help("without --mask it is packed as it is"))
        }
    }
}

fn append_entry(archive: &mut Builder<impl Write>, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o600);
    header.set_size(bytes.len() as u64);
    header.set_mtime(now() / 1_000);
    archive.append_data(&mut header, name, bytes)
}

//! `import`: a team of what `export` has packed. All of it is read and checked before anything is made.

use super::create::{default_create_request, sanitized_team_name};
use super::export::POLICY_ENTRY;
use super::policy::policy_text;
use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use protocol::control::{CreateTeamReply, CreateTeamRequest, DeleteTeamRequest, Reply, Request};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::AgentName;
use protocol::policy::Policy;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::TeamArchive;
use tar::{Archive, EntryType};

/// The most bytes of all files together.
const MAX_ARCHIVE_BYTES: u64 = 1 << 30;

/// Make a team of what teamctl export has packed
///
/// With its inboxes, tasks and policy, which is told; its members are told too, and are yours to spawn: to whoever comes
/// by such a name the mail of before is read. Its name must be free; -t gives
/// it another. A file that is not one of a team's, or that does not parse, is refused (65), and nothing is made.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl import survey.tar\n  teamctl import survey.tar -t survey-2\n  ssh host teamctl export survey --output - | teamctl import -"
)]
pub(crate) struct ImportArgs {
    /// The archive; - is standard input
    file: PathBuf,
}

pub(crate) fn run(here: &CommandContext, args: &ImportArgs) -> Result<ExitCode, ErrorReport> {
    here.require_lead("import a team")?;
    let (parcel, policy) = match args.file == Path::new("-") {
        true => read_archive(std::io::stdin().lock(), &args.file)?,
        false => read_archive(open_archive(&args.file)?, &args.file)?,
    };
    let name = parcel.team_name()?;
    let team = here.args.team.as_deref().map_or(Ok(name), sanitized_team_name)?;
    let request = CreateTeamRequest { policy: policy.clone(), ..default_create_request(&team)? };
    let reply = here.call_daemon(Request::CreateTeam(request)).map_err(|fault| match fault.kind {
        // What the daemon names is for `create`.
        ErrorKind::AlreadyExists => fault.with_help("give it another name with -t NAME"),
        _ => fault,
    })?;
    let Reply::CreateTeam(made) = reply else { return Err(unexpected_reply()) };
    let filled =
        here.root()?.team(&made.team_name).and_then(|team| team.import(&parcel)).map_err(ErrorReport::from);
    if let Err(fault) = filled {
        // Nobody takes half a team for the whole.
        let order = DeleteTeamRequest { team: made.team_name, force: true, discard_worktrees: Vec::new() };
        here.call_daemon(Request::DeleteTeam(order))?;
        return Err(fault);
    }
    print_result(here, &made, &parcel, &policy);
    Ok(ExitCode::SUCCESS)
}

/// Where an archive comes from.
const EXPORT_HELP: &str = "pack a team with: teamctl export TEAM";

fn open_archive(path: &Path) -> Result<File, ErrorReport> {
    File::open(path).map_err(|why| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot read {}: {why}", path.display()))
            .with_help(EXPORT_HELP)
    })
}

fn read_archive(from: impl Read, path: &Path) -> Result<(TeamArchive, Policy), ErrorReport> {
    let unreadable = |error: std::io::Error| {
        // The library's own words have what stands in the file.
        let why = match error.raw_os_error() {
            Some(_) => error.to_string(),
            None => "it is no tar archive, or only a part of one".to_owned(),
        };
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot import {}: {why}", path.display()))
            .with_help(EXPORT_HELP)
    };
    // One byte more than there may be shows that there are more.
    let mut archive = Archive::new(from.take(MAX_ARCHIVE_BYTES + 1));
    let (mut parcel, mut policy, mut total) = (TeamArchive::default(), Policy::default(), 0);
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type() {
            EntryType::Directory => continue,
            EntryType::Regular => {}
            _ => return Err(invalid_archive(&name, "it is no file")),
        }
        let mut bytes = Vec::new();
        total += entry.read_to_end(&mut bytes).map_err(unreadable)? as u64;
        if total > MAX_ARCHIVE_BYTES {
            return Err(invalid_archive(&name, "the archive holds more than a team has"));
        }
        match name.trim_start_matches("./") {
            POLICY_ENTRY => {
                policy =
                    serde_json::from_slice(&bytes).map_err(|why| invalid_archive(&name, &why.to_string()))?;
            }
            name => parcel.add_file(&output::sanitize(name), bytes)?,
        }
    }
    Ok((parcel, policy))
}

fn invalid_archive(name: &str, why: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::InvalidData, output::sanitize(&format!("cannot import {name}: {why}")))
}

fn print_result(here: &CommandContext, made: &CreateTeamReply, parcel: &TeamArchive, policy: &Policy) {
    let (inboxes, tasks) = parcel.counts();
    let mut sentence = format!("Team {} is there, with {inboxes} inboxes and {tasks} tasks.", made.team_name);
    let names: Vec<&str> = parcel.members().iter().map(AgentName::as_str).collect();
    if !names.is_empty() {
        sentence += &format!("\nIts members were {}: start them with teamctl spawn.", names.join(", "));
        sentence += " Whoever comes by such a name finds its mail as read.";
    }
    // It was written elsewhere, and decides here from now on.
    sentence += &format!("\nIts policy: {}", policy_text(policy).replace('\n', "\n  "));
    let result = json!({"policy": policy, "team_name": made.team_name, "team_file_path": made.team_file_path, "inboxes": inboxes,
        "tasks": tasks, "members": names});
    output::print_result(here, &result, &output::sanitize(&sentence));
}

//! `teamctl import`: creates a team from an archive of `teamctl export`. The whole archive is read
//! and checked before the team is created.

use super::create::{default_create_request, sanitized_team_name};
use super::export::POLICY_ENTRY;
use super::policy::policy_text;
use crate::context::CommandContext;
use crate::output;
use protocol::control::{CreateTeamReply, CreateTeamRequest, DeleteTeamRequest, Request};
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

/// The largest archive, in bytes.
const MAX_ARCHIVE_BYTES: u64 = 1 << 30;

/// Create a team from an archive of teamctl export
///
/// The team gets the inboxes, tasks and policy of the archive. The output shows the policy and the
/// former members. Former members are not started: spawn them yourself. For a member that is
/// spawned with a former name, the messages in the archive count as read. The team's name must be
/// free; -t sets another name. An archive with other or invalid files is refused (65), and nothing
/// is created.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl import survey.tar\n  teamctl import survey.tar -t survey-2\n  ssh host teamctl export survey --output - | teamctl import -"
)]
pub(crate) struct ImportArgs {
    /// The archive; - reads it from standard input
    file: PathBuf,
}

pub(crate) fn run(context: &CommandContext, args: &ImportArgs) -> Result<ExitCode, ErrorReport> {
    context.require_lead("import a team")?;
    let ImportedTeam { archive, policy } = match args.file == Path::new("-") {
        true => read_archive(std::io::stdin().lock(), &args.file)?,
        false => read_archive(open_archive(&args.file)?, &args.file)?,
    };
    let name = archive.team_name()?;
    let team = context.args.team.as_deref().map_or(Ok(name), sanitized_team_name)?;
    let request = CreateTeamRequest { policy: policy.clone(), ..default_create_request(&team)? };
    let reply: CreateTeamReply =
        context.request(Request::CreateTeam(request)).map_err(|error| match error.kind {
            // The daemon's help is about `teamctl create`.
            ErrorKind::AlreadyExists => error.with_help("give it another name with -t NAME"),
            _ => error,
        })?;
    let imported = context.root()?.team(&reply.team_name).and_then(|team| team.import(&archive));
    if let Err(error) = imported {
        // An incomplete team is deleted again.
        let request = DeleteTeamRequest::forced(reply.team_name);
        context.call_daemon(Request::DeleteTeam(request))?;
        return Err(ErrorReport::from(error));
    }
    print_result(context, &reply, &archive, &policy);
    Ok(ExitCode::SUCCESS)
}

const EXPORT_HELP: &str = "pack a team with: teamctl export TEAM";

/// The content of an archive.
struct ImportedTeam {
    archive: TeamArchive,
    policy: Policy,
}

fn open_archive(path: &Path) -> Result<File, ErrorReport> {
    File::open(path).map_err(|error| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot read {}: {error}", path.display()))
            .with_help(EXPORT_HELP)
    })
}

/// Reads and checks an archive. `path` is the archive's name in errors.
fn read_archive(input: impl Read, path: &Path) -> Result<ImportedTeam, ErrorReport> {
    let unreadable = |error: std::io::Error| {
        // A message of the library may contain text of the file.
        let reason = match error.raw_os_error() {
            Some(_) => error.to_string(),
            None => "it is no tar archive, or only a part of one".to_owned(),
        };
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot import {}: {reason}", path.display()))
            .with_help(EXPORT_HELP)
    };
    // One byte more than allowed shows that the archive is too large.
    let mut tar = Archive::new(input.take(MAX_ARCHIVE_BYTES + 1));
    let (mut archive, mut policy, mut total) = (TeamArchive::default(), Policy::default(), 0);
    for entry in tar.entries().map_err(unreadable)? {
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
                policy = serde_json::from_slice(&bytes)
                    .map_err(|error| invalid_archive(&name, &error.to_string()))?;
            }
            name => archive.add_file(&output::sanitize(name), bytes)?,
        }
    }
    Ok(ImportedTeam { archive, policy })
}

fn invalid_archive(name: &str, reason: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::InvalidData, output::sanitize(&format!("cannot import {name}: {reason}")))
}

fn print_result(context: &CommandContext, reply: &CreateTeamReply, archive: &TeamArchive, policy: &Policy) {
    let (inboxes, tasks) = archive.counts();
    let mut sentence = format!("imported team {} with {inboxes} inboxes and {tasks} tasks", reply.team_name);
    let names: Vec<&str> = archive.members().iter().map(AgentName::as_str).collect();
    if !names.is_empty() {
        sentence += &format!("\nIts members were {}: start them with teamctl spawn.", names.join(", "));
        sentence += " A new member with one of these names finds its old messages as read.";
    }
    // The policy may come from another person, and it is in force from now on.
    sentence += &format!("\nIts policy: {}", policy_text(policy).replace('\n', "\n  "));
    let result = json!({"policy": policy, "team_name": reply.team_name, "team_file_path": reply.team_file_path, "inboxes": inboxes,
        "tasks": tasks, "members": names});
    output::print_result(context, &result, &output::sanitize(&sentence));
}

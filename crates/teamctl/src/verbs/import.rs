//! `import`: a team of what `export` has packed. All of it is read and checked before anything is made.

use super::create::{called, plain};
use super::export::POLICY;
use super::policy::words;
use crate::here::{Here, fault, misunderstood};
use crate::output;
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
const LIMIT: u64 = 1 << 30;

/// Make a team of what teamctl export has packed
///
/// With its inboxes, tasks and policy, which is told; its members are told too, and are yours to spawn: to whoever comes
/// by such a name the mail of before is read. Its name must be free; -t gives
/// it another. A file that is not one of a team's, or that does not parse, is refused (65), and nothing is made.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl import survey.tar\n  teamctl import survey.tar -t survey-2\n  ssh host teamctl export survey --output - | teamctl import -"
)]
pub(crate) struct Import {
    /// The archive; - is standard input
    file: PathBuf,
}

pub(crate) fn run(here: &Here, args: &Import) -> Result<ExitCode, ErrorReport> {
    here.lead_only("import a team")?;
    let (parcel, policy) = match args.file == Path::new("-") {
        true => read(std::io::stdin().lock(), &args.file)?,
        false => read(opened(&args.file)?, &args.file)?,
    };
    let name = parcel.team_name()?;
    let team = here.global.team.as_deref().map_or(Ok(name), called)?;
    let request = CreateTeamRequest { policy: policy.clone(), ..plain(&team)? };
    let reply = here.ask(Request::CreateTeam(request)).map_err(|fault| match fault.kind {
        // What the daemon names is for `create`.
        ErrorKind::AlreadyExists => fault.with_help("give it another name with -t NAME"),
        _ => fault,
    })?;
    let Reply::CreateTeam(made) = reply else { return Err(misunderstood()) };
    let filled = here.root()?.team(&made.team_name).and_then(|team| team.import(&parcel)).map_err(fault);
    if let Err(fault) = filled {
        // Nobody takes half a team for the whole.
        let order = DeleteTeamRequest { team: made.team_name, force: true, discard_worktrees: Vec::new() };
        here.ask(Request::DeleteTeam(order))?;
        return Err(fault);
    }
    tell(here, &made, &parcel, &policy);
    Ok(ExitCode::SUCCESS)
}

/// Where an archive comes from.
const PACK: &str = "pack a team with: teamctl export TEAM";

fn opened(path: &Path) -> Result<File, ErrorReport> {
    File::open(path).map_err(|why| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot read {}: {why}", path.display()))
            .with_help(PACK)
    })
}

fn read(from: impl Read, path: &Path) -> Result<(TeamArchive, Policy), ErrorReport> {
    let unreadable = |error: std::io::Error| {
        // The library's own words have what stands in the file.
        let why = match error.raw_os_error() {
            Some(_) => error.to_string(),
            None => "it is no tar archive, or only a part of one".to_owned(),
        };
        ErrorReport::new(ErrorKind::InvalidData, format!("cannot import {}: {why}", path.display()))
            .with_help(PACK)
    };
    // One byte more than there may be shows that there are more.
    let mut archive = Archive::new(from.take(LIMIT + 1));
    let (mut parcel, mut policy, mut total) = (TeamArchive::default(), Policy::default(), 0);
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type() {
            EntryType::Directory => continue,
            EntryType::Regular => {}
            _ => return Err(refused(&name, "it is no file")),
        }
        let mut bytes = Vec::new();
        total += entry.read_to_end(&mut bytes).map_err(unreadable)? as u64;
        if total > LIMIT {
            return Err(refused(&name, "the archive holds more than a team has"));
        }
        match name.trim_start_matches("./") {
            POLICY => {
                policy = serde_json::from_slice(&bytes).map_err(|why| refused(&name, &why.to_string()))?;
            }
            name => parcel.add_file(&output::clean(name), bytes)?,
        }
    }
    Ok((parcel, policy))
}

fn refused(name: &str, why: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::InvalidData, output::clean(&format!("cannot import {name}: {why}")))
}

fn tell(here: &Here, made: &CreateTeamReply, parcel: &TeamArchive, policy: &Policy) {
    let (inboxes, tasks) = parcel.counts();
    let mut sentence = format!("Team {} is there, with {inboxes} inboxes and {tasks} tasks.", made.team_name);
    let names: Vec<&str> = parcel.members().iter().map(AgentName::as_str).collect();
    if !names.is_empty() {
        sentence += &format!("\nIts members were {}: start them with teamctl spawn.", names.join(", "));
        sentence += " Whoever comes by such a name finds its mail as read.";
    }
    // It was written elsewhere, and decides here from now on.
    sentence += &format!("\nIts policy: {}", words(policy).replace('\n', "\n  "));
    let result = json!({"policy": policy, "team_name": made.team_name, "team_file_path": made.team_file_path, "inboxes": inboxes,
        "tasks": tasks, "members": names});
    output::done(here, &result, &output::clean(&sentence));
}

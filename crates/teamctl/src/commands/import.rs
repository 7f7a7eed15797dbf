//! `teamctl import`: creates a team from an archive of `teamctl export`. The whole archive is read
//! and checked before the team is created.

use super::create::{default_create_request, new_team_name};
use super::export::POLICY_ENTRY;
use super::policy::{policy_text, worktree_command_lines};
use crate::command_context::CommandContext;
use crate::output;
use protocol::control_socket::{CreateTeamReply, CreateTeamRequest, DeleteTeamRequest, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::policy::{Policy, TaskCommandPolicy};
use protocol::shell_quote::shell_quote;
use protocol::team_and_member_names::MemberName;
use serde_json::json;
use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use store::TeamArchive;
use tar::{Archive, EntryType};

/// The largest archive, in bytes.
const MAX_ARCHIVE_BYTES: u64 = 1 << 30;

/// The maximum number of bytes from the end of one file in an archive to the beginning of the next.
/// These bytes are headers, long names and padding.
const MAX_HEADER_BYTES: u64 = 64 << 10;

/// Create a team from an exported archive
///
/// Example: teamctl import survey.tar
///
/// The team gets the inboxes, tasks and policy of the archive. Its name must be free; -t sets
/// another name. The output shows the policy and the former members.
///
/// Former members are not started; use `teamctl spawn`. For a new member with a former name, the
/// messages in the archive count as read.
///
/// An archive with an invalid file, or with a file that is not one of a team, is rejected (exit
/// code 65), and nothing is created. Commands in its tasks or its policy need --yes, and so does a
/// policy that lets every member add commands. Without --yes, the import shows the commands and is
/// refused (exit code 76).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl import survey.tar -t survey-2\n  ssh host teamctl export survey --output - | teamctl import -"
)]
pub(crate) struct ImportArgs {
    /// The archive; - reads standard input
    file: PathBuf,
    /// Import although tasks or the policy have commands, or members may add them
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(context: &CommandContext, args: &ImportArgs) -> Result<ExitCode, ErrorReport> {
    let ImportedTeam { archive, policy } = match args.file == Path::new("-") {
        true => read_archive(std::io::stdin().lock(), &args.file)?,
        false => read_archive(open_archive(&args.file)?, &args.file)?,
    };
    let name = archive.team_name()?;
    if !args.yes {
        check_no_commands(&args.file, &archive, &policy)?;
    }
    let team = context.args.team.as_deref().map_or(Ok(name), new_team_name)?;
    let request = CreateTeamRequest { policy: policy.clone(), ..default_create_request(&team)? };
    let reply: CreateTeamReply =
        context.request(Request::CreateTeam(request)).map_err(|error| match error.kind {
            // If the team's name is taken, the daemon's error suggests an option of `teamctl
            // create`. The suggestion is replaced by one for `import`.
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

/// Refuses an archive whose content makes workers run commands. The archive may come from another
/// person, so each command is shown in full.
fn check_no_commands(file: &Path, archive: &TeamArchive, policy: &Policy) -> Result<(), ErrorReport> {
    let lines = command_lines(archive, policy);
    if lines.is_empty() {
        return Ok(());
    }
    let path_text = file.display();
    let message =
        format!("cannot import {path_text} without --yes: it has commands:\n  {}", lines.join("\n  "));
    let file = shell_quote(&file.to_string_lossy());
    Err(ErrorReport::new(ErrorKind::Refused, output::sanitize(&message))
        .with_help(format!("if you trust all of them: teamctl import {file} --yes")))
}

/// The commands of the archive's tasks, and the policy that lets members add commands.
fn command_lines(archive: &TeamArchive, policy: &Policy) -> Vec<String> {
    let is_open = policy.task_commands == TaskCommandPolicy::Any;
    let open = is_open.then(|| "policy: every member may add commands to tasks (commands: any)".to_owned());
    let worktrees = worktree_command_lines(policy).into_iter().map(|line| format!("policy: {line}"));
    let tasks = archive.commands().iter().map(|(id, command)| format!("task {id}: {command}"));
    open.into_iter().chain(worktrees).chain(tasks).collect()
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
    let allowance = ReadAllowance::default();
    let mut tar = Archive::new(AllowedReader { input, allowance: allowance.clone() });
    let (mut archive, mut policy, mut total) = (TeamArchive::default(), None, 0_u64);
    let mut entries = tar.entries().map_err(unreadable)?;
    loop {
        allowance.set(MAX_HEADER_BYTES);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(unreadable)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type() {
            EntryType::Directory => continue,
            EntryType::Regular => {}
            _ => return Err(invalid_archive(&name, "it is no file")),
        }
        let plain_name = name.trim_start_matches("./");
        total = entry.size().saturating_add(total);
        check_size(plain_name, entry.size(), total)?;
        allowance.set(entry.size());
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(unreadable)?;
        match plain_name {
            POLICY_ENTRY => add_policy(&mut policy, &name, &bytes)?,
            name => archive.add_file(&output::sanitize(name), bytes)?,
        }
    }
    Ok(ImportedTeam { archive, policy: policy.unwrap_or_default() })
}

/// Checks the size in an entry's header before the entry is read. `total` is the size of all
/// entries so far, including this one.
fn check_size(name: &str, size: u64, total: u64) -> Result<(), ErrorReport> {
    if size > TeamArchive::size_limit(name) {
        return Err(invalid_archive(name, "too large"));
    }
    if total > MAX_ARCHIVE_BYTES {
        return Err(invalid_archive(name, "the archive holds more than a team has"));
    }
    Ok(())
}

fn add_policy(policy: &mut Option<Policy>, name: &str, bytes: &[u8]) -> Result<(), ErrorReport> {
    let added = serde_json::from_slice(bytes).map_err(|error| invalid_archive(name, &error.to_string()))?;
    match policy.replace(added) {
        None => Ok(()),
        Some(_) => Err(invalid_archive(name, "there twice")),
    }
}

/// How many bytes of the archive may be read until the next check.
type ReadAllowance = Rc<Cell<u64>>;

/// Reads an archive, and fails if more bytes are read than allowed. The tar library reads long
/// entry names and the content of directories by itself, before this program can check their sizes.
/// So this reader enforces a limit.
struct AllowedReader<R> {
    input: R,
    allowance: ReadAllowance,
}

impl<R: Read> Read for AllowedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let limit = usize::try_from(self.allowance.get()).unwrap_or(usize::MAX).min(buffer.len());
        if limit == 0 && !buffer.is_empty() {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        let count = self.input.read(&mut buffer[..limit])?;
        self.allowance.set(self.allowance.get() - count as u64);
        Ok(count)
    }
}

fn invalid_archive(name: &str, reason: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::InvalidData, output::sanitize(&format!("cannot import {name}: {reason}")))
}

fn print_result(context: &CommandContext, reply: &CreateTeamReply, archive: &TeamArchive, policy: &Policy) {
    let (inboxes, tasks) = archive.counts();
    let mut sentence = format!("imported team {} with {inboxes} inboxes and {tasks} tasks", reply.team_name);
    let names: Vec<&str> = archive.members().iter().map(MemberName::as_str).collect();
    if !names.is_empty() {
        sentence += &format!("\nIts members were {}: start them with teamctl spawn.", names.join(", "));
        sentence += " A new member with one of these names finds its old messages as read.";
    }
    let commands = command_lines(archive, policy);
    if !commands.is_empty() {
        sentence += &format!("\nIts commands:\n  {}", commands.join("\n  "));
    }
    // The policy may come from another person, and it is in force from now on.
    sentence += &format!("\nIts policy: {}", policy_text(policy).replace('\n', "\n  "));
    let result = json!({"policy": policy, "team_name": reply.team_name, "team_file_path": reply.team_file_path, "inboxes": inboxes,
        "tasks": tasks, "members": names});
    output::print_result(context, &result, &output::sanitize(&sentence));
}

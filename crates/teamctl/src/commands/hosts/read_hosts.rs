//! Reads the user's hosts file, and finds a host by its name.

use crate::command_context::CommandContext;
use crate::commands::print_run_or_policy_file_errors::{FileUse, print_validation_errors};
use profile::ProfileRegistry;
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{Host, HostName};
use protocol::team_and_member_names::TeamName;
use runner::{HostTables, ValidationError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The files that describe hosts.
#[derive(Debug, Default)]
pub(in crate::commands) struct HostSource {
    /// A run file, whose hosts replace those of the same name in the hosts file.
    pub(in crate::commands) run_file: Option<PathBuf>,
}

impl HostSource {
    /// The hosts that commands about members of `team` use: also those of the run file, if a run
    /// drives the team.
    pub(in crate::commands) fn read_for_team(
        &self,
        context: &CommandContext,
        team: &TeamName,
    ) -> Result<Result<HostTables, ExitCode>, ErrorReport> {
        let run_file = runner::run_file_of_team(&context.state_dir_path()?, team);
        let of_run = run_file.as_deref().map(runner::read_hosts_of_run_file).unwrap_or_default();
        Ok(self.read(context)?.map(|hosts| of_run.or(hosts)))
    }

    /// Reads all hosts. A hosts file that does not exist has no hosts. If a file has errors, they are
    /// printed, and the inner `Err` is the exit code.
    pub(in crate::commands) fn read(
        &self,
        context: &CommandContext,
    ) -> Result<Result<HostTables, ExitCode>, ErrorReport> {
        let print = |path: &Path, errors: Vec<ValidationError>| {
            print_validation_errors(context, FileUse::Hosts, path, &errors)
        };
        let mut hosts = HostTables::default();
        if let Some(path) = hosts_file().filter(|path| path.exists()) {
            match runner::read_hosts_file(&path)? {
                Ok(read) => hosts = read,
                Err(errors) => return Ok(Err(print(&path, errors))),
            }
        }
        if let Some(path) = &self.run_file {
            match runner::read_run_file(path, &context.root_path()?)? {
                Ok(run) => hosts = run.hosts.or(hosts),
                Err(errors) => return Ok(Err(print(path, errors))),
            }
        }
        Ok(Ok(hosts))
    }

    /// The host with this name.
    ///
    /// # Errors
    ///
    /// `Usage` if there is none.
    pub(in crate::commands) fn find(
        &self,
        hosts: &HostTables,
        name: &str,
    ) -> Result<(HostName, Host), ErrorReport> {
        let found = HostName::parse(name).and_then(|name| hosts.hosts.get_key_value(&name));
        found.map(|(name, host)| (name.clone(), host.clone())).ok_or_else(|| {
            let near = did_you_mean(name, hosts.hosts.keys().map(HostName::as_str));
            let help = near.unwrap_or_else(|| "the hosts and how to add one: teamctl hosts".to_owned());
            let message = format!("cannot find the host {name}: {} has none of that name", hosts_file_text());
            ErrorReport::new(ErrorKind::Usage, message).with_help(help)
        })
    }

    /// What to print if there are no hosts.
    pub(in crate::commands) fn no_hosts_text(&self) -> String {
        format!(
            "No hosts. To add one, write to {}:\n\n[host.devbox]\nconnect = \"ssh -T devbox\"",
            hosts_file_text()
        )
    }
}

/// The path of the hosts file. `None` if the user has no home directory.
pub(in crate::commands) fn hosts_file() -> Option<PathBuf> {
    ProfileRegistry::for_user().config_path("hosts.toml")
}

/// The path of the hosts file, for people.
pub(in crate::commands) fn hosts_file_text() -> String {
    hosts_file().map_or_else(|| "hosts.toml".to_owned(), |path| path.display().to_string())
}

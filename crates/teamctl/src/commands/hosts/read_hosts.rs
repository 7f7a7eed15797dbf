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
    /// The run file of the team, or why it cannot be used. `None` if no run drives the team.
    run_file_of_team: Option<Result<PathBuf, ErrorReport>>,
}

impl HostSource {
    /// The hosts file, and also this run file if there is one.
    pub(in crate::commands) fn with_run_file(run_file: Option<PathBuf>) -> HostSource {
        HostSource { run_file, run_file_of_team: None }
    }

    /// Reads the hosts for a command about members of `team`. They are the hosts of the hosts file
    /// and, if the team was started by `teamctl run`, those of its run file. A run file with errors
    /// is ignored here. Its errors are reported by [`HostSource::find`], if a command names a host
    /// that the hosts file lacks.
    pub(in crate::commands) fn read_for_team(
        &mut self,
        context: &CommandContext,
        team: &TeamName,
    ) -> Result<Result<HostTables, ExitCode>, ErrorReport> {
        let root = context.root()?;
        let team = root.team(team).ok();
        let state = context.state_dir_path()?;
        let run_file = team.and_then(|team| runner::run_file_of_team(&state, &team));
        let of_run = self.read_run_file_of_team(run_file);
        Ok(self.read(context)?.map(|hosts| of_run.or(hosts)))
    }

    fn read_run_file_of_team(&mut self, run_file: Option<PathBuf>) -> HostTables {
        let Some(path) = run_file else { return HostTables::default() };
        let (hosts, result) = match runner::read_hosts_of_run_file(&path) {
            Ok(hosts) => (hosts, Ok(path)),
            Err(error) => (HostTables::default(), Err(error)),
        };
        self.run_file_of_team = Some(result);
        hosts
    }

    /// Checks that the team's run file has no errors. If it has errors, the hosts in it are
    /// unknown.
    ///
    /// # Errors
    ///
    /// The error of the run file.
    pub(in crate::commands) fn check_run_file_of_team(&self) -> Result<(), ErrorReport> {
        self.run_file_of_team.clone().transpose().map(drop)
    }

    /// Reads all hosts. Without a hosts file, there are none. If a file has errors, this function
    /// prints them and returns the exit code as the inner `Err`.
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
            let message = format!("cannot find the host {name}: {}", self.lack_of_host_text());
            ErrorReport::new(ErrorKind::Usage, message).with_help(help)
        })
    }

    /// Which files have no host of a name, for people.
    fn lack_of_host_text(&self) -> String {
        let hosts_file = hosts_file_text();
        match &self.run_file_of_team {
            None => format!("{hosts_file} has none of that name"),
            Some(Ok(path)) => format!("{} and {hosts_file} have none of that name", path.display()),
            Some(Err(error)) => format!("{hosts_file} has none of that name, and teamctl {}", error.message),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test writes its own files")]
    fn missing_host_names_the_run_file_and_its_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.toml");
        let error = |text: Option<&str>| {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let mut source = HostSource::default();
            let hosts = source.read_run_file_of_team(Some(path.clone()));
            (
                source.find(&hosts, "box").err().map(|error| error.message),
                source.check_run_file_of_team().is_ok(),
            )
        };
        let (missing, is_usable) = error(None);
        assert!(
            missing.unwrap().contains(&format!("teamctl cannot read {}: ", path.display())) && !is_usable
        );
        let (other, is_usable) = error(Some("[host.other]\nconnect = 'ssh other'\n"));
        assert!(other.unwrap().contains(&format!("{} and ", path.display())) && is_usable);
        let (damaged, is_usable) = error(Some("[host.box]\nconnect = 1\n"));
        assert!(damaged.unwrap().contains(&format!("the hosts of {}:2:", path.display())) && !is_usable);
        assert_eq!(error(Some("[host.box]\nconnect = 'ssh box'\n[[member]]\n")), (None, true));
    }
}

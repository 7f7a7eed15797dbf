//! Runs a `teamctl` command about a team on another host, and returns the object that it prints.

use super::host_connection::{AnswerDeadline, HostConnection};
use super::read_hosts::HostSource;
use super::transport_command::OWN_VERSION;
use crate::command_context::CommandContext;
use crate::use_other_hosts::check_may_connect_to_hosts;
use protocol::command_for_other_host::{HostCommand, HostInput};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A command for a team on another host.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct CommandOnHost<'a> {
    pub(in crate::commands) team: &'a TeamName,
    pub(in crate::commands) host: &'a HostName,
    /// The command with its arguments.
    pub(in crate::commands) words: &'a [&'a str],
    /// The purpose of the command, for error messages that begin with "cannot ACTION HOST".
    pub(in crate::commands) action: &'a str,
    /// How long it may take.
    pub(in crate::commands) timeout: Duration,
}

impl CommandOnHost<'_> {
    /// Runs the command.
    ///
    /// # Errors
    ///
    /// `NotPermitted` if the caller may not use other hosts. `Config` if the hosts file has errors,
    /// which are printed. Also an error of the connection, or the error with which the command on
    /// the host failed.
    pub(in crate::commands) fn run(&self, context: &CommandContext) -> Result<Value, ErrorReport> {
        check_may_connect_to_hosts(context)?;
        let mut source = HostSource::default();
        let hosts = source.read_for_team(context, self.team)?.map_err(|_| {
            let message = format!("cannot {} {}: the hosts file has errors", self.action, self.host);
            ErrorReport::new(ErrorKind::Config, message).with_help("its errors: teamctl hosts")
        })?;
        let (name, host) = source.find(&hosts, self.host.as_str())?;
        let words = ["--json", "-t", self.team.as_str()].into_iter().chain(self.words.iter().copied());
        let arguments = words.map(str::to_owned).collect();
        let (root, env) = (host.root.clone(), BTreeMap::new());
        let command = HostCommand { host: name.clone(), root, team: None, arguments, env };
        let mut connection =
            HostConnection::open(&name, &host, &[&host.teamctl, "hosts", "exec", OWN_VERSION])?;
        for input in [HostInput::Command(command), HostInput::End] {
            connection.send_bytes(&input.to_frame().expect("the command is short"));
        }
        self.read_object(&mut connection)
    }

    /// Other programs may print lines before the object, such as a start file of the shell.
    fn read_object(&self, connection: &mut HostConnection) -> Result<Value, ErrorReport> {
        let deadline = AnswerDeadline::after(self.timeout);
        loop {
            let line = connection.receive_line(self.action, deadline)?;
            let Ok(object @ Value::Object(_)) = serde_json::from_str(&line) else { continue };
            let error = object.get("error").and_then(|error| serde_json::from_value(error.clone()).ok());
            return error.map_or(Ok(object), |error: ErrorReport| {
                let message = format!("cannot {} {}: {}", self.action, self.host, error.message);
                Err(ErrorReport { message, ..error })
            });
        }
    }
}

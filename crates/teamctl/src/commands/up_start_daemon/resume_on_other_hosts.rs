//! The part of `teamctl up --resume` on the other hosts of the teams: the `teamctl` of each host
//! resumes the members there.

use super::daemon_state::DaemonState;
use crate::command_context::CommandContext;
use crate::commands::hosts::command_with_json_output::CommandOnHost;
use protocol::control_socket::{AwaitHostRequest, HostContact, HostStatus, Request, TeamStatus};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a host may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The members of a team on one host.
pub(super) struct ResumedHost {
    team: TeamName,
    host: HostName,
    /// For each member that was suspended, what the host has printed about it.
    result: Result<Vec<Value>, ErrorReport>,
}

/// Resumes the suspended members of the teams on their other hosts.
pub(super) fn resume_on_other_hosts<'a>(
    context: &CommandContext,
    teams: impl Iterator<Item = &'a TeamStatus>,
    daemon_state: DaemonState,
) -> Vec<ResumedHost> {
    // A host that becomes the home is also listed with its contact.
    let is_home = |host: &HostStatus| {
        matches!(host.contact, HostContact::IsHome { .. } | HostContact::BecomesHome { .. })
    };
    let hosts = teams.flat_map(|team| team.hosts.iter().map(move |host| (&team.name, host)));
    let resume = |(team, host): (&TeamName, &HostStatus)| {
        let result = resume_on_host(context, team, host, daemon_state);
        ResumedHost { team: team.clone(), host: host.host.clone(), result }
    };
    hosts.filter(|(_, host)| !is_home(host)).map(resume).collect()
}

fn resume_on_host(
    context: &CommandContext,
    team: &TeamName,
    HostStatus { host, contact, .. }: &HostStatus,
    daemon_state: DaemonState,
) -> Result<Vec<Value>, ErrorReport> {
    match (contact, daemon_state) {
        (HostContact::NoContact { reason, .. }, DaemonState::RanAlready) => {
            let message = format!("cannot resume the members of {team} on {host}: no contact: {reason}");
            return Err(ErrorReport::new(ErrorKind::Timeout, message)
                .with_help(format!("later: teamctl --host {host} -t {team} up --resume")));
        }
        // A daemon that was started just now is still connecting.
        (HostContact::NoContact { .. }, DaemonState::Started) => {
            context.request::<()>(Request::AwaitHost(AwaitHostRequest {
                team: team.clone(),
                host: host.clone(),
            }))?;
        }
        _ => {}
    }
    let action = format!("resume the members of {team} on");
    let words = ["up", "--resume"];
    let command = CommandOnHost { team, host, words: &words, action: &action, timeout: TIMEOUT };
    let mut object = command.run(context)?;
    Ok(serde_json::from_value(object["members"].take()).unwrap_or_default())
}

impl ResumedHost {
    /// Whether every member there that was suspended runs again.
    pub(super) fn is_complete(&self) -> bool {
        self.result.as_ref().is_ok_and(|members| members.iter().all(|member| member["error"].is_null()))
    }

    /// What is printed for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let ResumedHost { team, host, result } = self;
        let line = |member: &Value| {
            let name = member["name"].as_str().unwrap_or_default();
            match member["error"].as_str() {
                Some(error) => format!("{name} of {team} on {host} does not run: {error}"),
                None => format!("{name} of {team} runs again on {host}, pid {}.", member["pid"]),
            }
        };
        match result {
            Ok(members) => members.iter().map(line).collect(),
            Err(ErrorReport { message, help, .. }) => {
                let help = help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
                vec![format!("{message}{help}")]
            }
        }
    }

    /// The objects of the members with `--json`. Without contact, one object with the error.
    pub(super) fn objects(&self) -> Vec<Value> {
        let ResumedHost { team, host, result } = self;
        match result {
            Ok(members) => {
                let mut members = members.clone();
                members.iter_mut().for_each(|member| member["host"] = json!(host));
                members
            }
            Err(error) => vec![json!({"team": team, "host": host, "error": error.message})],
        }
    }
}

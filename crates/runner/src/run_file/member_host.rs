//! Parses the keys `host` and `needs` of a member, which say on which host it runs.

use crate::run_file::host_tables::HostTables;
use crate::run_file::toml_table_reader::TableReader;
use crate::run_file::validation_errors::{Located, ValidationErrors, nearest_help};
use profile::build_spawn_request::SpawnOptions;
use protocol::control_socket::Backend;
use protocol::hosts_file_entry::{ANY_HOST, HOME_HOST, HostName};

/// Where a member runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostChoice {
    /// On this host.
    Named(HostName),
    /// On the host that the daemon chooses. The host has all these labels.
    Any { needs: Vec<String> },
}

/// The spawn of a member whose table names a host. Directory and programs are those of that host.
#[derive(Debug, Clone)]
pub(crate) struct HostedSpawn {
    pub(crate) host: HostChoice,
    pub(crate) options: SpawnOptions,
}

/// Parses the host. `None` if the member has none, or an invalid one.
pub(crate) fn parse_host_choice(
    member: &TableReader,
    hosts: &HostTables,
    errors: &mut ValidationErrors,
) -> Option<HostChoice> {
    let (host, needs) = (member.string("host", errors), parse_needs(member, errors));
    if let Some(offset) = member.key_offset("needs")
        && host.as_ref().is_none_or(|host| host.value != ANY_HOST)
    {
        errors.push(offset, "needs takes host = \"any\": only then teamd chooses the host");
    }
    let host = host?;
    match host.value.as_str() {
        ANY_HOST => Some(HostChoice::Any { needs }),
        HOME_HOST => {
            errors.push(host.offset, "home is where a member runs without the key host: leave it out");
            None
        }
        _ => find_host(&host, hosts, errors).map(HostChoice::Named),
    }
}

/// A label has no comma, because `teamctl spawn --needs` takes a list with commas.
fn parse_needs(member: &TableReader, errors: &mut ValidationErrors) -> Vec<String> {
    let needs = member.strings("needs", errors).map(|needs| needs.value).unwrap_or_default();
    for need in needs.iter().filter(|need| need.value.is_empty() || need.value.contains(',')) {
        errors.push(need.offset, format!("{:?} is no label: it takes text without a comma", need.value));
    }
    needs.into_iter().map(|need| need.value).collect()
}

fn find_host(host: &Located<String>, hosts: &HostTables, errors: &mut ValidationErrors) -> Option<HostName> {
    let found = HostName::parse(&host.value).filter(|name| hosts.hosts.contains_key(name));
    if found.is_none() {
        let suggestion = nearest_help(&host.value, hosts.hosts.keys().map(HostName::as_str));
        let message = format!(
            "there is no host {:?}{suggestion}; add a table [host.NAME] here or in the hosts file (teamctl help hosts)",
            host.value
        );
        errors.push(host.offset, message);
    }
    found
}

/// Checks the keys that do not go with a host.
pub(crate) fn check_keys_of_hosted_member(member: &TableReader, errors: &mut ValidationErrors) {
    let mut refuse = |key: &str, reason: &str| {
        let offset = member.key_offset(key).unwrap_or(member.offset);
        errors.push(offset, format!("a member with the key host takes no {key}{reason}"));
    };
    let is_iterm2 = |text: Located<String>| text.value == Backend::Iterm2.as_str();
    if member.string("backend", &mut ValidationErrors::new("")).is_some_and(is_iterm2) {
        refuse("backend", " \"iterm2\": iTerm2 shows only members of its own machine");
    }
    if member.key_offset("kind").is_some() {
        refuse("kind", ": its host cannot end it with its task");
    }
}

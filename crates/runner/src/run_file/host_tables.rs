//! Parses the tables `[host.NAME]` of a run file or hosts file.

use crate::run_file::toml_table_reader::{StringOrList, TableReader};
use crate::run_file::validation_errors::ValidationErrors;
use protocol::control_socket::{HostCandidate, MemberHost};
use protocol::hosts_file_entry::{ANY_HOST, HOME_HOST, Host, HostName, is_plain_word};
use protocol::split_shell_command::parse_plain_command;
use std::collections::BTreeMap;

const HOST_KEYS: [&str; 6] = ["connect", "attach", "root", "teamctl", "labels", "slots"];

/// The keys of `[host.home]`.
const HOME_KEYS: [&str; 2] = ["labels", "slots"];

/// The hosts of a hosts file or run file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostTables {
    /// The other machines, by name.
    pub hosts: BTreeMap<HostName, Host>,
    /// All described hosts in the order of the file: also the home, if the file describes it.
    pub candidates: Vec<HostCandidate>,
}

impl HostTables {
    /// These hosts and then those of `fallback`. A host that is in both is the one of `self`.
    #[must_use]
    pub fn or(mut self, fallback: HostTables) -> HostTables {
        let is_new =
            |candidate: &HostCandidate| !self.candidates.iter().any(|known| known.host == candidate.host);
        let new: Vec<HostCandidate> = fallback.candidates.into_iter().filter(is_new).collect();
        self.candidates.extend(new);
        let hosts = fallback.hosts.into_iter().chain(std::mem::take(&mut self.hosts));
        self.hosts = hosts.collect();
        self
    }

    fn add(&mut self, name: HostName, host: Host) {
        let (labels, slots) = (host.labels.clone(), host.slots);
        self.candidates.push(HostCandidate { host: MemberHost::Other(name.clone()), labels, slots });
        self.hosts.insert(name, host);
    }
}

/// Parses all hosts of a file. Hosts with an error are left out.
pub(crate) fn parse_hosts(file: TableReader, errors: &mut ValidationErrors) -> HostTables {
    let mut hosts = HostTables::default();
    let mut tables = file.named_tables("host", "a host", errors);
    tables.sort_by_key(|(name, _)| name.offset);
    for (name, table) in tables {
        if name.value == HOME_HOST {
            hosts.candidates.push(parse_home(table, errors));
            continue;
        }
        let host = parse_host(table, errors);
        match HostName::parse(&name.value) {
            Some(name) => host.into_iter().for_each(|host| hosts.add(name.clone(), host)),
            None => errors.push(name.offset, name_error(&name.value)),
        }
    }
    hosts
}

fn name_error(name: &str) -> String {
    match name {
        ANY_HOST => "cannot use \"any\" as a host's name: it lets teamd choose the host".to_owned(),
        _ => format!(
            "cannot use {name:?} as a host's name: it takes a letter or digit, then up to 63 of A-Z, a-z, 0-9, _ and -"
        ),
    }
}

/// Parses the table that describes this machine.
fn parse_home(table: TableReader, errors: &mut ValidationErrors) -> HostCandidate {
    for key in HOST_KEYS.iter().filter(|key| !HOME_KEYS.contains(key)) {
        if let Some(offset) = table.key_offset(key) {
            errors.push(offset, format!("home is this machine, and takes only labels and slots, not {key}"));
        }
    }
    table.check_keys(&HOST_KEYS, errors);
    let (labels, slots) = (parse_labels(table, errors), parse_slots(table, errors));
    HostCandidate { host: MemberHost::Home, labels, slots }
}

fn parse_labels(table: TableReader, errors: &mut ValidationErrors) -> Vec<String> {
    let labels = table.strings("labels", errors).map(|labels| labels.value).unwrap_or_default();
    labels.into_iter().map(|label| label.value).collect()
}

fn parse_host(table: TableReader, errors: &mut ValidationErrors) -> Option<Host> {
    table.check_keys(&HOST_KEYS, errors);
    if table.key_offset("connect").is_none() {
        let example = "connect = \"ssh -T NAME\"";
        errors.push_missing(table.offset, format!("a host needs the key connect, such as {example}"));
    }
    let connect = parse_command(table, "connect", errors);
    let attach = parse_command(table, "attach", errors);
    let (root, teamctl) = (parse_root(table, errors), parse_teamctl(table, errors));
    let labels = parse_labels(table, errors);
    Some(Host { connect: connect?, attach, root, teamctl, labels, slots: parse_slots(table, errors) })
}

/// Parses a command: a list, or a string that a shell would split into the same words.
fn parse_command(table: TableReader, key: &str, errors: &mut ValidationErrors) -> Option<Vec<String>> {
    let command = table.string_or_strings(key, errors)?;
    let argv = match command.value {
        StringOrList::List(words) => Some(words),
        StringOrList::String(line) if line.trim().is_empty() => Some(Vec::new()),
        StringOrList::String(line) => parse_plain_command(&line),
    };
    let Some(argv) = argv else {
        let message = format!(
            "{key} is more than a program with arguments: write {key} = [\"sh\", \"-c\", \"…\", \"sh\"]"
        );
        errors.push(command.offset, message);
        return None;
    };
    if argv.first().is_none_or(String::is_empty) {
        errors.push(command.offset, format!("{key} needs a program: {key} = [\"program\", \"argument\"]"));
        return None;
    }
    Some(argv)
}

fn parse_root(table: TableReader, errors: &mut ValidationErrors) -> Option<String> {
    let root = table.string("root", errors)?;
    if !root.value.starts_with('/') && !root.value.starts_with("~/") {
        errors.push(root.offset, format!("root begins with / or ~/, not {:?}", root.value));
        return None;
    }
    Some(root.value)
}

fn parse_teamctl(table: TableReader, errors: &mut ValidationErrors) -> String {
    let Some(teamctl) = table.string("teamctl", errors) else { return "teamctl".to_owned() };
    if !is_plain_word(&teamctl.value) {
        let message = "teamctl is a program without arguments and without characters that a shell changes";
        errors.push(teamctl.offset, format!("{message}, not {:?}", teamctl.value));
    }
    teamctl.value
}

fn parse_slots(table: TableReader, errors: &mut ValidationErrors) -> Option<u32> {
    let count = table.count("slots", errors)?;
    let slots = u32::try_from(count).ok().filter(|slots| *slots > 0);
    if slots.is_none() {
        let offset = table.key_offset("slots").unwrap_or(table.offset);
        errors.push(offset, format!("slots takes a number from 1 to {}, not {count}", u32::MAX));
    }
    slots
}

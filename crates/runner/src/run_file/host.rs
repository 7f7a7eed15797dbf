//! Parses the tables `[host.NAME]` of a run file or hosts file.

use crate::run_file::toml_table_reader::{StringOrList, TableReader};
use crate::run_file::validation_errors::ValidationErrors;
use protocol::hosts_file_entry::{Host, HostName, is_plain_word};
use protocol::split_shell_command::parse_plain_command;
use std::collections::BTreeMap;

const HOST_KEYS: [&str; 6] = ["connect", "attach", "root", "teamctl", "labels", "slots"];

/// Parses all hosts of a file. Hosts with an error are left out.
pub(crate) fn parse_hosts(file: TableReader, errors: &mut ValidationErrors) -> BTreeMap<HostName, Host> {
    let mut hosts = BTreeMap::new();
    for (name, table) in file.named_tables("host", "a host", errors) {
        let host = parse_host(table, errors);
        match HostName::parse(&name.value) {
            Some(name) => hosts.extend(host.map(|host| (name, host))),
            None => errors.push(
                name.offset,
                format!(
                    "cannot use {:?} as a host's name: it takes a letter or digit, then up to 63 of A-Z, a-z, 0-9, \
                     _ and -",
                    name.value
                ),
            ),
        }
    }
    hosts
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
    let labels = table.strings("labels", errors).map(|labels| labels.value).unwrap_or_default();
    let labels = labels.into_iter().map(|label| label.value).collect();
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

//! `inbox`: what was sent to an agent. Reading takes no lock and changes nothing; only the owner may mark
//! messages read, and only those that were shown, after they were.

mod format;
mod repeats;
mod seen_entries;

use crate::context::CommandContext;
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::stdout_closed::is_output_closed;
use format::format_entry;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::InboxEntry;
use protocol::name::{AgentName, strip_team};
use repeats::collapse_repeats;
use seen_entries::SeenEntries;
use serde_json::{Value, json};
use std::process::ExitCode;
use store::{Inbox as File, Team, message_id};

/// Read an inbox: your own, or as the lead anybody's
///
/// Reading leaves messages unread, unless --mark-read says otherwise. What one member has said several times, with no
/// other words of its own in between, is shown once, where it said it last, with how often; --json and --follow have each.
/// With --follow and --json each message is an object on a line of its own.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl inbox\n  teamctl inbox ann --unread\n  teamctl inbox --unread --mark-read\n  teamctl inbox --follow --json"
)]
pub(crate) struct InboxArgs {
    /// Whose [default: your own]
    name: Option<String>,
    /// Only what is unread
    #[arg(long)]
    unread: bool,
    /// Wait for more, until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Mark what was shown read; only in your own inbox
    #[arg(long)]
    mark_read: bool,
    /// Only the last N of those that are there now
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub(crate) fn run(here: &CommandContext, args: &InboxArgs) -> Result<ExitCode, ErrorReport> {
    let team = match &args.name {
        Some(address) => super::send::team_of_address(here, address)?,
        None => here.team()?,
    };
    let owner = inbox_owner(here, &team, args)?;
    let reader = InboxReader { here, args, inbox: team.inbox(&owner) };
    if args.follow { reader.follow(&team) } else { reader.print_current() }
}

/// Whose inbox it is, and whether the caller may do with it what it wants to.
fn inbox_owner(here: &CommandContext, team: &Team, args: &InboxArgs) -> Result<AgentName, ErrorReport> {
    let me = here.caller_name();
    if args.mark_read && team.name().is_claude_session() {
        let message = format!("cannot mark messages read in {}: it belongs to Claude Code", team.name());
        return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --mark-read out"));
    }
    let Some(address) = &args.name else { return Ok(me) };
    let name = match team.member(address) {
        Ok(member) => member.name,
        Err(error) => past_member(team, address).ok_or_else(|| ErrorReport::from(error))?,
    };
    if name != me {
        here.require_lead(&format!("read the inbox of {name}"))?;
        if args.mark_read {
            let message = format!("cannot mark messages to {name} read: only {name} may");
            return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --mark-read out"));
        }
    }
    Ok(name)
}

/// The entry as it stands, with what it is known by.
fn entry_json(entry: &InboxEntry) -> Value {
    let mut object = entry.to_json();
    if let Ok(message) = &entry.message {
        object["message_id"] = json!(message_id(message));
    }
    object
}

/// No member, or not any more, but with an inbox.
fn past_member(team: &Team, address: &str) -> Option<AgentName> {
    let name = AgentName::new_unchecked(strip_team(address, team.name()));
    (name.is_lead() || team.inbox(&name).path().exists()).then_some(name)
}

/// One call's view of one inbox.
struct InboxReader<'a> {
    here: &'a CommandContext,
    args: &'a InboxArgs,
    inbox: File,
}

impl InboxReader<'_> {
    fn print_current(&self) -> Result<ExitCode, ErrorReport> {
        let shown = if self.args.unread { self.inbox.read_unread() } else { self.inbox.read() };
        let shown = self.limit_entries(shown?);
        if self.here.args.json {
            let messages: Vec<Value> = shown.iter().map(entry_json).collect();
            output::print_result(self.here, &json!({"messages": messages}), "");
        } else if shown.is_empty() {
            output::print_result(self.here, &json!({}), "No messages.");
        } else {
            collapse_repeats(&shown).into_iter().for_each(|(last, times)| self.print_repeated(last, times));
        }
        self.mark_read(&shown)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Ends when the team or the reader of the output is gone.
    fn follow(&self, team: &Team) -> Result<ExitCode, ErrorReport> {
        let directory = self.inbox.path().parent().map(ToOwned::to_owned);
        let mut follow = DirectoryWatcher::new_for_stream(directory.as_slice())?;
        let mut fresh = SeenEntries::default();
        let mut limited = false;
        loop {
            let mut shown = self.filter_entries(fresh.take_new(self.inbox.read()?));
            if !std::mem::replace(&mut limited, true) {
                shown = self.limit_entries(shown);
            }
            shown.iter().for_each(|entry| self.print(entry));
            self.mark_read(&shown)?;
            if !team.config_path().exists() || follow.wait(None)? == WatchEvent::OutputClosed {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    fn filter_entries(&self, entries: Vec<InboxEntry>) -> Vec<InboxEntry> {
        let wanted = |entry: &InboxEntry| !self.args.unread || entry.unread().is_some();
        entries.into_iter().filter(wanted).collect()
    }

    fn limit_entries(&self, mut entries: Vec<InboxEntry>) -> Vec<InboxEntry> {
        let surplus = entries.len().saturating_sub(self.args.limit.unwrap_or(usize::MAX));
        entries.split_off(surplus)
    }

    /// The last of entries that say the same, and how many they are.
    fn print_repeated(&self, last: &InboxEntry, times: usize) {
        if times == 1 {
            return self.print(last);
        }
        let sentence = format!("{}\n    ({times} times)", format_entry(last));
        output::print_item(self.here, &entry_json(last), &sentence);
    }

    fn print(&self, entry: &InboxEntry) {
        let sentence = if self.here.args.json { String::new() } else { format_entry(entry) };
        output::print_item(self.here, &entry_json(entry), &sentence);
    }

    fn mark_read(&self, shown: &[InboxEntry]) -> Result<(), ErrorReport> {
        let unread: Vec<InboxEntry> =
            shown.iter().filter(|entry| entry.unread().is_some()).cloned().collect();
        // What was printed into a closed pipe was read by nobody.
        if !self.args.mark_read || unread.is_empty() || is_output_closed() {
            return Ok(());
        }
        self.inbox.mark_read(&unread).map_err(ErrorReport::from)
    }
}

//! `inbox`: prints the messages in an inbox. Normally the command takes no lock and changes
//! nothing. With `--mark-read`, which only the owner may use, it marks the messages as read after
//! it has printed them.

mod collapse_repeated_messages;
mod find_new_entries;
mod format;

use crate::command_context::CommandContext;
use crate::commands::send::team_of_address;
use crate::output;
use client::directory_watcher::{DirectoryWatcher, WatchEvent};
use client::stdout_closed::is_output_closed;
use collapse_repeated_messages::{RepeatedEntry, collapse_repeats};
use find_new_entries::{EntryCounts, SeenEntries};
use format::format_entry;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::InboxEntry;
use protocol::team_and_member_names::{MemberName, strip_team};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::process::ExitCode;
use store::{EntrySelection, Inbox, Team, message_id};

/// Show your inbox, or that of a member
///
/// Example: teamctl inbox --unread --mark-read
///
/// Only the lead and a person may show the inbox of another member. Messages stay unread without
/// --mark-read.
///
/// A message that a member repeats, with no other message of its own in between, is shown once,
/// with the number of repeats. --json and --follow show every message. With both, each message is a
/// JSON object on its own line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl inbox ann --unread\n  teamctl inbox --follow --json")]
pub(crate) struct InboxArgs {
    /// Owner of the inbox [default: you]
    name: Option<String>,
    /// Show only unread messages
    #[arg(long)]
    unread: bool,
    /// Wait for new messages until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Mark the shown messages as read; only in your own inbox
    #[arg(long)]
    mark_read: bool,
    /// Show only the last N of the present messages
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl InboxArgs {
    /// Who may run the command with these arguments.
    pub(crate) fn allowed_callers(&self) -> AllowedCallers<'_> {
        self.name.as_deref().map_or(AllowedCallers::Everyone, AllowedCallers::MemberLeadOrPerson)
    }
}

pub(crate) fn run(context: &CommandContext, args: &InboxArgs) -> Result<ExitCode, ErrorReport> {
    let team = match &args.name {
        Some(address) => team_of_address(context, address)?,
        None => context.team()?,
    };
    let owner = inbox_owner(context, &team, args)?;
    let reader = InboxReader { context, args, inbox: team.inbox(&owner) };
    if args.follow { reader.follow(&team) } else { reader.print_current() }
}

/// The owner of the inbox. Fails if the caller may not mark its messages.
fn inbox_owner(context: &CommandContext, team: &Team, args: &InboxArgs) -> Result<MemberName, ErrorReport> {
    let caller = context.caller_name();
    if args.mark_read && team.name().is_claude_session() {
        let message = format!("cannot mark messages read in {}: it belongs to Claude Code", team.name());
        return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --mark-read out"));
    }
    let Some(address) = &args.name else { return Ok(caller) };
    let name = match team.member(address) {
        Ok(member) => member.name,
        Err(error) => past_member(team, address).ok_or_else(|| ErrorReport::from(error))?,
    };
    if name != caller && args.mark_read {
        let message = format!("cannot mark messages to {name} read: only {name} may");
        return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --mark-read out"));
    }
    Ok(name)
}

/// The entry as in the file, with the message's id.
fn entry_json(entry: &InboxEntry) -> Value {
    let mut object = entry.to_json();
    if let Ok(message) = &entry.message {
        object["message_id"] = json!(message_id(message));
    }
    object
}

/// A past member that still has an inbox, or the lead.
fn past_member(team: &Team, address: &str) -> Option<MemberName> {
    let name = MemberName::new_unchecked(strip_team(address, team.name()));
    (name.is_lead() || team.inbox(&name).path().exists()).then_some(name)
}

/// Prints the messages of one inbox.
struct InboxReader<'a> {
    context: &'a CommandContext,
    args: &'a InboxArgs,
    inbox: Inbox,
}

impl InboxReader<'_> {
    fn print_current(&self) -> Result<ExitCode, ErrorReport> {
        let selection = if self.args.unread { EntrySelection::Unread } else { EntrySelection::All };
        let last_entries = self.inbox.read_last(selection, self.args.limit.unwrap_or(usize::MAX))?;
        let entries = Vec::from(last_entries.entries);
        if self.context.args.json {
            let messages: Vec<Value> = entries.iter().map(entry_json).collect();
            output::print_result(self.context, &json!({"messages": messages}), "");
        } else if entries.is_empty() {
            output::print_result(self.context, &json!({}), "No messages.");
        } else {
            collapse_repeats(&entries)
                .into_iter()
                .for_each(|repeated_entry| self.print_repeated(repeated_entry));
        }
        self.mark_read(&entries)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Prints new messages until the team is deleted or the reader of the output is gone.
    fn follow(&self, team: &Team) -> Result<ExitCode, ErrorReport> {
        let directory = self.inbox.path().parent().map(ToOwned::to_owned);
        let mut watcher = DirectoryWatcher::new_for_stream(directory.as_slice())?;
        let mut seen_entries = SeenEntries::default();
        let mut limit = self.args.limit;
        loop {
            let printed = self.print_and_collect_new(&mut seen_entries, limit.take())?;
            self.mark_read(&printed)?;
            if !team.config_path().exists() || watcher.wait(None)? == WatchEvent::OutputClosed {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    /// Prints the messages that are new since the last call. With a `limit`, prints only the newest
    /// `limit` of them. With `--mark-read`, returns the printed messages, so that the caller can
    /// mark them as read. Without `--mark-read`, the result is empty, to save memory.
    fn print_and_collect_new(
        &self,
        seen: &mut SeenEntries,
        limit: Option<usize>,
    ) -> Result<Vec<InboxEntry>, ErrorReport> {
        // If another program rewrites the inbox while `fold` reads it, `fold` starts again with the
        // first entry. No entry is printed twice, because `seen` has the entries that were read
        // before.
        let (mut last_entries, mut printed) = (VecDeque::new(), Vec::new());
        let mut print = |entry: InboxEntry| {
            self.print(&entry);
            printed.extend(Some(entry).filter(|_| self.args.mark_read));
        };
        self.inbox.fold(|counts: &mut EntryCounts, entry| {
            if !seen.is_new(&entry, counts) || !self.is_shown(&entry) {
                return;
            }
            match limit {
                None => print(entry),
                Some(limit) => {
                    last_entries.push_back(entry);
                    last_entries.drain(..last_entries.len().saturating_sub(limit));
                }
            }
        })?;
        last_entries.into_iter().for_each(print);
        Ok(printed)
    }

    fn is_shown(&self, entry: &InboxEntry) -> bool {
        !self.args.unread || entry.unread().is_some()
    }

    fn print_repeated(&self, RepeatedEntry { last, count }: RepeatedEntry) {
        if count == 1 {
            return self.print(last);
        }
        let sentence = format!("{}\n    ({count} times)", format_entry(last));
        output::print_item(self.context, &entry_json(last), &sentence);
    }

    fn print(&self, entry: &InboxEntry) {
        let sentence = if self.context.args.json { String::new() } else { format_entry(entry) };
        output::print_item(self.context, &entry_json(entry), &sentence);
    }

    fn mark_read(&self, entries: &[InboxEntry]) -> Result<(), ErrorReport> {
        let unread: Vec<InboxEntry> =
            entries.iter().filter(|entry| entry.unread().is_some()).cloned().collect();
        // If the output is closed or could not be written, no person has seen the messages, so they
        // stay unread.
        let is_unseen = is_output_closed() || output::has_lost_output();
        if !self.args.mark_read || unread.is_empty() || is_unseen {
            return Ok(());
        }
        self.inbox.mark_read(&unread).map_err(ErrorReport::from)
    }
}

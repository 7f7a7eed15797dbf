//! `inbox`: what was sent to an agent. Reading takes no lock and changes nothing; only the owner may mark
//! messages read, and only those that were shown, after they were.

mod again;
mod fresh;
mod letter;

use crate::here::{Here, fault};
use crate::output;
use again::each_once;
use fresh::Fresh;
use letter::sentence;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::message::InboxEntry;
use protocol::name::{AgentName, strip_team};
use serde_json::{Value, json};
use std::process::ExitCode;
use store::{Inbox as File, Team, message_id};
use view::directory_watcher::{DirectoryWatcher, WatchEvent, is_output_closed};

/// Read an inbox: your own, or as the lead anybody's
///
/// Reading leaves messages unread, unless --mark-read says otherwise. What one member has said several times, with no
/// other words of its own in between, is shown once, where it said it last, with how often; --json and --follow have each.
/// With --follow and --json each message is an object on a line of its own.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl inbox\n  teamctl inbox ann --unread\n  teamctl inbox --unread --mark-read\n  teamctl inbox --follow --json"
)]
pub(crate) struct Inbox {
    /// Whose [default: your own]
    name: Option<String>,
    /// Only what is unread
    #[arg(long)]
    unread: bool,
    /// Wait for more, until interrupted
    #[arg(long)]
    follow: bool,
    /// Mark what was shown read; only in your own inbox
    #[arg(long)]
    mark_read: bool,
    /// Only the last N of those that are there now
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub(crate) fn run(here: &Here, args: &Inbox) -> Result<ExitCode, ErrorReport> {
    let team = match &args.name {
        Some(address) => super::send::team_of(here, address)?,
        None => here.team()?,
    };
    let owner = owner(here, &team, args)?;
    let reader = Reader { here, args, inbox: team.inbox(&owner) };
    if args.follow { reader.follow(&team) } else { reader.once() }
}

/// Whose inbox it is, and whether the caller may do with it what it wants to.
fn owner(here: &Here, team: &Team, args: &Inbox) -> Result<AgentName, ErrorReport> {
    let me = here.me();
    if args.mark_read && team.name().is_claude_session() {
        let message = format!("cannot mark messages read in {}: it belongs to Claude Code", team.name());
        return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --mark-read out"));
    }
    let Some(address) = &args.name else { return Ok(me) };
    let name = match team.member(address) {
        Ok(member) => member.name,
        Err(error) => former(team, address).ok_or_else(|| fault(error))?,
    };
    if name != me {
        here.lead_only(&format!("read the inbox of {name}"))?;
        if args.mark_read {
            let message = format!("cannot mark messages to {name} read: only {name} may");
            return Err(ErrorReport::new(ErrorKind::NotPermitted, message).with_help("leave --mark-read out"));
        }
    }
    Ok(name)
}

/// The entry as it stands, with what it is known by.
fn object(entry: &InboxEntry) -> Value {
    let mut object = entry.to_json();
    if let Ok(message) = &entry.message {
        object["message_id"] = json!(message_id(message));
    }
    object
}

/// No member, or not any more, but with an inbox.
fn former(team: &Team, address: &str) -> Option<AgentName> {
    let name = AgentName::new_unchecked(strip_team(address, team.name()));
    (name.is_lead() || team.inbox(&name).path().exists()).then_some(name)
}

/// One call's view of one inbox.
struct Reader<'a> {
    here: &'a Here,
    args: &'a Inbox,
    inbox: File,
}

impl Reader<'_> {
    fn once(&self) -> Result<ExitCode, ErrorReport> {
        let shown = if self.args.unread { self.inbox.read_unread() } else { self.inbox.read() };
        let shown = self.last(shown.map_err(fault)?);
        if self.here.global.json {
            let messages: Vec<Value> = shown.iter().map(object).collect();
            output::done(self.here, &json!({"messages": messages}), "");
        } else if shown.is_empty() {
            output::done(self.here, &json!({}), "No messages.");
        } else {
            each_once(&shown).into_iter().for_each(|(last, times)| self.print_once(last, times));
        }
        self.mark(&shown)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Ends when the team or the reader of the output is gone.
    fn follow(&self, team: &Team) -> Result<ExitCode, ErrorReport> {
        let directory = self.inbox.path().parent().map(ToOwned::to_owned);
        let mut follow = DirectoryWatcher::new_for_stream(directory.as_slice())?;
        let mut fresh = Fresh::default();
        let mut limited = false;
        loop {
            let mut shown = self.wanted(fresh.of(self.inbox.read().map_err(fault)?));
            if !std::mem::replace(&mut limited, true) {
                shown = self.last(shown);
            }
            shown.iter().for_each(|entry| self.print(entry));
            self.mark(&shown)?;
            if !team.config_path().exists() || follow.wait(None)? == WatchEvent::OutputClosed {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    fn wanted(&self, entries: Vec<InboxEntry>) -> Vec<InboxEntry> {
        let wanted = |entry: &InboxEntry| !self.args.unread || entry.unread().is_some();
        entries.into_iter().filter(wanted).collect()
    }

    fn last(&self, mut entries: Vec<InboxEntry>) -> Vec<InboxEntry> {
        let surplus = entries.len().saturating_sub(self.args.limit.unwrap_or(usize::MAX));
        entries.split_off(surplus)
    }

    /// The last of entries that say the same, and how many they are.
    fn print_once(&self, last: &InboxEntry, times: usize) {
        if times == 1 {
            return self.print(last);
        }
        let sentence = format!("{}\n    ({times} times)", sentence(last));
        output::item(self.here, &object(last), &sentence);
    }

    fn print(&self, entry: &InboxEntry) {
        let sentence = if self.here.global.json { String::new() } else { sentence(entry) };
        output::item(self.here, &object(entry), &sentence);
    }

    fn mark(&self, shown: &[InboxEntry]) -> Result<(), ErrorReport> {
        let unread: Vec<InboxEntry> =
            shown.iter().filter(|entry| entry.unread().is_some()).cloned().collect();
        // What was printed into a closed pipe was read by nobody.
        if !self.args.mark_read || unread.is_empty() || is_output_closed() {
            return Ok(());
        }
        self.inbox.mark_read(&unread).map_err(fault)
    }
}

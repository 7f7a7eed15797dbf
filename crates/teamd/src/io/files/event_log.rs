//! Reads and appends to the event log, `events.jsonl` in the state directory.

use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use protocol::event_log_line::{Event, EventKind};
use protocol::state_file_names::{EVENT_LOG, OLDER_EVENT_LOG};
use protocol::team_and_member_names::TeamName;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{Error, StateDir};

/// Maximum size of `events.jsonl` and of `events.jsonl.1`, in bytes. When the log is full, it is
/// renamed to `events.jsonl.1` and a new log begins. The size is limited because a starting daemon
/// reads both files completely.
const EVENT_LOG_LIMIT: usize = 7 * 1024 * 1024;

/// Appends one line. If the log is full, begins a new one, and keeps a share of the older events
/// for each team.
pub(super) fn append_event(state: &StateDir, line: &str) -> Result<(), Error> {
    let size = std::fs::metadata(state.path().join(EVENT_LOG)).map_or(0, |file| file.len());
    let is_full = size + line.len() as u64 >= EVENT_LOG_LIMIT as u64;
    let _rotation = is_full.then(lock_rotation);
    let kept = is_full
        .then(|| keep_shares(|visit| lines_of_log(state).for_each(|line| visit(&line)), EVENT_LOG_LIMIT));
    state.append_line(EVENT_LOG, line, EVENT_LOG_LIMIT as u64)?;
    match kept {
        Some(kept) => state.replace(OLDER_EVENT_LOG, &kept),
        None => Ok(()),
    }
}

/// Reads the event log to find out which tasks, messages and requests earlier daemons have logged,
/// so that none is logged twice. If a part of the log cannot be read, its entries are logged again.
pub(crate) fn read_event_log(state: &StateDir) -> EventLogCursor {
    EventLogCursor::from_lines(lines_of_log(state))
}

/// For each mirrored team, returns the logged events that its home does not have yet. `kept` has
/// the number of the last event that was sent for each team, so events with higher numbers are
/// returned. Events of an earlier team of the same name are left out.
///
/// # Errors
///
/// If a part of the log can't be opened.
pub(crate) fn read_events_after(
    state: &StateDir,
    kept: &BTreeMap<TeamName, u64>,
) -> Result<BTreeMap<TeamName, Vec<Event>>, Error> {
    let rotation = lock_rotation();
    let parts = [state.open_file(OLDER_EVENT_LOG)?, state.open_file(EVENT_LOG)?];
    drop(rotation);
    Ok(events_after(parts.into_iter().flatten().flat_map(lines_of_part), kept))
}

/// Locked while the event log is renamed and a new one begins. A reader that opened both parts of
/// the log at that moment would miss events.
static ROTATION: Mutex<()> = Mutex::new(());

fn lock_rotation() -> MutexGuard<'static, ()> {
    ROTATION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the work of [`read_events_after`] for the given lines of an event log.
pub(crate) fn events_after(
    lines: impl Iterator<Item = Vec<u8>>,
    kept: &BTreeMap<TeamName, u64>,
) -> BTreeMap<TeamName, Vec<Event>> {
    let mut unsent: BTreeMap<TeamName, Vec<Event>> = BTreeMap::new();
    for line in lines {
        let Ok(event) = serde_json::from_slice::<Event>(&line) else { continue };
        let Some((team, kept)) = event.team.as_ref().and_then(|team| kept.get_key_value(team)) else {
            continue;
        };
        match event.kind {
            EventKind::TeamDeleted => drop(unsent.remove(team)),
            _ if event.on_host.is_none() && event.number > Some(*kept) => {
                unsent.entry(team.clone()).or_default().push(event);
            }
            _ => {}
        }
    }
    unsent
}

/// The lines of the older part of the log and then of the current part, with their line ends. They
/// are read one by one, because both parts together need more memory than the rest of the daemon.
/// If a part cannot be read to its end, its remaining lines are left out.
fn lines_of_log(state: &StateDir) -> impl Iterator<Item = Vec<u8>> {
    let parts = [OLDER_EVENT_LOG, EVENT_LOG].map(|name| state.open_file(name));
    parts.into_iter().filter_map(|part| part.inspect_err(|error| warn(error)).ok()?).flat_map(lines_of_part)
}

fn lines_of_part(part: File) -> impl Iterator<Item = Vec<u8>> {
    let mut part = BufReader::new(part.take(EVENT_LOG_LIMIT as u64));
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let length = part.read_until(b'\n', &mut line).inspect_err(|error| warn(error)).ok()?;
        (length > 0).then_some(line)
    })
}

fn warn(error: &dyn std::fmt::Display) {
    tracing::warn!("cannot read the event log: {error}");
}

/// Returns the newest lines of each team, in the order of the log, together at most `limit` bytes.
/// Each team has an equal share of the bytes, so that a busy team does not displace the events of a
/// quiet one. If a team needs less than its share, the other teams get the remaining bytes.
///
/// `visit_lines` reads the log and calls a given function with each line. It is called twice, so
/// that the log need not be in memory.
fn keep_shares(visit_lines: impl Fn(&mut dyn FnMut(&[u8])), limit: usize) -> Vec<u8> {
    let mut teams = LoggedTeams::default();
    visit_lines(&mut |line| teams.add(line));
    let mut excess = teams.excess_bytes(limit);
    let mut kept = Vec::new();
    visit_lines(&mut |line| match excess.get_mut(&teams.share_of(line)) {
        // The oldest lines are left out, so the lines of a team have no gap.
        Some(excess) if *excess > 0 => *excess = excess.saturating_sub(line.len()),
        _ => kept.extend_from_slice(line),
    });
    kept
}

/// The teams of an event log, each of which has an equal share of the log. The team `None` stands
/// for the daemon and for all deleted teams together. They have only one share, so deleted teams do
/// not displace the events of other teams.
#[derive(Debug, Default)]
struct LoggedTeams {
    sizes: BTreeMap<Option<String>, usize>,
    /// Teams whose last line says that they were deleted.
    deleted: BTreeSet<String>,
}

impl LoggedTeams {
    fn add(&mut self, line: &[u8]) {
        let team = team_of(line).map(Cow::into_owned);
        if let Some(name) = &team {
            match is_team_deleted(line) {
                true => drop(self.deleted.insert(name.clone())),
                false => drop(self.deleted.remove(name)),
            }
        }
        *self.sizes.entry(team).or_default() += line.len();
    }

    /// The team with whose share a line counts.
    fn share_of(&self, line: &[u8]) -> Option<String> {
        let team = team_of(line).filter(|team| !self.deleted.contains(&**team));
        team.map(Cow::into_owned)
    }

    /// How many bytes of its oldest lines each team must leave out.
    fn excess_bytes(&self, limit: usize) -> BTreeMap<Option<String>, usize> {
        let mut sizes: BTreeMap<Option<String>, usize> = BTreeMap::new();
        for (team, size) in &self.sizes {
            let sharer = team.clone().filter(|team| !self.deleted.contains(team));
            *sizes.entry(sharer).or_default() += size;
        }
        let shares = split_into_shares(sizes.clone(), limit);
        sizes.into_iter().map(|(team, size)| (team.clone(), size - shares[&team])).collect()
    }
}

fn is_team_deleted(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct KindOfEvent<'a> {
        event: &'a str,
    }
    serde_json::from_slice::<KindOfEvent<'_>>(line).is_ok_and(|kind| kind.event == "team_deleted")
}

/// Splits `limit` bytes between the teams. `sizes` says how many bytes each team needs.
fn split_into_shares<K: Ord>(sizes: BTreeMap<K, usize>, limit: usize) -> BTreeMap<K, usize> {
    let mut smallest_first: Vec<(K, usize)> = sizes.into_iter().collect();
    smallest_first.sort_by_key(|(_, size)| *size);
    let (mut rest_bytes, mut team_count) = (limit, smallest_first.len());
    smallest_first
        .into_iter()
        .map(|(team, size)| {
            let share = size.min(rest_bytes / team_count);
            (rest_bytes, team_count) = (rest_bytes - share, team_count - 1);
            (team, share)
        })
        .collect()
}

/// The team of a line. `None` for an event of the daemon, and for an incomplete line.
fn team_of(line: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct TeamOfEvent<'a> {
        #[serde(borrow)]
        team: Option<Cow<'a, str>>,
    }
    serde_json::from_slice::<TeamOfEvent<'_>>(line).ok()?.team
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(team: &str, number: usize) -> String {
        format!("{{\"event\":\"team_created\",\"team\":\"{team}\",\"number\":\"{number:04}\"}}\n")
    }

    /// The numbers of the team's lines in a log.
    fn numbers(log: &[u8], team: &str) -> Vec<usize> {
        let text = std::str::from_utf8(log).unwrap();
        let of_team = text.lines().filter(|line| line.contains(&format!("\"{team}\"")));
        of_team.map(|line| line.rsplit('"').nth(1).unwrap().parse().unwrap()).collect()
    }

    fn kept_shares(log: &str, limit: usize) -> Vec<u8> {
        keep_shares(|visit| log.split_inclusive('\n').for_each(|line| visit(line.as_bytes())), limit)
    }

    #[test]
    fn busy_team_does_not_displace_the_events_of_a_quiet_one() {
        let quiet: String = (0..5).map(|number| line("quiet", number)).collect();
        let busy: String = (0..100).map(|number| line("loops", number)).collect();
        let size = line("quiet", 0).len();
        let kept = kept_shares(&(quiet + &busy), 20 * size);
        assert_eq!(numbers(&kept, "quiet"), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(&kept, "loops"), (85..100).collect::<Vec<_>>());
        let kept = kept_shares(&(busy + &line("quiet", 0)), 10 * size);
        assert!(kept.len() <= 10 * size && numbers(&kept, "loops").len() == 9);
    }

    #[test]
    fn deleted_teams_have_one_share_together() {
        let of_team = |team: &str| -> String { (0..10).map(|number| line(team, number)).collect() };
        let deleted = |team: &str| line(team, 10).replace("team_created", "team_deleted");
        let log = ["a", "b", "c"].map(|team| of_team(team) + &deleted(team)).concat() + &of_team("loops");
        let size = line("loops", 0).len();
        let kept = kept_shares(&log, 20 * size);
        assert_eq!(numbers(&kept, "loops").len(), 10);
        assert_eq!((numbers(&kept, "a").len(), numbers(&kept, "b").len()), (0, 0));
        assert!(numbers(&kept, "c").len() >= 9);
    }

    #[test]
    fn events_are_read_before_or_after_a_new_log_begins() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let event = r#"{"time":"","number":2,"team":"survey","event":"team_created"}"#;
        let rotation = lock_rotation();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let kept = BTreeMap::from([(TeamName::parse("survey").unwrap(), 1)]);
                sender.send(read_events_after(&state, &kept).unwrap()).unwrap();
            });
            receiver.recv_timeout(std::time::Duration::from_millis(100)).unwrap_err();
            state.replace(OLDER_EVENT_LOG, event.as_bytes()).unwrap();
            drop(rotation);
            assert_eq!(receiver.recv().unwrap().len(), 1);
        });
    }

    #[test]
    fn older_events_of_a_quiet_team_stay_when_a_new_log_begins() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        append_event(&state, line("quiet", 7).trim_end()).unwrap();
        let padding = "x".repeat(64 * 1024);
        for number in 0..300 {
            let event = format!("{{\"team\":\"loops\",\"text\":\"{padding}\",\"number\":{number}}}");
            append_event(&state, &event).unwrap();
        }
        let older = state.read(OLDER_EVENT_LOG).unwrap().unwrap();
        assert_eq!(numbers(&older, "quiet"), [7], "after two new logs");
        assert!(older.len() <= EVENT_LOG_LIMIT && older.len() > EVENT_LOG_LIMIT / 2);
    }
}

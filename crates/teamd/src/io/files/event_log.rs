//! Reads and appends to the event log, `events.jsonl` in the state directory.

use crate::core::state::logged_tasks_messages_and_requests::EventLogCursor;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use store::{Error, StateDir};

const EVENT_LOG_FILE: &str = "events.jsonl";
const OLDER_FILE: &str = "events.jsonl.1";
/// Maximum size of `events.jsonl` and of `events.jsonl.1`, in bytes. When the log is full, it is
/// renamed to `events.jsonl.1` and a new log begins. The size is limited because a starting daemon
/// reads both files completely.
const EVENT_LOG_LIMIT: usize = 7 * 1024 * 1024;

/// Appends one line. If the log is full, begins a new one, and keeps a share of the older events
/// for each team.
pub(super) fn append_event(state: &StateDir, line: &str) -> Result<(), Error> {
    let size = std::fs::metadata(state.path().join(EVENT_LOG_FILE)).map_or(0, |file| file.len());
    let is_full = size + line.len() as u64 >= EVENT_LOG_LIMIT as u64;
    let parts = is_full.then(|| read_parts(state));
    state.append_line(EVENT_LOG_FILE, line, EVENT_LOG_LIMIT as u64)?;
    match parts {
        Some(parts) => state.replace(OLDER_FILE, &keep_shares(&parts.concat(), EVENT_LOG_LIMIT)),
        None => Ok(()),
    }
}

/// Reads the event log to find out which tasks, messages and requests earlier daemons have logged,
/// so that none is logged twice. If a part of the log cannot be read, its entries are logged again.
pub(crate) fn read_event_log(state: &StateDir) -> EventLogCursor {
    let parts = read_parts(state);
    EventLogCursor::from_lines(parts.iter().flat_map(|part| part.split(|byte| *byte == b'\n')))
}

/// Reads the older part and the current part of the log. A part that cannot be read is empty.
fn read_parts(state: &StateDir) -> [Vec<u8>; 2] {
    [OLDER_FILE, EVENT_LOG_FILE].map(|name| {
        let part = state.read(name).unwrap_or_else(|error| {
            tracing::warn!("cannot read the event log: {error}");
            None
        });
        part.unwrap_or_default()
    })
}

/// Returns the newest lines of each team in `log`, in their order, together at most `limit` bytes.
/// Each team has an equal share of the bytes, so that a busy team does not displace the events of a
/// quiet one. If a team needs less than its share, the other teams get the remaining bytes.
fn keep_shares(log: &[u8], limit: usize) -> Vec<u8> {
    let mut lines: Vec<(Option<Cow<'_, str>>, &[u8])> =
        log.split_inclusive(|byte| *byte == b'\n').map(|line| (team_of(line), line)).collect();
    join_deleted_teams(&mut lines);
    let mut sizes: BTreeMap<&Option<Cow<'_, str>>, usize> = BTreeMap::new();
    lines.iter().for_each(|(team, line)| *sizes.entry(team).or_default() += line.len());
    let mut shares = split_into_shares(sizes, limit);
    let mut kept: Vec<&[u8]> = Vec::new();
    for (team, line) in lines.iter().rev() {
        let share = shares.get_mut(team).expect("each team of a line has a share");
        if line.len() <= *share {
            *share -= line.len();
            kept.push(line);
        } else {
            // Leaves out all older lines of the team, so that its lines have no gap.
            *share = 0;
        }
    }
    kept.into_iter().rev().flatten().copied().collect()
}

/// Sets the team of a line to `None` if the team was deleted. The daemon's own lines have no team
/// either. All lines without a team share one part of the log, so deleted teams do not displace the
/// lines of other teams.
fn join_deleted_teams(lines: &mut [(Option<Cow<'_, str>>, &[u8])]) {
    let mut deleted_teams: BTreeSet<Cow<'_, str>> = BTreeSet::new();
    let mut seen_teams: BTreeSet<Cow<'_, str>> = BTreeSet::new();
    for (team, line) in lines.iter_mut().rev() {
        let Some(name) = team.clone() else { continue };
        // Only the newest line of a team says whether the team exists.
        if seen_teams.insert(name.clone()) && is_team_deleted(line) {
            deleted_teams.insert(name.clone());
        }
        if deleted_teams.contains(&name) {
            *team = None;
        }
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

    #[test]
    fn busy_team_does_not_displace_the_events_of_a_quiet_one() {
        let quiet: String = (0..5).map(|number| line("quiet", number)).collect();
        let busy: String = (0..100).map(|number| line("loops", number)).collect();
        let size = line("quiet", 0).len();
        let kept = keep_shares((quiet + &busy).as_bytes(), 20 * size);
        assert_eq!(numbers(&kept, "quiet"), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(&kept, "loops"), (85..100).collect::<Vec<_>>());
        let kept = keep_shares((busy + &line("quiet", 0)).as_bytes(), 10 * size);
        assert!(kept.len() <= 10 * size && numbers(&kept, "loops").len() == 9);
    }

    #[test]
    fn deleted_teams_have_one_share_together() {
        let of_team = |team: &str| -> String { (0..10).map(|number| line(team, number)).collect() };
        let deleted = |team: &str| line(team, 10).replace("team_created", "team_deleted");
        let log = ["a", "b", "c"].map(|team| of_team(team) + &deleted(team)).concat() + &of_team("loops");
        let size = line("loops", 0).len();
        let kept = keep_shares(log.as_bytes(), 20 * size);
        assert_eq!(numbers(&kept, "loops").len(), 10);
        assert_eq!((numbers(&kept, "a").len(), numbers(&kept, "b").len()), (0, 0));
        assert!(numbers(&kept, "c").len() >= 9);
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
        let older = state.read(OLDER_FILE).unwrap().unwrap();
        assert_eq!(numbers(&older, "quiet"), [7], "after two new logs");
        assert!(older.len() <= EVENT_LOG_LIMIT && older.len() > EVENT_LOG_LIMIT / 2);
    }
}

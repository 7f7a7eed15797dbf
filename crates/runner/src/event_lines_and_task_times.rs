//! Follows the event log during a run. From the events, the module makes the lines to show to
//! people, and computes how long agents worked on each task. It also keeps what the events say
//! about members on other hosts.
//!
//! Events from before the run are read but not shown: the run needs them for the times of tasks
//! that an earlier run began. If the event log has no events of a task, its times come from the
//! snapshots of the task list.

use crate::events_of_hosted_members::HostedMemberEvents;
use crate::work_times::WorkTimes;
use client::format_event_line::event_line;
use client::growing_file_reader::GrowingFileReader;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::Event;
use protocol::member_task_and_request_ids::TaskId;
use protocol::state_file_names::{EVENT_LOG, OLDER_EVENT_LOG};
use protocol::task::Task;
use protocol::team_and_member_names::TeamName;
use serde_json::Value;
use std::path::Path;

/// The event log, how far the log was read, and the times of the tasks.
pub(crate) struct TaskTimes {
    tail: GrowingFileReader,
    /// The beginning of the last line, if that line is not complete yet.
    partial_line: Vec<u8>,
    team: TeamName,
    /// The team's name as each line of the event log has it, such as `"team":"survey"`. Lines
    /// without this text are about other teams, and are not parsed.
    team_pattern: String,
    times: WorkTimes,
    hosted_members: HostedMemberEvents,
}

impl TaskTimes {
    /// Opens the event log and reads the times of the tasks from the existing events.
    pub(crate) fn open(state: &Path, team: &TeamName) -> Result<TaskTimes, ErrorReport> {
        let log_file = |name| GrowingFileReader::new(state.join(name));
        let mut task_times = TaskTimes {
            tail: log_file(EVENT_LOG),
            partial_line: Vec::new(),
            team: team.clone(),
            team_pattern: format!("\"team\":\"{team}\""),
            times: WorkTimes::default(),
            hosted_members: HostedMemberEvents::default(),
        };
        let mut previous_log = log_file(OLDER_EVENT_LOG);
        while !previous_log.is_same_file(&task_times.tail)
            && let Some(chunk) = previous_log.next_chunk()?
        {
            task_times.push(&chunk);
        }
        task_times.new_lines()?;
        Ok(task_times)
    }

    /// The events since the last call, as lines for people.
    pub(crate) fn new_lines(&mut self) -> Result<Vec<String>, ErrorReport> {
        let mut lines = Vec::new();
        while let Some(chunk) = self.tail.next_chunk()? {
            lines.extend(self.push(&chunk));
        }
        Ok(lines)
    }

    /// Updates the times from the task list. `now` is in milliseconds since the epoch.
    pub(crate) fn update_from_tasks(&mut self, tasks: &[Task], now: u64) {
        self.times.update_from_tasks(tasks, now);
    }

    /// As [`WorkTimes::duration`].
    pub(crate) fn duration(&self, id: TaskId, now: u64) -> Option<u64> {
        self.times.duration(id, now)
    }

    /// What the event log says about the members of other hosts.
    pub(crate) fn hosted_members(&self) -> &HostedMemberEvents {
        &self.hosted_members
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        self.partial_line.extend_from_slice(bytes);
        let Some(end) = self.partial_line.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let partial_line = self.partial_line.split_off(end + 1);
        let complete_lines = std::mem::replace(&mut self.partial_line, partial_line);
        String::from_utf8_lossy(&complete_lines).lines().filter_map(|line| self.event_line(line)).collect()
    }

    /// Handles a line of the event log and returns a line for people. `None` for an event of
    /// another team.
    fn event_line(&mut self, line: &str) -> Option<String> {
        if !line.contains(&self.team_pattern) {
            return None;
        }
        let event: Value = serde_json::from_str(line).ok()?;
        if event["team"] != self.team.as_str() {
            return None;
        }
        if let Ok(event) = serde_json::from_str::<Event>(line) {
            self.times.record(&event);
            self.hosted_members.record(&event);
        }
        Some(event_line(line, &event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    fn id(number: u32) -> TaskId {
        TaskId::from_number(number).unwrap()
    }

    fn log_line(ms: u64, rest: &str) -> String {
        format!("{{\"time\":\"{}\",{rest}}}\n", protocol::timestamp::iso8601(ms))
    }

    #[test]
    fn new_lines_begin_after_the_existing_log_and_a_new_team_resets_the_times() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = File::create(dir.path().join("events.jsonl")).unwrap();
        let started = |task: u32| {
            format!(r#""team":"t","event":"task_started","task":"{task}","subject":"s","owner":"ann""#)
        };
        file.write_all(log_line(1000, &started(1)).as_bytes()).unwrap();
        file.write_all(log_line(2000, r#""team":"t","event":"team_created""#).as_bytes()).unwrap();
        file.write_all(log_line(3000, &started(2)).as_bytes()).unwrap();
        let mut times = TaskTimes::open(dir.path(), &TeamName::parse("t").unwrap()).unwrap();
        assert_eq!((times.duration(id(1), 9000), times.duration(id(2), 9000)), (None, Some(6000)));
        let completed = r#""team":"t","event":"task_completed","task":"2","subject":"s","owner":"ann""#;
        file.write_all(log_line(4500, completed).as_bytes()).unwrap();
        file.write_all(log_line(4500, r#""team":"u","event":"team_created""#).as_bytes()).unwrap();
        file.write_all(log_line(4500, r#""team":"t","event":"from_tomorrow","text":"x""#).as_bytes())
            .unwrap();
        let lines = times.new_lines().unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with("t task 2 completed by ann: s"), "{lines:?}");
        assert_eq!(times.duration(id(2), 9000), Some(1500));
    }

    #[test]
    fn task_list_provides_times_until_the_log_has_them() {
        let dir = tempfile::tempdir().unwrap();
        let mut times = TaskTimes::open(dir.path(), &TeamName::parse("t").unwrap()).unwrap();
        let task = |status: &str| {
            Task::parse(&format!(r#"{{"id":"1","subject":"s","status":"{status}"}}"#)).unwrap()
        };
        times.update_from_tasks(&[task("in_progress")], 1000);
        times.update_from_tasks(&[task("completed")], 3000);
        times.update_from_tasks(&[task("completed")], 4000);
        assert_eq!(times.duration(id(1), 9000), Some(2000));
        let mut file = File::create(dir.path().join("events.jsonl")).unwrap();
        let started = r#""team":"t","event":"task_started","task":"1","subject":"s","owner":null"#;
        file.write_all(log_line(500, started).as_bytes()).unwrap();
        times.new_lines().unwrap();
        assert_eq!(times.duration(id(1), 9000), Some(2500));
    }
}

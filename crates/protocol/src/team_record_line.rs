//! Lines of a team record: everything that came from outside the daemon while a team worked, with
//! times. `teamctl create --record` starts a record, and `teamctl replay` plays it.
//!
//! The daemon writes a record for each recorded team, as JSON lines. Secrets are masked before they
//! are written.

use crate::control_socket::{FromShim, Request};
use crate::event_log_line::Event;
use crate::inbox_file::Message;
use crate::member_task_and_request_ids::TaskId;
use crate::task::{Task, deserialize_task};
use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

/// The version of the format. A program refuses a record of another version.
pub const RECORD_VERSION: u32 = 1;

/// One line of a record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordLine {
    /// When the daemon noticed it: ISO 8601, UTC, with milliseconds.
    pub time: String,
    /// What the daemon noticed.
    #[serde(flatten)]
    pub entry: RecordEntry,
}

/// What a line of a record says. In JSON the key `kind` names the variant.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RecordEntry {
    /// The first line of a record. A team that is deleted and created again gets a new file.
    Start {
        /// [`RECORD_VERSION`].
        version: u32,
        /// The recorded team.
        team: TeamName,
    },
    /// A client has called the daemon.
    Call {
        /// The member whose agent has called. `None` for a person or a lead session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller: Option<MemberName>,
        /// What it asked for. Secrets in environment variables are masked.
        request: Box<Request>,
    },
    /// A shim has reported a start, a turn or an exit.
    Report {
        /// The member whose agent the shim runs.
        member: MemberName,
        /// The report.
        report: FromShim,
    },
    /// A message is in an inbox for the first time.
    Message {
        /// The owner of the inbox.
        inbox: MemberName,
        /// The message's position in the inbox, from 0.
        index: usize,
        /// The message.
        message: Message,
    },
    /// A task was created or changed.
    Task {
        /// The whole task after the change.
        #[serde(deserialize_with = "deserialize_task")]
        task: Box<Task>,
    },
    /// A task's file was removed.
    TaskRemoved {
        /// The task.
        id: TaskId,
    },
    /// What a program has written since the last `Output` line of the same member. The daemon reads
    /// the output when a turn begins or ends, and after an exit.
    Output {
        /// The member whose agent runs the program.
        member: MemberName,
        /// The output as the program wrote it, with its escape sequences. If it was cut at its
        /// beginning, the first line says so.
        text: String,
        /// Where the text ends in the member's output log, in bytes. The next recorded output
        /// begins there.
        #[serde(default)]
        log_end: u64,
    },
    /// The daemon has written a line to its event log.
    Event {
        /// The line.
        event: Box<Event>,
    },
}

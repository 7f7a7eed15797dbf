//! Messages between the daemon and the hooks of an agent's program. Hooks are commands that the
//! program runs at events. A hook reports an event, or waits for work with a long poll.
//!
//! The token in a call says which agent the hook belongs to. The program of a lead session has no
//! token, so its hooks name the team that the session leads.

use crate::member_task_and_request_ids::TaskId;
use crate::team_and_member_names::TeamName;
use crate::token_and_cost_usage::UsageReport;
use serde::{Deserialize, Serialize};

/// A hook's report of an event in an agent's program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookReport {
    /// The team that the program leads. `None`: the call's token identifies the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_team: Option<TeamName>,
    /// The program's session id. `None` if the hook input has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The ancestor processes of the hook, its parent first. Empty if they cannot be determined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<Process>,
    /// The usage of the program's session. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageReport>,
    /// The event.
    pub event: HookEvent,
}

/// A process, identified by pid and start time, because another process can get the same pid later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// When the process started, in units of the system (on Linux, clock ticks since boot).
    pub start_time: u64,
}

/// An event in a program that has hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// A session was started or resumed.
    SessionStarted,
    /// A turn started, because a person typed a prompt or a hook delivered a message or task.
    TurnStarted {
        /// A line for people, such as `message from bob` or `task 3: count the lines`.
        summary: String,
        /// Ids (`InboxEntry::message_id`) of the messages that a hook has put into the prompt. They
        /// stay unread during the turn. When the turn ends, a hook marks them as read, unless the
        /// program has ignored the prompt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        delivered_ids: Vec<u64>,
    },
    /// A hook marked the prompt or the plan approval on the program's command line as read.
    PromptRead,
    /// A turn ended. The agent becomes idle later, when its hook finds no new work.
    TurnEnded,
    /// The program waits at a dialog on its screen, such as a permission question.
    DialogShown {
        /// The dialog's text, for people.
        text: String,
    },
    /// The session ended.
    SessionEnded,
}

/// A hook's request to wait until there may be work for its agent. The daemon replies with a
/// [`LongPollEnd`] when there may be work, or when the hook need not wait any longer, for example
/// because the agent exits. The agent counts as idle while the hook waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LongPollRequest {
    /// The team that the program leads. `None`: the call's token identifies the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_team: Option<TeamName>,
    /// When the hook started, in milliseconds of the monotonic clock. The daemon compares the times
    /// of an agent's hooks, because only the newest hook may wait.
    #[serde(default)]
    pub hook_started_at: u64,
}

/// Why a long poll ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LongPollEnd {
    /// There may be a new message or task.
    WorkMayWait,
    /// A person typed a prompt.
    PersonTyped,
    /// A newer hook of the same agent waits instead.
    Superseded,
    /// The agent has exited or is about to exit.
    AgentExited,
}

/// The daemon's reply to a hook report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookReply {
    /// Whether the hook may deliver messages to its program. If not, the hook only marks earlier
    /// messages as read. False if the agent's delivery is not `hook`, if the agent is about to be
    /// respawned after a plan approval, or if the hook belongs to a nested program, which the
    /// agent's program has started.
    pub delivers_by_hook: bool,
    /// Whether new turns must wait, because this host has no contact with the home of the team. If
    /// so, the hook waits in a long poll until there is contact again. Only then does it read the
    /// team's files.
    #[serde(default)]
    pub holds_turns: bool,
    /// When the current or just ended turn started, in milliseconds since the epoch.
    pub turn_started_at: u64,
    /// Whether this is the first report of the turn's end. If so, the hook notifies the lead.
    pub is_first_report: bool,
    /// The task of the turn. `None` if the turn has no task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The first prompt, if the program got it on its command line and the inbox message with this
    /// prompt is still unread. The hook then marks that message as read and reports
    /// [`HookEvent::PromptRead`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_in_args: Option<String>,
    /// Whether the program got the approval of its plan on its command line, and the inbox message
    /// with this approval is still unread. If so, the hook marks that message as read and reports
    /// [`HookEvent::PromptRead`].
    #[serde(default)]
    pub approval_in_args: bool,
    /// Ids of the messages that were delivered last, from [`HookEvent::TurnStarted`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivered_ids: Vec<u64>,
}

//! What the hooks of agents' programs tell the daemon, and how they wait there for mail.
//!
//! A hook speaks for the agent whose token comes with the call; of a session that leads a team, which has no token,
//! for that team's lead.

use crate::id::TaskId;
use crate::name::TeamName;
use crate::usage::UsageReport;
use serde::{Deserialize, Serialize};

/// One event of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookReport {
    /// The team whose lead it is; none: the agent of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "lead")]
    pub leads_team: Option<TeamName>,
    /// The program's session, where the event names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "session")]
    pub session_id: Option<String>,
    /// The processes above the hook, its parent first; empty where they can't be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "above")]
    pub ancestors: Vec<Process>,
    /// Who tells it.
    #[serde(default)]
    #[serde(rename = "speaker")]
    pub source: HookSource,
    /// What the program's session has used up, where that is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "used")]
    pub usage: Option<UsageReport>,
    /// What happened.
    #[serde(rename = "said")]
    pub event: HookEvent,
}

/// Who tells what happened in a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HookSource {
    /// The program's own hook.
    #[default]
    Program,
    /// The process beside an agent that types into its pane.
    Typist,
}

/// A process that no number reuse can be mistaken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Field 22 of /proc/PID/stat, ticks since boot.
    #[serde(rename = "start")]
    pub start_time: u64,
}

/// What happened in a program that has hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// A session began, or was taken up again.
    #[serde(rename = "session")]
    SessionStarted,
    /// A turn began: somebody typed, or a hook handed something over.
    #[serde(rename = "began")]
    TurnStarted {
        /// For people, one line: `message from bob`, `task 3: count the lines`.
        #[serde(rename = "about")]
        summary: String,
        /// What was handed over and is unread yet, by `crate::message::Entry::digest`: whether the program took it
        /// is seen when its turn ends.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[serde(rename = "handed")]
        delivered_ids: Vec<u64>,
    },
    /// The prompt of the program's command line is marked read.
    PromptRead,
    /// A turn ended. Whether the agent is idle now is known only once its hook has looked for mail.
    #[serde(rename = "ended")]
    TurnEnded,
    /// It waits at a dialog, for a permission say.
    #[serde(rename = "dialog")]
    DialogShown {
        /// What it says, for people.
        text: String,
    },
    /// The session has ended.
    SessionEnded,
}

/// Waits until there is something to look at: the answer is a `LongPollEnd`. The agent is idle meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LongPollRequest {
    /// As in `HookReport`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "lead")]
    pub leads_team: Option<TeamName>,
}

/// Why a parked hook goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LongPollEnd {
    /// Look: mail or a task may have come.
    #[serde(rename = "mail")]
    WorkMayWait,
    /// A person gave the agent something to do.
    #[serde(rename = "typed")]
    PersonTyped,
    /// A newer hook of the same agent waits in its place.
    Superseded,
    /// There is nobody to wait for any more.
    #[serde(rename = "ended")]
    AgentExited,
}

/// What a hook needs to know of its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookReply {
    /// It is fed by its hooks; false: this program is told of its mail in another way, its life is to end, or it is
    /// another that the agent's own runs, and no hook is to wait, but to say that it has marked what was handed over.
    #[serde(rename = "fed")]
    pub delivers_by_hook: bool,
    /// Since when the turn runs, or ran that has ended: ms since the epoch.
    #[serde(rename = "since")]
    pub turn_started_at: u64,
    /// This is the first word of that turn's end: the lead is to be told.
    #[serde(rename = "first")]
    pub is_first_report: bool,
    /// The task that the turn was on, where a hook handed it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The text of the first message where the program got it on its command line: it is read, and that is
    /// told by `Said::PromptRead`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "given")]
    pub prompt_in_args: Option<String>,
    /// The program got the approval of its plan on its command line: it is read, and that is
    /// told by `Said::PromptRead` too.
    #[serde(default)]
    #[serde(rename = "approved")]
    pub approval_in_args: bool,
    /// What was handed over last, as `Said::Began` had it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "handed")]
    pub delivered_ids: Vec<u64>,
}

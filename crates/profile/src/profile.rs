//! A parsed and checked profile. [`crate::parse_profile`] makes it from a TOML file.

use crate::required_program_settings::SettingsEntry;
use protocol::delivery_kind::Delivery;
use protocol::token_and_cost_usage::{UsagePaths, UsageScope};
use protocol::worker_or_program_that_runs_turns::SessionSource;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A profile: how one agent program is run. The built-in worker has a profile too.
#[derive(Debug, PartialEq)]
pub struct Profile {
    /// The value of `--profile` that selects this profile.
    pub name: String,
    /// A description for people, one line.
    pub description: String,
    /// False if the profile was written from the program's documentation and never tried.
    pub is_verified: bool,
    pub(crate) kind: ProfileKind,
}

/// What a profile runs.
#[derive(Debug, PartialEq)]
pub(crate) enum ProfileKind {
    /// The built-in worker. The shim runs the commands of tasks itself.
    Worker,
    Program(Box<ProgramSpec>),
}

/// An agent program as its profile describes it.
///
/// Invariant: every template variable in the texts of a profile can be filled in;
/// `parse_profile::tests::error_for_an_unknown_variable_suggests_the_nearest_variable` checks it.
#[derive(Debug, PartialEq)]
pub(crate) struct ProgramSpec {
    pub(crate) program: String,
    pub(crate) delivery: DeliverySpec,
    pub(crate) args: Vec<String>,
    /// Arguments that pass a first prompt. Empty if the program takes none as an argument.
    pub(crate) prompt_args: Vec<String>,
    pub(crate) instructions: InstructionDelivery,
    /// Arguments that connect the program to teamd's MCP server.
    pub(crate) mcp: Vec<String>,
    /// Arguments that select a model. `None` if the program has none.
    pub(crate) model: Option<Vec<String>>,
    /// Arguments for each permission mode that the program supports.
    pub(crate) modes: BTreeMap<String, Vec<String>>,
    /// The permission mode of a member whose spawn request names no mode.
    pub(crate) default_mode: Option<String>,
    /// Arguments for each agent type.
    pub(crate) agent_types: BTreeMap<String, Vec<String>>,
    /// Arguments that limit the program to a list of tools. `None` if the program has no such
    /// arguments.
    pub(crate) only_tools: Option<Vec<String>>,
    /// Arguments for `--allow`. `None` if the program has none.
    pub(crate) allow: Option<Vec<String>>,
    /// Arguments for `--deny`. `None` if the program has none.
    pub(crate) deny: Option<Vec<String>>,
    /// The program's names for teamd's own tools. Every list of allowed tools includes them.
    pub(crate) team_tools: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Environment variables that this program inherits from the process that requests the spawn.
    /// Other agent programs do not inherit them.
    pub(crate) keep_env: Vec<String>,
    /// Names of the caller's variables that this program does not inherit.
    pub(crate) remove_env: Vec<String>,
    pub(crate) settings: Vec<SettingsEntry>,
    /// Texts by which an open dialog is recognized on the program's screen.
    pub(crate) dialogs: Vec<String>,
    /// Texts that the program prints when it has reached a usage limit. In each text, `{time}`
    /// stands for the time at which the limit ends.
    pub(crate) limits: Vec<String>,
    /// Arguments that make the program print its version. Empty if they are unknown.
    pub(crate) version_args: Vec<String>,
    /// Arguments that make the program print its help. Empty if they are unknown.
    pub(crate) help_args: Vec<String>,
    /// Arguments that make the program check its login. It then exits with 0 if its user is logged
    /// in. Empty if they are unknown.
    pub(crate) login_args: Vec<String>,
    /// Options that the program accepts but does not list in its help.
    pub(crate) undocumented_options: Vec<String>,
}

/// How the program learns about its team.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InstructionDelivery {
    /// The program gets no instructions.
    NotNeeded,
    /// The instructions are put before the first prompt of each session.
    Prepended,
    /// The program gets the instructions in these arguments.
    Arguments(Vec<String>),
}

/// Where a program with hooks reports the agent's last reply.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplySource {
    /// The key of the turn-end event whose value is the path of a file with the reply. The turn-end
    /// event is the JSON that the program passes to its hook at the end of a turn. `None` if the
    /// event itself contains the reply.
    #[serde(default)]
    pub file_key: Option<String>,
    /// The key whose value is the reply. If `file_key` is set, the key is in the JSON lines of that
    /// file, otherwise in the turn-end event. If the key occurs several times, the last value is
    /// the reply.
    pub key: String,
}

/// Where a program with hooks reports the usage of its session: in a file of JSON lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFile {
    /// The key in the hook's event whose value is the path of the file.
    pub path_key: String,
    pub usage_paths: UsagePaths,
}

/// How a program with one process for each turn is started, and what its output has.
#[derive(Debug, PartialEq)]
pub(crate) struct TurnDelivery {
    /// The arguments of all turns after the first. Empty if all turns have the arguments `args`.
    pub(crate) resume_args: Vec<String>,
    pub(crate) session: SessionSource,
    /// The key of the reply in the JSON lines of the output.
    pub(crate) reply_key: Option<String>,
    pub(crate) usage_paths: Option<UsagePaths>,
}

/// How messages reach a program, with the settings for this kind of delivery.
///
/// The field `resume_args` of a variant has the arguments with which the program resumes an earlier
/// session. It is empty if they are the same as the program's `args`.
#[derive(Debug, PartialEq)]
pub(crate) enum DeliverySpec {
    /// The program reads the team files itself.
    Native { resume_args: Vec<String> },
    /// The program's turn-end hook delivers messages.
    Hook { resume_args: Vec<String>, hook: HookDelivery },
    /// One process for the whole spawn. It speaks the Agent Client Protocol.
    Acp {
        /// Maps each of teamd's permission modes that the program supports to the program's own id
        /// of that mode.
        modes: BTreeMap<String, String>,
        usage_scope: UsageScope,
    },
    /// One process for each turn.
    Turn(TurnDelivery),
    /// One process for the whole spawn. It calls `teamctl inbox` to read its messages.
    Pull,
}

/// The settings of a program whose turn-end hook delivers messages.
#[derive(Debug, Clone, PartialEq)]
pub struct HookDelivery {
    /// The JSON that the turn-end hook prints to start another turn. In it, `{text}` stands for the
    /// messages.
    pub response_template: Map<String, Value>,
    /// The longest time that the hook may wait for messages, in milliseconds. `None` stands for the
    /// shim's default.
    pub max_wait_ms: Option<u64>,
    /// Where the program writes the agent's last reply. `None` if the turn-end event has the reply
    /// under one of the usual keys.
    pub reply_source: Option<ReplySource>,
    /// Where the session's usage is. `None` if the program does not report it.
    pub usage_file: Option<UsageFile>,
    /// A key of the turn-end event. Its value is `true` if a turn-end hook had started the turn, by
    /// its response to the turn before, and `false` if a prompt had started the turn. `None` if the
    /// program does not report this.
    pub continued_key: Option<String>,
}

/// The default is the response format of Claude Code, because most programs have adopted its keys.
impl Default for HookDelivery {
    fn default() -> HookDelivery {
        let fields = [("decision", "block"), ("reason", "{text}")];
        HookDelivery {
            response_template: fields
                .map(|(key, value)| (key.to_owned(), Value::from(value)))
                .into_iter()
                .collect(),
            max_wait_ms: None,
            reply_source: None,
            usage_file: None,
            continued_key: None,
        }
    }
}

impl Profile {
    /// The settings of delivery by hooks. `None` for another delivery.
    pub fn hook_delivery(&self) -> Option<&HookDelivery> {
        match &self.program_spec()?.delivery {
            DeliverySpec::Hook { hook, .. } => Some(hook),
            _ => None,
        }
    }

    /// The agent program of the profile. `None` for the built-in worker.
    pub(crate) fn program_spec(&self) -> Option<&ProgramSpec> {
        match &self.kind {
            ProfileKind::Worker => None,
            ProfileKind::Program(program) => Some(program),
        }
    }
}

impl DeliverySpec {
    pub(crate) fn delivery(&self) -> Delivery {
        match self {
            DeliverySpec::Native { .. } => Delivery::Native,
            DeliverySpec::Hook { .. } => Delivery::Hook,
            DeliverySpec::Acp { .. } => Delivery::Acp,
            DeliverySpec::Turn(_) => Delivery::Turn,
            DeliverySpec::Pull => Delivery::Pull,
        }
    }

    /// The arguments that continue a session. With delivery `turn`, they are used for all turns of
    /// a session after the first one. With delivery `native` or `hook`, they are used when the
    /// member is respawned and resumes its session. If they are empty, the program's `args` are
    /// used.
    pub(crate) fn resume_args(&self) -> &[String] {
        match self {
            DeliverySpec::Native { resume_args }
            | DeliverySpec::Hook { resume_args, .. }
            | DeliverySpec::Turn(TurnDelivery { resume_args, .. }) => resume_args,
            DeliverySpec::Acp { .. } | DeliverySpec::Pull => &[],
        }
    }
}

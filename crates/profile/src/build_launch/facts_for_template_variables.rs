//! The facts about a member that are known before its program starts, and the template variables
//! whose values come from these facts.

use crate::parse_agent_type_file::AgentType;
use crate::template_variables::{base_name, encode_value, fill};
use protocol::deferred_template_variables::escape_variables;
use protocol::permission_mode::{PermissionMode, is_read_only_type};
use protocol::team_and_member_names::{MemberName, TeamName};

/// What is known about a member before its program starts.
#[derive(Debug)]
pub struct LaunchFacts<'a> {
    /// The member's name. If the daemon chooses the name, a placeholder of the maximum length.
    pub name: &'a MemberName,
    /// Name of the member's team.
    pub team: &'a TeamName,
    /// The working directory.
    pub cwd: &'a str,
    /// The directory with `teams/` and `tasks/`.
    pub root: &'a str,
    /// Path of the program `teamctl`.
    pub teamctl_path: &'a str,
    /// The first message. Empty if there is none.
    pub prompt: &'a str,
    /// The instructions: the text that tells the agent about its team.
    pub instructions: &'a str,
    /// The member's kind of work. `None` if none was named.
    pub agent_type: Option<&'a str>,
    /// The contents of the file that defines `agent_type`. `None` if there is no such file.
    pub definition: Option<&'a AgentType>,
    /// The model. `None`: the program's default.
    pub model: Option<&'a str>,
    /// The permission mode. `None`: the program's default.
    pub mode: Option<PermissionMode>,
    /// The permission mode of the team's lead.
    pub lead_mode: Option<PermissionMode>,
    /// Rules for actions that the program allows without asking.
    pub allow: &'a [String],
    /// Rules for actions that the program refuses.
    pub deny: &'a [String],
    /// Whether this launch is for the spawn that carries out an approved plan.
    pub is_plan_approved: bool,
}

impl LaunchFacts<'_> {
    /// Whether the member's agent type only reads.
    pub(crate) fn is_read_only(&self) -> bool {
        self.agent_type.is_some_and(is_read_only_type)
    }
}

/// Fills in the template variables of `text` whose values are in `facts`. Other variables are not
/// changed.
pub(super) fn fill_facts(text: &str, facts: &LaunchFacts<'_>) -> String {
    fill(text, |variable| variable_value(variable, facts))
}

/// The value of a template variable, from `facts`. `None` if no fact belongs to `variable`. Braces
/// in the value are escaped, so that text in the value is never taken for a deferred variable.
pub(super) fn variable_value(variable: &str, facts: &LaunchFacts<'_>) -> Option<String> {
    let value = match base_name(variable) {
        "cwd" => facts.cwd.to_owned(),
        "name" => facts.name.to_string(),
        "team" => facts.team.to_string(),
        "id" => format!("{}@{}", facts.name, facts.team),
        "model" => facts.model.unwrap_or_default().to_owned(),
        "agent_type" => facts.agent_type.unwrap_or("general-purpose").to_owned(),
        "root" => facts.root.to_owned(),
        "teamctl" => facts.teamctl_path.to_owned(),
        "instructions" => facts.instructions.to_owned(),
        _ => return None,
    };
    Some(escape_variables(&encode_value(variable, value)))
}

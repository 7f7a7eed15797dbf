//! The hook that a program calls before it uses a tool. For a lead in delegate mode, which only
//! coordinates its team, the hook refuses most tools; `protocol::delegate_mode_rules` says which
//! tools are allowed. For any other member the hook does nothing.

use super::hook_owner::HookOwner;
use super::report_event_to_daemon::HookInvocation;
use super::response::{deny_tool_response, write_response};
use protocol::delegate_mode_rules::{REFUSAL_REASON, can_use_tool};
use protocol::error_kind_and_report::ErrorReport;

pub(super) fn check_tool(invocation: &HookInvocation<'_>) -> Result<(), ErrorReport> {
    let HookOwner::Lead(lead) = &invocation.owner else { return Ok(()) };
    let config = invocation.context.root()?.team(&lead.team).and_then(|team| team.config())?;
    let mode = config.members.into_iter().find(|member| member.name.is_lead()).and_then(|member| member.mode);
    let input = &invocation.input;
    if mode.as_deref() == Some("delegate")
        && !can_use_tool(input.tool.as_deref().unwrap_or_default(), &input.tool_input)
    {
        return write_response(&deny_tool_response(input, REFUSAL_REASON));
    }
    Ok(())
}

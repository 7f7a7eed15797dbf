//! Before a tool is used: a lead in delegate mode leads, and does nothing else. What that is, `protocol::delegate` says;
//! all else is refused, with what to do instead. Everybody else is left to their program's own rules.

use super::answer::refuse;
use super::{Caller, Stand};
use crate::here::fault;
use crate::output;
use protocol::delegate_mode::{REFUSAL_REASON, can_use_tool};
use protocol::error::ErrorReport;

pub(super) fn run(stand: &Stand<'_>) -> Result<(), ErrorReport> {
    let Caller::Lead(lead) = &stand.caller else { return Ok(()) };
    let config = stand.here.root()?.team(&lead.team).and_then(|team| team.config()).map_err(fault)?;
    let mode = config.members.into_iter().find(|member| member.name.is_lead()).and_then(|member| member.mode);
    let input = &stand.input;
    if mode.as_deref() == Some("delegate")
        && !can_use_tool(input.tool.as_deref().unwrap_or_default(), &input.tool_input)
    {
        return output::answer(&refuse(input, REFUSAL_REASON));
    }
    Ok(())
}

//! `approve`: approves a plan, or permits the use of a tool.

use super::answer_request::answer_request;
use crate::command_context::CommandContext;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_request::{Answer, Approval};
use protocol::permission_mode::PermissionMode;
use serde_json::Value;
use std::process::ExitCode;

/// Approve a member's plan, or its use of a tool
///
/// Example: teamctl approve perm-1770977144590-x3k9a0b
///
/// Exit code 67: there is no such request, or its member has exited. 73: the request has an answer
/// already. 76: the member's program does not support the given --mode, or does not support
/// --input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl approve perm-17 --input '{\"command\": \"ls\"}'\n  teamctl approve plan_approval-1770977144590@ann@survey --mode acceptEdits"
)]
pub(crate) struct ApproveArgs {
    /// Id of the request from `teamctl requests`, or its beginning
    #[arg(value_name = "ID")]
    request: String,
    /// Permission mode for carrying out the plan [default: the lead's mode, else default]
    #[arg(long, value_name = "M")]
    mode: Option<PermissionMode>,
    /// Input for the tool, instead of the requested input
    #[arg(long, value_name = "JSON", value_parser = parse_tool_input)]
    input: Option<Value>,
    /// Also grant the permissions that the request suggests, from now on
    #[arg(long)]
    always: bool,
}

/// Parses a JSON object. The input of every tool is one.
fn parse_tool_input(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(error) => Err(format!("cannot read it as a JSON object: {error}")),
    }
}

pub(crate) fn run(context: &CommandContext, args: &ApproveArgs) -> Result<ExitCode, ErrorReport> {
    let approval = Approval { mode: args.mode, input: args.input.clone(), apply_suggestions: args.always };
    answer_request(context, &args.request, &Answer::Approve(approval))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_input_must_be_an_object() {
        assert!(parse_tool_input("{\"a\": 1}").is_ok());
        assert!(
            parse_tool_input("[]").is_err()
                && parse_tool_input("{").is_err()
                && parse_tool_input("x").is_err()
        );
    }
}

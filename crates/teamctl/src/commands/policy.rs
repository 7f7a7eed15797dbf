//! `policy`: who answers what members ask, and what the team may use up; another from a file.

use super::run_file_errors::{FileUse, print_validation_errors};
use crate::context::CommandContext;
use crate::output;
use client::error::unexpected_reply;
use client::text::short_duration;
use protocol::control::{Reply, Request, SetPolicyRequest};
use protocol::error::ErrorReport;
use protocol::policy::{Approver, Policy as TeamPolicy, TimeoutAction};
use protocol::usage::{format_count, format_dollars};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show a team's policy, or put another in its place
///
/// Who answers what members ask, and what the team may use up: turns, tokens, money, and time from its making on. What waits for
/// somebody is decided anew under another one, and a team whose budget was used up goes on with a larger one: bring
/// its members back with teamctl up --resume.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl policy\n  teamctl policy policy.toml -t survey\n\nA whole file:\n  [policy]\n  plans = \"auto\"\n  turns = 200\n  time = \"8h\""
)]
pub(crate) struct PolicyArgs {
    /// A TOML file with the table policy (docs/requests.md)
    file: Option<PathBuf>,
}

pub(crate) fn run(here: &CommandContext, args: &PolicyArgs) -> Result<ExitCode, ErrorReport> {
    let caller = here.caller()?;
    let team = caller.team().name().clone();
    let Some(path) = &args.file else {
        let policy = caller.policy()?;
        output::print_result(here, &json!({"team": team, "policy": policy}), &policy_text(&policy));
        return Ok(ExitCode::SUCCESS);
    };
    here.require_lead("change a policy")?;
    let policy = match runner::read_policy_file(path)? {
        Ok(policy) => policy,
        Err(flaws) => return Ok(print_validation_errors(here, FileUse::Policy, path, &flaws)),
    };
    let order = SetPolicyRequest { team: team.clone(), policy: policy.clone() };
    let Reply::Ack = here.call_daemon(Request::SetPolicy(order))? else { return Err(unexpected_reply()) };
    let sentence = format!("The policy of {team} is another now.\n{}", policy_text(&policy));
    output::print_result(here, &json!({"team": team, "policy": policy}), &sentence);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn policy_text(policy: &TeamPolicy) -> String {
    let rules = match policy.rules.len() {
        0 => String::new(),
        count => format!(" where none of {count} rules decides"),
    };
    let mut lines = vec![
        format!("plans are answered by {}", answerer_text(policy.plan_approver)),
        format!(
            "questions for permission are answered by {}{rules}",
            answerer_text(policy.permission_approver)
        ),
    ];
    if let Some(ms) = policy.answer_timeout_ms {
        let then = match policy.on_timeout {
            TimeoutAction::Wait => "it waits on",
            TimeoutAction::Deny => "the answer is no",
            TimeoutAction::Approve => "the answer is yes",
        };
        lines.push(format!("after {} without an answer {then}", short_duration(ms)));
    }
    lines.extend(policy.max_turns.map(|turns| format!("at most {turns} turns")));
    lines.extend(policy.max_tokens.map(|tokens| format!("at most {} tokens", format_count(tokens))));
    lines.extend(policy.max_microdollars.map(|cost| format!("at most {}", format_dollars(cost))));
    lines.extend(policy.max_time_ms.map(|ms| format!("at most {} from its making on", short_duration(ms))));
    lines.join("\n")
}

fn answerer_text(who: Approver) -> &'static str {
    match who {
        Approver::Person => "a person",
        Approver::Lead => "the lead or a person",
        Approver::Auto => "nobody: yes at once",
    }
}

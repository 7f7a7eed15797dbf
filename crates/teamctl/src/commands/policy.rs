//! `teamctl policy`: prints a team's policy, or replaces it by the policy in a file.

use super::print_run_or_policy_file_errors::{FileUse, print_validation_errors};
use crate::command_context::CommandContext;
use crate::output;
use client::short_duration::short_duration;
use protocol::allowed_callers::AllowedCallers;
use protocol::control_socket::{Request, SetPolicyRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::policy::{
    Approver, ExchangeLimits, Policy as TeamPolicy, TaskCommandPolicy, TimeoutAction, WorktreeCommand,
    WorktreeCommandKind,
};
use protocol::token_and_cost_usage::{format_count, format_dollars};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show or replace a team's policy
///
/// Example: teamctl policy policy.toml
///
/// A policy says who answers the requests of members, and how many turns, tokens, dollars and hours
/// the team may use on all hosts. A new policy applies to open requests too. If it raises an
/// exhausted budget, resume the members with `teamctl up --resume`, and the members on another host
/// with `teamctl --host NAME up --resume`. Without --yes, a policy with commands for worktrees is
/// shown and refused (exit code 76).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A whole file:\n  [policy]\n  plans = \"auto\"\n  max_turns = 200\n  max_time = \"8h\""
)]
pub(crate) struct PolicyArgs {
    /// TOML file with the table `policy` (docs/requests.md) [default: show the policy]
    file: Option<PathBuf>,
    /// Accept the commands `setup` and `teardown` of the policy
    #[arg(long, requires = "file")]
    yes: bool,
}

impl PolicyArgs {
    /// Who may run the command with these arguments.
    pub(crate) fn allowed_callers(&self) -> AllowedCallers<'static> {
        if self.file.is_some() { AllowedCallers::LeadOrPerson } else { AllowedCallers::Everyone }
    }
}

pub(crate) fn run(context: &CommandContext, args: &PolicyArgs) -> Result<ExitCode, ErrorReport> {
    let caller = context.caller()?;
    let team = caller.team().name().clone();
    let Some(path) = &args.file else {
        let policy = caller.policy()?;
        output::print_result(context, &json!({"team": team, "policy": policy}), &policy_text(&policy));
        return Ok(ExitCode::SUCCESS);
    };
    let policy = match runner::read_policy_file(path)? {
        Ok(policy) => policy,
        Err(errors) => return Ok(print_validation_errors(context, FileUse::Policy, path, &errors)),
    };
    if !args.yes {
        check_no_worktree_commands(&policy, path)?;
    }
    let request = SetPolicyRequest { team: team.clone(), policy: policy.clone() };
    context.request::<()>(Request::SetPolicy(request))?;
    let sentence = format!("replaced the policy of {team}\n{}", policy_text(&policy));
    output::print_result(context, &json!({"team": team, "policy": policy}), &sentence);
    Ok(ExitCode::SUCCESS)
}

/// Describes a policy for people, one rule per line.
pub(super) fn policy_text(policy: &TeamPolicy) -> String {
    let rules = match policy.rules.len() {
        0 => String::new(),
        count => format!(" if none of {count} rules matches"),
    };
    let mut lines = vec![
        format!("plans are answered by {}", approver_text(policy.plan_approver)),
        format!("permission requests are answered by {}{rules}", approver_text(policy.permission_approver)),
    ];
    if policy.task_commands == TaskCommandPolicy::Any {
        lines.push(
            "every member may put a command into a task, which a worker runs (commands: any)".to_owned(),
        );
    }
    if let Some(ms) = policy.answer_timeout_ms {
        let action = match policy.on_timeout {
            TimeoutAction::Wait => "the request stays open",
            TimeoutAction::Deny => "it is denied",
            TimeoutAction::Approve => "it is approved",
        };
        lines.push(format!("after {} without an answer {action}", short_duration(ms)));
    }
    lines.extend(policy.max_turns.map(|turns| format!("at most {turns} turns")));
    lines.extend(policy.max_tokens.map(|tokens| format!("at most {} tokens", format_count(tokens))));
    lines.extend(policy.max_microdollars.map(|cost| format!("at most {}", format_dollars(cost))));
    lines.extend(policy.member_share.map(|share| format!("each member at most {share} % of that")));
    lines.extend(policy.max_time_ms.map(|ms| format!("at most {} after its creation", short_duration(ms))));
    lines.extend(exchange_text(policy.exchange));
    lines.extend(worktree_command_lines(policy));
    lines.join("\n")
}

/// A line for each command that runs in worktrees.
pub(super) fn worktree_command_lines(policy: &TeamPolicy) -> Vec<String> {
    let line = |(kind, command): (WorktreeCommandKind, &WorktreeCommand)| {
        let (name, time) = (kind.as_str(), short_duration(command.timeout_ms));
        match kind {
            WorktreeCommandKind::Setup => {
                format!("{name} runs in each new worktree, at most {time}: {command}")
            }
            WorktreeCommandKind::Teardown => {
                format!("{name} runs in each worktree before its removal, at most {time}: {command}")
            }
        }
    };
    policy.worktree_commands().map(line).collect()
}

/// Refuses a policy file with commands for worktrees. Called if the user has not typed `--yes`. The
/// error shows each command in full, so that the user can decide whether to trust the policy.
pub(super) fn check_no_worktree_commands(policy: &TeamPolicy, file: &Path) -> Result<(), ErrorReport> {
    let lines = worktree_command_lines(policy);
    if lines.is_empty() {
        return Ok(());
    }
    let (file, lines) = (file.display(), lines.join("\n  "));
    let message = format!("cannot use the policy {file} without --yes: it has commands:\n  {lines}");
    Err(ErrorReport::new(ErrorKind::Refused, output::sanitize(&message))
        .with_help("if you trust them, type the same command again with --yes"))
}

/// The limits of exchanges between two members, unless they are the defaults.
fn exchange_text(limits: ExchangeLimits) -> Option<String> {
    let text = |(within_ms, turns): (u64, u32)| format!("{turns} in {}", short_duration(within_ms));
    let limits_text: Vec<String> = limits.windows().map(text).collect();
    let limits_text = if limits_text.is_empty() {
        "without limit".to_owned()
    } else {
        format!("at most {}", limits_text.join(", "))
    };
    (limits != ExchangeLimits::default()).then(|| format!("turns on messages of one member: {limits_text}"))
}

fn approver_text(approver: Approver) -> &'static str {
    match approver {
        Approver::Person => "a person",
        Approver::Lead => "the lead or a person",
        Approver::Auto => "not needed: approved at once",
    }
}

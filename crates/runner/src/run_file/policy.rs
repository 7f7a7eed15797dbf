//! Parses the table `[policy]` of a run file or policy file.

use crate::run_file::toml_table_reader::{StringOrList, TableReader};
use crate::run_file::validation_errors::ValidationErrors;
use protocol::parse_duration;
use protocol::policy::{
    Approver, ExchangeLimits, Policy as TeamPolicy, PolicyRule, RuleAction, TaskCommandPolicy, TimeoutAction,
    WorktreeCommand, WorktreeCommandKind,
};
use protocol::token_and_cost_usage::to_microdollars;
use std::path::Path;
use std::time::Duration;

/// How a team is run, and who answers the plan and permission requests of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunPolicy {
    /// The policy that the daemon applies.
    pub(crate) team: TeamPolicy,
    /// How long a member may take to shut down before it is killed.
    pub(crate) grace: Duration,
    /// How often a failed task is retried.
    pub(crate) retries: u32,
}

impl Default for RunPolicy {
    fn default() -> RunPolicy {
        let team = TeamPolicy {
            plan_approver: Approver::Person,
            permission_approver: Approver::Person,
            ..TeamPolicy::default()
        };
        RunPolicy { team, grace: Duration::from_secs(30), retries: 0 }
    }
}

const KEYS: [&str; 19] = [
    "plans",
    "permissions",
    "commands",
    "answer_timeout",
    "on_timeout",
    "rule",
    "grace",
    "retries",
    "max_turns",
    "max_time",
    "max_tokens",
    "max_cost",
    "member_share",
    "exchange_turns_per_minute",
    "exchange_turns_per_hour",
    "setup",
    "setup_timeout",
    "teardown",
    "teardown_timeout",
];
const WHO: [(&str, Approver); 3] =
    [("person", Approver::Person), ("lead", Approver::Lead), ("auto", Approver::Auto)];
const AFTER: [(&str, TimeoutAction); 3] =
    [("deny", TimeoutAction::Deny), ("approve", TimeoutAction::Approve), ("wait", TimeoutAction::Wait)];
const ANSWERS: [(&str, RuleAction); 3] =
    [("allow", RuleAction::Allow), ("deny", RuleAction::Deny), ("ask", RuleAction::Ask)];

/// Parses the table `[policy]`. Relative directories in it are resolved against `directory`, which
/// is the directory of the file.
pub(crate) fn parse_policy_table(
    table: TableReader,
    directory: &Path,
    errors: &mut ValidationErrors,
) -> RunPolicy {
    table.check_keys(&KEYS, errors);
    let defaults = RunPolicy::default();
    RunPolicy {
        team: parse_team_policy(table, directory, defaults.team, errors),
        grace: parse_duration(table, "grace", "a string such as \"30s\"", errors).unwrap_or(defaults.grace),
        retries: table.count("retries", errors).map_or(defaults.retries, saturate_u32),
    }
}

fn parse_team_policy(
    table: TableReader,
    directory: &Path,
    defaults: TeamPolicy,
    errors: &mut ValidationErrors,
) -> TeamPolicy {
    let timeout = parse_duration(table, "answer_timeout", "a string such as \"10m\"", errors);
    let on_timeout = table.one_of("on_timeout", &AFTER, errors);
    // Either of these two keys has no effect without the other one, so both must be set or neither.
    if let (None, Some(offset)) = (table.key_offset("answer_timeout"), table.key_offset("on_timeout")) {
        errors.push(offset, "on_timeout needs the key answer_timeout: how long a request waits before");
    }
    if let (Some(offset), None) = (table.key_offset("answer_timeout"), table.key_offset("on_timeout")) {
        errors.push(offset, "answer_timeout needs the key on_timeout: deny, approve or wait");
    }
    let rules = table.tables("rule", "a rule", errors).unwrap_or_default();
    TeamPolicy {
        plan_approver: table.one_of("plans", &WHO, errors).unwrap_or(defaults.plan_approver),
        permission_approver: table
            .one_of("permissions", &WHO, errors)
            .unwrap_or(defaults.permission_approver),
        task_commands: table
            .one_of("commands", &[("lead", TaskCommandPolicy::Lead), ("any", TaskCommandPolicy::Any)], errors)
            .unwrap_or(defaults.task_commands),
        answer_timeout_ms: timeout.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
        on_timeout: on_timeout.unwrap_or(defaults.on_timeout),
        max_turns: table.count("max_turns", errors),
        max_tokens: table.count("max_tokens", errors),
        max_microdollars: table.amount("max_cost", errors).and_then(to_microdollars),
        member_share: parse_member_share(table, errors),
        max_time_ms: parse_duration(table, "max_time", "a string such as \"8h\"", errors)
            .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
        exchange: parse_exchange_limits(table, errors),
        setup: parse_worktree_command(table, WorktreeCommandKind::Setup, errors),
        teardown: parse_worktree_command(table, WorktreeCommandKind::Teardown, errors),
        rules: rules.into_iter().filter_map(|table| parse_rule(table, directory, errors)).collect(),
    }
}

/// Parses a command for worktrees, which is a command line of `sh` or a list, and its timeout.
fn parse_worktree_command(
    table: TableReader,
    kind: WorktreeCommandKind,
    errors: &mut ValidationErrors,
) -> Option<WorktreeCommand> {
    let (key, timeout_key) = (kind.as_str(), format!("{}_timeout", kind.as_str()));
    let timeout = parse_duration(table, &timeout_key, "a string such as \"5m\"", errors);
    let timeout = timeout.unwrap_or(kind.default_timeout());
    if let Some(offset) = table.key_offset(&timeout_key) {
        if table.key_offset(key).is_none() {
            errors.push(offset, format!("{timeout_key} needs the key {key}: the command"));
        } else if timeout > kind.max_timeout() {
            let minutes = kind.max_timeout().as_secs() / 60;
            errors.push(offset, format!("{timeout_key} is too long: {minutes}m at most"));
        }
    }
    let command = table.string_or_strings(key, errors)?;
    let argv = match command.value {
        StringOrList::String(line) if line.trim().is_empty() => Vec::new(),
        StringOrList::String(line) => WorktreeCommand::shell_argv(line),
        StringOrList::List(words) => words,
    };
    if argv.first().is_none_or(String::is_empty) {
        errors.push(command.offset, format!("{key} needs a program: {key} = [\"program\", \"argument\"]"));
        return None;
    }
    Some(WorktreeCommand { argv, timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX) })
}

/// The percentage of the budget that one member may use.
fn parse_member_share(table: TableReader, errors: &mut ValidationErrors) -> Option<u8> {
    let offset = table.key_offset("member_share")?;
    if table.key_offset("max_tokens").or(table.key_offset("max_cost")).is_none() {
        errors.push(offset, "member_share needs the key max_tokens or max_cost: of what it is a share");
    }
    let percent = table.count("member_share", errors)?;
    let share = u8::try_from(percent).ok().filter(|share| (1..=100).contains(share));
    if share.is_none() {
        errors.push(offset, format!("member_share takes a percentage from 1 to 100, not {percent}"));
    }
    share
}

fn parse_exchange_limits(table: TableReader, errors: &mut ValidationErrors) -> ExchangeLimits {
    let defaults = ExchangeLimits::default();
    let per_minute = table.count("exchange_turns_per_minute", errors).map(saturate_u32);
    let per_hour = table.count("exchange_turns_per_hour", errors).map(saturate_u32);
    ExchangeLimits {
        turns_per_minute: per_minute.unwrap_or(defaults.turns_per_minute),
        turns_per_hour: per_hour.unwrap_or(defaults.turns_per_hour),
    }
}

fn parse_rule(table: TableReader, directory: &Path, errors: &mut ValidationErrors) -> Option<PolicyRule> {
    table.check_keys(&["tool", "pattern", "directory", "answer"], errors);
    let tool = table.required_string("tool", errors);
    let pattern = table.string("pattern", errors).map(|text| text.value);
    let rule_directory = table.string("directory", errors).map(|text| directory.join(text.value));
    let answer = match table.key_offset("answer") {
        Some(_) => table.one_of("answer", &ANSWERS, errors),
        None => table.required_string("answer", errors).and(None),
    };
    Some(PolicyRule { tool: tool?.value, pattern, directory: rule_directory, answer: answer? })
}

/// Converts a count. A count above `u32::MAX` becomes `u32::MAX`.
fn saturate_u32(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Parses the duration at `key`. `expected` describes the allowed values in an error.
fn parse_duration(
    table: TableReader,
    key: &str,
    expected: &str,
    errors: &mut ValidationErrors,
) -> Option<Duration> {
    let text = table.text(key, expected, errors)?;
    parse_duration::parse(&text.value).map_err(|error| errors.push(text.offset, error)).ok()
}

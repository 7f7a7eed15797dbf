//! The table `[policy]`: how a team is run, and who answers what its members ask.

use super::flaw::Flaws;
use super::section::Section;
use protocol::control::TaskCommandPolicy;
use protocol::duration;
use protocol::policy::{Approver, Policy as TeamPolicy, PolicyRule, RuleAction, TimeoutAction};
use protocol::usage::to_microdollars;
use std::path::Path;
use std::time::Duration;

/// How a team is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verbs::run) struct Policy {
    /// What the daemon decides by.
    pub(in crate::verbs::run) team: TeamPolicy,
    /// How long a member may take to end.
    pub(in crate::verbs::run) grace: Duration,
    /// How often a failed task is given back.
    pub(in crate::verbs::run) retries: u32,
}

impl Default for Policy {
    fn default() -> Policy {
        let team = TeamPolicy {
            plan_approver: Approver::Person,
            permission_approver: Approver::Person,
            ..TeamPolicy::default()
        };
        Policy { team, grace: Duration::from_secs(30), retries: 0 }
    }
}

const KEYS: [&str; 12] = [
    "plans",
    "permissions",
    "commands",
    "timeout",
    "after",
    "rule",
    "grace",
    "retries",
    "turns",
    "time",
    "tokens",
    "cost",
];
const WHO: [(&str, Approver); 3] =
    [("person", Approver::Person), ("lead", Approver::Lead), ("auto", Approver::Auto)];
const AFTER: [(&str, TimeoutAction); 3] =
    [("deny", TimeoutAction::Deny), ("approve", TimeoutAction::Approve), ("wait", TimeoutAction::Wait)];
const ANSWERS: [(&str, RuleAction); 3] =
    [("allow", RuleAction::Allow), ("deny", RuleAction::Deny), ("ask", RuleAction::Ask)];

/// The table, with relative directories against that of the file.
pub(super) fn policy(table: Section, directory: &Path, flaws: &mut Flaws) -> Policy {
    table.takes(&KEYS, flaws);
    let otherwise = Policy::default();
    Policy {
        team: team(table, directory, otherwise.team, flaws),
        grace: time(table, "grace", "a string such as \"30s\"", flaws).unwrap_or(otherwise.grace),
        retries: table.count("retries", flaws).map_or(otherwise.retries, at_most),
    }
}

fn team(table: Section, directory: &Path, otherwise: TeamPolicy, flaws: &mut Flaws) -> TeamPolicy {
    let timeout = time(table, "timeout", "a string such as \"10m\"", flaws);
    let after = table.word("after", &AFTER, flaws);
    // One without the other would wait for ever, or for nothing.
    if let (None, Some(at)) = (table.place("timeout"), table.place("after")) {
        flaws.add(at, "after needs the key timeout: how long a request waits before");
    }
    if let (Some(at), None) = (table.place("timeout"), table.place("after")) {
        flaws.add(at, "timeout needs the key after: deny, approve or wait");
    }
    let rules = table.tables("rule", "a rule", flaws).unwrap_or_default();
    TeamPolicy {
        plan_approver: table.word("plans", &WHO, flaws).unwrap_or(otherwise.plan_approver),
        permission_approver: table.word("permissions", &WHO, flaws).unwrap_or(otherwise.permission_approver),
        task_commands: table
            .word("commands", &[("lead", TaskCommandPolicy::Lead), ("any", TaskCommandPolicy::Any)], flaws)
            .unwrap_or(otherwise.task_commands),
        answer_timeout_ms: timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        on_timeout: after.unwrap_or(otherwise.on_timeout),
        max_turns: table.count("turns", flaws),
        max_tokens: table.count("tokens", flaws),
        max_microdollars: table.amount("cost", flaws).and_then(to_microdollars),
        max_time_ms: time(table, "time", "a string such as \"8h\"", flaws)
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        rules: rules.into_iter().filter_map(|table| rule(table, directory, flaws)).collect(),
    }
}

fn rule(table: Section, directory: &Path, flaws: &mut Flaws) -> Option<PolicyRule> {
    table.takes(&["tool", "matches", "directory", "answer"], flaws);
    let tool = table.required("tool", flaws);
    let matches = table.string("matches", flaws).map(|text| text.value);
    let place = table.string("directory", flaws).map(|text| directory.join(text.value));
    let answer = match table.place("answer") {
        Some(_) => table.word("answer", &ANSWERS, flaws),
        None => table.required("answer", flaws).and(None),
    };
    Some(PolicyRule { tool: tool?.value, pattern: matches, directory: place, answer: answer? })
}

/// More tries than that nobody sees the end of.
fn at_most(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn time(table: Section, key: &str, wanted: &str, flaws: &mut Flaws) -> Option<Duration> {
    let text = table.text(key, wanted, flaws)?;
    duration::parse(&text.value).map_err(|wrong| flaws.add(text.at, wrong)).ok()
}

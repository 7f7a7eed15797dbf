//! A team's policy: who answers the requests of its members, and the team's budget.
//!
//! The daemon applies the policy. The policy is in a file of teamd's own, because Claude Code
//! defines the format of config.json. For each kind of request the policy sets who answers: a
//! person, the lead, or the daemon, which approves at once. A permission request is first compared
//! with the policy's rules; the first matching rule decides. A request that waits for an answer can
//! have a timeout.

mod classify_tool_input_keys;
mod exchange_limits;
mod find_actions_in_tool_input;
mod rule;
mod worktree_command;

pub use classify_tool_input_keys::{CAPTION_KEY, is_text_key};
pub use rule::{PolicyRule, RuleAction};
pub use worktree_command::{WorktreeCommand, WorktreeCommandKind};

pub use exchange_limits::ExchangeLimits;

use crate::member_request::{MemberRequest, MemberRequestKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The policy of one team.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Who may add commands to tasks.
    pub task_commands: TaskCommandPolicy,
    /// Who answers plans.
    pub plan_approver: Approver,
    /// Who answers permission requests that no rule decides.
    pub permission_approver: Approver,
    /// How long a request waits for an answer, in milliseconds. `None`: without limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_timeout_ms: Option<u64>,
    /// What happens to a request that gets no answer within `answer_timeout_ms`.
    pub on_timeout: TimeoutAction,
    /// Rules for permission requests. The first matching rule decides.
    pub rules: Vec<PolicyRule>,
    /// Maximum number of turns of all members together. `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// Maximum number of tokens of all members together, as reported by their programs. `None`: no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Maximum cost of all members together, as reported by their programs, in millionths of a US
    /// dollar. `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_microdollars: Option<u64>,
    /// The percentage of `max_tokens` and of `max_microdollars` that one member may use. `None` if
    /// one member may use all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member_share: Option<u8>,
    /// Maximum age of the team, in milliseconds. `None`: no limit. The age counts from the creation
    /// of the team. If another program created the team, the age counts from the moment at which
    /// teamd first found the team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time_ms: Option<u64>,
    /// How often two members may answer each other.
    pub exchange: ExchangeLimits,
    /// The command that runs in each new worktree before its agent starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<WorktreeCommand>,
    /// The command that runs in each worktree before it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teardown: Option<WorktreeCommand>,
}

/// Who may add a command, which a worker runs, to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskCommandPolicy {
    /// The lead or a person.
    #[default]
    Lead,
    /// Every member.
    Any,
}

/// Who answers a kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// Only a person.
    Person,
    /// The lead or a person.
    #[default]
    Lead,
    /// The daemon approves at once.
    Auto,
}

/// What happens to a request that was not answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeoutAction {
    /// The request stays open.
    #[default]
    Wait,
    /// The request is denied.
    Deny,
    /// The request is approved.
    Approve,
}

/// The policy's decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyDecision {
    /// The request is approved.
    Approve(AnsweredBy),
    /// The request is denied, with the reason.
    Deny(AnsweredBy, String),
    /// The request waits for an answer.
    Ask(Approver),
}

/// Who or what answered a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// The lead or a person, who answers in the name of the lead.
    Lead,
    /// A rule of the policy.
    Rule,
    /// The policy, which approves all requests of this kind.
    Auto,
    /// The policy, because the timeout passed.
    Timeout,
}

impl AnsweredBy {
    /// The name in files and output.
    pub fn as_str(self) -> &'static str {
        match self {
            AnsweredBy::Lead => "lead",
            AnsweredBy::Rule => "rule",
            AnsweredBy::Auto => "auto",
            AnsweredBy::Timeout => "timeout",
        }
    }
}

impl Policy {
    /// Whether the policy limits what the team may use.
    pub fn has_limits(&self) -> bool {
        let limits = [self.max_turns, self.max_time_ms, self.max_tokens, self.max_microdollars];
        limits.iter().any(Option::is_some)
    }

    /// Parses the content of a policy file. Without a file, the result is the default policy.
    ///
    /// If the file is invalid, the result is a policy under which only a person answers requests,
    /// because teamd cannot know what the file was meant to forbid. A file with an unknown key is
    /// invalid: if the key was ignored, a rule could match more than its author intended.
    pub fn parse_file(bytes: Option<&[u8]>) -> Policy {
        bytes.map_or_else(Policy::default, |bytes| {
            serde_json::from_slice(bytes).unwrap_or_else(|_| Policy::of_person())
        })
    }

    /// The policy in a record, read as [`Policy::parse_file`] reads a file.
    pub fn from_json(policy: Value) -> Policy {
        serde_json::from_value(policy).unwrap_or_else(|_| Policy::of_person())
    }

    /// Only a person answers requests.
    fn of_person() -> Policy {
        Policy { plan_approver: Approver::Person, permission_approver: Approver::Person, ..Policy::default() }
    }

    /// The commands for worktrees.
    pub fn worktree_commands(&self) -> impl Iterator<Item = (WorktreeCommandKind, &WorktreeCommand)> {
        let commands =
            [(WorktreeCommandKind::Setup, &self.setup), (WorktreeCommandKind::Teardown, &self.teardown)];
        commands.into_iter().filter_map(|(kind, command)| Some((kind, command.as_ref()?)))
    }

    /// Who answers requests of this kind.
    pub fn approver(&self, kind: MemberRequestKind) -> Approver {
        match kind {
            MemberRequestKind::Plan => self.plan_approver,
            MemberRequestKind::Permission => self.permission_approver,
        }
    }

    /// Decides about a request of a member that works in the absolute directory `cwd`.
    pub fn decide(&self, request: &MemberRequest, cwd: &str) -> PolicyDecision {
        let rule = match request {
            MemberRequest::Plan(_) => None,
            MemberRequest::Permission(request) => self.rules.iter().find(|rule| rule.is_match(request, cwd)),
        };
        let approver = self.approver(request.kind());
        match (rule.map(|rule| rule.answer), approver) {
            (Some(RuleAction::Allow), _) => PolicyDecision::Approve(AnsweredBy::Rule),
            (Some(RuleAction::Deny), _) => {
                PolicyDecision::Deny(AnsweredBy::Rule, "the team's policy refuses it".to_owned())
            }
            // An explicit `ask` rule overrides automatic approval.
            (Some(RuleAction::Ask), Approver::Auto) => PolicyDecision::Ask(Approver::Lead),
            (None, Approver::Auto) => PolicyDecision::Approve(AnsweredBy::Auto),
            (_, approver) => PolicyDecision::Ask(approver),
        }
    }

    /// The decision about a request whose timeout has passed. `None` if the request stays open.
    pub fn timeout_decision(&self) -> Option<PolicyDecision> {
        match self.on_timeout {
            TimeoutAction::Wait => None,
            TimeoutAction::Approve => Some(PolicyDecision::Approve(AnsweredBy::Timeout)),
            TimeoutAction::Deny => {
                Some(PolicyDecision::Deny(AnsweredBy::Timeout, "nobody answered in time".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission(tool: &str) -> MemberRequest {
        let text = format!(
            r#"{{"type":"permission_request","request_id":"p","agent_id":"a","tool_name":"{tool}","input":{{"command":"ls"}}}}"#
        );
        MemberRequest::parse(&text).unwrap()
    }

    fn plan() -> MemberRequest {
        MemberRequest::parse(r#"{"type":"plan_approval_request","from":"a","requestId":"p"}"#).unwrap()
    }

    fn rule(tool: &str, answer: RuleAction) -> PolicyRule {
        PolicyRule { tool: tool.to_owned(), pattern: None, directory: None, answer }
    }

    #[test]
    fn first_matching_rule_decides_before_the_approver() {
        let rules = vec![
            rule("Bash", RuleAction::Deny),
            rule("Bash", RuleAction::Allow),
            rule("Web", RuleAction::Ask),
        ];
        let policy = Policy {
            rules,
            permission_approver: Approver::Auto,
            plan_approver: Approver::Person,
            ..Policy::default()
        };
        assert!(matches!(policy.decide(&permission("Bash"), "/"), PolicyDecision::Deny(AnsweredBy::Rule, _)));
        assert_eq!(policy.decide(&permission("Web"), "/"), PolicyDecision::Ask(Approver::Lead));
        assert_eq!(policy.decide(&permission("Edit"), "/"), PolicyDecision::Approve(AnsweredBy::Auto));
        assert_eq!(policy.decide(&plan(), "/"), PolicyDecision::Ask(Approver::Person));
        let policy = Policy { plan_approver: Approver::Auto, ..Policy::default() };
        assert_eq!(policy.decide(&plan(), "/"), PolicyDecision::Approve(AnsweredBy::Auto));
        assert_eq!(policy.decide(&permission("Bash"), "/"), PolicyDecision::Ask(Approver::Lead));
    }

    #[test]
    fn invalid_policy_file_leaves_answers_to_a_person() {
        let any = Policy::parse_file(Some(br#"{"task_commands":"any"}"#));
        assert_eq!((any.task_commands, any.plan_approver), (TaskCommandPolicy::Any, Approver::Lead));
        let unknown_key = br#"{"task_commands":"any","later":1}"#;
        let old_keys = br#"{"commands":"any","rules":[{"tool":"Bash","matches":"ls","answer":"allow"}]}"#;
        assert_eq!(Policy::parse_file(None), Policy::default());
        assert_eq!(Policy::parse_file(Some(b"{}")), Policy::default());
        for invalid in [
            Some(&br#"{"task_commands":"all"}"#[..]),
            Some(unknown_key),
            Some(old_keys),
            Some(br#"{"rules":[{"tool":"Bash","matches":"ls","answer":"allow"}]}"#),
            Some(b"any"),
            Some(b"\xff"),
            Some(b""),
        ] {
            let policy = Policy::parse_file(invalid);
            for request in [plan(), permission("Bash")] {
                assert_eq!(
                    policy.decide(&request, "/"),
                    PolicyDecision::Ask(Approver::Person),
                    "{invalid:?}"
                );
            }
            assert_eq!(policy.task_commands, TaskCommandPolicy::Lead);
        }
        let policy = Policy {
            answer_timeout_ms: Some(5),
            on_timeout: TimeoutAction::Deny,
            rules: vec![rule("Bash", RuleAction::Allow)],
            ..Policy::default()
        };
        let text = serde_json::to_vec(&policy).unwrap();
        assert_eq!(Policy::parse_file(Some(&text)), policy);
    }

    #[test]
    fn timeout_decision_follows_on_timeout() {
        let decision = |action| Policy { on_timeout: action, ..Policy::default() }.timeout_decision();
        assert_eq!(
            (decision(TimeoutAction::Wait), decision(TimeoutAction::Approve)),
            (None, Some(PolicyDecision::Approve(AnsweredBy::Timeout)))
        );
        assert!(matches!(decision(TimeoutAction::Deny), Some(PolicyDecision::Deny(AnsweredBy::Timeout, _))));
    }
}

//! A team's policy: who answers what its members ask. Decided by the daemon; a file of ours alone, since config.json is
//! a format that others have made.
//!
//! Rules come first, the first that fits decides. What none decides goes by kind: to a person, to the lead, or it is
//! granted. What waits for somebody may have a time-out.

mod rule;
mod tool_action;

pub use rule::{PolicyRule, RuleAction};
pub use tool_action::{CAPTION_KEY, is_text_key};

use crate::member_request::{MemberRequest, MemberRequestKind};
use crate::name::TeamName;
use serde::{Deserialize, Serialize};

/// How a team is led, as far as the daemon decides it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Policy {
    /// Who may put a command into a task.
    #[serde(rename = "commands")]
    pub task_commands: TaskCommandPolicy,
    /// Who answers plans.
    #[serde(rename = "plans")]
    pub plan_approver: Approver,
    /// Who answers questions for permission that no rule decides.
    #[serde(rename = "permissions")]
    pub permission_approver: Approver,
    /// How long a request waits for somebody, ms; none: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "timeout_ms")]
    pub answer_timeout_ms: Option<u64>,
    /// What follows then.
    #[serde(rename = "after")]
    pub on_timeout: TimeoutAction,
    /// For permissions; the first that fits decides.
    pub rules: Vec<PolicyRule>,
    /// So many turns its members may have, all together; none: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "turns")]
    pub max_turns: Option<u64>,
    /// So many tokens they may use up, all together, as far as their programs tell; none: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "tokens")]
    pub max_tokens: Option<u64>,
    /// So much they may cost, the same way, in millionths of a dollar of the United States; none: any amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "microdollars")]
    pub max_microdollars: Option<u64>,
    /// So long it may take, ms from its making on; none: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "time_ms")]
    pub max_time_ms: Option<u64>,
}

/// Who may put a command, which a worker runs, into a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskCommandPolicy {
    /// A person or the lead.
    #[default]
    Lead,
    /// Every member.
    Any,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// A person alone.
    Person,
    /// The lead, or a person.
    #[default]
    Lead,
    /// Nobody: it is granted at once.
    Auto,
}

/// What follows when nobody has answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeoutAction {
    /// It waits on.
    #[default]
    Wait,
    /// A no.
    Deny,
    /// A yes.
    Approve,
}

/// What the policy says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyDecision {
    /// Yes, and by what.
    Approve(AnsweredBy),
    /// No, and why.
    Deny(AnsweredBy, String),
    /// Somebody has to say.
    Ask(Approver),
}

/// Whose answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person's or the lead's: both answer as the lead.
    Lead,
    /// A rule's.
    Rule,
    /// The policy's, which grants all of the kind.
    Auto,
    /// Nobody's: its time was over.
    Timeout,
}

impl AnsweredBy {
    /// As it is spelled.
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
    /// The name of the file that holds a team's policy, in the state directory.
    pub fn file_name(team: &TeamName) -> String {
        format!("policy-{team}.json")
    }

    /// What such a file says. Whatever is not said in so many words is as if nobody had said it: a person or the lead
    /// answers, and no member puts commands into tasks.
    pub fn parse_or_default(bytes: Option<&[u8]>) -> Policy {
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    /// Who answers requests of that kind.
    pub fn approver(&self, kind: MemberRequestKind) -> Approver {
        match kind {
            MemberRequestKind::Plan => self.plan_approver,
            MemberRequestKind::Permission => self.permission_approver,
        }
    }

    /// What it says to a request of a member that works in `cwd` (absolute).
    pub fn decide(&self, asked: &MemberRequest, cwd: &str) -> PolicyDecision {
        let rule = match asked {
            MemberRequest::Plan(_) => None,
            MemberRequest::Permission(request) => self.rules.iter().find(|rule| rule.is_match(request, cwd)),
        };
        let who = self.approver(asked.kind());
        match (rule.map(|rule| rule.answer), who) {
            (Some(RuleAction::Allow), _) => PolicyDecision::Approve(AnsweredBy::Rule),
            (Some(RuleAction::Deny), _) => {
                PolicyDecision::Deny(AnsweredBy::Rule, "the team's policy refuses it".to_owned())
            }
            // Who wrote that it is to be asked means somebody.
            (Some(RuleAction::Ask), Approver::Auto) => PolicyDecision::Ask(Approver::Lead),
            (None, Approver::Auto) => PolicyDecision::Approve(AnsweredBy::Auto),
            (_, who) => PolicyDecision::Ask(who),
        }
    }

    /// What it says to a request that has waited for its time.
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
    fn the_first_rule_that_fits_decides_and_else_the_kind_does() {
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
    fn what_is_not_said_in_so_many_words_is_the_leads() {
        let any = Policy::parse_or_default(Some(br#"{"commands":"any","more":1}"#));
        assert_eq!((any.task_commands, any.plan_approver), (TaskCommandPolicy::Any, Approver::Lead));
        for other in
            [None, Some(&br#"{"commands":"all"}"#[..]), Some(b"{}"), Some(b"any"), Some(b"\xff"), Some(b"")]
        {
            assert_eq!(Policy::parse_or_default(other), Policy::default(), "{other:?}");
        }
        let policy = Policy {
            answer_timeout_ms: Some(5),
            on_timeout: TimeoutAction::Deny,
            rules: vec![rule("Bash", RuleAction::Allow)],
            ..Policy::default()
        };
        let text = serde_json::to_vec(&policy).unwrap();
        assert_eq!(Policy::parse_or_default(Some(&text)), policy);
    }

    #[test]
    fn a_time_out_follows_what_was_said() {
        let of = |after| Policy { on_timeout: after, ..Policy::default() }.timeout_decision();
        assert_eq!(
            (of(TimeoutAction::Wait), of(TimeoutAction::Approve)),
            (None, Some(PolicyDecision::Approve(AnsweredBy::Timeout)))
        );
        assert!(matches!(of(TimeoutAction::Deny), Some(PolicyDecision::Deny(AnsweredBy::Timeout, _))));
    }
}

//! A team's policy: who answers what its members ask. Decided by the daemon; a file of ours alone, since config.json is
//! a format that others have made.
//!
//! Rules come first, the first that fits decides. What none decides goes by kind: to a person, to the lead, or it is
//! granted. What waits for somebody may have a time-out.

mod deed;
mod rule;

pub use deed::{CAPTION, is_text};
pub use rule::{Rule, RuleAnswer};

use crate::asked::{Asked, AskedKind};
use crate::control::Commands;
use crate::name::TeamName;
use serde::{Deserialize, Serialize};

/// How a team is led, as far as the daemon decides it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Policy {
    /// Who may put a command into a task.
    pub commands: Commands,
    /// Who answers plans.
    pub plans: Who,
    /// Who answers questions for permission that no rule decides.
    pub permissions: Who,
    /// How long a request waits for somebody, ms; none: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What follows then.
    pub after: After,
    /// For permissions; the first that fits decides.
    pub rules: Vec<Rule>,
    /// So many turns its members may have, all together; none: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// So many tokens they may use up, all together, as far as their programs tell; none: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// So much they may cost, the same way, in millionths of a dollar of the United States; none: any amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microdollars: Option<u64>,
    /// So long it may take, ms from its making on; none: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Who {
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
pub enum After {
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
pub enum Decision {
    /// Yes, and by what.
    Approve(By),
    /// No, and why.
    Deny(By, String),
    /// Somebody has to say.
    Ask(Who),
}

/// Whose answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A person's or the lead's: both answer as the lead.
    Lead,
    /// A rule's.
    Rule,
    /// The policy's, which grants all of the kind.
    Auto,
    /// Nobody's: its time was over.
    Timeout,
}

impl By {
    /// As it is spelled.
    pub fn word(self) -> &'static str {
        match self {
            By::Lead => "lead",
            By::Rule => "rule",
            By::Auto => "auto",
            By::Timeout => "timeout",
        }
    }
}

impl Policy {
    /// The name of the file that holds a team's policy, in the state directory.
    pub fn file(team: &TeamName) -> String {
        format!("policy-{team}.json")
    }

    /// What such a file says. Whatever is not said in so many words is as if nobody had said it: a person or the lead
    /// answers, and no member puts commands into tasks.
    pub fn of_bytes(bytes: Option<&[u8]>) -> Policy {
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    /// Who answers requests of that kind.
    pub fn who(&self, kind: AskedKind) -> Who {
        match kind {
            AskedKind::Plan => self.plans,
            AskedKind::Permission => self.permissions,
        }
    }

    /// What it says to a request of a member that works in `cwd` (absolute).
    pub fn decide(&self, asked: &Asked, cwd: &str) -> Decision {
        let rule = match asked {
            Asked::Plan(_) => None,
            Asked::Permission(request) => self.rules.iter().find(|rule| rule.fits(request, cwd)),
        };
        let who = self.who(asked.kind());
        match (rule.map(|rule| rule.answer), who) {
            (Some(RuleAnswer::Allow), _) => Decision::Approve(By::Rule),
            (Some(RuleAnswer::Deny), _) => {
                Decision::Deny(By::Rule, "the team's policy refuses it".to_owned())
            }
            // Who wrote that it is to be asked means somebody.
            (Some(RuleAnswer::Ask), Who::Auto) => Decision::Ask(Who::Lead),
            (None, Who::Auto) => Decision::Approve(By::Auto),
            (_, who) => Decision::Ask(who),
        }
    }

    /// What it says to a request that has waited for its time.
    pub fn overdue(&self) -> Option<Decision> {
        match self.after {
            After::Wait => None,
            After::Approve => Some(Decision::Approve(By::Timeout)),
            After::Deny => Some(Decision::Deny(By::Timeout, "nobody answered in time".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission(tool: &str) -> Asked {
        let text = format!(
            r#"{{"type":"permission_request","request_id":"p","agent_id":"a","tool_name":"{tool}","input":{{"command":"ls"}}}}"#
        );
        Asked::parse(&text).unwrap()
    }

    fn plan() -> Asked {
        Asked::parse(r#"{"type":"plan_approval_request","from":"a","requestId":"p"}"#).unwrap()
    }

    fn rule(tool: &str, answer: RuleAnswer) -> Rule {
        Rule { tool: tool.to_owned(), matches: None, directory: None, answer }
    }

    #[test]
    fn the_first_rule_that_fits_decides_and_else_the_kind_does() {
        let rules = vec![
            rule("Bash", RuleAnswer::Deny),
            rule("Bash", RuleAnswer::Allow),
            rule("Web", RuleAnswer::Ask),
        ];
        let policy = Policy { rules, permissions: Who::Auto, plans: Who::Person, ..Policy::default() };
        assert!(matches!(policy.decide(&permission("Bash"), "/"), Decision::Deny(By::Rule, _)));
        assert_eq!(policy.decide(&permission("Web"), "/"), Decision::Ask(Who::Lead));
        assert_eq!(policy.decide(&permission("Edit"), "/"), Decision::Approve(By::Auto));
        assert_eq!(policy.decide(&plan(), "/"), Decision::Ask(Who::Person));
        let policy = Policy { plans: Who::Auto, ..Policy::default() };
        assert_eq!(policy.decide(&plan(), "/"), Decision::Approve(By::Auto));
        assert_eq!(policy.decide(&permission("Bash"), "/"), Decision::Ask(Who::Lead));
    }

    #[test]
    fn what_is_not_said_in_so_many_words_is_the_leads() {
        let any = Policy::of_bytes(Some(br#"{"commands":"any","more":1}"#));
        assert_eq!((any.commands, any.plans), (Commands::Any, Who::Lead));
        for other in
            [None, Some(&br#"{"commands":"all"}"#[..]), Some(b"{}"), Some(b"any"), Some(b"\xff"), Some(b"")]
        {
            assert_eq!(Policy::of_bytes(other), Policy::default(), "{other:?}");
        }
        let policy = Policy {
            timeout_ms: Some(5),
            after: After::Deny,
            rules: vec![rule("Bash", RuleAnswer::Allow)],
            ..Policy::default()
        };
        let text = serde_json::to_vec(&policy).unwrap();
        assert_eq!(Policy::of_bytes(Some(&text)), policy);
    }

    #[test]
    fn a_time_out_follows_what_was_said() {
        let of = |after| Policy { after, ..Policy::default() }.overdue();
        assert_eq!((of(After::Wait), of(After::Approve)), (None, Some(Decision::Approve(By::Timeout))));
        assert!(matches!(of(After::Deny), Some(Decision::Deny(By::Timeout, _))));
    }
}

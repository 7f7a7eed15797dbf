//! Questions of the members in the lead's inbox: plans and permissions. Where the file says `auto` the run says
//! yes; else it says once that somebody waits, and leaves the question alone.

use crate::here::{fault, now};
use protocol::fault::Fault;
use protocol::message::{Entry, Message};
use protocol::name::AgentName;
use protocol::payload::{Granted, Payload, PermissionOutcome, PermissionResponse, PlanApprovalResponse};
use protocol::policy::{Policy, Who};
use protocol::time::iso8601;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use store::Team;

/// The questions that were seen.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The inbox as it was last read: device, inode, size, time of change.
    seen: Option<[u64; 4]>,
    told: BTreeSet<String>,
}

impl Requests {
    /// Answers what is new; gives lines for people.
    pub(super) fn answer(&mut self, team: &Team, policy: &Policy) -> Result<Vec<String>, Fault> {
        let inbox = team.inbox(&AgentName::lead());
        let found = std::fs::metadata(inbox.path()).ok();
        let found = found.map(|file| {
            [file.ino(), file.size(), file.mtime().unsigned_abs(), file.mtime_nsec().unsigned_abs()]
        });
        if found == self.seen {
            return Ok(Vec::new());
        }
        let mut lines = Vec::new();
        for entry in inbox.read().map_err(fault)? {
            lines.extend(self.one(team, policy, entry)?);
        }
        // Only now: an answer that could not be written is tried again.
        self.seen = found;
        Ok(lines)
    }

    fn one(&mut self, team: &Team, policy: &Policy, entry: Entry) -> Result<Option<String>, Fault> {
        let Some((from, id, answers, yes)) = entry.unread().and_then(|message| question(message, policy))
        else {
            return Ok(None);
        };
        if answers != Who::Auto {
            let line = format!("{from} waits for an answer to {id}: see teamctl inbox");
            return Ok(self.told.insert(id).then_some(line));
        }
        // Who is no member any more can't be answered, and need not be.
        if let Ok(member) = team.member(from.as_str()) {
            let answer = Message::new(&AgentName::lead(), yes.to_text(), now());
            team.inbox(&member.name).append(&answer).map_err(fault)?;
        }
        team.inbox(&AgentName::lead()).mark_read(&[entry]).map_err(fault)?;
        Ok(Some(format!("{from} has a yes to {id}")))
    }
}

/// Who asks, under which id, who answers that, and what a yes is.
fn question(message: &Message, policy: &Policy) -> Option<(AgentName, String, Who, Payload)> {
    let from = AgentName::foreign(&message.from);
    match Payload::parse(&message.text)? {
        Payload::PlanApprovalRequest(plan) => {
            let id = plan.request_id.as_str().to_owned();
            let yes = Payload::PlanApprovalResponse(PlanApprovalResponse {
                request_id: plan.request_id,
                approved: true,
                feedback: None,
                timestamp: iso8601(now()),
                permission_mode: Some("default".to_owned()),
            });
            Some((from, id, policy.plans, yes))
        }
        Payload::PermissionRequest(asked) => {
            let id = asked.request_id.as_str().to_owned();
            let response = Granted { updated_input: asked.input, permission_updates: Vec::new() };
            let outcome = PermissionOutcome::Success { response };
            let yes = PermissionResponse { request_id: asked.request_id, outcome };
            Some((from, id, policy.permissions, Payload::PermissionResponse(yes)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::TeamConfig;
    use store::{Durability, Root};

    fn team(dir: &std::path::Path) -> Team {
        let root = Root::open(&dir.join("r"), &dir.join("aside"), Durability::Process).unwrap();
        let config = r#"{"name":"t","members":[{"name":"team-lead"},{"name":"ann"}]}"#;
        let team = root.create_team(&TeamConfig::parse(config).unwrap()).unwrap();
        let ask = |text: &str| {
            let message = Message::new(&AgentName::foreign("ann"), text.to_owned(), 1);
            team.inbox(&AgentName::lead()).append(&message).unwrap();
        };
        ask(r#"{"type":"plan_approval_request","from":"ann","planContent":"p","requestId":"plan-1"}"#);
        ask(
            r#"{"type":"permission_request","request_id":"perm-1","agent_id":"ann","tool_name":"Bash","input":{"command":"ls"}}"#,
        );
        ask("hello");
        team
    }

    #[test]
    fn a_yes_is_given_once_and_the_question_is_read_then() {
        let dir = tempfile::tempdir().unwrap();
        let team = team(dir.path());
        let policy = Policy { plans: Who::Auto, permissions: Who::Auto, ..Policy::default() };
        let mut requests = Requests::default();
        assert_eq!(requests.answer(&team, &policy).unwrap().len(), 2);
        assert_eq!(requests.answer(&team, &policy).unwrap().len(), 0);
        let texts: Vec<_> = team.inbox(&AgentName::foreign("ann")).read().unwrap();
        let texts: Vec<_> = texts.iter().filter_map(|entry| Payload::parse(&entry.unread()?.text)).collect();
        let [Payload::PlanApprovalResponse(plan), Payload::PermissionResponse(permission)] = texts.as_slice()
        else {
            panic!("{texts:?}")
        };
        assert!(plan.approved && plan.permission_mode.as_deref() == Some("default"));
        assert!(permission.to_owned().request_id.as_str() == "perm-1");
        let open = team.inbox(&AgentName::lead()).read().unwrap();
        assert_eq!(
            open.iter().filter_map(|entry| entry.unread()).count(),
            1,
            "the letter is nobody's question"
        );
    }

    #[test]
    fn what_a_person_is_to_answer_is_told_once_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let team = team(dir.path());
        let mut requests = Requests::default();
        assert_eq!(requests.answer(&team, &Policy::default()).unwrap().len(), 2);
        let later = Message::new(&AgentName::foreign("ann"), "more".to_owned(), 1);
        team.inbox(&AgentName::lead()).append(&later).unwrap();
        assert_eq!(requests.answer(&team, &Policy::default()).unwrap().len(), 0);
        assert!(team.inbox(&AgentName::foreign("ann")).read().unwrap().is_empty());
    }
}

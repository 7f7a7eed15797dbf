//! Questions for permission of an agent in its turn: the lead is asked, and what it answers goes back. Whoever
//! answers, a person, the lead's program or a rule of the team's, does so by a message in the agent's inbox.

use super::patience::LOOK_AGAIN;
use super::{Host, Teammate};
use crate::here::now;
use protocol::capabilities::is_changed_input;
use protocol::driver_protocol::{PermissionAnswer, PermissionQuestion};
use protocol::id::{RequestId, UniqueMillis};
use protocol::payload::{
    Payload, PermissionGrant, PermissionOutcome, PermissionRequest, PermissionRule, PermissionUpdate,
};
use protocol::policy::is_text_key;
use serde_json::Value;
use std::time::Instant;
use store::MESSAGE_LIMIT;
use uuid::Uuid;

/// Two questions in one millisecond are two.
static MOMENTS: UniqueMillis = UniqueMillis::new();

/// What an agent hears that asks for too much at once.
const TOO_LARGE: &str = "the question is too large to be asked: do it in smaller pieces";
/// So much of each text that a tool would write is shown, bytes: as much as fits.
const SHOWN: [usize; 3] = [16 << 10, 2 << 10, 256];

/// One that waits.
#[derive(Debug)]
pub(super) struct Question {
    ask: u64,
    request: PermissionRequest,
    /// It stands in the lead's inbox.
    told: bool,
}

impl<H: Host> Teammate<H> {
    /// One that no message can hold is answered with no: else its turn would wait for ever.
    pub(super) fn ask(&mut self, asked: PermissionQuestion) {
        let ask = asked.id;
        match Question::new(asked, self.post.me().as_str()).fitting() {
            Some(question) => {
                self.questions.push(question);
                self.tell_questions();
            }
            None => self.host.answer(ask, PermissionAnswer::Deny { reason: TOO_LARGE.to_owned() }),
        }
    }

    /// When to try again to tell what could not be told.
    pub(super) fn ask_again(&self) -> Option<Instant> {
        self.questions.iter().any(|question| !question.told).then(|| Instant::now() + LOOK_AGAIN)
    }

    pub(super) fn tell_questions(&mut self) {
        for at in 0..self.questions.len() {
            if !self.questions[at].told {
                match self.post.ask(&self.questions[at].request) {
                    Ok(()) => self.questions[at].told = true,
                    Err(fault) => self.complain(&fault),
                }
            }
        }
    }

    /// Its turn is over: what nobody has answered by now needs no answer.
    pub(super) fn withdraw_questions(&mut self) {
        let questions = std::mem::take(&mut self.questions);
        let told = questions.iter().filter(|question| question.told);
        let ids: Vec<RequestId> = told.map(|question| question.request.request_id.clone()).collect();
        if let Err(fault) = self.post.take_back(&ids) {
            self.complain(&fault);
        }
    }

    pub(super) fn hear_answers(&mut self) {
        if self.questions.is_empty() {
            return;
        }
        let answers = self.post.permissions().unwrap_or_else(|fault| {
            self.complain(&fault);
            Vec::new()
        });
        for (entry, answer) in answers {
            let is = |question: &Question| question.request.request_id == answer.request_id;
            let Some(at) = self.questions.iter().position(is) else { continue };
            let question = self.questions.remove(at);
            self.host.answer(question.ask, verdict(&question.request, answer.outcome));
            if let Err(fault) = self.post.mark(vec![entry]) {
                self.complain(&fault);
            }
        }
    }
}

impl Question {
    fn new(asked: PermissionQuestion, me: &str) -> Question {
        let (suffix, _) = Uuid::new_v4().as_u64_pair();
        let rule = PermissionRule { tool_name: asked.tool_name.clone(), rule_content: None };
        let always = PermissionUpdate::AddRules {
            rules: vec![rule],
            behavior: "allow".to_owned(),
            destination: "session".to_owned(),
        };
        let request = PermissionRequest {
            request_id: RequestId::permission(MOMENTS.next(now()), suffix),
            agent_id: me.to_owned(),
            tool_name: asked.tool_name,
            tool_use_id: asked.call_id,
            description: asked.title,
            input: asked.input,
            permission_suggestions: if asked.can_allow_always { vec![always] } else { Vec::new() },
        };
        Question { ask: asked.id, request, told: false }
    }

    /// As it can be told. What a tool would write is cut where it must be, and says so; what it does is not: a rule would
    /// judge half of it.
    fn fitting(mut self) -> Option<Question> {
        let fits = |request: &PermissionRequest| {
            Payload::PermissionRequest(request.clone()).to_text().len() <= MESSAGE_LIMIT
        };
        let whole = self.request.clone();
        let mut shown = SHOWN.iter();
        while !fits(&self.request) {
            let length = *shown.next()?;
            self.request.input = shortened(&whole.input, length, false);
            self.request.description = cut(&whole.description, length);
        }
        Some(self)
    }
}

/// The input with no more than `length` bytes of each text in it.
fn shortened(value: &Value, length: usize, text: bool) -> Value {
    match value {
        Value::String(long) if text => Value::String(cut(long, length)),
        Value::Array(elements) => elements.iter().map(|element| shortened(element, length, false)).collect(),
        Value::Object(fields) => {
            let short =
                |(key, value): (&String, &Value)| (key.clone(), shortened(value, length, is_text_key(key)));
            Value::Object(fields.iter().map(short).collect())
        }
        other => other.clone(),
    }
}

/// Its beginning and its end, with a word on what is missing in between.
fn cut(text: &str, length: usize) -> String {
    if text.len() <= length {
        return text.to_owned();
    }
    let on = |at: &usize| text.is_char_boundary(*at);
    let head = (0..=length / 2).rev().find(on).unwrap_or(0);
    let tail = (text.len() - length / 2..text.len()).find(on).unwrap_or(text.len());
    format!("{}\n[… {} bytes are not shown …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// What the agent hears. It can't be given another input than its own: to let it go on with that one would be no
/// answer to what was asked.
fn verdict(request: &PermissionRequest, outcome: PermissionOutcome) -> PermissionAnswer {
    match outcome {
        PermissionOutcome::Error { error } => PermissionAnswer::Deny { reason: error },
        PermissionOutcome::Success { response }
            if is_changed_input(&request.input, &response.updated_input) =>
        {
            PermissionAnswer::Deny {
                reason: format!("it is allowed with this input alone: {}", response.updated_input),
            }
        }
        PermissionOutcome::Success { response } if allows(&response, &request.tool_name) => {
            PermissionAnswer::AllowAlways
        }
        PermissionOutcome::Success { .. } => PermissionAnswer::AllowOnce,
    }
}

/// Whether the tool is allowed from now on. A rule with a content is narrower than what the agent would make of it.
fn allows(granted: &PermissionGrant, tool: &str) -> bool {
    granted.permission_updates.iter().any(|update| match update {
        PermissionUpdate::AddRules { rules, behavior, .. } if behavior == "allow" => {
            rules.iter().any(|rule| rule.tool_name == tool && rule.rule_content.is_none())
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question() -> PermissionRequest {
        let asked = PermissionQuestion {
            id: 1,
            tool_name: "Bash".into(),
            call_id: "c1".into(),
            title: "ls".into(),
            input: json!({"command": "ls"}),
            can_allow_always: true,
        };
        Question::new(asked, "ann").request
    }

    #[test]
    fn of_a_long_question_what_is_written_is_cut_and_nothing_else() {
        let fitting = |input: Value| {
            let asked = PermissionQuestion {
                id: 1,
                tool_name: "Edit".into(),
                call_id: "c1".into(),
                title: "é".repeat(9),
                input,
                can_allow_always: false,
            };
            Question::new(asked, "ann").fitting().map(|question| question.request.input)
        };
        let long = "é".repeat(150 << 10);
        let path = "p".repeat(20 << 10);
        let cut =
            fitting(json!({"file_path": path, "edits": [{"old_string": long, "new_string": long}]})).unwrap();
        assert_eq!(cut["file_path"], path);
        let shown = cut["edits"][0]["new_string"].as_str().unwrap();
        assert!(
            shown.len() < 20 << 10 && shown.contains("290816 bytes are not shown"),
            "{}",
            &shown[8190..8250]
        );
        assert_eq!(fitting(json!({"content": "x"})), Some(json!({"content": "x"})));
        assert_eq!(fitting(json!({"command": long})), None, "nobody can judge half a command");
    }

    fn answer(response: &Value) -> PermissionAnswer {
        let outcome = json!({"subtype": "success", "response": response});
        verdict(&question(), serde_json::from_value(outcome).unwrap())
    }

    #[test]
    fn a_question_says_who_and_what_and_offers_a_rule() {
        let question = question();
        assert_eq!((question.agent_id.as_str(), question.tool_name.as_str()), ("ann", "Bash"));
        assert_eq!((question.tool_use_id.as_str(), question.description.as_str()), ("c1", "ls"));
        assert!(question.request_id.as_str().starts_with("perm-"));
        assert_eq!(
            serde_json::to_value(&question.permission_suggestions).unwrap(),
            json!([{"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "session"}])
        );
    }

    #[test]
    fn no_answer_grants_more_than_it_says() {
        let rule = |tool: &str, content: Value| {
            json!({"type": "addRules", "behavior": "allow", "destination": "session",
                "rules": [{"toolName": tool, "ruleContent": content}]})
        };
        assert_eq!(answer(&json!({"updated_input": {"command": "ls"}})), PermissionAnswer::AllowOnce);
        assert_eq!(answer(&json!({})), PermissionAnswer::AllowOnce);
        assert_eq!(
            answer(&json!({"permission_updates": [rule("Bash", Value::Null)]})),
            PermissionAnswer::AllowAlways
        );
        assert_eq!(
            answer(&json!({"permission_updates": [rule("Bash", json!("ls:*"))]})),
            PermissionAnswer::AllowOnce
        );
        assert_eq!(
            answer(&json!({"permission_updates": [rule("Edit", Value::Null)]})),
            PermissionAnswer::AllowOnce
        );
        let changed = answer(&json!({"updated_input": {"command": "ls -l"}}));
        assert!(matches!(changed, PermissionAnswer::Deny { reason: why } if why.contains("ls -l")));
        let no = PermissionOutcome::Error { error: "no".into() };
        assert_eq!(verdict(&question(), no), PermissionAnswer::Deny { reason: "no".into() });
    }
}

//! Which answers the program of a member can follow, as far as the daemon's roster tells. A capability that the
//! roster does not tell is unknown, and no answer is refused because of it.

use crate::delivery::Delivery;
use crate::member_request::{Answer, MemberRequest};
use crate::permission_mode::PermissionMode;
use serde_json::{Map, Value};

/// What the program of one member can follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The permission modes in which it could carry out a plan; none: not known.
    modes: Option<Vec<String>>,
    /// It can't be given another input for a tool than its own.
    input_is_fixed: bool,
}

/// Why an answer can't be followed, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedAnswer {
    /// Completes "cannot answer … like that: ".
    pub reason: String,
    /// What can be done.
    pub help: String,
}

impl Capabilities {
    /// Those of a program that gets its messages by `delivery` and can carry out a plan in `modes`; empty: not known.
    pub(crate) fn new(delivery: Delivery, modes: Vec<String>) -> Capabilities {
        Capabilities {
            modes: Some(modes).filter(|modes| !modes.is_empty()),
            input_is_fixed: delivery == Delivery::Acp,
        }
    }

    /// Whether it could not follow that answer.
    pub fn check_answer(&self, asked: &MemberRequest, answer: &Answer) -> Option<UnsupportedAnswer> {
        let Answer::Approve(yes) = answer else { return None };
        match asked {
            MemberRequest::Plan(plan) => {
                let mode = yes.mode.filter(|mode| self.supported_mode(*mode) != *mode)?;
                let why = format!("the program of {} has no mode {mode}", plan.from);
                Some(UnsupportedAnswer { reason: why, help: format!("it has: {}", self.mode_list()) })
            }
            MemberRequest::Permission(request) => {
                let other = yes.input.as_ref().filter(|input| is_changed_input(&request.input, input));
                other.filter(|_| self.input_is_fixed).map(|_| UnsupportedAnswer {
                    reason: format!("the program of {} takes no other input than its own", request.agent_id),
                    help: "approve it as it stands, or say what to do instead: teamctl deny ID --reason R"
                        .to_owned(),
                })
            }
        }
    }

    /// The mode in which it carries out a plan that was approved in this one.
    pub fn supported_mode(&self, mode: PermissionMode) -> PermissionMode {
        let has = |modes: &Vec<String>| modes.iter().any(|known| known == mode.as_str());
        if self.modes.as_ref().is_none_or(has) { mode } else { PermissionMode::Default }
    }

    fn mode_list(&self) -> String {
        let named = self.modes.iter().flatten().map(String::as_str);
        let named = named.filter(|mode| !["plan", "default"].contains(mode));
        std::iter::once("default").chain(named).collect::<Vec<_>>().join(", ")
    }
}

/// An input that says nothing leaves the request's own.
pub fn is_changed_input(input: &Value, given: &Value) -> bool {
    let none = given.is_null() || given.as_object().is_some_and(Map::is_empty);
    !none && input != given
}

//! Checks whether a member's program supports an answer to the member's request, such as an
//! approval with a changed tool input.
//!
//! The capabilities of a program come from the daemon's roster. A capability that the roster does
//! not record is unknown, and an unknown capability never makes an answer invalid.

use crate::delivery_kind::Delivery;
use crate::member_request::{Answer, MemberRequest};
use crate::permission_mode::PermissionMode;
use serde_json::{Map, Value};

/// Capabilities of one member's program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Names of the permission modes in which the program can carry out a plan. `None` if unknown.
    modes: Option<Vec<String>>,
    /// Whether the program can run a tool only with the input that the program itself requested.
    input_is_fixed: bool,
}

/// Why a program cannot carry out an answer, as texts for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedAnswer {
    /// The reason; completes the sentence "cannot answer … like that: ".
    pub reason: String,
    /// What the person can do instead.
    pub help: String,
}

impl Capabilities {
    /// Capabilities of a program with the delivery `delivery`. The program can carry out a plan in
    /// the permission modes `modes`. If `modes` is empty, the modes are unknown.
    pub(crate) fn new(delivery: Delivery, modes: Vec<String>) -> Capabilities {
        Capabilities {
            modes: Some(modes).filter(|modes| !modes.is_empty()),
            input_is_fixed: delivery == Delivery::Acp,
        }
    }

    /// Returns why the program cannot carry out `answer` to `request`. `None` if it can.
    pub fn check_answer(&self, request: &MemberRequest, answer: &Answer) -> Option<UnsupportedAnswer> {
        let Answer::Approve(approval) = answer else { return None };
        match request {
            MemberRequest::Plan(plan) => {
                let mode = approval.mode.filter(|mode| self.supported_mode(*mode) != *mode)?;
                let reason = format!("the program of {} has no mode {mode}", plan.from);
                Some(UnsupportedAnswer { reason, help: format!("it has: {}", self.mode_list()) })
            }
            MemberRequest::Permission(request) => {
                let other = approval.input.as_ref().filter(|input| is_changed_input(&request.input, input));
                other.filter(|_| self.input_is_fixed).map(|_| UnsupportedAnswer {
                    reason: format!("the program of {} takes no other input than its own", request.agent_id),
                    help: "approve it unchanged, or say what to do instead: teamctl deny ID --reason TEXT"
                        .to_owned(),
                })
            }
        }
    }

    /// The permission mode in which the program carries out its approved plan. This is the approved
    /// mode `mode`, or `default` if the program is known not to support `mode`.
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

/// Whether an approval changes the tool's input. `input` is the input in the request, and `given`
/// is the input in the approval. If `given` is null or an empty object, the tool gets the request's
/// input.
pub fn is_changed_input(input: &Value, given: &Value) -> bool {
    let is_empty = given.is_null() || given.as_object().is_some_and(Map::is_empty);
    !is_empty && input != given
}

//! What an agent in plan mode is told ahead of its work.

/// For an agent whose reply at the end of a turn is its plan.
pub const PLAN_PROMPT: &str = "You are in plan mode: read what you need, and change nothing. End with your plan; \
     it is carried out once it is approved.";

/// For an agent whose reply is not known, so that it hands in the plan itself.
pub const SUBMIT_PLAN_PROMPT: &str = "You are in plan mode: read what you need, and change nothing. Hand in your plan with \
     `teamctl plan FILE`, or `teamctl plan -` and the text on its standard input; it is carried out once it is approved.";

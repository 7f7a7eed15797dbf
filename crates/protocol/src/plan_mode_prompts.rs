//! Prompts for an agent in plan mode, placed before the text of its task.

/// For an agent whose final reply is submitted as its plan.
pub const PLAN_PROMPT: &str = "You are in plan mode: read what you need, and change nothing. End with your plan; \
     it is carried out once it is approved.";

/// For an agent whose replies are unknown to teamd. The agent submits its plan itself.
pub const SUBMIT_PLAN_PROMPT: &str = "You are in plan mode: read what you need, and change nothing. Submit your plan with \
     `teamctl submit-plan FILE`, or `teamctl submit-plan -` and the text on its standard input; it is carried out once it is approved.";

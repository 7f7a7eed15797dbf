//! The attacks that were tried, and what happened at each.

use harness::CommandOutput;
use serde_json::Value;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The exit code of a command that the caller may not run.
pub(crate) const NOT_PERMITTED: i32 = 77;

/// What happened at an attack, in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AttackOutcome {
    Held(String),
    GotThrough(String),
    /// This machine lacks what the attack needs.
    Skipped(String),
    /// teamd does not defend against it, and its documentation says so.
    OutOfScope(String),
}

impl AttackOutcome {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            AttackOutcome::Held(text) => ("held", text),
            AttackOutcome::GotThrough(text) => ("GOT THROUGH", text),
            AttackOutcome::Skipped(text) => ("skipped", text),
            AttackOutcome::OutOfScope(text) => ("out of scope", text),
        }
    }
}

/// One attack: its group, what was tried, and what happened.
#[derive(Debug)]
struct Attack {
    group: &'static str,
    tried: String,
    outcome: AttackOutcome,
}

/// The attacks of all groups, in the order in which they were tried.
#[derive(Debug, Default)]
pub(crate) struct AttackLog {
    /// The group whose attacks are tried now.
    group: &'static str,
    attacks: Vec<Attack>,
}

impl AttackLog {
    /// Tries all attacks of a group. If the group panics, its remaining attacks are not judged,
    /// which counts as a success of the attacker.
    pub(crate) fn run_group(&mut self, group: &'static str, attack: fn(&mut AttackLog)) {
        self.group = group;
        let panicked = catch_unwind(AssertUnwindSafe(|| attack(self))).is_err();
        if panicked {
            self.record("the rest of this group", Err("the test panicked, see above".to_owned()));
        }
    }

    /// Records an attack: `Ok` with what stopped it, or `Err` with what the attacker achieved.
    pub(crate) fn record(&mut self, tried: impl Into<String>, outcome: Result<String, String>) {
        let outcome = match outcome {
            Ok(text) => AttackOutcome::Held(text),
            Err(text) => AttackOutcome::GotThrough(text),
        };
        self.push(tried.into(), outcome);
    }

    /// Records a command that must fail with one of the exit codes.
    pub(crate) fn record_command(&mut self, tried: impl Into<String>, output: &CommandOutput, codes: &[i32]) {
        self.record(tried, check_refused(output, codes));
    }

    /// Records a call on the control socket that must fail, for whatever reason.
    pub(crate) fn record_reply(&mut self, tried: impl Into<String>, reply: &Value) {
        let shown = format!("{:.200}", reply.to_string());
        self.record(tried, if reply["done"].is_null() { Ok(shown) } else { Err(shown) });
    }

    /// Records a call on the control socket that the caller may not make.
    pub(crate) fn record_denial(&mut self, tried: impl Into<String>, reply: &Value) {
        let error = &reply["failed"];
        let is_denied = error["kind"] == "not_permitted";
        self.record(tried, if is_denied { Ok(error["message"].to_string()) } else { Err(reply.to_string()) });
    }

    /// Records a call of an MCP tool that must return an error.
    pub(crate) fn record_tool(&mut self, tried: impl Into<String>, result: Result<Value, String>) {
        self.record(tried, result.map_or_else(Ok, |result| Err(result.to_string())));
    }

    /// Records attacks after which something must be as expected.
    pub(crate) fn record_state<T>(&mut self, tried: impl Into<String>, found: T, expected: T)
    where
        T: PartialEq + fmt::Debug,
    {
        let shown = format!("{found:?}");
        self.record(tried, if found == expected { Ok(shown) } else { Err(shown) });
    }

    /// Records an attempt to take something that is limited.
    pub(crate) fn record_amount(&mut self, tried: impl Into<String>, amount: u64, limit: u64, unit: &str) {
        let shown = format!("{amount} {unit} of {limit}");
        self.record(tried, if amount < limit { Ok(shown) } else { Err(shown) });
    }

    /// Records an attack that this machine cannot try.
    pub(crate) fn skip(&mut self, tried: impl Into<String>, reason: &str) {
        self.push(tried.into(), AttackOutcome::Skipped(reason.to_owned()));
    }

    /// Records an attack that teamd does not defend against.
    pub(crate) fn out_of_scope(&mut self, tried: impl Into<String>, reason: &str) {
        self.push(tried.into(), AttackOutcome::OutOfScope(reason.to_owned()));
    }

    fn push(&mut self, tried: String, outcome: AttackOutcome) {
        self.attacks.push(Attack { group: self.group, tried, outcome });
    }

    /// Whether any attack was tried or skipped.
    pub(crate) fn has_attacks(&self) -> bool {
        !self.attacks.is_empty()
    }

    /// The attacks that got through.
    pub(crate) fn successes(&self) -> Vec<String> {
        let is_success = |attack: &&Attack| matches!(attack.outcome, AttackOutcome::GotThrough(_));
        self.attacks.iter().filter(is_success).map(Attack::to_string).collect()
    }

    /// Records how many attacks teamd has stopped.
    pub(crate) fn record_result(&self) {
        let held = self.attacks.iter().filter(|attack| matches!(attack.outcome, AttackOutcome::Held(_)));
        harness::record_result("attacks", held.count() as u64);
    }
}

/// Checks that a command has failed with one of the exit codes. Returns the first line of its
/// error.
pub(crate) fn check_refused(output: &CommandOutput, codes: &[i32]) -> Result<String, String> {
    let error = output.stderr.lines().next().unwrap_or_default();
    let seen = format!("{}: {}", output.code, error.trim_start_matches("teamctl: "));
    if codes.contains(&output.code) { Ok(seen) } else { Err(format!("{seen} {}", output.stdout.trim())) }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outcome, happened) = self.outcome.parts();
        let line =
            |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        let (tried, happened) = (line(&self.tried), line(happened));
        write!(f, "{:24}  {outcome:12}  {tried:.90}: {happened:.160}", self.group)
    }
}

impl fmt::Display for AttackLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{} attacks", self.attacks.len())?;
        self.attacks.iter().try_for_each(|attack| writeln!(f, "{attack}"))?;
        for kind in ["held", "GOT THROUGH", "skipped", "out of scope"] {
            let count = self.attacks.iter().filter(|attack| attack.outcome.parts().0 == kind).count();
            write!(f, "{count} {kind}  ")?;
        }
        Ok(())
    }
}

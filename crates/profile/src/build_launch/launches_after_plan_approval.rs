//! Launches after a plan approval, for a program whose permission mode can only be set at its
//! start.
//!
//! After a plan approval the daemon respawns such a program in the mode that the approval names.
//! The command lines of that respawn are built when the member is first spawned, one for each mode.

use super::facts_for_template_variables::LaunchFacts;
use crate::profile::{DeliverySpec, Profile, ProfileKind, ProgramSpec};
use protocol::control_socket::LaunchArgv;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::permission_mode::PermissionMode;
use protocol::plan_mode_prompts::{PLAN_PROMPT, SUBMIT_PLAN_PROMPT};
use std::collections::BTreeMap;

/// The read-only permission mode in which an agent makes a plan.
pub(super) const PLAN: PermissionMode = PermissionMode::Plan;

/// The permission mode in which a plan is carried out if its approval names no mode, or names a
/// mode that the program does not have.
const DEFAULT: PermissionMode = PermissionMode::Default;

/// The first prompt of an agent that is respawned, after an unexpected end, in its old session.
const RESPAWN_PROMPT: &str =
    "You were started again, since you had ended without being asked to. Go on with what you were doing.";

impl Profile {
    /// Builds the command lines with which the daemon respawns the member after its plan was
    /// approved. There is one for each permission mode that the approval can name. The map is empty
    /// if the member does not start in plan mode, or if its program can leave plan mode without a
    /// respawn.
    ///
    /// # Errors
    ///
    /// `Usage` if the member starts in plan mode and its profile lacks the mode `plan` or
    /// `default`.
    pub(crate) fn launches_after_approval(
        &self,
        facts: &LaunchFacts<'_>,
    ) -> Result<BTreeMap<String, LaunchArgv>, ErrorReport> {
        let ProfileKind::Program(program) = &self.kind else { return Ok(BTreeMap::new()) };
        if facts.mode != Some(PLAN)
            || matches!(program.delivery, DeliverySpec::Native { .. } | DeliverySpec::Turn(_))
        {
            return Ok(BTreeMap::new());
        }
        let modes = match &program.delivery {
            DeliverySpec::Acp { modes, .. } => modes.keys().collect::<Vec<_>>(),
            _ => program.modes.keys().collect(),
        };
        if let Some(missing) =
            [PLAN, DEFAULT].into_iter().find(|wanted| !modes.iter().any(|mode| *mode == wanted.as_str()))
        {
            return Err(self.plan_mode_unsupported(program, missing));
        }
        if matches!(program.delivery, DeliverySpec::Acp { .. }) {
            return Ok(BTreeMap::new());
        }
        let launch_in = |name: &String| {
            let mode = name.parse().ok().filter(|mode| *mode != PLAN)?;
            let facts = LaunchFacts { mode: Some(mode), is_plan_approved: true, ..*facts };
            // A mode is left out if no command line can be built for it. For example, a read-only
            // agent type has no command line for a mode that writes.
            let launch = self.build_single_launch(&facts).ok()?;
            Some((name.clone(), LaunchArgv { argv: launch.argv, resume_argv: launch.resume_argv }))
        };
        Ok(modes.into_iter().filter_map(launch_in).collect())
    }

    /// The text that tells a member in plan mode to make a plan. It is put before the member's
    /// first prompt. Empty if the member has no prompt, or is not in plan mode.
    ///
    /// # Errors
    ///
    /// `Usage` if a member in plan mode has no prompt and its program has hooks. The first turn of
    /// this program starts at once, and its hook submits the program's reply as the plan. So the
    /// program must get a prompt that says what to plan.
    pub(crate) fn plan_instructions(
        &self,
        program: &ProgramSpec,
        facts: &LaunchFacts<'_>,
    ) -> Result<String, ErrorReport> {
        match &program.delivery {
            _ if facts.mode != Some(PLAN) => Ok(String::new()),
            DeliverySpec::Hook { .. } if facts.prompt.is_empty() => {
                let message = format!(
                    "cannot start {} in the mode plan without a prompt: it begins with a turn",
                    self.name
                );
                Err(ErrorReport::new(ErrorKind::Usage, message)
                    .with_help("say what it is to plan: --prompt P"))
            }
            DeliverySpec::Hook { .. } => Ok(PLAN_PROMPT.to_owned()),
            _ if facts.prompt.is_empty() => Ok(String::new()),
            _ => Ok(SUBMIT_PLAN_PROMPT.to_owned()),
        }
    }

    /// The error for a profile that lacks the mode `missing`. A profile needs both the plan mode
    /// and a mode for carrying out the plan: otherwise the member could never leave plan mode.
    fn plan_mode_unsupported(&self, program: &ProgramSpec, missing: PermissionMode) -> ErrorReport {
        let table =
            if matches!(program.delivery, DeliverySpec::Acp { .. }) { "session_modes" } else { "modes" };
        let message =
            format!("cannot start {} in the mode plan: its profile has no {missing} in `{table}`", self.name);
        ErrorReport::new(ErrorKind::Usage, message)
            .with_help("it needs a mode that only reads, plan, and one to carry its plan out in, default: docs/agents.md")
    }
}

/// The first prompt of a spawn that resumes the session of the previous one.
pub(super) fn resume_prompt(facts: &LaunchFacts<'_>) -> String {
    match (facts.is_plan_approved, facts.mode) {
        (true, mode) => format!(
            "Your plan is approved. You were started again for it, in the permission mode {}. Carry it out; if you have \
             begun with that already, go on.",
            mode.unwrap_or(DEFAULT)
        ),
        (false, Some(PLAN)) => format!("{RESPAWN_PROMPT} {PLAN_PROMPT}"),
        (false, _) => RESPAWN_PROMPT.to_owned(),
    }
}

/// The first prompt of a member that is started again after its plan was approved. It is used if
/// the member cannot resume the session in which it made the plan.
pub(super) fn approval_pending_prompt(facts: &LaunchFacts<'_>) -> String {
    format!(
        "You submitted a plan earlier, and it is approved. You were started again to carry it out, in the permission \
         mode {}. The plan comes to you as a message when you end this turn; you can also read it with `teamctl inbox`. \
         Now say in one word that you are ready.",
        facts.mode.unwrap_or(DEFAULT)
    )
}

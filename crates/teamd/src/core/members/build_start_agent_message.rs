//! Builds the message that tells a shim to start its agent. The message has the directory, the
//! environment and the command line. Only the daemon knows some values in the command line.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::pane_labels::color_name;
use crate::core::roster::agent_record::AgentRecord;
use crate::core::state::core_state::State;
use protocol::control_socket::{Backend, PlanStage, StartAgent, TurnSetup};
use protocol::deferred_template_variables;
use protocol::worker_or_program_that_runs_turns::TurnProgram;

/// The message by which the shim learns what to run.
pub(super) fn start_agent_message(state: &State, spawn: &SpawnId, lead_session: &str) -> Option<StartAgent> {
    let agent = state.agents.get(spawn).filter(|agent| agent.record.lifecycle.is_starting())?;
    let record = &agent.record;
    let request = &record.request;
    let mut env = request.env.clone();
    env.extend(agent_variables(state, record));
    if let (Some(path), Some(programs)) = (env.get_mut("PATH"), state.settings.teamctl_program.parent()) {
        append_to_path(path, &programs.to_string_lossy());
    }
    let turn_setup = turn_program(record).map(|program| TurnSetup {
        program,
        root: state.settings.root.clone(),
        team: request.team.clone(),
        name: request.name.clone(),
        color: record.color,
        // The first spawn of the member has got the prompt already.
        prompt: if record.is_respawn() { String::new() } else { request.prompt.clone() },
        is_respawn: record.is_respawn(),
        session_id: record.respawn.session.clone(),
        mode: record.turn_mode(),
        plan_stage: initial_plan_stage(record),
        limit_patterns: request.limit_patterns.clone(),
    });
    Some(StartAgent {
        argv: launch_argv(record, lead_session),
        cwd: request.cwd.clone(),
        env,
        state_dir: state.settings.state_dir.clone(),
        turn_setup: turn_setup.map(Box::new),
        iterm2_color: record.color.filter(|_| request.backend == Backend::Iterm2),
    })
}

/// Appends a directory to the value of `PATH`, unless `PATH` has it already. So agents find
/// `teamctl` even if the caller has a short `PATH`, as in a cron job.
fn append_to_path(path: &mut String, directory: &str) {
    let can_be_added = !directory.is_empty() && !directory.contains(':');
    if can_be_added && path.split(':').all(|entry| entry != directory) {
        path.push(':');
        path.push_str(directory);
    }
}

/// What the shim runs for each turn of the agent. `None` if the shim does not run the agent's
/// turns. If an earlier spawn of the member has switched to another permission mode, a program with
/// a driver (`teamd-acp`) starts in that mode.
fn turn_program(record: &AgentRecord) -> Option<TurnProgram> {
    let mut program = record.request.turns.clone()?;
    let changed_mode = record.respawn.mode.filter(|mode| record.request.mode != Some(*mode));
    if let (TurnProgram::Driven(driven), Some(mode)) = (&mut program, changed_mode) {
        let mode_id = driven.mode_ids.get(mode.as_str()).cloned();
        driven.initial_mode = mode_id.or_else(|| driven.initial_mode.take());
    }
    Some(program)
}

/// The command line of the agent, with its deferred variables (such as `{session}`) filled in. A
/// respawn resumes the session of the previous spawn, if there is one.
fn launch_argv(record: &AgentRecord, lead_session: &str) -> Vec<String> {
    let request = &record.request;
    let session = record.respawn.session.as_deref();
    let (first_argv, resume_launch) = match record.respawn.approved_launch(request) {
        Some(launch) => (&launch.argv, launch.resume_argv.as_ref()),
        None => (&request.argv, request.resume_argv.as_ref()),
    };
    let resume_launch = resume_launch.filter(|_| session.is_some() && record.is_respawn());
    if resume_launch.is_none() && !request.has_deferred_variables {
        return first_argv.clone();
    }
    let color = color_name(record);
    let variable_value = |variable: &str| match variable {
        "color" => Some(color.as_str()),
        "lead_session" => Some(lead_session),
        // A new session is named after the spawn that opens it.
        "session" => Some(session.unwrap_or(record.spawn_id.as_str())),
        _ => None,
    };
    let argv = resume_launch.map_or(first_argv, |resume_launch| &resume_launch.argv);
    argv.iter().map(|argument| deferred_template_variables::fill(argument, variable_value)).collect()
}

/// The stage of the member's plan at the start of this spawn. `None` for a member that does not
/// plan. A member that must plan starts in plan mode, also when it is respawned, as long as no plan
/// of it was approved.
fn initial_plan_stage(record: &AgentRecord) -> Option<PlanStage> {
    let plan = record.respawn.plan.clone();
    plan.or_else(|| record.awaits_plan_approval().then_some(PlanStage::Planning))
}

/// The environment variables that tell an agent about itself.
fn agent_variables(state: &State, record: &AgentRecord) -> Vec<(String, String)> {
    let variables = [
        ("TEAMD_ROOT", state.settings.root.to_string_lossy().into_owned()),
        ("TEAMD_SOCKET", state.settings.socket.to_string_lossy().into_owned()),
        ("TEAMD_TEAM", record.request.team.to_string()),
        ("TEAMD_MEMBER", record.request.name.to_string()),
        ("TEAMD_TOKEN", record.token.clone()),
        ("TEAMD_SPAWN", record.spawn_id.as_str().to_owned()),
    ];
    let branch = record.worktree.as_ref().map(|worktree| ("TEAMD_BRANCH", worktree.branch.clone()));
    variables.into_iter().chain(branch).map(|(key, value)| (key.to_owned(), value)).collect()
}

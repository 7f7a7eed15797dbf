//! Something changed in the files or in tmux. Events are hints: whoever may be concerned looks.

use crate::effect::Effect;
use crate::event::Now;
use crate::files::FileJob;
use crate::note::Note;
use crate::state::{Agent, Look, Phase, State, Stopping, Watch};
use protocol::control::Activity;
use protocol::fault::Fault;
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, TaskStatus};

/// Mail: its owner is woken. In the lead's inbox there may be an answer to a shutdown request.
pub(super) fn inbox(state: &mut State, team: &TeamName, inbox: &str, out: &mut Vec<Effect>) {
    let name = AgentName::foreign(inbox);
    if name.is_lead() {
        return answers(state, team, out);
    }
    if let Some(agent) = state.member(team, &name) {
        out.push(Effect::Wake { spawn: agent.record.spawn.clone() });
    }
}

fn answers(state: &State, team: &TeamName, out: &mut Vec<Effect>) {
    let asked = |agent: &&Agent| {
        agent.record.team == *team && matches!(agent.phase, Phase::Stopping(_, Stopping::Asked(_)))
    };
    let asked = state.agents.values().filter(asked);
    let requests: Vec<RequestId> = asked.flat_map(|agent| agent.record.asked.clone()).collect();
    if !requests.is_empty() {
        out.push(Effect::File(FileJob::Answers { team: team.clone(), requests }));
    }
}

/// A storm of changes becomes one look, and one more after it.
pub(super) fn tasks(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    let Some(known) = state.teams.get_mut(team) else { return };
    match known.looking {
        Look::Rest => {
            known.looking = Look::Looking;
            out.push(Effect::File(FileJob::Tasks { team: team.clone() }));
        }
        Look::Looking | Look::Again => known.looking = Look::Again,
    }
}

/// Wakes whoever may take what has just become available, and shows on the borders who does what.
pub(super) fn seen_tasks(
    state: &mut State,
    team: &TeamName,
    result: Result<Vec<Task>, Fault>,
    out: &mut Vec<Effect>,
) {
    let Some(known) = state.teams.get_mut(team) else { return };
    let again = std::mem::take(&mut known.looking) == Look::Again;
    match result {
        Err(fault) => out.push(Effect::Note(Note::team("tasks not read", team, fault.message))),
        Ok(tasks) => {
            // Also for what we saw before: somebody may have taken it and let it go between two looks.
            if tasks.iter().any(|task| task.startable(&tasks)) {
                wake_idle(state, team, out);
            }
            show_tasks(state, team, &tasks, out);
        }
    }
    if again {
        self::tasks(state, team, out);
    }
}

fn wake_idle(state: &State, team: &TeamName, out: &mut Vec<Effect>) {
    let idle = |agent: &&&Agent| agent.activity == Activity::Idle;
    let members = state.members(team);
    out.extend(members.iter().filter(idle).map(|agent| Effect::Wake { spawn: agent.record.spawn.clone() }));
}

fn show_tasks(state: &mut State, team: &TeamName, tasks: &[Task], out: &mut Vec<Effect>) {
    for agent in state.agents.values_mut().filter(|agent| agent.record.team == *team) {
        let mine = |task: &&Task| {
            task.status == TaskStatus::InProgress
                && !task.is_internal()
                && task.owner.as_ref().is_some_and(|owner| *owner == agent.record.name)
        };
        let task = tasks.iter().find(mine).map(|task| task.subject.clone());
        if agent.task != task {
            agent.task = task;
            out.extend(super::spawn::relabel(agent));
        }
    }
}

/// A foreign writer may have dropped a living member: it is put back.
pub(super) fn config(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    let living: Vec<_> = state
        .members(team)
        .into_iter()
        .filter(|agent| matches!(agent.phase, Phase::Running(_) | Phase::Stopping(..)))
        .map(|agent| agent.record.clone())
        .collect();
    if !living.is_empty() {
        out.push(Effect::File(FileJob::Repair { team: team.clone(), living }));
    }
}

/// Events arrive here, so the rescan need not be quick.
pub(super) fn watch_proven(state: &mut State, now: Now) {
    state.watch = Watch::Events;
    state.rescan_at = now.mono + state.watch.rescan_every();
}

/// The named rescan; also after the watcher lost events.
pub(super) fn everywhere(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    state.rescan_at = now.mono + state.watch.rescan_every();
    // A directory that was made anew needs a new watch; for the others it changes nothing.
    out.extend(state.teams.keys().map(|team| Effect::WatchTeam { team: team.clone() }));
    out.push(Effect::File(FileJob::Rescan { teams: state.teams.keys().cloned().collect() }));
    out.push(Effect::WatchLives);
    super::ending::file_again(state, out);
}

/// What a team may have done while no daemon looked.
pub(super) fn at_once(state: &mut State, out: &mut Vec<Effect>) {
    let teams: Vec<TeamName> = state.teams.keys().cloned().collect();
    for team in teams {
        tasks(state, &team, out);
        answers(state, &team, out);
        config(state, &team, out);
    }
}

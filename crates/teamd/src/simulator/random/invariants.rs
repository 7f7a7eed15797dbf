//! The invariants that the simulator checks: when an agent starts, when a simulation has become
//! idle, and at the end of a simulation.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::worktree_jobs::WorktreeCreation;
use crate::core::roster::agent_record::AgentRecord;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::core_state::State;
use crate::core::stop_and_exit_of_spawn::{StopStage, Stopping};
use crate::simulator::disk::SimulatedDisk;
use crate::simulator::random::conditions::RandomSimulation;
use crate::simulator::random::hooked_programs::ProgramState;
use crate::simulator::shim::{ShimStage, SimulatedShim};
use crate::simulator::team_files::SimulatedTeamFiles;
use crate::simulator::turn_agent_state::SimulatedTurnAgent;
use protocol::control_socket::ToShim;
use protocol::member_request::MemberRequestKind;
use protocol::policy::PolicyDecision;
use protocol::team_and_member_names::MemberName;
use std::collections::BTreeSet;

impl RandomSimulation {
    /// Checks an agent that starts: the roster on disk must contain its record, and the agent must
    /// be registered with its team. So if the daemon is killed now, the next daemon knows the
    /// agent.
    pub(super) fn check_agent_start(&mut self, pid: u32) {
        let shim = &self.shims[&pid];
        let record = self.disk.roster.records.iter().find(|record| record.spawn_id == shim.spawn);
        assert!(record.is_some(), "the agent of shim {pid} runs and is not in the roster");
        assert!(
            self.disk.registered.contains(&shim.spawn),
            "the agent of shim {pid} runs and was never registered"
        );
        self.check_prompt(shim);
        let Some(identity) = shim
            .identity
            .as_ref()
            .filter(|identity| self.conditions.planning_spawns.contains(&identity.spawn_request_id))
        else {
            return;
        };
        let is_planning = shim
            .turn_agent
            .as_ref()
            .map_or(identity.first_argument == "plan", |turn_agent| turn_agent.status.plan_stage.is_some());
        assert!(
            is_planning || self.conditions.approved_spawns.contains(&identity.spawn_request_id),
            "{} of {} does not plan",
            identity.name,
            identity.spawn_request_id
        );
    }

    /// Checks a simulation that has become idle: the processes, the core's state, the roster on
    /// disk and the team files agree, and every call has a reply.
    pub(super) fn check_idle(&self) {
        let daemon = self.daemon.as_ref().expect("a daemon runs");
        let is_long_poll = |client: &ConnId| {
            self.conditions
                .programs
                .values()
                .any(|program| program.state == ProgramState::LongPolling(*client))
        };
        let open: Vec<_> = self.clients.iter().filter(|(client, _)| !is_long_poll(client)).collect();
        assert!(open.is_empty(), "calls without a reply: {open:?}");
        let running: BTreeSet<_> = self.running_shims().map(|(_, shim)| shim.spawn.clone()).collect();
        let stuck: Vec<_> =
            self.shims.values().filter(|shim| shim.is_alive() && shim.agent_pid().is_none()).collect();
        assert!(stuck.is_empty(), "shims that neither run an agent nor exit: {stuck:?}");
        assert_eq!(running.len(), self.running_shims().count(), "two shims run the same spawn");
        let known_spawns: BTreeSet<_> = daemon.state.agents.keys().cloned().collect();
        assert_eq!(running, known_spawns, "left: running; right: known to the core");
        for agent in daemon.state.agents.values() {
            assert!(
                matches!(&agent.record.lifecycle, Lifecycle::Running(process) if process.conn.is_some()),
                "{agent:?}"
            );
        }
        let members: BTreeSet<_> = self
            .disk
            .teams
            .values()
            .flat_map(|team| team.members.values().map(|member| member.spawn_id.clone()))
            .collect();
        assert_eq!(members, running, "left: in config.json; right: running");
        let on_disk: BTreeSet<_> =
            self.disk.roster.records.iter().map(|record| record.spawn_id.clone()).collect();
        assert_eq!(on_disk, running, "left: the roster on disk; right: running");
        let is_dead = |pid: &u32| {
            self.shims[pid].stage == ShimStage::Dead && !self.conditions.killed_early.contains(pid)
        };
        let orphaned: Vec<u32> = self.shim_pids_of_panes().filter(is_dead).collect();
        assert!(orphaned.is_empty(), "open panes of dead shims: {orphaned:?}");
        self.check_worktrees();
        self.check_usage();
        self.check_nothing_waits();
        self.check_hidden_panes();
        assert!(daemon.state.exit_waiters.is_empty() && daemon.state.interrupt_waiters.is_empty());
        assert!(daemon.state.retry_cache.is_idle());
    }

    /// Checks that the usage that agents reported is counted exactly once.
    fn check_usage(&self) {
        let daemon = self.daemon.as_ref().expect("a daemon runs");
        for (_, shim) in self.running_shims() {
            let reported = shim.turn_agent.as_ref().and_then(|turn_agent| turn_agent.status.usage.as_ref());
            let counted = daemon.state.agents[&shim.spawn].record.usage();
            assert!(
                reported.is_none_or(|reported| reported.usage == counted),
                "{shim:?} reported {reported:?}, counted {counted:?}"
            );
        }
        let used: u64 = self.token_usage.values().sum();
        let counted: u64 = daemon.state.teams.values().map(|team| team.usage.usage.tokens).sum();
        assert!(counted <= used, "{counted} tokens are counted, {used} were used");
    }

    /// Checks that the roster on disk names every filled worktree.
    fn check_worktrees(&self) {
        let worktrees: Vec<_> =
            self.disk.roster.worktrees.values().flatten().map(|worktree| &worktree.record).collect();
        for worktree in self.disk.worktrees.present.values().filter(|worktree| worktree.is_filled) {
            assert!(worktrees.contains(&&worktree.record), "not in the roster: {:?}", worktree.record);
        }
    }

    /// Checks that a starting agent's inbox has its prompt, read or unread, if it was spawned with
    /// one.
    fn check_prompt(&self, shim: &SimulatedShim) {
        let mut records = self.disk.roster.records.iter().filter(|record| record.spawn_id == shim.spawn);
        if records.any(|record| record.request.prompt.is_empty()) {
            return;
        }
        let Some(identity) = shim.identity.as_ref() else { return };
        let Some(files) = self.disk.teams.get(&identity.team) else { return };
        let messages = files.inboxes.get(&identity.name).into_iter().flatten();
        let prompts = messages.filter(|message| message.from.is_lead() && message.payload.is_none());
        assert!(prompts.count() > 0, "{}@{} starts without a prompt", identity.name, identity.team);
    }

    /// Checks that no task is offered to two agents.
    pub(super) fn check_offers(&self) {
        let Some(daemon) = &self.daemon else { return };
        let mut offered = BTreeSet::new();
        for agent in daemon.state.agents.values() {
            let Some(task) = agent.offered_task else { continue };
            assert!(
                offered.insert((&agent.record.request.team, task)),
                "task {task} is offered to two agents"
            );
        }
    }

    /// Checks that no idle agent has an undelivered message or task, and that the policy has
    /// answered all member requests that it can answer.
    fn check_nothing_waits(&self) {
        for (pid, shim) in self.running_shims() {
            let (Some(identity), Some(turn_agent)) = (&shim.identity, &shim.turn_agent) else { continue };
            let files = self.disk.teams.get(&identity.team);
            let misses_work = files.is_some_and(|files| misses_work(turn_agent, files, &identity.name));
            assert!(
                !misses_work,
                "{}@{} is idle and misses work: {turn_agent:?} {pid}",
                identity.name, identity.team
            );
        }
        for (pid, program) in &self.conditions.programs {
            assert!(!self.misses_work(program), "the hook of {pid} waits and misses work: {program:?}");
            let is_agent = program.identity.is_some();
            assert!(
                !is_agent || matches!(program.state, ProgramState::LongPolling(_)),
                "no hook of {pid} waits: {program:?}"
            );
        }
        for (team, files) in &self.disk.teams {
            let timed_out = files.scan_requests().plans_timed_out_twice;
            for request in files.open_requests() {
                let needs_person =
                    matches!(files.policy.decide(&request.request, "/"), PolicyDecision::Ask(_));
                let waits_for_person =
                    request.request.kind() == MemberRequestKind::Plan && timed_out.contains(&request.from);
                let in_time = files.policy.timeout_decision().is_none()
                    || files.policy.answer_timeout_ms.is_none()
                    || waits_for_person;
                assert!(
                    needs_person && in_time,
                    "the policy of {team} does not answer {:?}",
                    request.request.id()
                );
            }
        }
    }

    /// Checks that tmux, the daemon and config.json agree on which panes are hidden.
    fn check_hidden_panes(&self) {
        let Some(daemon) = &self.daemon else { return };
        for (team, files) in &self.disk.teams {
            let hidden = daemon.state.members(team).into_iter().filter(|agent| agent.record.is_hidden);
            let known_panes: BTreeSet<String> =
                hidden.filter_map(|agent| Some(agent.record.pane.as_ref()?.id.clone())).collect();
            let recorded_panes: BTreeSet<String> = files.hidden_panes.iter().cloned().collect();
            assert_eq!(
                known_panes, recorded_panes,
                "left: hidden panes in the state of {team}; right: in its config.json"
            );
            let visible = known_panes.iter().find(|pane| {
                pane.trim_start_matches('%').parse().is_ok_and(|pane| !self.tmux.hidden.contains(&pane))
            });
            assert!(visible.is_none(), "{visible:?} is visible and recorded as hidden");
        }
    }

    /// Checks that nothing remains after all teams were deleted or the daemon was shut down.
    pub(super) fn check_empty(&self) {
        let alive: Vec<_> = self.shims.values().filter(|shim| shim.is_alive()).collect();
        assert!(alive.is_empty(), "shims that still run: {alive:?}");
        let is_open = |pid: &u32| !self.conditions.killed_early.contains(pid);
        let panes: Vec<_> = self.shim_pids_of_panes().filter(is_open).collect();
        assert!(panes.is_empty(), "panes that are still open: {panes:?}");
        assert!(self.disk.roster.records.is_empty());
        let pending_respawn =
            self.disk.roster.pending_respawns.iter().find(|pending| !pending.is_suspended());
        assert!(
            pending_respawn.is_none(),
            "a respawn is pending for a member that is not suspended: {pending_respawn:?}"
        );
        assert!(self.disk.teams.values().all(|team| team.members.is_empty()), "{:?}", self.disk.teams);
        assert!(
            self.clients.is_empty()
                || self.conditions.programs.values().any(|program| program.identity.is_none())
        );
    }

    /// The shims of the panes of the daemon.
    fn shim_pids_of_panes(&self) -> impl Iterator<Item = u32> {
        self.tmux.panes.values().flatten().map(|owner| owner.shim_pid)
    }

    /// Checks that an agent is ended only after the roster on disk says that the agent is being
    /// stopped. Otherwise, if the daemon were killed now, the next daemon would take the exit for a
    /// crash. After a failed write of the roster, nothing is checked.
    pub(super) fn check_stops_recorded(&self, effects: &[Effect]) {
        for effect in effects {
            let Effect::SendToShim { conn, message: ToShim::End { .. } } = effect else { continue };
            let Some(shim) = self.shims.values().find(|shim| shim.conn == Some(*conn)) else { continue };
            let is_stopping = |record: &AgentRecord| {
                record.spawn_id == shim.spawn
                    && matches!(
                        &record.lifecycle,
                        Lifecycle::Stopping(Stopping { stage: StopStage::Terminating { .. }, .. })
                    )
            };
            assert!(
                self.disk.is_roster_unsaved
                    || self.disk.roster.records.iter().any(|record| is_stopping(record)),
                "the agent of {shim:?} is ended before the roster says so"
            );
        }
    }

    /// Checks that the core saves the roster in each event that changes it.
    pub(super) fn check_roster_saved(&mut self, effects: &[Effect]) {
        let Some(daemon) = &self.daemon else { return };
        let (roster, saved) = (roster_text(&daemon.state), &self.conditions.saved_roster);
        let is_saved = effects.iter().any(|effect| matches!(effect, Effect::File(FileJob::SaveRoster(_))));
        assert!(is_saved || roster == *saved, "{roster}\nis not saved: {saved}");
        self.conditions.saved_roster = roster;
    }
}

/// Whether there is a message or task for which the agent should have started a turn.
fn misses_work(agent: &SimulatedTurnAgent, files: &SimulatedTeamFiles, name: &MemberName) -> bool {
    let task = || files.next_task(name, &agent.tasks_without_result);
    files.unread(name).next().is_some() || (!agent.awaits_answer() && task().is_some())
}

/// Checks that the roster on disk names a worktree before git fills it.
pub(super) fn check_worktree_recorded(disk: &SimulatedDisk, creation: &WorktreeCreation) {
    let record = &creation.proposal.record;
    let worktrees = disk.roster.worktrees.get(&creation.team).into_iter().flatten();
    let mut recorded = worktrees.filter(|worktree| worktree.member == creation.name);
    assert!(
        recorded.any(|worktree| worktree.record == *record),
        "git fills {}, which is not in the roster",
        record.path.display()
    );
}

/// Returns the roster as text. The simulator compares this text with an earlier one to find changes
/// that were not saved. The text lacks three values that may change without a save:
///
/// - the number of turns of a team, if the policy does not limit it;
/// - for such a team, how far the events of each annex were counted (the number of the last one);
/// - the id of a starting member's tracking task, an internal task that represents the member. If
///   the id was not saved, the daemon finds the task by its subject.
fn roster_text(state: &State) -> String {
    let mut roster = state.to_roster();
    let unlimited = state.teams.iter().filter(|(_, team_state)| team_state.policy.max_turns.is_none());
    for (team, _) in unlimited {
        roster.usage.entry(team.clone()).and_modify(|usage| {
            usage.turns = 0;
            usage.annexes.values_mut().for_each(|annex| annex.counted = 0);
        });
    }
    let starting = roster.records.iter_mut().filter(|record| record.lifecycle.is_starting());
    starting.for_each(|record| record.tracking_task = None);
    serde_json::to_string(&roster).expect("a roster is serializable")
}

//! What must hold: at each reply, at each start of an agent, and of a world that has come to rest.

use crate::core::id::ConnId;
use crate::core::lifecycle::Lifecycle;
use crate::simulator::hooked_programs::ProgramState;
use crate::simulator::shim::{ShimStage, SimulatedShim};
use crate::simulator::simulation::Simulation;
use crate::simulator::tmux::PaneOwner;
use protocol::member_request::MemberRequestKind;
use protocol::policy::PolicyDecision;
use std::collections::BTreeSet;

impl Simulation {
    /// No agent runs that is not registered: a daemon that began now would know it.
    pub(super) fn check_agent_start(&mut self, pid: u32) {
        let join = &self.shims[&pid];
        let record = self.disk.roster.records.iter().find(|record| record.spawn_id == join.spawn);
        assert!(record.is_some(), "the agent of join {pid} runs, and no roster knows it");
        assert!(
            self.disk.registered.contains(&join.spawn),
            "the agent of join {pid} runs, and was never on a team"
        );
        self.check_prompt(join);
        let Some(who) =
            join.identity.as_ref().filter(|who| self.planning_spawns.contains(&who.spawn_request_id))
        else {
            return;
        };
        let plans = join
            .turn_agent
            .as_ref()
            .map_or(who.first_argument == "plan", |turner| turner.status.plan_stage.is_some());
        assert!(
            plans || self.approved_spawns.contains(&who.spawn_request_id),
            "{} of {} does not plan",
            who.name,
            who.spawn_request_id
        );
    }

    /// Everybody has done what was to be done, and nothing fails any more.
    pub(super) fn check_at_rest(&self) {
        let daemon = self.daemon.as_ref().expect("a daemon lives");
        let parked =
            |client: &ConnId| self.programs.values().any(|it| it.state == ProgramState::LongPolling(*client));
        let unheard: Vec<_> = self.clients.iter().filter(|(client, _)| !parked(client)).collect();
        assert!(unheard.is_empty(), "nobody answers {unheard:?}");
        let running: BTreeSet<_> = self.running_shims().map(|(_, join)| join.spawn.clone()).collect();
        let half: Vec<_> =
            self.shims.values().filter(|join| join.is_alive() && join.agent_pid().is_none()).collect();
        assert!(half.is_empty(), "these neither run nor end: {half:?}");
        assert_eq!(running.len(), self.running_shims().count(), "a life is lived twice");
        let known: BTreeSet<_> = daemon.state.agents.keys().cloned().collect();
        assert_eq!(running, known, "left: who runs; right: who is known");
        for agent in daemon.state.agents.values() {
            assert!(matches!(&agent.lifecycle, Lifecycle::Running(link) if link.conn.is_some()), "{agent:?}");
        }
        let members: BTreeSet<_> = self
            .disk
            .teams
            .values()
            .flat_map(|team| team.members.values().map(|member| member.spawn_id.clone()))
            .collect();
        assert_eq!(members, running, "left: who is on a team; right: who runs");
        let on_disk: BTreeSet<_> =
            self.disk.roster.records.iter().map(|record| record.spawn_id.clone()).collect();
        assert_eq!(on_disk, running, "left: the roster on the disk; right: who runs");
        let ours = |whose: &PaneOwner| match whose {
            PaneOwner::Teamd(_, pid) => Some(*pid),
            PaneOwner::Foreign => None,
        };
        let dead = |pid: &u32| self.shims[pid].stage == ShimStage::Dead && !self.shims[pid].was_killed_early;
        let left: Vec<u32> = self.tmux.panes.values().filter_map(ours).filter(dead).collect();
        assert!(left.is_empty(), "panes of ours in which nothing runs, once of {left:?}");
        self.check_worktrees();
        self.check_usage();
        self.check_nothing_waits();
        self.check_hidden_panes();
        assert!(daemon.state.exit_waiters.is_empty() && daemon.state.interrupt_waiters.is_empty());
        assert!(daemon.state.running_calls.is_empty() && daemon.state.repeated_calls.is_empty());
    }

    /// Of who lives all that was told is counted, once; of a team nothing that nobody told.
    fn check_usage(&self) {
        let daemon = self.daemon.as_ref().expect("a daemon lives");
        for (_, join) in self.running_shims() {
            let told = join.turn_agent.as_ref().and_then(|turner| turner.status.usage.as_ref());
            let counted = daemon.state.agents[&join.spawn].record.usage();
            assert!(
                told.is_none_or(|told| told.usage == counted),
                "{join:?} told {told:?}, known is {counted:?}"
            );
        }
        let all: u64 = self.token_usage.values().sum();
        let counted: u64 = daemon.state.teams.values().map(|team| team.usage.usage.tokens).sum();
        assert!(counted <= all, "{counted} are counted of {all}");
    }

    /// A worktree on the disk is named by the roster.
    fn check_worktrees(&self) {
        let grounds: Vec<_> =
            self.disk.roster.worktrees.values().flatten().map(|ground| &ground.record).collect();
        for wood in self.disk.worktrees.present.values().filter(|wood| wood.is_filled) {
            assert!(grounds.contains(&&wood.record), "no roster names {:?}", wood.record);
        }
    }

    /// What it is to do first lies, or lay, in its inbox.
    fn check_prompt(&self, join: &SimulatedShim) {
        let Some(who) = join.identity.as_ref() else { return };
        let Some(files) = self.disk.teams.get(&who.team) else { return };
        let letters = files.inboxes.get(&who.name).into_iter().flatten();
        let prompts = letters.filter(|letter| letter.from.is_lead() && letter.payload.is_none());
        assert!(prompts.count() > 0, "{}@{} begins, and has never been told what to do", who.name, who.team);
    }

    /// For one task one agent is woken.
    pub(super) fn check_offers(&self) {
        let Some(daemon) = &self.daemon else { return };
        let mut offered = BTreeSet::new();
        for agent in daemon.state.agents.values() {
            let Some(task) = agent.offered_task else { continue };
            assert!(offered.insert((&agent.record.team, task)), "two are woken for task {task}");
        }
    }

    /// Whoever can be handed something has it, and what the policy answers is answered.
    fn check_nothing_waits(&self) {
        for (pid, join) in self.running_shims() {
            let (Some(who), Some(turner)) = (&join.identity, &join.turn_agent) else { continue };
            let files = self.disk.teams.get(&who.team);
            let waits = files.is_some_and(|files| turner.misses_work(files, &who.name));
            assert!(
                !waits,
                "{}@{} sleeps, and there is something for it: {turner:?} {pid}",
                who.name, who.team
            );
        }
        for (pid, program) in &self.programs {
            assert!(
                !self.misses_work(program),
                "the hook of {pid} waits, and there is something for it: {program:?}"
            );
            let lives = program.identity.is_some();
            assert!(
                !lives || matches!(program.state, ProgramState::LongPolling(_)),
                "no hook of {pid} waits: {program:?}"
            );
        }
        for (team, files) in &self.disk.teams {
            let overlooked = files.scan_requests().plans_timed_out_twice;
            for request in files.open_requests() {
                let asked = matches!(files.policy.decide(&request.request, "/"), PolicyDecision::Ask(_));
                let waits =
                    request.request.kind() == MemberRequestKind::Plan && overlooked.contains(&request.from);
                let in_time = files.policy.timeout_decision().is_none()
                    || files.policy.answer_timeout_ms.is_none()
                    || waits;
                assert!(asked && in_time, "the policy of {team} does not answer {:?}", request.request.id());
            }
        }
    }

    /// What is out of sight is so in tmux, for the daemon and in config.json.
    fn check_hidden_panes(&self) {
        let Some(daemon) = &self.daemon else { return };
        for (team, files) in &self.disk.teams {
            let hidden = daemon.state.members(team).into_iter().filter(|agent| agent.record.is_hidden);
            let known: BTreeSet<String> =
                hidden.filter_map(|agent| Some(agent.record.pane.as_ref()?.id.clone())).collect();
            let noted: BTreeSet<String> = files.hidden_panes.iter().cloned().collect();
            assert_eq!(known, noted, "left: hidden as {team}'s roster has it; right: as its config");
            let seen = known.iter().find(|pane| {
                pane.trim_start_matches('%').parse().is_ok_and(|pane| !self.tmux.hidden.contains(&pane))
            });
            assert!(seen.is_none(), "{seen:?} is to be seen, and said to be hidden");
        }
    }

    /// No team is left, and so nothing of anybody.
    pub(super) fn check_empty(&self) {
        let alive: Vec<_> = self.shims.values().filter(|join| join.is_alive()).collect();
        assert!(alive.is_empty(), "left behind: {alive:?}");
        let left = |whose: &&PaneOwner| matches!(whose, PaneOwner::Teamd(_, pid) if !self.shims[pid].was_killed_early);
        let panes: Vec<_> = self.tmux.panes.values().filter(left).collect();
        assert!(panes.is_empty(), "left behind: {panes:?}");
        assert!(self.disk.roster.records.is_empty());
        let stays = self.disk.roster.pending_respawns.iter().find(|resting| !resting.is_suspended);
        assert!(stays.is_none(), "it is not put to rest, and was to be started again: {stays:?}");
        assert!(self.disk.teams.values().all(|team| team.members.is_empty()), "{:?}", self.disk.teams);
        assert!(self.clients.is_empty() || self.programs.values().any(|program| program.identity.is_none()));
    }
}

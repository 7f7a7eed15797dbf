//! What must hold: at each reply, at each start of an agent, and of a world that has come to rest.

use super::join::{Join, Stage};
use super::programs::Doing;
use super::tmux::Whose;
use super::world::World;
use crate::event::ConnId;
use crate::state::Phase;
use protocol::member_request::MemberRequestKind;
use protocol::policy::PolicyDecision;
use std::collections::BTreeSet;

impl World {
    /// No agent runs that is not registered: a daemon that began now would know it.
    pub(super) fn agent_starts(&mut self, pid: u32) {
        let join = &self.joins[&pid];
        let record = self.disk.roster.agents.iter().find(|record| record.spawn == join.spawn);
        assert!(record.is_some(), "the agent of join {pid} runs, and no roster knows it");
        assert!(
            self.disk.registered.contains(&join.spawn),
            "the agent of join {pid} runs, and was never on a team"
        );
        self.has_its_prompt(join);
        let Some(who) = join.who.as_ref().filter(|who| self.planners.contains(&who.chain)) else { return };
        let plans =
            join.turner.as_ref().map_or(who.first == "plan", |turner| turner.now.plan_stage.is_some());
        assert!(plans || self.approved.contains(&who.chain), "{} of {} does not plan", who.name, who.chain);
    }

    /// Everybody has done what was to be done, and nothing fails any more.
    pub(super) fn rests(&self) {
        let daemon = self.daemon.as_ref().expect("a daemon lives");
        let parked = |client: &ConnId| self.programs.values().any(|it| it.doing == Doing::Parked(*client));
        let unheard: Vec<_> = self.clients.iter().filter(|(client, _)| !parked(client)).collect();
        assert!(unheard.is_empty(), "nobody answers {unheard:?}");
        let running: BTreeSet<_> = self.runs().map(|(_, join)| join.spawn.clone()).collect();
        let half: Vec<_> =
            self.joins.values().filter(|join| join.lives() && join.agent().is_none()).collect();
        assert!(half.is_empty(), "these neither run nor end: {half:?}");
        assert_eq!(running.len(), self.runs().count(), "a life is lived twice");
        let known: BTreeSet<_> = daemon.state.agents.keys().cloned().collect();
        assert_eq!(running, known, "left: who runs; right: who is known");
        for agent in daemon.state.agents.values() {
            assert!(matches!(&agent.phase, Phase::Running(link) if link.conn.is_some()), "{agent:?}");
        }
        let members: BTreeSet<_> = self
            .disk
            .teams
            .values()
            .flat_map(|team| team.members.values().map(|member| member.life.clone()))
            .collect();
        assert_eq!(members, running, "left: who is on a team; right: who runs");
        let on_disk: BTreeSet<_> =
            self.disk.roster.agents.iter().map(|record| record.spawn.clone()).collect();
        assert_eq!(on_disk, running, "left: the roster on the disk; right: who runs");
        let ours = |whose: &Whose| match whose {
            Whose::Ours(_, pid) => Some(*pid),
            Whose::Stranger => None,
        };
        let dead = |pid: &u32| self.joins[pid].stage == Stage::Dead && !self.joins[pid].killed_early;
        let left: Vec<u32> = self.tmux.panes.values().filter_map(ours).filter(dead).collect();
        assert!(left.is_empty(), "panes of ours in which nothing runs, once of {left:?}");
        self.trees_are_known();
        self.used_is_known();
        self.nothing_waits();
        self.sight_is_known();
        assert!(daemon.state.waiting.is_empty() && daemon.state.interrupting.is_empty());
        assert!(daemon.state.calls.is_empty() && daemon.state.also.is_empty());
    }

    /// Of who lives all that was told is counted, once; of a team nothing that nobody told.
    fn used_is_known(&self) {
        let daemon = self.daemon.as_ref().expect("a daemon lives");
        for (_, join) in self.runs() {
            let told = join.turner.as_ref().and_then(|turner| turner.now.usage.as_ref());
            let counted = daemon.state.agents[&join.spawn].record.used();
            assert!(
                told.is_none_or(|told| told.usage == counted),
                "{join:?} told {told:?}, known is {counted:?}"
            );
        }
        let all: u64 = self.used.values().sum();
        let counted: u64 = daemon.state.teams.values().map(|team| team.spent.used.tokens).sum();
        assert!(counted <= all, "{counted} are counted of {all}");
    }

    /// A worktree on the disk is named by the roster.
    fn trees_are_known(&self) {
        let grounds: Vec<_> =
            self.disk.roster.worktrees.values().flatten().map(|ground| &ground.tree).collect();
        for wood in self.disk.woods.there.values().filter(|wood| wood.filled) {
            assert!(grounds.contains(&&wood.tree), "no roster names {:?}", wood.tree);
        }
    }

    /// What it is to do first lies, or lay, in its inbox.
    fn has_its_prompt(&self, join: &Join) {
        let Some(who) = join.who.as_ref() else { return };
        let Some(files) = self.disk.teams.get(&who.team) else { return };
        let letters = files.inboxes.get(&who.name).into_iter().flatten();
        let prompts = letters.filter(|letter| letter.from.is_lead() && letter.payload.is_none());
        assert!(prompts.count() > 0, "{}@{} begins, and has never been told what to do", who.name, who.team);
    }

    /// For one task one agent is woken.
    pub(super) fn one_for_each_task(&self) {
        let Some(daemon) = &self.daemon else { return };
        let mut offered = BTreeSet::new();
        for agent in daemon.state.agents.values() {
            let Some(task) = agent.offered else { continue };
            assert!(offered.insert((&agent.record.team, task)), "two are woken for task {task}");
        }
    }

    /// Whoever can be handed something has it, and what the policy answers is answered.
    fn nothing_waits(&self) {
        for (pid, join) in self.runs() {
            let (Some(who), Some(turner)) = (&join.who, &join.turner) else { continue };
            let files = self.disk.teams.get(&who.team);
            let waits = files.is_some_and(|files| turner.overlooks(files, &who.name));
            assert!(
                !waits,
                "{}@{} sleeps, and there is something for it: {turner:?} {pid}",
                who.name, who.team
            );
        }
        for (pid, program) in &self.programs {
            assert!(
                !self.overlooks(program),
                "the hook of {pid} waits, and there is something for it: {program:?}"
            );
            let lives = program.who.is_some();
            assert!(
                !lives || matches!(program.doing, Doing::Parked(_)),
                "no hook of {pid} waits: {program:?}"
            );
        }
        for (team, files) in &self.disk.teams {
            let overlooked = files.asking().plans_timed_out_twice;
            for request in files.open() {
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
    fn sight_is_known(&self) {
        let Some(daemon) = &self.daemon else { return };
        for (team, files) in &self.disk.teams {
            let hidden = daemon.state.members(team).into_iter().filter(|agent| agent.record.hidden);
            let known: BTreeSet<String> =
                hidden.filter_map(|agent| Some(agent.record.pane.as_ref()?.pane.clone())).collect();
            let noted: BTreeSet<String> = files.hidden.iter().cloned().collect();
            assert_eq!(known, noted, "left: hidden as {team}'s roster has it; right: as its config");
            let seen = known.iter().find(|pane| {
                pane.trim_start_matches('%').parse().is_ok_and(|pane| !self.tmux.hidden.contains(&pane))
            });
            assert!(seen.is_none(), "{seen:?} is to be seen, and said to be hidden");
        }
    }

    /// No team is left, and so nothing of anybody.
    pub(super) fn is_bare(&self) {
        let alive: Vec<_> = self.joins.values().filter(|join| join.lives()).collect();
        assert!(alive.is_empty(), "left behind: {alive:?}");
        let left = |whose: &&Whose| matches!(whose, Whose::Ours(_, pid) if !self.joins[pid].killed_early);
        let panes: Vec<_> = self.tmux.panes.values().filter(left).collect();
        assert!(panes.is_empty(), "left behind: {panes:?}");
        assert!(self.disk.roster.agents.is_empty());
        let stays = self.disk.roster.resting.iter().find(|resting| !resting.put_away);
        assert!(stays.is_none(), "it is not put to rest, and was to be started again: {stays:?}");
        assert!(self.disk.teams.values().all(|team| team.members.is_empty()), "{:?}", self.disk.teams);
        assert!(self.clients.is_empty() || self.programs.values().any(|program| program.who.is_none()));
    }
}

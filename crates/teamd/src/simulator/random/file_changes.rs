//! Random changes of team files: a user or another program writes a message, or writes or changes a
//! task.

use crate::simulator::random::calls::random_team;
use crate::simulator::random::conditions::RandomSimulation;
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::team_files::SimulatedTeamFiles;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::sync::Arc;

impl RandomSimulation {
    /// Writes a random message or task, or changes a task.
    pub(super) fn write_random_file(&mut self) {
        let team = random_team(self);
        let Some(files) = self.disk.teams.get_mut(&team).filter(|_| !self.disk.is_full) else { return };
        let members: Vec<MemberName> = files.members.keys().cloned().collect();
        let member = self.conditions.rng.choice(members);
        match (self.conditions.rng.u8(0..8), member) {
            (0..=2, Some(name)) => {
                let at = self.now.wall;
                self.log(|| format!("a message for {name}@{team}"));
                self.disk.send(&team, &name, &MemberName::new_unchecked("bob"), None, at);
            }
            (3..=6, member) => {
                let owner = member.filter(|_| self.conditions.rng.u8(..) < 80);
                let blocker =
                    files.tasks.last().map(|task| task.id).filter(|_| self.conditions.rng.u8(..) < 60);
                let id = add_task(files, owner, blocker);
                self.log(|| format!("task {id} of {team}"));
                self.disk.record_change(&team, TeamFile::Task(id));
            }
            _ => self.change_random_task(&team),
        }
    }

    /// Assigns, deletes, releases or completes a random task.
    fn change_random_task(&mut self, team: &TeamName) {
        let Some(files) = self.disk.teams.get_mut(team) else { return };
        let ids: Vec<_> = files.tasks.iter().map(|task| task.id).collect();
        let names: Vec<MemberName> = files.members.keys().cloned().collect();
        let (Some(id), name) = (self.conditions.rng.choice(ids), self.conditions.rng.choice(names)) else {
            return;
        };
        self.log(|| format!("a user changes task {id} of {team}"));
        let Some(files) = self.disk.teams.get_mut(team) else { return };
        match self.conditions.rng.u8(0..5) {
            0 => files.tasks.retain(|task| task.id != id),
            1 => drop(files.change_task(id, |task| task.status = TaskStatus::Completed)),
            2 => drop(files.change_task(id, |task| {
                (task.owner, task.metadata) = (None, None);
                task.status = TaskStatus::Pending;
            })),
            // The member on the simulated annex completes it.
            3 => drop(files.change_task(id, |task| {
                (task.owner, task.status) = (Some(MemberName::new_unchecked("far")), TaskStatus::Completed);
            })),
            _ => drop(files.change_task(id, |task| task.owner = name)),
        }
        self.disk.record_change(team, TeamFile::Task(id));
    }
}

/// Adds a pending task to a team.
fn add_task(files: &mut SimulatedTeamFiles, owner: Option<MemberName>, blocked_by: Option<TaskId>) -> TaskId {
    files.last_task_number += 1;
    let id = TaskId::from_number(files.last_task_number).expect("the number is valid");
    files.tasks.push(Arc::new(Task {
        id,
        subject: "count".to_owned(),
        description: String::new(),
        active_form: None,
        status: TaskStatus::Pending,
        owner,
        blocks: Vec::new(),
        blocked_by: blocked_by.into_iter().collect(),
        metadata: None,
        unknown_fields: Default::default(),
    }));
    id
}

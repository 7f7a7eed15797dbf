//! What people and agents do: they send and read messages, and create, claim and complete tasks,
//! with the real files of their host.
//!
//! An agent of the simulation is a program with the delivery `pull`. On an annex, the agent asks
//! the daemon to confirm each claim of a task before it begins the task. The real shim and `teamctl
//! task claim` do this too.

use crate::simulator::network::agent_work::AgentWork;
use crate::simulator::network::connections::{HOME, HostIndex};
use crate::simulator::network::defect::Defect;
use crate::simulator::network::host_conditions::NetworkCaller;
use crate::simulator::network::ledger::TaskStart;
use crate::simulator::network::network_simulation::NetworkSimulation;
use crate::simulator::network::simulated_host::{host_name, team_name};
use crate::simulator::shim::REQUEST_ID_VARIABLE;
use protocol::control_socket::{
    ConfirmTaskRequest, ExitReport, Request, Response, SpawnRequest, UseHostRequest,
};
use protocol::inbox_file::Message;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use store::{NewTask, Team};

/// The members that run on a host.
pub(super) fn members_of(host: HostIndex) -> [MemberName; 2] {
    ["ann", "bob"].map(|name| MemberName::parse(&format!("{name}{host}")).expect("the name is valid"))
}

impl NetworkSimulation {
    /// A person at the home does something.
    pub(super) fn act_as_person(&mut self) {
        let annex = self.rng.usize(self.annexes());
        match self.rng.u8(..10) {
            0..=4 => self.send_message(HOME, &MemberName::lead()),
            5..=6 => self.create_task(HOME, &MemberName::lead()),
            7 => self.use_host(annex),
            _ => {
                let host = self.rng.usize(..self.hosts.len());
                let member = members_of(host)[self.rng.usize(..2)].clone();
                self.spawn_member(host, member);
            }
        }
        self.finish_step(HOME);
    }

    /// A random agent does something.
    pub(super) fn act_as_agent(&mut self) {
        let host = self.rng.usize(..self.hosts.len());
        let running: Vec<u32> = self.hosts[host].simulation.running_shims().map(|(pid, _)| *pid).collect();
        let Some(pid) = self.rng.choice(running) else { return };
        let Some(identity) = self.hosts[host].simulation.agent_identity(pid) else { return };
        match self.rng.u8(..20) {
            0..=6 => self.send_message(host, &identity.name),
            7..=8 => self.read_messages(host, &identity.name),
            9 => self.create_task(host, &identity.name),
            10 if self.rng.u8(..) < 60 => self.end_agent(host, pid),
            _ => self.work_on_task(host, pid, &identity.name),
        }
        self.finish_step(host);
    }

    /// A person gives the team to an annex.
    pub(super) fn use_host(&mut self, annex: HostIndex) {
        let (team, host, command) = (team_name(), host_name(annex), vec!["ssh".to_owned()]);
        let request = Request::UseHost(UseHostRequest { team, host, command });
        self.hosts[HOME].simulation.send_call_as(NetworkCaller::Person, None, request);
    }

    /// A person starts a member on its host, as `teamctl spawn --host` does after `UseHost`.
    pub(super) fn spawn_member(&mut self, host: HostIndex, name: MemberName) {
        let simulation = &mut self.hosts[host].simulation;
        let id = simulation.next_pid().to_string();
        // Two consecutive clients have the same idempotency key.
        simulation.next_conn();
        let mut request = spawn_request(name);
        request.env.insert(REQUEST_ID_VARIABLE.to_owned(), id);
        simulation.send_call_as(NetworkCaller::Person, None, Request::Spawn(request));
    }

    fn end_agent(&mut self, host: HostIndex, pid: u32) {
        self.ledger.cover("agent ended");
        let code = i32::from(self.rng.bool());
        self.hosts[host].simulation.end_agent(pid, ExitReport::Exit(code));
    }

    fn send_message(&mut self, host: HostIndex, from: &MemberName) {
        let Some(team) = self.hosts[host].team() else { return };
        let mut recipients = vec![MemberName::lead()];
        (0..self.hosts.len()).for_each(|host| recipients.extend(members_of(host)));
        recipients.retain(|recipient| recipient != from);
        let Some(to) = self.rng.choice(recipients) else { return };
        let text = format!("message {}", self.ledger.next_number());
        let message = Message::new(from, text.clone(), self.hosts[host].simulation.now.wall);
        if team.inbox(&to).append(&message).is_ok() {
            self.log(|| format!("host {host}: {from} sends {text:?} to {to}"));
            self.ledger.sent.entry((from.to_string(), to.to_string())).or_default().push(text);
        }
    }

    fn read_messages(&mut self, host: HostIndex, owner: &MemberName) {
        let Some(team) = self.hosts[host].team() else { return };
        let inbox = team.inbox(owner);
        let Ok(unread) = inbox.read_unread() else { return };
        let count = unread.len().min(self.rng.usize(1..4));
        inbox.mark_read(&unread[..count]).ok();
    }

    fn create_task(&mut self, host: HostIndex, creator: &MemberName) {
        let Some(team) = self.hosts[host].team() else { return };
        let subject = format!("task {} of host {host}", self.ledger.next_number());
        if team.tasks().create(NewTask::new(&subject, creator)).is_ok() {
            self.log(|| format!("host {host}: {creator} creates {subject:?}"));
            self.ledger.created.insert(subject);
        }
    }

    /// An agent completes its task, or claims one. At the home, it begins the task at once.
    fn work_on_task(&mut self, host: HostIndex, pid: u32, name: &MemberName) {
        let Some(team) = self.hosts[host].team() else { return };
        let work = self.work.entry((host, pid)).or_default();
        if work.asked.is_some() {
            return;
        }
        if let Some(id) = work.running.take() {
            let is_completed = team.tasks().complete(&id, name).is_ok();
            return self.log(|| format!("host {host}: {name} completes task {id}: {is_completed}"));
        }
        let Some(id) = left_task(&team, name).or_else(|| Some(team.tasks().claim(None, name).ok()?.id))
        else {
            return;
        };
        self.log(|| format!("host {host}: {name} claims task {id}"));
        if host == HOME || self.defect == Some(Defect::BeginsUnconfirmedTasks) {
            return self.begin_task(host, pid, name, id);
        }
        let request = ConfirmTaskRequest { team: team_name(), task: id, owner: name.clone() };
        let caller = NetworkCaller::Claimant { shim_pid: pid, task: id };
        let simulation = &mut self.hosts[host].simulation;
        if simulation.send_call_as(caller, None, Request::ConfirmTask(request)).is_some() {
            self.work.entry((host, pid)).or_default().asked = Some(id);
        }
    }

    /// The daemon of an annex has answered a claimant.
    pub(super) fn handle_confirmation(
        &mut self,
        host: HostIndex,
        pid: u32,
        task: TaskId,
        response: &Response,
    ) {
        if self.work.get_mut(&(host, pid)).filter(is_waiting_for(task)).is_none() {
            return;
        }
        self.work.entry((host, pid)).or_default().asked = None;
        let identity = self.hosts[host].simulation.agent_identity(pid);
        match (response, identity) {
            (Response::Done(_), Some(identity)) => self.begin_task(host, pid, &identity.name, task),
            (Response::Failed(_), _) => self.ledger.cover("claim refused"),
            (Response::Done(_), None) => {}
        }
    }

    fn begin_task(&mut self, host: HostIndex, pid: u32, name: &MemberName, id: TaskId) {
        let Some(Ok(task)) = self.hosts[host].team().map(|team| team.tasks().get(&id)) else { return };
        self.log(|| format!("host {host}: {name} begins {:?}", task.subject));
        self.work.entry((host, pid)).or_default().running = Some(id);
        let start = TaskStart { member: name.to_string(), host, shim_pid: pid };
        self.ledger.start_task(&task.subject, start);
    }
}

fn is_waiting_for(task: TaskId) -> impl Fn(&&mut AgentWork) -> bool {
    move |work| work.asked == Some(task)
}

/// The task that a member has left in progress.
fn left_task(team: &Team, name: &MemberName) -> Option<TaskId> {
    let is_own = |task: &&Task| task.owner.as_ref() == Some(name) && task.status == TaskStatus::InProgress;
    team.tasks().list().ok()?.iter().find(|task| is_own(task) && !task.is_internal()).map(|task| task.id)
}

fn spawn_request(name: MemberName) -> Box<SpawnRequest> {
    let request = serde_json::json!({
        "team": team_name(), "name": name, "unique": false, "argv": ["true"], "cwd": "/", "env": {},
        "prompt": "go", "delivery": "pull"
    });
    serde_json::from_value(request).expect("the request is valid")
}

//! Teams over two and three hosts in a network whose links break. Each host has a network namespace
//! and an ssh server of its own.

use harness::foreign_writer::{ForeignWriter, WriterKind};
use harness::{LinkState, Network, SshServer, TaggedProcesses, TestEnv};
use serde_json::Value;
use std::time::Duration;

/// The host that reaches the others. The home's daemon itself needs no network, because only its
/// connect command does.
const HOME: &str = "home0";

/// A home with the team `survey`, and further hosts. Each has a worker, named after its host.
struct NetworkedTeam {
    env: TestEnv,
    network: Network,
    servers: Vec<SshServer>,
    hosts: Vec<&'static str>,
}

impl NetworkedTeam {
    /// `None` if this machine has no ssh server or allows no network namespaces.
    fn start(hosts: &[&'static str]) -> Option<NetworkedTeam> {
        let env = TestEnv::with_team();
        let names = [&[HOME], hosts].concat();
        let Some(network) = Network::create(&env, &names) else {
            env.shut_down();
            return None;
        };
        let mut servers = Vec::new();
        let mut hosts_file = String::new();
        for host in hosts {
            let Some(server) = network.start_ssh_server(&env, HOME, host) else {
                env.shut_down();
                return None;
            };
            hosts_file.push_str(&format!("[host.{host}]\n{}root = '~/root'\n", server.connect_line()));
            servers.push(server);
            for program in ["teamctl", "teamd", "teamd-shim"] {
                let link = env.path(host).join("bin").join(program);
                std::os::unix::fs::symlink(harness::programs().join(program), link).unwrap();
            }
        }
        env.write_file("home/.config/teamd/hosts.toml", hosts_file);
        let team = NetworkedTeam { env, network, servers, hosts: hosts.to_vec() };
        team.hosts.iter().for_each(|host| team.spawn_worker(host));
        Some(team)
    }

    fn spawn_worker(&self, host: &str) {
        self.env.teamctl(["--host", host, "up"]).expect_success();
        self.env.teamctl(["spawn", host, "--host", host, "--profile", "worker"]).expect_success();
    }

    fn set_link(&self, host: &str, state: LinkState) {
        self.network.set_link(&self.env, host, state);
    }

    /// Waits until `status` shows that a host has no contact.
    fn wait_until_no_contact(&self, host: &str) {
        let start = format!("host {host}: no contact for ");
        self.env.wait_until(&format!("status shows no contact with {host}"), || {
            let status = self.env.teamctl(["status"]).expect_success();
            status.lines().any(|line| line.starts_with(&start)).then_some(())
        });
    }

    /// Creates a task that only this member may take. It appends its number to a file.
    fn create_task(&self, member: &str, number: usize) {
        let command = format!("echo {number} >>{}", self.env.path("out/log").display());
        let subject = format!("task {number}");
        self.env
            .teamctl(["task", "create", &subject, "--owner", member, "--command", &command])
            .expect_success();
    }

    /// Waits until the home has `count` tasks, all of them completed. Checks that each has run once.
    fn wait_until_each_task_ran_once(&self, count: usize) {
        self.env.wait_until_within(Duration::from_secs(60), "all tasks are completed", || {
            let tasks = self.env.tasks("survey");
            let completed = tasks.iter().filter(|task| task["status"] == "completed");
            (completed.count() == count && tasks.len() == count).then_some(())
        });
        let mut log: Vec<usize> =
            self.env.read("out/log").lines().map(|line| line.parse().unwrap()).collect();
        log.sort_unstable();
        assert_eq!(log, (1..=count).collect::<Vec<_>>());
    }

    /// The texts in an inbox on a host that begin with `start`, in their order.
    fn texts_there(&self, host: &str, member: &str, start: &str) -> Vec<String> {
        let path = self.inbox_path(host, member);
        let inbox: Vec<Value> = serde_json::from_str(&self.env.read(&path)).unwrap_or_default();
        texts(&inbox, start)
    }

    /// The ids of the tasks that the lead's messages report as completed, in the order of the messages.
    fn reported_tasks(&self) -> Vec<String> {
        let inbox = self.env.inbox("survey", "team-lead");
        let reports = inbox.iter().filter_map(|message| message["text"].as_str());
        let reports = reports.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        reports.filter_map(|report| report["completedTaskId"].as_str().map(str::to_owned)).collect()
    }

    fn inbox_path(&self, host: &str, member: &str) -> String {
        format!("{host}/home/root/teams/survey/inboxes/{member}.json")
    }

    fn shut_down(self) {
        self.env.teamctl(["shutdown", "--all"]).expect_success();
        self.env.teamctl(["delete", "survey"]).expect_success();
        // The home would connect again, and so start the daemon again that ends.
        self.env.teamctl(["down"]).expect_success();
        for host in &self.hosts {
            let tag = self.tag_of_processes_there(host);
            self.env.wait_until(&format!("{host} carries no link"), || {
                let processes = TaggedProcesses::with_tag(&tag).list();
                (!processes.iter().any(|line| line.contains(" annex --stdio"))).then_some(())
            });
            self.env.teamctl(["--host", host, "down"]).expect_success();
        }
        for host in &self.hosts {
            let left = TaggedProcesses::with_tag(&self.tag_of_processes_there(host));
            assert!(left.exit_within(harness::TIMEOUT), "{:?}", left.list());
        }
        drop(self.servers);
        drop(self.network);
        self.env.shut_down();
    }

    /// The environment entry that only processes of this host have.
    fn tag_of_processes_there(&self, host: &str) -> String {
        format!("XDG_STATE_HOME={}", self.env.path(host).join("state").display())
    }
}

fn texts(inbox: &[Value], start: &str) -> Vec<String> {
    let texts = inbox.iter().filter_map(|message| message["text"].as_str());
    texts.filter(|text| text.starts_with(start)).map(str::to_owned).collect()
}

/// `START:0` to `START:(COUNT-1)`.
fn numbered(start: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{start}:{number}")).collect()
}

#[test]
fn broken_network_loses_and_doubles_nothing() {
    let Some(team) = NetworkedTeam::start(&["far"]) else { return };
    let env = &team.env;
    team.network.make_slow(env, "far");
    let send = |number: usize| env.teamctl(["send", "far", &format!("to far:{number}")]).expect_success();
    team.create_task("far", 1);
    send(0);
    team.set_link("far", LinkState::Down);
    send(1);
    team.create_task("far", 2);
    team.wait_until_no_contact("far");
    let status = env.teamctl(["status"]).expect_success();
    assert!(status.lines().any(|line| line.starts_with("far ") && line.contains("unknown")), "{status}");
    send(2);
    team.create_task("far", 3);
    team.set_link("far", LinkState::Up);
    team.wait_until_each_task_ran_once(3);
    // An outage that is shorter than the timeouts of ssh does not break the connection.
    team.set_link("far", LinkState::Down);
    send(3);
    team.create_task("far", 4);
    team.set_link("far", LinkState::Up);
    team.wait_until_each_task_ran_once(4);
    env.wait_until("all messages have arrived", || {
        (team.texts_there("far", "far", "to far:").len() >= 4).then_some(())
    });
    assert_eq!(team.texts_there("far", "far", "to far:"), numbered("to far", 4));
    env.wait_until("the lead has the reports", || (team.reported_tasks().len() >= 4).then_some(()));
    assert_eq!(team.reported_tasks(), ["1", "2", "3", "4"]);
    team.shut_down();
}

#[test]
fn lost_host_does_not_stop_the_others() {
    let Some(team) = NetworkedTeam::start(&["east", "west"]) else { return };
    let env = &team.env;
    team.set_link("west", LinkState::Down);
    team.wait_until_no_contact("west");
    // The member of one host sends a message to that of the other, by way of the home.
    let command = "for number in 0 1 2; do teamctl send west \"from east:$number\"; done";
    env.teamctl(["task", "create", "send", "--owner", "east", "--command", command]).expect_success();
    env.wait_until("the home has the messages", || {
        (texts(&env.inbox("survey", "west"), "from east:").len() == 3).then_some(())
    });
    let status = env.teamctl(["status"]).expect_success();
    assert!(!status.contains("host east: no contact"), "{status}");
    assert_eq!(team.texts_there("west", "west", "from east:"), numbered("from east", 0));
    team.set_link("west", LinkState::Up);
    env.wait_until("the other host has the messages", || {
        (team.texts_there("west", "west", "from east:").len() >= 3).then_some(())
    });
    assert_eq!(team.texts_there("west", "west", "from east:"), numbered("from east", 3));
    assert_eq!(texts(&env.inbox("survey", "west"), "from east:"), numbered("from east", 3));
    team.shut_down();
}

#[test]
fn messages_of_a_foreign_writer_there_arrive_once_in_order() {
    let Some(team) = NetworkedTeam::start(&["far"]) else { return };
    let env = &team.env;
    let inbox = env.path(&team.inbox_path("far", "team-lead"));
    let pause = Duration::from_millis(40);
    let writer =
        ForeignWriter::start_with_pause(env, WriterKind::RenameUnderLock, &inbox, "peer", None, Some(pause));
    let Some(writer) = writer else { return team.shut_down() };
    let count_at_home = || texts(&env.inbox("survey", "team-lead"), "peer:").len();
    env.wait_until("messages arrive", || (count_at_home() > 10).then_some(()));
    team.set_link("far", LinkState::Down);
    team.wait_until_no_contact("far");
    team.set_link("far", LinkState::Up);
    let before = count_at_home();
    env.wait_until("messages arrive again", || (count_at_home() > before).then_some(()));
    let stored = writer.finish().stored;
    env.wait_until("all messages have arrived", || (count_at_home() >= stored.len()).then_some(()));
    assert_eq!(texts(&env.inbox("survey", "team-lead"), "peer:"), stored);
    team.shut_down();
}

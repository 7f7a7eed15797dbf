//! Networks of a test: hosts in network namespaces of their own, each connected by a pair of virtual
//! interfaces to a bridge in a further namespace. The test can break these links.
//!
//! A program that reads from a pipe of this process holds each namespace. So the kernel removes
//! namespaces, links and bridge as soon as this process ends, also if it was killed.

use crate::TestEnv;
use crate::command_output::CommandOutput;
use crate::results::record_skip;
use crate::ssh_server::{SshPlace, SshServer};
use crate::test_env::run_command;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The first bytes of all addresses. No namespace has a route out of it, so any network will do.
const PREFIX: &str = "10.77.0";

/// The port of the ssh servers.
const SSH_PORT: u16 = 2222;

/// Lets ssh notice a broken link within about 3 s.
const CLIENT_OPTIONS: &str = "ConnectTimeout 2\nServerAliveInterval 1\nServerAliveCountMax 2\n";
const SERVER_OPTIONS: &str = "ClientAliveInterval 1\nClientAliveCountMax 2\n";

/// A program that ends when its standard input ends, and prints a line when it runs.
const HOLDER: &str = "echo ready; exec cat";

/// The state of a host's link to the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Frames go through.
    Up,
    /// All frames are lost.
    Down,
}

/// A running network. Dropping it removes it.
pub struct Network {
    bridge: Namespace,
    hosts: Vec<(String, Namespace)>,
}

/// A network namespace, and the program that holds it.
struct Namespace(Child);

impl Network {
    /// Creates a network of these hosts. `None` if this machine allows none. Then the skip is recorded.
    pub fn create(env: &TestEnv, names: &[&str]) -> Option<Network> {
        match Network::try_create(env, names) {
            Ok(network) => Some(network),
            Err(reason) => {
                record_skip("network namespaces", &format!("cannot create a network: {reason}"));
                None
            }
        }
    }

    fn try_create(env: &TestEnv, names: &[&str]) -> Result<Network, String> {
        let new_user = if is_root() { &[][..] } else { &["-r"] };
        let bridge = Namespace::create(env, &[&["unshare", "-n"], new_user].concat())?;
        bridge.run(env, &["ip link add name bridge type bridge forward_delay 0", "ip link set bridge up"])?;
        let mut network = Network { bridge, hosts: Vec::new() };
        for (name, number) in names.iter().zip(1..) {
            network.add_host(env, name, number)?;
        }
        Ok(network)
    }

    fn add_host(&mut self, env: &TestEnv, name: &str, number: u8) -> Result<(), String> {
        let enter = self.bridge.enter();
        let words: Vec<&str> = enter.iter().map(String::as_str).chain(["unshare", "-n"]).collect();
        let host = Namespace::create(env, &words)?;
        let pid = host.0.id();
        self.bridge.run(
            env,
            &[
                &format!("ip link add name {name} type veth peer name eth0 netns {pid}"),
                &format!("ip link set dev {name} master bridge up"),
            ],
        )?;
        host.run(
            env,
            &[
                "ip link set lo up",
                &format!("ip address add {PREFIX}.{number}/24 dev eth0"),
                "ip link set eth0 up",
            ],
        )?;
        self.hosts.push((name.to_owned(), host));
        Ok(())
    }

    /// Breaks or repairs the link of a host.
    ///
    /// # Panics
    /// If this fails.
    pub fn set_link(&self, env: &TestEnv, name: &str, state: LinkState) {
        let word = match state {
            LinkState::Up => "up",
            LinkState::Down => "down",
        };
        self.bridge.run(env, &[&format!("ip link set dev {name} {word}")]).expect("the link can be changed");
    }

    /// Delays all frames to a host by 20 ± 10 ms, and loses some. Does nothing if this machine has no
    /// `tc` or its kernel no `netem`. Then the skip is recorded.
    pub fn make_slow(&self, env: &TestEnv, name: &str) {
        let command = format!("tc qdisc add dev {name} root netem delay 20ms 10ms loss 1%");
        if let Err(reason) = self.bridge.run(env, &[&command]) {
            record_skip("slow network", &reason);
        }
    }

    /// Starts an ssh server on the host `name`, whose clients run on the host `from`. `None` if no
    /// server is installed.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn start_ssh_server(&self, env: &TestEnv, from: &str, name: &str) -> Option<SshServer> {
        let number = self.hosts.iter().position(|host| host.0 == name).expect("the network has the host") + 1;
        let place = SshPlace {
            name: name.to_owned(),
            address: format!("{PREFIX}.{number}"),
            port: SSH_PORT,
            enter_server: self.host(name).enter_as_user(),
            enter_client: self.host(from).enter_as_user(),
            client_options: CLIENT_OPTIONS,
            server_options: SERVER_OPTIONS,
        };
        SshServer::start_at(env, &place)
    }

    fn host(&self, name: &str) -> &Namespace {
        &self.hosts.iter().find(|host| host.0 == name).expect("the network has the host").1
    }
}

impl Namespace {
    /// `words` is a command that runs the program after it in a new namespace.
    fn create(env: &TestEnv, words: &[&str]) -> Result<Namespace, String> {
        let mut command = network_command(env, words[0]);
        command.args(&words[1..]).args(["sh", "-c", HOLDER]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut namespace =
            Namespace(command.spawn().map_err(|error| format!("cannot run {}: {error}", words[0]))?);
        let mut line = String::new();
        let output = namespace.0.stdout.take().expect("the output is piped");
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        if line == "ready\n" {
            return Ok(namespace);
        }
        let errors = namespace.0.stderr.take().expect("the errors are piped");
        Err(std::io::read_to_string(errors).unwrap_or_default().trim().to_owned())
    }

    /// The words that run a program in the namespace with the rights to change its interfaces.
    fn enter(&self) -> Vec<String> {
        let pid = self.0.id().to_string();
        let user = if is_root() { &[][..] } else { &["-U", "--preserve-credentials"] };
        [&["nsenter", "-t", &pid, "-n"], user].concat().into_iter().map(str::to_owned).collect()
    }

    /// As [`Namespace::enter`], but the program has the ids of this process's user, also if this user
    /// is not root. An ssh server that believes to be root would fail to become another user.
    fn enter_as_user(&self) -> Vec<String> {
        if is_root() {
            return self.enter();
        }
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let words = ["unshare".to_owned(), format!("--map-user={user}"), format!("--map-group={group}")];
        [self.enter(), words.to_vec()].concat()
    }

    /// Runs commands in the namespace until one fails. Their words have no spaces.
    fn run(&self, env: &TestEnv, commands: &[&str]) -> Result<(), String> {
        for text in commands {
            let words = [self.enter(), text.split(' ').map(str::to_owned).collect()].concat();
            let mut command = network_command(env, &words[0]);
            command.args(&words[1..]);
            let CommandOutput { code, stderr, .. } = run_command(command);
            if code != 0 {
                return Err(format!("{text}: {}", stderr.trim()));
            }
        }
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// Ordinary users often do not have the directories of `ip` and `tc` in their `PATH`.
fn network_command(env: &TestEnv, program: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = env.command(program);
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

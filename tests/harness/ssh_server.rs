//! An ssh server of one test: it has its own keys and configuration in the test's directory. The
//! user's `~/.ssh` and the server of the machine are not used.
//!
//! A command that ssh runs there has the home directory `NAME/home` of the test environment, its own
//! root, state, runtime directory and tmux server. So the same machine acts as another one.

use crate::TestEnv;
use crate::results::record_skip;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running ssh server. Dropping it ends it.
pub struct SshServer {
    process: Child,
    /// The command that connects to it.
    command: Vec<String>,
}

/// Where a server runs and how clients reach it.
#[derive(Debug, Clone)]
pub(crate) struct SshPlace {
    /// Name of the host, and of its directory in the test environment.
    pub(crate) name: String,
    /// The address on which the server listens.
    pub(crate) address: String,
    /// The port on which the server listens.
    pub(crate) port: u16,
    /// Words before the command line of the server, which enter its network.
    pub(crate) enter_server: Vec<String>,
    /// Words before the command line of a client, which enter its network.
    pub(crate) enter_client: Vec<String>,
    /// Further lines of the client's configuration.
    pub(crate) client_options: &'static str,
    /// Further lines of the server's configuration.
    pub(crate) server_options: &'static str,
}

impl SshPlace {
    /// The host `far` on a loopback port.
    fn on_loopback(port: u16) -> SshPlace {
        SshPlace {
            name: "far".to_owned(),
            address: "127.0.0.1".to_owned(),
            port,
            enter_server: Vec::new(),
            enter_client: Vec::new(),
            client_options: "",
            server_options: "",
        }
    }

    fn directory(&self, env: &TestEnv) -> PathBuf {
        env.path(&self.name)
    }

    /// The command that connects to the server.
    fn client_command(&self, env: &TestEnv) -> Vec<String> {
        let config = self.directory(env).join("ssh_config").display().to_string();
        let ssh = ["ssh", "-T", "-F", &config, &self.name].map(str::to_owned);
        [&self.enter_client[..], &ssh].concat()
    }
}

impl SshServer {
    /// Starts the server of the host `far` on a loopback port. `None` if no server is installed. Then the skip is
    /// recorded.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn start(env: &TestEnv) -> Option<SshServer> {
        let program = find_sshd()?;
        let first = SshPlace::on_loopback(free_port());
        create_files(env, &first);
        // Another program may take the free port before the server does.
        let ports = std::iter::once(first.port).chain(std::iter::repeat_with(free_port)).take(5);
        let server = ports.map(SshPlace::on_loopback).find_map(|place| start_server(env, &place, &program));
        Some(server.unwrap_or_else(|| panic!("sshd does not start: {}", env.read("far/sshd.log"))))
    }

    /// As [`SshServer::start`], at a place whose port is free.
    ///
    /// # Panics
    /// If the server does not start.
    pub(crate) fn start_at(env: &TestEnv, place: &SshPlace) -> Option<SshServer> {
        let program = find_sshd()?;
        create_files(env, place);
        let log = || env.read(&format!("{}/sshd.log", place.name));
        Some(start_server(env, place, &program).unwrap_or_else(|| panic!("sshd does not start: {}", log())))
    }

    /// The line `connect = …` for a hosts file.
    pub fn connect_line(&self) -> String {
        let words: Vec<String> = self.command.iter().map(|word| format!("{word:?}")).collect();
        format!("connect = [{}]\n", words.join(", "))
    }

    /// The command that connects to it, for the words of a command to run there.
    pub fn command(&self) -> &[String] {
        &self.command
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The ssh server's program. `None` if there is none. Then the skip is recorded.
fn find_sshd() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Ordinary users often do not have the directory in their `PATH`.
    let directories: Vec<PathBuf> = std::env::split_paths(&path).chain(["/usr/sbin".into()]).collect();
    let found = directories.into_iter().map(|directory| directory.join("sshd")).find(|path| path.is_file());
    if found.is_none() {
        record_skip("ssh", "there is no sshd here");
    }
    found
}

/// Creates the directories and keys of the host.
fn create_files(env: &TestEnv, place: &SshPlace) {
    let directory = place.directory(env);
    for name in ["", "home", "state", "run", "bin"] {
        let path = directory.join(name);
        std::fs::create_dir(&path).expect("the directory can be created");
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(path, mode).expect("the permissions can be set");
    }
    // A server that root starts needs this directory, which an installed service creates. Another
    // test may create it at the same moment.
    if id("-u") == "0" {
        std::fs::create_dir_all("/run/sshd").expect("root can create the directory");
    }
    for key in ["host-key", "user-key"] {
        let mut keygen = env.command("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(directory.join(key));
        assert!(keygen.status().expect("ssh-keygen starts").success());
    }
}

/// What `id` prints for this option.
fn id(option: &str) -> String {
    let output = Command::new("id").arg(option).output().expect("id starts");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("the listener has a port").port()
}

fn server_config(env: &TestEnv, place: &SshPlace) -> String {
    let far = place.directory(env).display().to_string();
    let SshPlace { address, port, server_options, .. } = place;
    let variables = [
        format!("HOME={far}/home"),
        format!("XDG_STATE_HOME={far}/state"),
        format!("XDG_RUNTIME_DIR={far}/run"),
        format!("TMUX_TMPDIR={far}/run"),
        format!("PATH={far}/bin:/usr/bin:/bin"),
        env.process_tag(),
    ];
    format!(
        "ListenAddress {address}:{port}\nHostKey {far}/host-key\nAuthorizedKeysFile {far}/user-key.pub\nPidFile none\n\
         UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n\
         PrintLastLog no\nSetEnv {}\n{server_options}",
        variables.join(" ")
    )
}

fn client_config(env: &TestEnv, place: &SshPlace) -> String {
    let far = place.directory(env).display().to_string();
    let SshPlace { name, address, port, client_options, .. } = place;
    format!(
        "Host {name}\nHostName {address}\nPort {port}\nUser {}\nIdentityFile {far}/user-key\nIdentitiesOnly yes\n\
         IdentityAgent none\nBatchMode yes\nUserKnownHostsFile {far}/known_hosts\nGlobalKnownHostsFile none\n\
         StrictHostKeyChecking accept-new\nLogLevel ERROR\n{client_options}",
        id("-un")
    )
}

/// `None` if the port is taken.
fn start_server(env: &TestEnv, place: &SshPlace, program: &Path) -> Option<SshServer> {
    let directory = place.directory(env);
    env.write_file(&format!("{}/sshd_config", place.name), server_config(env, place));
    env.write_file(&format!("{}/ssh_config", place.name), client_config(env, place));
    let log = File::create(directory.join("sshd.log")).expect("the log can be created");
    let program = program.display().to_string();
    let words = [&place.enter_server[..], &[program]].concat();
    let mut command = env.command(&words[0]);
    command.args(&words[1..]).args(["-D", "-e", "-f"]).arg(directory.join("sshd_config"));
    let mut process = command.stdout(Stdio::null()).stderr(log).spawn().expect("sshd starts");
    let listens = env.wait_until("sshd listens, or has ended", || {
        let has_ended = process.try_wait().expect("sshd is a child").is_some();
        let listens = env.read(&format!("{}/sshd.log", place.name)).contains("Server listening");
        (has_ended || listens).then_some(!has_ended)
    });
    listens.then(|| SshServer { process, command: place.client_command(env) })
}

//! An ssh server of one test: it listens on a loopback port, and has its own keys and configuration
//! in the test's directory. The user's `~/.ssh` and the server of the machine are not used.
//!
//! A command that ssh runs there has the home directory `far/home` of the test environment, its own
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
    /// The command that connects to it, without the `-T` or `-t`.
    command: Vec<String>,
}

impl SshServer {
    /// Starts a server in the test environment. `None` if no server is installed. Then the skip is
    /// recorded.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn start(env: &TestEnv) -> Option<SshServer> {
        let Some(program) = find_sshd() else {
            record_skip("ssh", "there is no sshd here");
            return None;
        };
        create_far_directories(env);
        for key in ["far/host-key", "far/user-key"] {
            let mut keygen = env.command("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(env.path(key));
            assert!(keygen.status().expect("ssh-keygen starts").success());
        }
        // Another program may take the free port before the server does.
        for _ in 0..5 {
            let port = free_port();
            env.write_file("far/sshd_config", server_config(env, port));
            env.write_file("far/ssh_config", client_config(env, port));
            if let Some(process) = start_server(env, &program) {
                let config = env.path("far/ssh_config").display().to_string();
                let command = ["ssh", "-F", &config, "far"].map(str::to_owned).to_vec();
                return Some(SshServer { process, command });
            }
        }
        panic!("sshd does not start: {}", env.read("far/sshd.log"));
    }

    /// The line `connect = …` for a hosts file.
    pub fn connect_line(&self) -> String {
        let (program, arguments) = self.command.split_first().expect("the command has a program");
        let words: Vec<String> = arguments.iter().map(|word| format!("{word:?}")).collect();
        format!("connect = [{program:?}, \"-T\", {}]\n", words.join(", "))
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

/// Ordinary users often do not have the directory in their `PATH`.
fn find_sshd() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).chain(["/usr/sbin".into()]).collect();
    directories.into_iter().map(|directory| directory.join("sshd")).find(|path| path.is_file())
}

fn create_far_directories(env: &TestEnv) {
    for name in ["far", "far/home", "far/state", "far/run", "far/bin"] {
        std::fs::create_dir(env.path(name)).expect("the directory can be created");
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(env.path(name), mode).expect("the permissions can be set");
    }
    // A server that root starts needs this directory, which an installed service creates.
    if id("-u") == "0" && !Path::new("/run/sshd").exists() {
        std::fs::create_dir("/run/sshd").expect("root can create the directory");
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

fn server_config(env: &TestEnv, port: u16) -> String {
    let far = env.path("far").display().to_string();
    let variables = [
        format!("HOME={far}/home"),
        format!("XDG_STATE_HOME={far}/state"),
        format!("XDG_RUNTIME_DIR={far}/run"),
        format!("TMUX_TMPDIR={far}/run"),
        format!("PATH={far}/bin:/usr/bin:/bin"),
        env.process_tag(),
    ];
    format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {far}/host-key\nAuthorizedKeysFile {far}/user-key.pub\nPidFile none\n\
         UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n\
         PrintLastLog no\nSetEnv {}\n",
        variables.join(" ")
    )
}

fn client_config(env: &TestEnv, port: u16) -> String {
    let far = env.path("far").display().to_string();
    format!(
        "Host far\nHostName 127.0.0.1\nPort {port}\nUser {}\nIdentityFile {far}/user-key\nIdentitiesOnly yes\n\
         IdentityAgent none\nBatchMode yes\nUserKnownHostsFile {far}/known_hosts\nGlobalKnownHostsFile none\n\
         StrictHostKeyChecking accept-new\nLogLevel ERROR\n",
        id("-un")
    )
}

/// `None` if the port is taken.
fn start_server(env: &TestEnv, program: &Path) -> Option<Child> {
    let log = File::create(env.path("far/sshd.log")).expect("the log can be created");
    let mut command = env.command(program);
    command.arg("-D").arg("-e").arg("-f").arg(env.path("far/sshd_config"));
    let mut process = command.stdout(Stdio::null()).stderr(log).spawn().expect("sshd starts");
    let listens = env.wait_until("sshd listens, or has ended", || {
        let has_ended = process.try_wait().expect("sshd is a child").is_some();
        (has_ended || env.read("far/sshd.log").contains("Server listening")).then_some(!has_ended)
    });
    listens.then_some(process)
}

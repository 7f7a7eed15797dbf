//! Calls the victim's daemon, and listens at the path of its control socket.

use crate::attack_log::{AttackLog, NOT_PERMITTED, check_refused};
use crate::user_thread::{SECOND_UID, as_second_user, can_be_second_user, set_mode};
use harness::{CommandOutput, TestEnv};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many bytes the daemon answers to a call of the second user.
fn call_as_second_user(socket: &Path, request: &Value) -> std::io::Result<usize> {
    let call = format!("{}\n", json!({"version": 2, "request": request}));
    as_second_user(|| {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(call.as_bytes()).ok();
        let mut reply = Vec::new();
        match stream.read_to_end(&mut reply) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            _ => Ok(reply.len()),
        }
    })
}

fn no_reply(result: std::io::Result<usize>) -> Result<String, String> {
    match result {
        Ok(0) => Ok("disconnected without a reply".to_owned()),
        Ok(bytes) => Err(format!("a reply of {bytes} bytes")),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn attack_daemon(log: &mut AttackLog) {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    let (socket, pid) = (env.control_socket(), env.daemon_pid());
    let open = |mode| ["", "run", "run/teamd"].iter().for_each(|name| set_mode(&env.path(name), mode));
    open(0o755);
    log.record("calls the daemon", no_reply(call_as_second_user(&socket, &json!("status"))));
    let directory = socket.parent().unwrap();
    set_mode(directory, 0o711);
    set_mode(&socket, 0o666);
    let kill = json!({"kill": {"team": "survey", "names": ["ann"]}});
    let shim = json!({"connect_shim": {"spawn_id": "00000000-0000-4000-8000-000000000000"}});
    for request in [json!("status"), kill, json!("stop_daemon"), shim] {
        let result = no_reply(call_as_second_user(&socket, &request));
        log.record(format!("sends {request} to a socket that was opened for all"), result);
    }
    for args in
        [&["status", "--json"][..], &["send", "ann", "x", "-t", "survey"], &["kill", "ann"], &["down"]]
    {
        let output = teamctl_as_second_user(&env, &socket, args);
        let refused = check_refused(&output, &[64, 67, 69, 74, 77]);
        log.record(format!("runs teamctl {} --socket with the victim's root", args.join(" ")), refused);
    }
    set_mode(directory, 0o700);
    let is_alive = env.daemon_pid() == pid && env.member("ann").is_some();
    log.record_state("ends the daemon or its member by one of these attacks; both run", is_alive, true);
    env.shut_down();
}

/// Runs a copy of teamctl as the second user, who may not be able to reach the programs under test.
fn teamctl_as_second_user(env: &TestEnv, socket: &Path, args: &[&str]) -> CommandOutput {
    let directory = env.path("second");
    std::fs::create_dir_all(&directory).unwrap();
    chown(&directory, Some(SECOND_UID), Some(SECOND_UID)).unwrap();
    let program = directory.join("teamctl");
    let mut install = env.command("install");
    install.args(["-m", "755"]).arg(harness::programs().join("teamctl")).arg(&program);
    assert!(install.status().unwrap().success());
    let mut command = env.command(&program);
    command.arg("--socket").arg(socket).args(args).current_dir(&directory);
    for (name, value) in
        [("HOME", &directory), ("XDG_STATE_HOME", &directory), ("XDG_RUNTIME_DIR", &directory)]
    {
        command.env(name, value);
    }
    command.uid(SECOND_UID).gid(SECOND_UID);
    harness::run_command(command)
}

/// All bytes that clients have sent to the listener so far.
fn received_bytes(listener: &UnixListener) -> usize {
    listener.set_nonblocking(true).unwrap();
    let streams = std::iter::from_fn(|| listener.accept().ok());
    streams
        .map(|(mut stream, _)| {
            stream.set_nonblocking(true).unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).ok();
            bytes.len()
        })
        .sum()
}

/// Waits at the path of the control socket for calls of the victim.
fn attack_clients(log: &mut AttackLog, tried: &str, directory_owner: u32) {
    let env = TestEnv::with_team();
    env.teamctl(["down"]).expect_success();
    let socket: PathBuf = env.control_socket();
    let directory = socket.parent().unwrap();
    chown(directory, Some(directory_owner), None).unwrap();
    let parents = [env.path(""), env.path("run"), env.path("run/teamd")];
    parents.iter().for_each(|parent| set_mode(parent, 0o755));
    set_mode(directory, 0o777);
    let listener = as_second_user(|| UnixListener::bind(&socket).unwrap());
    if directory_owner == 0 {
        set_mode(directory, 0o700);
    }
    for args in
        [&["kill", "ann"][..], &["send", "team-lead", "secret"], &["spawn", "x", "--", "true"], &["down"]]
    {
        let output = env.with_timeout(Duration::from_secs(30), || env.teamctl_with(args, &[]));
        let bytes = received_bytes(&listener);
        let outcome = match (bytes, output.code) {
            (0, code) => Ok(format!("{code}: nothing was sent there")),
            (bytes, code) => Err(format!("{code}: {bytes} bytes were sent there")),
        };
        log.record(format!("{tried}: teamctl {}", args.join(" ")), outcome);
    }
    let tmux = format!("{},0,0", env.tmux_socket().display());
    let output = env.teamctl_with(&["up"], &[("TMUX", &tmux)]);
    log.record_command(format!("{tried}: teamctl up"), &output, &[69, 73, 74, 75, NOT_PERMITTED]);
}

pub(crate) fn attack(log: &mut AttackLog) {
    if !can_be_second_user(log) {
        return;
    }
    attack_daemon(log);
    attack_clients(log, "listens at the control socket's path", 0);
    attack_clients(log, "listens there, in a directory of its own", SECOND_UID);
}

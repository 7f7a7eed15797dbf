//! Frames on the control socket from broken, slow and hostile clients. No frame is a valid request
//! that the daemon would carry out for a person.

use super::mutate::mutate;
use super::{HostileRun, single_file_below};
use harness::TestEnv;
use protocol::control_socket::framing::encode;
use protocol::control_socket::{
    Call, ExitReport, FromShim, PROTOCOL_VERSION, Request, ShimHello, StartAgent, ToShim,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Invalid names and names that no member has.
const NAMES: [&str; 8] = ["../survey", "a/b", "", "..", "\u{1b}[2J", "x\0y", "nobody", "%0"];

/// Sends a request without a token, as a person does, and returns the reply.
pub(super) fn call_daemon(env: &TestEnv, request: &Value) -> Value {
    call_daemon_with_token(env, None, request)
}

/// Sends a request with a token and returns the reply.
pub(super) fn call_daemon_with_token(env: &TestEnv, token: Option<&str>, request: &Value) -> Value {
    let mut stream = connect(env);
    send_bytes(
        &mut stream,
        format!("{}\n", json!({"version": PROTOCOL_VERSION, "token": token, "request": request})).as_bytes(),
    );
    serde_json::from_str(&read_reply(stream)).unwrap()
}

fn connect(env: &TestEnv) -> UnixStream {
    let stream = UnixStream::connect(single_file_below(&env.path("run/teamd"), "control.sock")).unwrap();
    stream.set_read_timeout(Some(harness::TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(harness::TIMEOUT)).unwrap();
    stream
}

/// Writes until the daemon closes the connection.
fn send_bytes(stream: &mut UnixStream, bytes: &[u8]) {
    stream.write_all(bytes).ok();
}

/// Reads one line, or nothing if the daemon closes the connection. Panics if the daemon does
/// neither.
fn read_reply(stream: UnixStream) -> String {
    let mut line = Vec::new();
    match BufReader::new(stream).read_until(b'\n', &mut line) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("the daemon neither replies nor closes the connection")
        }
        _ => String::from_utf8_lossy(&line).into_owned(),
    }
}

/// The line of a call whose request may be invalid.
fn call(request: Value) -> Vec<u8> {
    format!("{}\n", json!({"version": PROTOCOL_VERSION, "request": request})).into_bytes()
}

/// The line of a valid call.
fn valid_call(request: Request) -> Vec<u8> {
    encode(&Call::new(request)).unwrap()
}

/// Sends a random frame.
pub(super) fn send_frame(run: &mut HostileRun) {
    let mut stream = connect(&run.env);
    match run.rng.u32(0..14) {
        0 => send_bytes(&mut stream, format!("{{\"version\":{PROTOCOL_VERSION},\"requ").as_bytes()),
        1 => {
            send_bytes(&mut stream, &vec![b'x'; 70 * 1024]);
            assert_eq!(read_reply(stream), "");
        }
        2 => send_endless_parts(stream),
        3 => {
            let mut bytes = vec![0; run.rng.usize(1..4_000)];
            run.rng.fill(&mut bytes);
            send_bytes(&mut stream, &bytes);
            send_bytes(&mut stream, b"\n");
            read_reply(stream);
        }
        4 => {
            send_bytes(&mut stream, b"{\"version\":9999,\"request\":\"status\"}\n");
            assert!(read_reply(stream).contains("failed"));
        }
        5 => {
            send_bytes(&mut stream, &wrong_types(run));
            assert!(!read_reply(stream).contains("\"done\""));
        }
        6 => {
            let valid = call(json!({"locate_pane": {"team": "nobodys", "name": "nobody"}}));
            send_bytes(&mut stream, &mutate(&mut run.rng, &valid));
            send_bytes(&mut stream, b"\n");
            read_reply(stream);
        }
        7 => {
            send_bytes(&mut stream, &forged_shim_hello(run));
            send_bytes(&mut stream, &encode(&FromShim::Exited(ExitReport::Exit(0))).unwrap());
            let mut reply = String::new();
            stream.read_to_string(&mut reply).ok();
            for accepted in accepting_keys() {
                assert!(!reply.contains(&format!("\"{accepted}\"")), "a forged shim was accepted: {reply}");
            }
        }
        8 => send_descriptors(run, &stream),
        9 => drop((0..64).map(|_| open_half_frame(run)).collect::<Vec<_>>()),
        10 => {
            let connection = open_half_frame(run);
            run.incomplete_connections.push(connection);
        }
        11 => call_without_reading(stream),
        12 => {
            send_bytes(&mut stream, format!("{}\n", "[".repeat(60_000)).as_bytes());
            read_reply(stream);
        }
        _ => {
            send_bytes(&mut stream, &unknown_names(run));
            assert!(!read_reply(stream).contains("\"done\""));
        }
    }
}

fn open_half_frame(run: &HostileRun) -> UnixStream {
    let mut stream = connect(&run.env);
    send_bytes(&mut stream, b"{");
    stream
}

/// Sends parts of a frame that never ends, until the daemon closes the connection.
fn send_endless_parts(mut stream: UnixStream) {
    let line = format!("{{\"part\":\"{}\"}}\n", "x".repeat(60_000));
    for _ in 0..150 {
        if stream.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    assert_eq!(read_reply(stream), "");
}

/// A request whose fields are missing or have wrong types.
fn wrong_types(run: &mut HostileRun) -> Vec<u8> {
    let fields = [
        json!(null),
        json!(7),
        json!([]),
        json!({}),
        json!("x"),
        json!({"team": 7}),
        json!({"team": "t", "name": {}}),
    ];
    let kinds = [
        "create_team",
        "create_worktree",
        "spawn",
        "shutdown",
        "kill",
        "interrupt",
        "set_mode",
        "set_policy",
        "delete_team",
        "locate_pane",
        "capture_pane",
        "hide_pane",
        "show_pane",
        "set_layout",
        "next_task",
        "report_activity",
        "report_hook",
        "long_poll",
        "set_lead",
        "resume_members",
        "place_member",
        "use_host",
        "await_host",
        "forget_host",
        "take_home",
        "move_home",
        "confirm_task",
        "connect_home",
        "connect_shim",
        "nothing",
    ];
    // Some fields fit some requests. Each name must be one that the daemon knows.
    loop {
        let kind = kinds[run.rng.usize(0..kinds.len())];
        let field = &fields[run.rng.usize(0..fields.len())];
        if let Err(error) = serde_json::from_value::<Request>(json!({ kind: field })) {
            let error = error.to_string();
            let is_unknown = error.contains(&format!("unknown variant `{kind}`"));
            assert_eq!(is_unknown, kind == "nothing", "{kind}: {error}");
            return call(json!({ kind: field }));
        }
    }
}

/// A request for a member or team with an unknown or invalid name.
fn unknown_names(run: &mut HostileRun) -> Vec<u8> {
    let name = NAMES[run.rng.usize(0..NAMES.len())];
    let member = json!({"team": "survey", "name": name});
    let targets = json!({"team": "survey", "names": [name]});
    call(match run.rng.u32(0..8) {
        0 => json!({"locate_pane": member}),
        1 => json!({"hide_pane": member}),
        2 => json!({"kill": targets}),
        3 => json!({"shutdown": {"targets": targets, "grace_ms": 1, "force": true}}),
        4 => json!({"capture_pane": {"team": "survey", "name": name, "lines": u32::MAX}}),
        5 => json!({"delete_team": {"team": if name == "survey" { "x" } else { name }, "force": true}}),
        6 => json!({"set_mode": {"team": "survey", "name": name, "mode": "bypassPermissions"}}),
        _ => json!({"interrupt": member}),
    })
}

/// How the daemon replies to a shim that it accepts.
fn accepting_keys() -> [String; 2] {
    let start_agent = StartAgent {
        argv: Vec::new(),
        cwd: "/".into(),
        env: BTreeMap::new(),
        state_dir: "/".into(),
        turn_setup: None,
        iterm2_color: None,
    };
    [ToShim::StartAgent(Box::new(start_agent)), ToShim::Adopted].map(|message| {
        match serde_json::to_value(message).unwrap() {
            Value::Object(object) => object.keys().next().unwrap().clone(),
            text => text.as_str().unwrap().to_owned(),
        }
    })
}

/// The hello of a running member's spawn or of an unknown one, from a process that is not its shim.
fn forged_shim_hello(run: &mut HostileRun) -> Vec<u8> {
    let roster =
        std::fs::read_to_string(single_file_below(&run.env.path("state/teamd"), "roster.json")).unwrap();
    let roster: Value = serde_json::from_str(&roster).unwrap();
    let agents = roster["records"].as_array().unwrap();
    let spawn =
        agents[run.rng.usize(0..agents.len())]["spawn_id"].as_str().expect("a record has its spawn id");
    let spawn_id = if run.rng.bool() { spawn } else { "00000000-0000-0000-0000-000000000000" }.to_owned();
    let agent_pid = run.rng.bool().then(std::process::id);
    valid_call(Request::ConnectShim(ShimHello { spawn_id, agent_pid, turn_status: None }))
}

/// Sends many file descriptors several times.
fn send_descriptors(run: &mut HostileRun, stream: &UnixStream) {
    let file = File::open("/dev/null").unwrap();
    for _ in 0..run.rng.usize(1..20) {
        let rights = vec![file.as_fd(); run.rng.usize(1..=200)];
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(200))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&rights)));
        sendmsg(stream, &[IoSlice::new(b"{")], &mut ancillary, SendFlags::empty()).ok();
    }
}

/// Sends many calls and reads no reply.
fn call_without_reading(mut stream: UnixStream) {
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let status = valid_call(Request::Status);
    (0..100).for_each(|_| send_bytes(&mut stream, &status));
}

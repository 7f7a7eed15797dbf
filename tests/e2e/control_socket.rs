//! The control socket and its place: whoever is another user, says half of something or takes no answer is none of ours.

use harness::{TaggedProcesses, TestEnv, record_result};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
use rustix::process::{Uid, getuid};
use rustix::thread::set_thread_uid;
use std::fs::{Permissions, create_dir, set_permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Nobody.
const OTHER_UID: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The environment's place for sockets, whose name nobody knows before.
fn socket_directory(env: &TestEnv) -> PathBuf {
    let socket = std::fs::read_dir(env.path("run/teamd")).unwrap().next().unwrap();
    socket.unwrap().path()
}

/// Only root can be somebody else.
fn is_root_or_skip(what: &str) -> bool {
    if !getuid().is_root() {
        harness::record_skip(what, "only root can be another user");
    }
    getuid().is_root()
}

#[test]
fn incomplete_calls_are_disconnected() {
    let env = TestEnv::with_daemon();
    let socket = socket_directory(&env).join("control.sock");
    let mut ways = [&b""[..], b"{\"version\":2", b"{\"part\":\"x\"}\n"].map(|said| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(said).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    });
    let mut asks = UnixStream::connect(&socket).unwrap();
    asks.write_all(b"{\"version\":2,\"request\":\"status\"}\n").unwrap();
    for stream in &mut ways {
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("it is hung up on within seconds");
        assert_eq!(said, "");
    }
    // As long ago it was answered, and nobody minds that it has not looked.
    let mut bytes = [0; 4096];
    assert!(asks.read(&mut bytes).unwrap() > 0);
    env.shut_down();
}

/// What, whether it can be planted here, and how.
type Tampering<'a> = (&'a str, bool, &'a dyn Fn(&Path));

#[test]
fn directory_of_another_user_is_rejected() {
    let root = is_root_or_skip("planted-places");
    let variants: [Tampering<'_>; 5] = [
        ("a directory of another user", root, &|path| {
            create_dir(path).unwrap();
            chown(path, Some(OTHER_UID), None).unwrap();
        }),
        ("a link of another user", root, &|path| {
            let elsewhere = path.with_file_name("elsewhere");
            create_dir(&elsewhere).unwrap();
            symlink(&elsewhere, path).unwrap();
            std::os::unix::fs::lchown(path, Some(OTHER_UID), None).unwrap();
        }),
        ("one that all may write to", true, &|path| {
            create_dir(path).unwrap();
            set_mode(path, 0o777);
        }),
        ("a file", true, &|path| drop(std::fs::File::create(path).unwrap())),
        ("a link to nowhere", true, &|path| symlink("nowhere/at/all", path).unwrap()),
    ];
    for (what, _, plant) in variants.iter().filter(|(_, possible, _)| *possible) {
        let env = TestEnv::new();
        plant(&env.path("run/teamd"));
        let socket = env.tmux_socket();
        let tmux = format!("{},0,0", socket.display());
        let ran = env.teamctl_with(&["up"], &[("TMUX", &tmux)]);
        assert!([74, 77].contains(&ran.code), "{what}: {ran:#?}");
        assert!(ran.stderr.contains("run/teamd"), "{what}: {ran:#?}");
        assert_eq!(
            TaggedProcesses::with_tag(&env.process_tag())
                .list()
                .iter()
                .filter(|line| line.contains("teamd "))
                .count(),
            0
        );
        drop(env);
    }
    if root {
        record_result("planted-places", variants.len() as u64);
    }
}

#[test]
fn other_users_are_disconnected_and_their_sockets_refused() {
    if !is_root_or_skip("other-users") {
        return;
    }
    let env = TestEnv::with_daemon();
    let place = socket_directory(&env);
    let socket_path = place.join("control.sock");
    // As if the directories kept nobody out.
    for open in [env.path(""), env.path("run"), env.path("run/teamd"), place.clone()] {
        set_mode(&open, 0o711);
    }
    set_mode(&socket_path, 0o666);
    let path = socket_path.clone();
    let other = std::thread::spawn(move || {
        set_thread_uid(Uid::from_raw(OTHER_UID)).unwrap();
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(b"{\"version\":2,\"request\":\"status\"}\n").ok();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).ok();
        said.len()
    });
    assert_eq!(other.join().unwrap(), 0, "another user is told something");
    set_mode(&place, 0o700);
    env.teamctl(["status"]).expect_success();
    env.teamctl(["down"]).expect_success();
    let path = socket_path.clone();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let served = std::thread::spawn(move || {
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        set_thread_uid(Uid::from_raw(OTHER_UID)).unwrap();
        listen(&listener, 8).unwrap();
        ready.send(()).unwrap();
        is_over.recv().ok();
    });
    is_ready.recv().unwrap();
    let said = env.teamctl(["kill", "-t", "survey", "ann"]);
    assert!([67, 77].contains(&said.code), "{said:#?}");
    let said = env.teamctl(["down"]).expect_failure(77);
    assert!(said.contains("uid 65534"), "{said}");
    drop(over);
    served.join().unwrap();
    std::fs::remove_file(socket_path).unwrap();
    env.start_daemon();
    env.shut_down();
    // One that called us, and one that was called twice.
    harness::record_result("other-users", 3);
}

/// Every file and directory below, with its permission bits.
fn permissions_below(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let found = entry.metadata().unwrap();
        if found.is_dir() {
            all.extend(permissions_below(&entry.path()));
        }
        if !found.is_symlink() {
            all.push((entry.path(), found.permissions().mode() & 0o777));
        }
    }
    all
}

#[test]
fn secrets_are_not_in_arguments_logs_or_readable_files() {
    let mut env = TestEnv::new();
    env.variables.push(("API_KEY".to_owned(), "canary-of-the-environment".to_owned()));
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let prompt = env.write_file("out/prompt", "canary-of-the-prompt");
    env.write_profile(
        "reads",
        "delivery = 'turn'\nprogram = 'sh'\nargs = ['-c', 'cat >>out/fed; env >>out/fed']\n",
    );
    let cwd = env.path("").display().to_string();
    let spawn = ["spawn", "ann", "--profile", "reads", "--prompt-file", &prompt, "--cwd", &cwd];
    env.teamctl_with(&[&spawn[..], &["--backend", "in-process"]].concat(), &[]).expect_success();
    env.teamctl(["spawn", "bob", "--cwd", &cwd, "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.wait_until("it has both", || {
        let fed = env.read("out/fed");
        (fed.contains("canary-of-the-prompt") && fed.contains("canary-of-the-environment")).then_some(())
    });
    let missing = ["spawn", "eve", "--prompt-file", &prompt, "--cwd", &cwd, "--", "no-such-program"];
    let unknown = ["spawn", "eve", "--profile", "no-such", "--prompt-file", &prompt];
    let errors: String = [&["spawn", "ann", "--", "true"][..], &missing, &unknown, &["kill", "nobody"]]
        .iter()
        .map(|words| {
            let ran = env.teamctl_with(words, &[]);
            assert!(ran.code >= 64, "{ran:#?}");
            ran.stdout + &ran.stderr
        })
        .collect();
    let roster = std::fs::read_to_string(
        socket_directory(&env).display().to_string().replace("/run/", "/state/") + "/roster.json",
    );
    let roster: serde_json::Value = serde_json::from_str(&roster.unwrap()).unwrap();
    let tokens =
        roster["records"].as_array().unwrap().iter().map(|agent| agent["token"].as_str().unwrap().to_owned());
    let secrets: Vec<String> =
        tokens.chain(["canary-of-the-environment".into(), "canary-of-the-prompt".into()]).collect();
    let lines = TaggedProcesses::with_tag(&env.process_tag()).list().join("\n");
    let told =
        [env.teamctl(["--json", "events"]).expect_success(), env.teamctl(["status", "ann"]).expect_success()]
            .concat();
    let logs: String = permissions_below(&env.path("state"))
        .iter()
        .filter(|(path, _)| path.to_string_lossy().contains("/logs/"))
        .map(|(path, _)| std::fs::read_to_string(path).unwrap_or_default())
        .collect();
    for secret in &secrets {
        assert!(!lines.contains(secret), "on a command line: {secret}\n{lines}");
        assert!(!told.contains(secret), "told: {secret}\n{told}");
        assert!(!errors.contains(secret), "in an error: {secret}\n{errors}");
        assert!(!logs.contains(secret), "in a log: {secret}\n{logs}");
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", env.daemon_pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    let ours = [
        permissions_below(&env.path("state")),
        permissions_below(&env.path("run/teamd")),
        permissions_below(&env.root()),
    ]
    .concat();
    let open: Vec<_> = ours.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
    env.shut_down();
}

/// Escapes, C1, and what turns the direction of reading.
const CONTROL_SEQUENCES: &str = "\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{7f}\u{8}x";

#[test]
fn control_characters_never_reach_the_terminal() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let text = |value: serde_json::Value| value.to_string();
    let asks = text(
        serde_json::json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ann",
        "tool_name": CONTROL_SEQUENCES, "tool_use_id": "t", "description": CONTROL_SEQUENCES, "input": {"command": CONTROL_SEQUENCES},
        "permission_suggestions": []}),
    );
    let plans = text(
        serde_json::json!({"type": "plan_approval_request", "from": "ann", "timestamp": CONTROL_SEQUENCES,
        "planFilePath": CONTROL_SEQUENCES, "planContent": CONTROL_SEQUENCES, "requestId": format!("plan_approval-1@{CONTROL_SEQUENCES}")}),
    );
    let failed = text(
        serde_json::json!({"type": "idle_notification", "from": CONTROL_SEQUENCES, "idleReason": "failed",
        "summary": CONTROL_SEQUENCES, "failureReason": CONTROL_SEQUENCES}),
    );
    let letter = |from: &str, text: &str| serde_json::json!({"from": from, "text": text, "summary": CONTROL_SEQUENCES, "color": CONTROL_SEQUENCES, "timestamp": CONTROL_SEQUENCES, "read": false});
    let all = serde_json::json!([
        letter(CONTROL_SEQUENCES, CONTROL_SEQUENCES),
        letter("ann", &asks),
        letter("ann", &plans),
        letter("ann", &failed)
    ]);
    env.write_file("root/teams/survey/inboxes/team-lead.json", all.to_string());
    env.write_file("root/teams/survey/inboxes/ann.json", all.to_string());
    let task = serde_json::json!({"id": "1", "subject": CONTROL_SEQUENCES, "description": CONTROL_SEQUENCES, "activeForm": CONTROL_SEQUENCES, "owner": CONTROL_SEQUENCES,
        "status": "in_progress", "blocks": [], "blockedBy": [], "metadata": {CONTROL_SEQUENCES: CONTROL_SEQUENCES}});
    env.write_file("root/tasks/survey/1.json", task.to_string());
    env.write_file("root/tasks/survey/2.json", format!("{{\"id\": \"{CONTROL_SEQUENCES}\""));
    env.wait_until("it was told", || {
        env.teamctl(["--json", "events"]).expect_success().contains("message_stored").then_some(())
    });
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let sinks: [&[&str]; 15] = [
        &["inbox", "team-lead"],
        &["inbox", "ann"],
        &["status"],
        &["status", "ann"],
        &["status", "--format", "tmux"],
        &["events"],
        &["requests"],
        &["task", "list", "--all"],
        &["task", "get", "1"],
        &["doctor"],
        &["approve", CONTROL_SEQUENCES],
        &["send", CONTROL_SEQUENCES, "x"],
        &["task", "get", CONTROL_SEQUENCES],
        &["logs", CONTROL_SEQUENCES],
        &["status", "-t", CONTROL_SEQUENCES],
    ];
    for sink in sinks {
        for json in [&[][..], &["--json"]] {
            let ran = env.teamctl_with(&[json, sink].concat(), &[]);
            let shown = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!shown.contains(steers), "{sink:?} {json:?}: {shown:?}");
            assert!(!shown.is_empty(), "{sink:?} says nothing");
        }
    }
    let borders =
        env.tmux(["list-panes", "-a", "-F", "#{pane_title} #{T:pane-border-format} #{window_name}"]);
    assert!(!borders.contains(steers), "{borders:?}");
    env.shut_down();
}

fn move_away(env: &TestEnv, path: &Path) {
    let mut mv = env.command("mv");
    mv.arg(path).arg(path.with_extension("old"));
    assert!(mv.status().unwrap().success());
}

#[test]
fn removed_socket_is_made_again() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--backend", "in-process", "--", "sleep", "3600"]).expect_success();
    let directory = socket_directory(&env);
    let pid = env.daemon_pid();
    let removals: [&dyn Fn(); 3] = [
        &|| std::fs::remove_file(directory.join("control.sock")).unwrap(),
        &|| move_away(&env, &directory),
        &|| move_away(&env, &directory.join("control.sock")),
    ];
    for remove in removals {
        remove();
        let status = || Some(env.teamctl(["status"])).filter(|ran| ran.code == 0);
        env.wait_until("the daemon answers at its socket", status).expect_success();
        assert_eq!(env.daemon_pid(), pid, "it is the same daemon");
        let mode = std::fs::metadata(directory.join("control.sock")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    std::fs::remove_file(directory.with_extension("old").join("control.sock")).unwrap();
    env.shut_down();
}

#[test]
fn daemon_is_found_from_any_environment_of_the_same_user() {
    let env = TestEnv::with_team();
    let pid = env.daemon_pid();
    let other = env.path("elsewhere").display().to_string();
    let environments: [&[(&str, &str)]; 3] = [
        &[("XDG_RUNTIME_DIR", &other)],
        &[("XDG_STATE_HOME", &other)],
        &[("XDG_RUNTIME_DIR", &other), ("XDG_STATE_HOME", &other)],
    ];
    for environment in environments {
        let status = env.teamctl_with(&["status", "--json"], environment);
        assert_eq!(status.code, 0, "{environment:?}: {status:#?}");
        assert_eq!(status.json()["daemon"]["pid"].as_u64(), Some(u64::from(pid)));
        let up = env.teamctl_with(&["up"], environment).expect_success();
        assert!(up.contains(&format!("runs already: pid {pid}")), "{up}");
        env.teamctl_with(&["spawn", "ann", "--backend", "in-process", "--", "sleep", "3600"], environment)
            .expect_success();
        env.teamctl_with(&["kill", "ann"], environment).expect_success();
    }
    env.teamctl_with(&["down"], environments[2]).expect_success();
    assert_eq!(env.teamctl(["status"]).code, 69);
    env.shut_down_after_kills();
}

//! The control socket and its directory: incomplete calls, other users, file permissions, secrets,
//! control characters, and a socket that was removed.

use harness::{TaggedProcesses, TestEnv, record_result};
use protocol::state_and_runtime_directories::{Directories, DirectoryEnvironment};
use rustix::process::getuid;
use std::fs::{Permissions, create_dir, set_permissions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The uid of the user `nobody`.
const OTHER_UID: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The directory of the daemon's sockets, the only entry of `run/teamd`.
fn socket_directory(env: &TestEnv) -> PathBuf {
    let socket = std::fs::read_dir(env.path("run/teamd")).unwrap().next().unwrap();
    socket.unwrap().path()
}

/// Whether the test runs as root. Otherwise it records a skip, because only root can act as another
/// user.
fn is_root_or_skip(test: &str) -> bool {
    if !getuid().is_root() {
        harness::record_skip(test, "only root can be another user");
    }
    getuid().is_root()
}

#[test]
fn incomplete_calls_are_disconnected() {
    let env = TestEnv::with_daemon();
    let socket = socket_directory(&env).join("control.sock");
    let mut streams = [&b""[..], b"{\"version\":2", b"{\"part\":\"x\"}\n"].map(|bytes| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(bytes).unwrap();
        stream.set_read_timeout(Some(harness::TIMEOUT)).unwrap();
        stream
    });
    let mut complete_call = UnixStream::connect(&socket).unwrap();
    complete_call.write_all(b"{\"version\":2,\"request\":\"status\"}\n").unwrap();
    for stream in &mut streams {
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("the daemon closes the connection within 20 s");
        assert_eq!(reply, "");
    }
    // A complete call has its reply, although the caller has not read until now.
    let mut bytes = [0; 4096];
    assert!(complete_call.read(&mut bytes).unwrap() > 0);
    env.shut_down();
}

/// A description, whether the test can create this at the path, and the function that creates it.
type PreparedPath<'a> = (&'a str, bool, &'a dyn Fn(&Path));

#[test]
fn directory_of_another_user_is_rejected() {
    let is_root = is_root_or_skip("planted-places");
    let variants: [PreparedPath<'_>; 5] = [
        ("a directory of another user", is_root, &|path| {
            create_dir(path).unwrap();
            chown(path, Some(OTHER_UID), None).unwrap();
        }),
        ("a link of another user", is_root, &|path| {
            let target = path.with_file_name("elsewhere");
            create_dir(&target).unwrap();
            symlink(&target, path).unwrap();
            std::os::unix::fs::lchown(path, Some(OTHER_UID), None).unwrap();
        }),
        ("a directory that every user may write to", true, &|path| {
            create_dir(path).unwrap();
            set_mode(path, 0o777);
        }),
        ("a file", true, &|path| drop(std::fs::File::create(path).unwrap())),
        ("a link to nowhere", true, &|path| symlink("nowhere/at/all", path).unwrap()),
    ];
    for (description, _, create) in variants.iter().filter(|(_, is_possible, _)| *is_possible) {
        let env = TestEnv::new();
        create(&env.path("run/teamd"));
        let socket = env.tmux_socket();
        let tmux = format!("{},0,0", socket.display());
        let output = env.teamctl_with(&["up"], &[("TMUX", &tmux)]);
        assert!([74, 77].contains(&output.code), "{description}: {output:#?}");
        assert!(output.stderr.contains("run/teamd"), "{description}: {output:#?}");
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
    if is_root {
        record_result("planted-places", variants.len() as u64);
    }
}

/// Linux only: a thread acts as the other user.
#[cfg(target_os = "linux")]
#[test]
fn other_users_are_disconnected_and_their_sockets_refused() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    use rustix::process::Uid;
    use rustix::thread::set_thread_uid;
    if !is_root_or_skip("other-users") {
        return;
    }
    let env = TestEnv::with_daemon();
    let directory = socket_directory(&env);
    let socket_path = directory.join("control.sock");
    // Give other users access to the socket, so that only the check of their uid is left.
    for path in [env.path(""), env.path("run"), env.path("run/teamd"), directory.clone()] {
        set_mode(&path, 0o711);
    }
    set_mode(&socket_path, 0o666);
    let path = socket_path.clone();
    let caller = std::thread::spawn(move || {
        set_thread_uid(Uid::from_raw(OTHER_UID)).unwrap();
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(b"{\"version\":2,\"request\":\"status\"}\n").ok();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).ok();
        reply.len()
    });
    assert_eq!(caller.join().unwrap(), 0, "another user gets no reply");
    set_mode(&directory, 0o700);
    env.teamctl(["status"]).expect_success();
    env.teamctl(["down"]).expect_success();
    let path = socket_path.clone();
    let (ready_sender, ready_receiver) = std::sync::mpsc::channel();
    let (end_sender, end_receiver) = std::sync::mpsc::channel::<()>();
    let server = std::thread::spawn(move || {
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        set_thread_uid(Uid::from_raw(OTHER_UID)).unwrap();
        listen(&listener, 8).unwrap();
        ready_sender.send(()).unwrap();
        end_receiver.recv().ok();
    });
    ready_receiver.recv().unwrap();
    let output = env.teamctl(["kill", "-t", "survey", "ann"]);
    assert!([67, 77].contains(&output.code), "{output:#?}");
    let error = env.teamctl(["down"]).expect_failure(77);
    assert!(error.contains("uid 65534"), "{error}");
    drop(end_sender);
    server.join().unwrap();
    std::fs::remove_file(socket_path).unwrap();
    env.start_daemon();
    env.shut_down();
    // One call by another user, and two calls to a socket of another user.
    harness::record_result("other-users", 3);
}

/// Every file and directory below `directory`, with its permission bits.
fn permissions_below(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        // The daemon or a shim may have removed a lock or a temporary file meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            paths.extend(permissions_below(&entry.path()));
        }
        if !metadata.is_symlink() {
            paths.push((entry.path(), metadata.permissions().mode() & 0o777));
        }
    }
    paths
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
    env.wait_until("the agent has the prompt and the variable", || {
        let input = env.read("out/fed");
        (input.contains("canary-of-the-prompt") && input.contains("canary-of-the-environment")).then_some(())
    });
    let missing_program = ["spawn", "eve", "--prompt-file", &prompt, "--cwd", &cwd, "--", "no-such-program"];
    let unknown_profile = ["spawn", "eve", "--profile", "no-such", "--prompt-file", &prompt];
    let errors: String =
        [&["spawn", "ann", "--", "true"][..], &missing_program, &unknown_profile, &["kill", "nobody"]]
            .iter()
            .map(|args| {
                let output = env.teamctl_with(args, &[]);
                assert!(output.code >= 64, "{output:#?}");
                output.stdout + &output.stderr
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
    let command_lines = TaggedProcesses::with_tag(&env.process_tag()).list().join("\n");
    let reports =
        [env.teamctl(["--json", "events"]).expect_success(), env.teamctl(["status", "ann"]).expect_success()]
            .concat();
    let logs: String = permissions_below(&env.path("state"))
        .iter()
        .filter(|(path, _)| path.to_string_lossy().contains("/logs/"))
        .map(|(path, _)| std::fs::read_to_string(path).unwrap_or_default())
        .collect();
    for secret in &secrets {
        assert!(!command_lines.contains(secret), "the command lines contain {secret}\n{command_lines}");
        assert!(!reports.contains(secret), "the events or the status contain {secret}\n{reports}");
        assert!(!errors.contains(secret), "the errors contain {secret}\n{errors}");
        assert!(!logs.contains(secret), "the logs contain {secret}\n{logs}");
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", env.daemon_pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    let directories = [env.path("state"), env.path("run/teamd"), env.root()];
    env.wait_until("no file is readable by other users, except barriers for a moment", || {
        let mut paths = directories.iter().flat_map(|directory| permissions_below(directory));
        paths.all(|(_, mode)| mode & 0o077 == 0).then_some(())
    });
    env.shut_down();
}

/// Escape sequences, C1 control characters, and characters that change the direction of text.
const CONTROL_SEQUENCES: &str = "\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{7f}\u{8}x";

#[test]
fn control_characters_never_reach_the_terminal() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    let to_text = |value: serde_json::Value| value.to_string();
    let permission_request = to_text(
        serde_json::json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ann",
        "tool_name": CONTROL_SEQUENCES, "tool_use_id": "t", "description": CONTROL_SEQUENCES, "input": {"command": CONTROL_SEQUENCES},
        "permission_suggestions": []}),
    );
    let plan_request = to_text(
        serde_json::json!({"type": "plan_approval_request", "from": "ann", "timestamp": CONTROL_SEQUENCES,
        "planFilePath": CONTROL_SEQUENCES, "planContent": CONTROL_SEQUENCES, "requestId": format!("plan_approval-1@{CONTROL_SEQUENCES}")}),
    );
    let idle_notification = to_text(
        serde_json::json!({"type": "idle_notification", "from": CONTROL_SEQUENCES, "idleReason": "failed",
        "summary": CONTROL_SEQUENCES, "failureReason": CONTROL_SEQUENCES}),
    );
    let message = |from: &str, text: &str| serde_json::json!({"from": from, "text": text, "summary": CONTROL_SEQUENCES, "color": CONTROL_SEQUENCES, "timestamp": CONTROL_SEQUENCES, "read": false});
    let inbox = serde_json::json!([
        message(CONTROL_SEQUENCES, CONTROL_SEQUENCES),
        message("ann", &permission_request),
        message("ann", &plan_request),
        message("ann", &idle_notification)
    ]);
    env.write_file("root/teams/survey/inboxes/team-lead.json", inbox.to_string());
    env.write_file("root/teams/survey/inboxes/ann.json", inbox.to_string());
    let task = serde_json::json!({"id": "1", "subject": CONTROL_SEQUENCES, "description": CONTROL_SEQUENCES, "activeForm": CONTROL_SEQUENCES, "owner": CONTROL_SEQUENCES,
        "status": "in_progress", "blocks": [], "blockedBy": [], "metadata": {CONTROL_SEQUENCES: CONTROL_SEQUENCES}});
    env.write_file("root/tasks/survey/1.json", task.to_string());
    env.write_file("root/tasks/survey/2.json", format!("{{\"id\": \"{CONTROL_SEQUENCES}\""));
    env.wait_until("the event log has the messages", || {
        env.teamctl(["--json", "events"]).expect_success().contains("message_stored").then_some(())
    });
    let is_control = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let commands: [&[&str]; 15] = [
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
    for command in commands {
        for json in [&[][..], &["--json"]] {
            let output = env.teamctl_with(&[json, command].concat(), &[]);
            let text = format!("{}{}", output.stdout, output.stderr);
            assert!(!text.contains(is_control), "{command:?} {json:?}: {text:?}");
            assert!(!text.is_empty(), "{command:?} prints text");
        }
    }
    let borders =
        env.tmux(["list-panes", "-a", "-F", "#{pane_title} #{T:pane-border-format} #{window_name}"]);
    assert!(!borders.contains(is_control), "{borders:?}");
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
        let status = || Some(env.teamctl(["status"])).filter(|output| output.code == 0);
        env.wait_until("the daemon answers at its socket", status).expect_success();
        assert_eq!(env.daemon_pid(), pid, "it is the same daemon");
        let mode = std::fs::metadata(directory.join("control.sock")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    std::fs::remove_file(directory.with_extension("old").join("control.sock")).unwrap();
    env.shut_down();
}

/// A logout removes the runtime directory, and only the system can make it again. A file in its place
/// stands for that, since tests may run as root.
#[test]
fn socket_moves_to_the_state_directory_while_the_runtime_directory_is_missing() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    let pid = env.daemon_pid();
    let socket = socket_directory(&env).join("control.sock").display().to_string();
    let runtime = env.path("run/teamd");
    let answers = || Some(env.teamctl(["status"])).filter(|output| output.code == 0);
    // In one step, since the daemon makes a missing directory again at once.
    drop(std::fs::File::create(env.path("run/file")).unwrap());
    let directory = std::fs::File::open(env.path("run")).unwrap();
    platform::system().exchange_names(directory.as_fd(), "file", "teamd").unwrap();
    env.wait_until("the daemon is found", answers).expect_success();
    let up = env.teamctl(["up"]).expect_success();
    assert!(up.contains(&format!("runs already: pid {pid}")), "{up}");
    // The agent's environment names the first socket.
    let member = env.member("ann").unwrap();
    env.teamctl_with(&["status"], &[("TEAMD_SOCKET", &socket)]).expect_success();
    env.kill_process(pid);
    // Another daemon is started from an environment that has a runtime directory.
    let other_directory = env.path("elsewhere");
    std::fs::create_dir(&other_directory).unwrap();
    let other = [("XDG_RUNTIME_DIR", other_directory.to_str().unwrap())];
    env.teamctl_with(&["up"], &other).expect_success();
    env.wait_until("the shim has found the new daemon", || {
        let status = env.teamctl_with(&["status", "--json"], &other).json();
        let seen = &status["teams"][0]["members"][0];
        (seen["lifecycle"] == "running" && seen["pid"] == member["pid"]).then_some(())
    });
    env.teamctl_with(&["kill", "ann"], &other).expect_success();
    env.teamctl_with(&["down"], &other).expect_success();
    std::fs::remove_file(&runtime).unwrap();
    let moved_socket = env.path("run/file").join(Path::new(&socket).strip_prefix(&runtime).unwrap());
    std::fs::remove_file(moved_socket).unwrap();
    env.shut_down_after_kills();
}

#[test]
fn daemon_is_found_from_any_environment_of_the_same_user() {
    let env = TestEnv::with_team();
    let pid = env.daemon_pid();
    let other_directory = env.path("elsewhere").display().to_string();
    let environments: [&[(&str, &str)]; 3] = [
        &[("XDG_RUNTIME_DIR", &other_directory)],
        &[("XDG_STATE_HOME", &other_directory)],
        &[("XDG_RUNTIME_DIR", &other_directory), ("XDG_STATE_HOME", &other_directory)],
    ];
    // With both variables changed, the daemon is found by the lock file that it has open.
    let findable = if harness::skips_without(harness::Facility::OpenFiles) { 2 } else { 3 };
    for environment in &environments[..findable] {
        let status = env.teamctl_with(&["status", "--json"], environment);
        assert_eq!(status.code, 0, "{environment:?}: {status:#?}");
        assert_eq!(status.json()["daemon"]["pid"].as_u64(), Some(u64::from(pid)));
        let up = env.teamctl_with(&["up"], environment).expect_success();
        assert!(up.contains(&format!("runs already: pid {pid}")), "{up}");
        env.teamctl_with(&["spawn", "ann", "--backend", "in-process", "--", "sleep", "3600"], environment)
            .expect_success();
        env.teamctl_with(&["kill", "ann"], environment).expect_success();
    }
    env.teamctl_with(&["down"], environments[findable - 1]).expect_success();
    assert_eq!(env.teamctl(["status"]).code, 69);
    env.shut_down_after_kills();
}

#[test]
fn daemon_of_another_root_is_refused() {
    let env = TestEnv::with_team();
    let other_root = env.path("other").display().to_string();
    let socket = socket_directory(&env).join("control.sock").display().to_string();
    let other = [("TEAMD_ROOT", other_root.as_str())];
    for arguments in [&["create", "dig"][..], &["status"], &["down"]] {
        let named = env.teamctl_with(&[&["--socket", &socket], arguments].concat(), &other);
        let error = named.expect_failure(78);
        assert!(error.contains("supervises the root"), "{error}");
    }
    assert!(!env.root().join("teams/dig").exists());
    // The lock file that an ended daemon of the other root has left names the same socket.
    let status = env.teamctl_with(&["status"], &other).expect_failure(69);
    assert!(status.contains("teamctl up"), "{status}");
    let environment = DirectoryEnvironment {
        runtime_dir: Some(env.path("run")),
        state_home: Some(env.path("state")),
        home: Some(env.path("home")),
        uid: getuid().as_raw(),
    };
    let state_dir = Directories::for_root(Path::new(&other_root), &environment).state_dir;
    std::fs::create_dir_all(&state_dir).unwrap();
    let lock_file = state_dir.join("teamd.lock");
    let lock_file = lock_file.strip_prefix(env.path("")).unwrap().to_str().unwrap();
    env.write_file(lock_file, format!("1\n{socket}\n"));
    env.teamctl_with(&["status"], &other).expect_failure(69);
    env.shut_down();
}

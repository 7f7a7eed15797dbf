//! The control socket and its place: whoever is another user, says half of something or takes no answer is none of ours.

use harness::{House, Processes, figure};
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
const OTHER: u32 = 65534;

fn mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The house's place for sockets, whose name nobody knows before.
fn place(house: &House) -> PathBuf {
    let socket = std::fs::read_dir(house.path("run/teamd")).unwrap().next().unwrap();
    socket.unwrap().path()
}

/// Only root can be somebody else.
fn is_root(what: &str) -> bool {
    if !getuid().is_root() {
        harness::skipped(what, "only root can be another user");
    }
    getuid().is_root()
}

#[test]
fn who_says_half_or_nothing_is_hung_up_on() {
    let house = House::start();
    let socket = place(&house).join("control.sock");
    let mut ways = [&b""[..], b"{\"v\":1", b"{\"part\":\"x\"}\n"].map(|said| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(said).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    });
    let mut asks = UnixStream::connect(&socket).unwrap();
    asks.write_all(b"{\"v\":1,\"request\":\"status\"}\n").unwrap();
    for stream in &mut ways {
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("it is hung up on within seconds");
        assert_eq!(said, "");
    }
    // As long ago it was answered, and nobody minds that it has not looked.
    let mut bytes = [0; 4096];
    assert!(asks.read(&mut bytes).unwrap() > 0);
    house.end();
}

/// What, whether it can be planted here, and how.
type Planted<'a> = (&'a str, bool, &'a dyn Fn(&Path));

#[test]
fn a_place_that_another_user_made_is_refused() {
    let root = is_root("planted-places");
    let variants: [Planted<'_>; 5] = [
        ("a directory of another user", root, &|path| {
            create_dir(path).unwrap();
            chown(path, Some(OTHER), None).unwrap();
        }),
        ("a link of another user", root, &|path| {
            let elsewhere = path.with_file_name("elsewhere");
            create_dir(&elsewhere).unwrap();
            symlink(&elsewhere, path).unwrap();
            std::os::unix::fs::lchown(path, Some(OTHER), None).unwrap();
        }),
        ("one that all may write to", true, &|path| {
            create_dir(path).unwrap();
            mode(path, 0o777);
        }),
        ("a file", true, &|path| drop(std::fs::File::create(path).unwrap())),
        ("a link to nowhere", true, &|path| symlink("nowhere/at/all", path).unwrap()),
    ];
    for (what, _, plant) in variants.iter().filter(|(_, possible, _)| *possible) {
        let house = House::empty();
        plant(&house.path("run/teamd"));
        let socket = house.tmux_socket();
        let tmux = format!("{},0,0", socket.display());
        let ran = house.teamctl_with(&["up"], &[("TMUX", &tmux)]);
        assert!([74, 77].contains(&ran.code), "{what}: {ran:#?}");
        assert!(ran.stderr.contains("run/teamd"), "{what}: {ran:#?}");
        assert_eq!(
            Processes::marked(&house.mark()).list().iter().filter(|line| line.contains("teamd ")).count(),
            0
        );
        drop(house);
    }
    if root {
        figure("planted-places", variants.len() as u64);
    }
}

#[test]
fn another_users_process_is_hung_up_on_and_its_socket_is_not_spoken_to() {
    if !is_root("other-users") {
        return;
    }
    let house = House::start();
    let place = place(&house);
    let socket_path = place.join("control.sock");
    // As if the directories kept nobody out.
    for open in [house.path(""), house.path("run"), house.path("run/teamd"), place.clone()] {
        mode(&open, 0o711);
    }
    mode(&socket_path, 0o666);
    let path = socket_path.clone();
    let other = std::thread::spawn(move || {
        set_thread_uid(Uid::from_raw(OTHER)).unwrap();
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(b"{\"v\":1,\"request\":\"status\"}\n").ok();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).ok();
        said.len()
    });
    assert_eq!(other.join().unwrap(), 0, "another user is told something");
    mode(&place, 0o700);
    house.teamctl(["status"]).ok();
    house.teamctl(["down"]).ok();
    let path = socket_path.clone();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let served = std::thread::spawn(move || {
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        set_thread_uid(Uid::from_raw(OTHER)).unwrap();
        listen(&listener, 8).unwrap();
        ready.send(()).unwrap();
        is_over.recv().ok();
    });
    is_ready.recv().unwrap();
    let said = house.teamctl(["kill", "-t", "survey", "ann"]);
    assert!([67, 77].contains(&said.code), "{said:#?}");
    let said = house.teamctl(["down"]).fails(77);
    assert!(said.contains("uid 65534"), "{said}");
    drop(over);
    served.join().unwrap();
    std::fs::remove_file(socket_path).unwrap();
    house.start_daemon();
    house.end();
    // One that called us, and one that was called twice.
    harness::figure("other-users", 3);
}

/// Every file and directory below, with its permission bits.
fn modes(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let found = entry.metadata().unwrap();
        if found.is_dir() {
            all.extend(modes(&entry.path()));
        }
        if !found.is_symlink() {
            all.push((entry.path(), found.permissions().mode() & 0o777));
        }
    }
    all
}

#[test]
fn no_secret_is_on_a_command_line_or_in_a_log_and_what_is_ours_is_for_nobody_else() {
    let mut house = House::empty();
    house.variables.push(("API_KEY".to_owned(), "canary-of-the-environment".to_owned()));
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    let prompt = house.put("out/prompt", "canary-of-the-prompt");
    house.profile("reads", "feed = 'turn'\nprogram = 'sh'\nargs = ['-c', 'cat >>out/fed; env >>out/fed']\n");
    let cwd = house.path("").display().to_string();
    let spawn = ["spawn", "ann", "--agent", "reads", "--prompt-file", &prompt, "--cwd", &cwd];
    house.teamctl_with(&[&spawn[..], &["--backend", "in-process"]].concat(), &[]).ok();
    house.teamctl(["spawn", "bob", "--cwd", &cwd, "--", &house.agent(), "stay"]).ok();
    house.until("it has both", || {
        let fed = house.read("out/fed");
        (fed.contains("canary-of-the-prompt") && fed.contains("canary-of-the-environment")).then_some(())
    });
    let missing = ["spawn", "eve", "--prompt-file", &prompt, "--cwd", &cwd, "--", "no-such-program"];
    let unknown = ["spawn", "eve", "--agent", "no-such", "--prompt-file", &prompt];
    let errors: String = [&["spawn", "ann", "--", "true"][..], &missing, &unknown, &["kill", "nobody"]]
        .iter()
        .map(|words| {
            let ran = house.teamctl_with(words, &[]);
            assert!(ran.code >= 64, "{ran:#?}");
            ran.stdout + &ran.stderr
        })
        .collect();
    let roster = std::fs::read_to_string(
        place(&house).display().to_string().replace("/run/", "/state/") + "/roster.json",
    );
    let roster: serde_json::Value = serde_json::from_str(&roster.unwrap()).unwrap();
    let tokens =
        roster["agents"].as_array().unwrap().iter().map(|agent| agent["token"].as_str().unwrap().to_owned());
    let secrets: Vec<String> =
        tokens.chain(["canary-of-the-environment".into(), "canary-of-the-prompt".into()]).collect();
    let lines = Processes::marked(&house.mark()).list().join("\n");
    let told = [house.teamctl(["--json", "events"]).ok(), house.teamctl(["status", "ann"]).ok()].concat();
    let logs: String = modes(&house.path("state"))
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
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", house.daemon())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    let ours = [modes(&house.path("state")), modes(&house.path("run/teamd")), modes(&house.root())].concat();
    let open: Vec<_> = ours.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
    house.end();
}

/// Escapes, C1, and what turns the direction of reading.
const STEERS: &str = "\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{7f}\u{8}x";

#[test]
fn what_others_wrote_steers_no_terminal_wherever_it_is_shown() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    let text = |value: serde_json::Value| value.to_string();
    let asks =
        text(serde_json::json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ann",
        "tool_name": STEERS, "tool_use_id": "t", "description": STEERS, "input": {"command": STEERS},
        "permission_suggestions": []}));
    let plans = text(serde_json::json!({"type": "plan_approval_request", "from": "ann", "timestamp": STEERS,
        "planFilePath": STEERS, "planContent": STEERS, "requestId": format!("plan_approval-1@{STEERS}")}));
    let failed =
        text(serde_json::json!({"type": "idle_notification", "from": STEERS, "idleReason": "failed",
        "summary": STEERS, "failureReason": STEERS}));
    let letter = |from: &str, text: &str| serde_json::json!({"from": from, "text": text, "summary": STEERS, "color": STEERS, "timestamp": STEERS, "read": false});
    let all = serde_json::json!([
        letter(STEERS, STEERS),
        letter("ann", &asks),
        letter("ann", &plans),
        letter("ann", &failed)
    ]);
    house.put("root/teams/survey/inboxes/team-lead.json", all.to_string());
    house.put("root/teams/survey/inboxes/ann.json", all.to_string());
    let task = serde_json::json!({"id": "1", "subject": STEERS, "description": STEERS, "activeForm": STEERS, "owner": STEERS,
        "status": "in_progress", "blocks": [], "blockedBy": [], "metadata": {STEERS: STEERS}});
    house.put("root/tasks/survey/1.json", task.to_string());
    house.put("root/tasks/survey/2.json", format!("{{\"id\": \"{STEERS}\""));
    house.until("it was told", || {
        house.teamctl(["--json", "events"]).ok().contains("message_stored").then_some(())
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
        &["approve", STEERS],
        &["send", STEERS, "x"],
        &["task", "get", STEERS],
        &["logs", STEERS],
        &["status", "-t", STEERS],
    ];
    for sink in sinks {
        for json in [&[][..], &["--json"]] {
            let ran = house.teamctl_with(&[json, sink].concat(), &[]);
            let shown = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!shown.contains(steers), "{sink:?} {json:?}: {shown:?}");
            assert!(!shown.is_empty(), "{sink:?} says nothing");
        }
    }
    let borders =
        house.tmux(["list-panes", "-a", "-F", "#{pane_title} #{T:pane-border-format} #{window_name}"]);
    assert!(!borders.contains(steers), "{borders:?}");
    house.end();
}

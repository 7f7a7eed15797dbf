//! A home whose connect command sends everything back, so that it is its own annex.

use crate::end::{DEADLINE, command, start, start_with_silence, wait_for_items};
use link::{DisconnectReason, LinkReport, LinkRole};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

const HOME: LinkRole = LinkRole::Home { epoch: 1 };

#[tokio::test]
async fn items_come_back_through_cat() {
    let dir = tempfile::tempdir().unwrap();
    let home = start(&dir.path().join("home"), HOME, command(&["sh", "-c", "cat"]));
    home.submit_through(1_000);
    wait_for_items(&dir.path().join("home"), 1_000).await;
}

/// Each connection is cut after 7,001 bytes, usually in the middle of a frame.
#[tokio::test]
async fn items_survive_cuts_in_the_middle_of_frames() {
    let dir = tempfile::tempdir().unwrap();
    let home = start(&dir.path().join("home"), HOME, command(&["dd", "bs=1", "count=7001", "status=none"]));
    home.submit_through(300);
    wait_for_items(&dir.path().join("home"), 300).await;
}

/// The reason of the first interruption with this connect command.
async fn reason_with_command(dir: &Path, script: &str) -> String {
    let mut home = start(&dir.join("home"), HOME, command(&["sh", "-c", script]));
    loop {
        if let LinkReport::Disconnected(DisconnectReason::Ended(reason)) = home.next_report().await {
            return reason;
        }
    }
}

#[tokio::test]
async fn failure_of_the_connect_command_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let reason = reason_with_command(dir.path(), "echo 'ssh: no such host' >&2; exit 255").await;
    assert!(reason.ends_with(": exit status: 255: ssh: no such host"), "{reason}");
    let reason = reason_with_command(dir.path(), "echo 'Welcome to devbox'; cat").await;
    assert!(reason.contains("the stream has the text \"Welcome to devbox\""), "{reason}");
}

#[tokio::test]
async fn missing_connect_command_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut home = start(&dir.path().join("home"), HOME, command(&["/no/such/program"]));
    let LinkReport::Disconnected(reason) = home.next_report().await else {
        panic!("no connection is expected")
    };
    assert!(reason.to_string().starts_with("cannot start /no/such/program: "), "{reason}");
}

/// The command sends only the hello back. Afterwards it reads nothing, so that its input is full.
#[tokio::test]
async fn connect_command_that_hangs_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let script = r#"[ -e "$0" ] && exit; echo $$ > "$0"; dd bs=1 count=4 status=none | tee "$0.hello"
        dd bs=1 count=$(($(od -An -j3 -N1 -tu1 "$0.hello"))) status=none; exec sleep 1000"#;
    let source = command(&["sh", "-c", script, pid_file.to_str().unwrap()]);
    let mut home = start_with_silence(&dir.path().join("home"), HOME, source, 300);
    home.submit_through(1_000);
    let reason = loop {
        if let LinkReport::Disconnected(reason) = home.next_report().await {
            break reason;
        }
    };
    assert_eq!(reason, DisconnectReason::Silent);
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let wait_for_end = async {
        while Command::new("kill")
            .args(["-0", pid.trim()])
            .stderr(Stdio::null())
            .status()
            .await
            .unwrap()
            .success()
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(DEADLINE, wait_for_end).await.expect("the command is killed");
}

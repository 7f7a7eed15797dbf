//! What a command says if its output cannot be written.

use harness::TestEnv;

/// `/dev/full` fails every write with ENOSPC.
#[test]
fn command_that_cannot_print_says_that_its_work_is_done() {
    let env = TestEnv::with_team();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut send = env.command(harness::programs().join("teamctl"));
    let output = send.args(["send", "team-lead", "x"]).stdout(full).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(74) && error.contains("the command has done its work"),
        "{output:?}"
    );
    assert_eq!(env.inbox("survey", "team-lead").len(), 1);
    env.shut_down();
}

#[test]
fn messages_that_could_not_be_printed_stay_unread() {
    let env = TestEnv::with_team();
    env.teamctl(["send", "team-lead", "x"]).expect_success();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut inbox = env.command(harness::programs().join("teamctl"));
    let output = inbox.args(["inbox", "--unread", "--mark-read"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    let unread = env.teamctl(["inbox", "--unread", "--mark-read"]).expect_success();
    assert!(unread.contains('x'), "{unread}");
    assert_eq!(env.teamctl(["inbox", "--unread"]).expect_success(), "No messages.\n");
    env.shut_down();
}

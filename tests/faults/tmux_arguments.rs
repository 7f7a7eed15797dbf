//! Tests that a program in a pane gets its arguments byte for byte. The `tmux` crate quotes random
//! arguments for the parser of the real tmux, on the control connection and in a subprocess for
//! each command.
//!
//! `ARGUMENTS=n` sets the number of argument lists (2,000 by default), `SEED=n` chooses them.

use harness::{TestEnv, number_from_env, record_result};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::channel;
use tmux::{Error, ServerAddress, ServerNotice, TmuxProgram, TmuxServer, WindowId};

/// Arguments with a special meaning in tmux's parser, in its formats, as its options, or in a
/// shell.
const SPECIAL_ARGUMENTS: [&str; 36] = [
    "",
    ";",
    ";;",
    "a;",
    "a\\;",
    "a\\\\;",
    "\\",
    "\\\\",
    "\\;",
    " ; ",
    "-",
    "--",
    "-t",
    "-x y",
    "#",
    "##",
    "#(kill-server)",
    "#{pane_id}",
    "#{E:@x}",
    "#[fg=red]",
    "$",
    "$HOME",
    "${HOME}",
    "~",
    "~root",
    "%H%%1",
    "'",
    "\"",
    "'\"'\"'",
    "`id`",
    "{",
    "}",
    "\\n\\033\\u00e9",
    "=",
    "日本 🦀 é\u{2028}",
    "\u{1b}[201~",
];

/// Lengths near tmux's limits, which are 16 KiB for a message and 80 KB after quoting.
const LENGTHS: [usize; 5] = [4_090, 8_190, 16_383, 16_384, 40_000];

fn random_char(rng: &mut fastrand::Rng) -> char {
    match rng.u32(0..10) {
        0..4 => char::from(rng.u8(1..=127)),
        4..7 => {
            *rng.choice(&[';', '\\', '"', '\'', '$', '~', '#', '{', '}', '%', '\n', '\t', '\r', ' ']).unwrap()
        }
        7..9 => rng.alphanumeric(),
        _ => rng.char('\u{80}'..='\u{1fbff}'),
    }
}

fn random_argument(rng: &mut fastrand::Rng) -> String {
    let special = |rng: &mut fastrand::Rng| SPECIAL_ARGUMENTS[rng.usize(0..SPECIAL_ARGUMENTS.len())];
    match rng.u32(0..100) {
        0..50 => special(rng).to_owned(),
        50..70 => format!("{}{}", special(rng), special(rng)),
        _ => (0..rng.usize(0..24)).map(|_| random_char(rng)).collect(),
    }
}

/// Returns a random argument list. One of a hundred lists has an argument with a length near a
/// limit.
fn random_argv(rng: &mut fastrand::Rng) -> Vec<String> {
    let mut args: Vec<String> = (0..rng.usize(1..6)).map(|_| random_argument(rng)).collect();
    if rng.u32(0..100) == 0 {
        let (text, length) = (random_char(rng).to_string(), LENGTHS[rng.usize(0..LENGTHS.len())]);
        args.push(text.repeat(length / text.len()));
    }
    args
}

/// A test environment, and the socket to which the programs in panes send their arguments.
struct ArgumentTest {
    env: TestEnv,
    socket: UnixDatagram,
}

impl ArgumentTest {
    fn open() -> ArgumentTest {
        let env = TestEnv::new();
        let socket = UnixDatagram::bind(env.path("out/words")).unwrap();
        socket.set_read_timeout(Some(harness::TIMEOUT)).unwrap();
        ArgumentTest { env, socket }
    }

    /// Returns the command line of a program that sends `args` to the socket.
    fn argv(&self, args: &[String]) -> Vec<String> {
        let socket = self.env.path("out/words").display().to_string();
        [self.env.scripted_agent_path(), "words".to_owned(), socket]
            .into_iter()
            .chain(args.iter().cloned())
            .collect()
    }

    /// Receives the arguments of a program, and checks that they are `args`.
    fn assert_received(&self, args: &[String]) {
        let mut bytes = vec![0; 200_000];
        let length = self.socket.recv(&mut bytes).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        let expected: Vec<u8> = args.iter().flat_map(|arg| [arg.as_bytes(), b"\0"].concat()).collect();
        assert!(
            bytes[..length] == expected,
            "{args:?} was received as {:?}",
            String::from_utf8_lossy(&bytes[..length])
        );
    }

    /// Closes the connection to the tmux server and shuts the environment down. All programs in
    /// panes have ended by themselves.
    fn finish(self, server: TmuxServer) {
        drop(server);
        self.env.shut_down();
    }
}

/// Creates a window with a pane that stays open. The panes of the tests close by themselves.
fn create_window(server: &mut TmuxServer) -> WindowId {
    let command: Vec<String> = ["cat", "-"].map(str::to_owned).into();
    server.new_session("words", "words", &command).unwrap().window
}

fn rng() -> fastrand::Rng {
    fastrand::Rng::with_seed(number_from_env("SEED", 1))
}

#[test]
fn arguments_survive_the_control_connection() {
    let (test, mut rng, count) = (ArgumentTest::open(), rng(), number_from_env("ARGUMENTS", 2_000));
    let (notice_sender, notices) = channel();
    let address = ServerAddress::Path(test.env.tmux_socket());
    let mut server =
        TmuxServer::connect(&address, Box::new(move |notice| notice_sender.send(notice).unwrap_or_default()))
            .unwrap();
    let window = create_window(&mut server);
    for _ in 0..count {
        let args = random_argv(&mut rng);
        server.split(window, &test.argv(&args)).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        test.assert_received(&args);
    }
    assert!(
        notices.try_iter().all(|notice| notice == ServerNotice::OwnSessionsUsed),
        "the control connection was never replaced"
    );
    test.finish(server);
    record_result("arguments-quoted", count);
}

/// A subprocess rejects a command of 16 KiB. Then no program was started.
#[test]
fn arguments_survive_subprocesses_or_are_rejected() {
    let (test, mut rng) = (ArgumentTest::open(), rng());
    // With this line, the tmux program refuses control connections once the file `out/no` exists.
    let refuse_control =
        format!("[ -e '{}' ] && case \" $* \" in *' -C '*) exit 1;; esac", test.env.path("out/no").display());
    let program =
        test.env.write_script("out/tmux", &format!("#!/bin/sh\n{refuse_control}\nexec tmux \"$@\"\n"));
    let (notice_sender, notices) = channel();
    let address = ServerAddress::Path(test.env.tmux_socket());
    let notice_handler = Box::new(move |notice| notice_sender.send(notice).unwrap_or_default());
    let mut server = TmuxServer::connect_with(&TmuxProgram(program), &address, notice_handler).unwrap();
    let window = create_window(&mut server);
    test.env.write_file("out/no", "");
    for session in test.env.tmux(["list-sessions", "-F", "#{session_name}"]).lines() {
        if session.starts_with("_teamd-") {
            test.env.tmux(["kill-session", "-t", &format!("={session}")]);
        }
    }
    while notices.recv_timeout(harness::TIMEOUT).unwrap() != ServerNotice::Disconnected {}
    // The kernel accepts no argument of more than 128 KiB.
    let too_long = std::iter::once(vec!["long ".repeat(40_000)]);
    for args in too_long.chain((0..number_from_env("ARGUMENTS", 2_000) / 20).map(|_| random_argv(&mut rng))) {
        match server.split(window, &test.argv(&args)) {
            Ok(_) => test.assert_received(&args),
            Err(Error::Rejected { cause, .. }) if cause.contains("too long") => {
                assert!(args.iter().map(String::len).sum::<usize>() > 4_000, "{args:?}: {cause}");
            }
            Err(error) => panic!("{args:?}: {error}"),
        }
    }
    test.finish(server);
}

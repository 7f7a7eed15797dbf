//! Whatever stands in an argument vector, the program in the pane gets it byte for byte: our spelling of it against the
//! parser of the real tmux, over the control connection and by a process of its own for each command.
//!
//! `ARGUMENTS=n` says how many vectors (2,000 unless said), `SEED=n` which.

use harness::{TestEnv, iterations, record_result};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::channel;
use std::time::Duration;
use tmux::{Error, ServerAddress, ServerNotice, TmuxProgram, TmuxServer, WindowId};

/// What tmux's parser, its formats, its own arguments or a shell would take for something of theirs.
const NASTY: [&str; 36] = [
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

/// Around tmux's own limits: 16 KiB for a message, 80 KB after quoting.
const LONG: [usize; 5] = [4_090, 8_190, 16_383, 16_384, 40_000];

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
    let some = |rng: &mut fastrand::Rng| NASTY[rng.usize(0..NASTY.len())];
    match rng.u32(0..100) {
        0..50 => some(rng).to_owned(),
        50..70 => format!("{}{}", some(rng), some(rng)),
        _ => (0..rng.usize(0..24)).map(|_| random_char(rng)).collect(),
    }
}

/// One in a hundred has a word of a length at which something ends.
fn random_argv(rng: &mut fastrand::Rng) -> Vec<String> {
    let mut words: Vec<String> = (0..rng.usize(1..6)).map(|_| random_argument(rng)).collect();
    if rng.u32(0..100) == 0 {
        let (one, length) = (random_char(rng).to_string(), LONG[rng.usize(0..LONG.len())]);
        words.push(one.repeat(length / one.len()));
    }
    words
}

/// Where programs in panes send their arguments.
struct ArgumentTest {
    env: TestEnv,
    socket: UnixDatagram,
}

impl ArgumentTest {
    fn open() -> ArgumentTest {
        let env = TestEnv::new();
        let socket = UnixDatagram::bind(env.path("out/words")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        ArgumentTest { env, socket }
    }

    fn argv(&self, words: &[String]) -> Vec<String> {
        let socket = self.env.path("out/words").display().to_string();
        [self.env.scripted_agent_path(), "words".to_owned(), socket]
            .into_iter()
            .chain(words.iter().cloned())
            .collect()
    }

    fn assert_arrived(&self, words: &[String]) {
        let mut bytes = vec![0; 200_000];
        let length = self.socket.recv(&mut bytes).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let want: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        assert!(bytes[..length] == want, "{words:?} came as {:?}", String::from_utf8_lossy(&bytes[..length]));
    }

    /// Every program of ours there has ended, and its pane with it.
    fn finish(self, server: TmuxServer) {
        drop(server);
        self.env.shut_down();
    }
}

/// A window with a pane that stays: the others close by themselves.
fn create_window(server: &mut TmuxServer) -> WindowId {
    let stays: Vec<String> = ["cat", "-"].map(str::to_owned).into();
    server.new_session("words", "words", &stays).unwrap().window
}

fn rng() -> fastrand::Rng {
    fastrand::Rng::with_seed(iterations("SEED", 1))
}

#[test]
fn arguments_survive_the_control_connection() {
    let (desk, mut rng, count) = (ArgumentTest::open(), rng(), iterations("ARGUMENTS", 2_000));
    let (tell, notices) = channel();
    let address = ServerAddress::Path(desk.env.tmux_socket());
    let mut server =
        TmuxServer::connect(&address, Box::new(move |notice| tell.send(notice).unwrap_or_default())).unwrap();
    let window = create_window(&mut server);
    for _ in 0..count {
        let words = random_argv(&mut rng);
        server.split(window, &desk.argv(&words)).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        desk.assert_arrived(&words);
    }
    assert!(
        notices.try_iter().all(|notice| notice == ServerNotice::OwnSessionsUsed),
        "it was one connection throughout"
    );
    desk.finish(server);
    record_result("arguments-quoted", count);
}

/// A command of 16 KiB is refused there, and then nothing of it has been done.
#[test]
fn arguments_survive_subprocesses_or_are_rejected() {
    let (desk, mut rng) = (ArgumentTest::open(), rng());
    let without =
        format!("[ -e '{}' ] && case \" $* \" in *' -C '*) exit 1;; esac", desk.env.path("out/no").display());
    let program = desk.env.write_script("out/tmux", &format!("#!/bin/sh\n{without}\nexec tmux \"$@\"\n"));
    let (tell, notices) = channel();
    let address = ServerAddress::Path(desk.env.tmux_socket());
    let notice = Box::new(move |notice| tell.send(notice).unwrap_or_default());
    let mut server = TmuxServer::connect_with(&TmuxProgram(program), &address, notice).unwrap();
    let window = create_window(&mut server);
    desk.env.write_file("out/no", "");
    for session in desk.env.tmux(["list-sessions", "-F", "#{session_name}"]).lines() {
        if session.starts_with("_teamd-") {
            desk.env.tmux(["kill-session", "-t", &format!("={session}")]);
        }
    }
    while notices.recv_timeout(Duration::from_secs(20)).unwrap() != ServerNotice::Disconnected {}
    // The kernel takes no word of more than 128 KiB.
    let long = std::iter::once(vec!["long ".repeat(40_000)]);
    for words in long.chain((0..iterations("ARGUMENTS", 2_000) / 20).map(|_| random_argv(&mut rng))) {
        match server.split(window, &desk.argv(&words)) {
            Ok(_) => desk.assert_arrived(&words),
            Err(Error::Rejected { cause, .. }) if cause.contains("too long") => {
                assert!(words.iter().map(String::len).sum::<usize>() > 4_000, "{words:?}: {cause}");
            }
            Err(error) => panic!("{words:?}: {error}"),
        }
    }
    desk.finish(server);
}

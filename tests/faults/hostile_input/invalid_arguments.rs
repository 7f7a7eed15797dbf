//! Words of a command line that are no names and no ids. Each verb says so, and does nothing.

use super::HostileRun;
use protocol::name::AgentName;

/// Stands for the hostile word.
const X: &str = "X";

const COMMANDS: [&[&str]; 27] = [
    &["send", X, "hi"],
    &["status", X],
    &["capture", X],
    &["kill", X],
    &["shutdown", X, "--grace=1s"],
    &["hide", X],
    &["show", X],
    &["interrupt", X],
    &["mode", X, "plan"],
    &["task", "get", X],
    &["task", "claim", X],
    &["task", "done", X],
    &["task", "release", X],
    &["task", "delete", X],
    &["task", "update", X, "--owner", "bob"],
    &["task", "update", "1", "--add-blocked-by", X],
    &["approve", X],
    &["deny", X, "--reason", "r"],
    &["inbox", X],
    &["logs", X],
    &["delete", X],
    &["spawn", X, "--", "true"],
    &["spawn", "x", "--profile", X],
    &["profiles", "show", X],
    &["layout", X],
    &["events", "--since", X],
    &["answer-shutdown", X, "--approve"],
];

const INVALID_ARGUMENTS: [&str; 34] = [
    "../config",
    "a/b",
    "..",
    ".",
    "",
    " ",
    "\u{1b}[2J",
    "\u{9b}31m",
    "\u{202e}x",
    "ä",
    "名前",
    "-rf",
    "--frob",
    "*",
    "bob@../x",
    "%0",
    "0",
    "-1",
    "99999999999999999999",
    "1e9",
    "01",
    "$(touch out/evil)",
    "#(touch out/evil)",
    ";",
    "\n",
    "a\nb",
    "{}",
    "null",
    "bob.json",
    ".lock",
    "bob/",
    "@survey",
    "bob@",
    "'\"",
];

pub(super) fn run_command_with_invalid_argument(siege: &mut HostileRun) {
    let long = "x".repeat(5_000);
    let verb = COMMANDS[siege.rng.usize(0..COMMANDS.len())];
    let mut words = std::iter::repeat_with(|| {
        INVALID_ARGUMENTS.get(siege.rng.usize(0..=INVALID_ARGUMENTS.len())).copied().unwrap_or(&long)
    });
    // As a name for somebody new a number is as good as any.
    let is_hostile = |word: &&str| verb[..2] != ["spawn", X] || AgentName::parse(word).is_err();
    let word = words.find(is_hostile).expect("most are no names");
    let mut words = vec!["-t", "survey"];
    words.extend(verb.iter().map(|piece| if *piece == X { word } else { *piece }));
    let ran = siege.env.teamctl_with(&words, &[]);
    assert!((64..=78).contains(&ran.code), "{ran:#?}");
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    let steers =
        |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!printed.contains(steers), "{ran:#?}");
}

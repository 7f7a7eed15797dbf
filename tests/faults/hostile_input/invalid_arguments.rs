//! Commands with an invalid name or id as an argument. Each command must fail without any effect.

use super::HostileRun;
use protocol::team_and_member_names::MemberName;

/// Placeholder for the invalid argument.
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

/// Runs a random command with a random invalid argument. The error must not contain control
/// characters.
pub(super) fn run_command_with_invalid_argument(run: &mut HostileRun) {
    let long = "x".repeat(5_000);
    let command = COMMANDS[run.rng.usize(0..COMMANDS.len())];
    let mut candidates = std::iter::repeat_with(|| {
        INVALID_ARGUMENTS.get(run.rng.usize(0..=INVALID_ARGUMENTS.len())).copied().unwrap_or(&long)
    });
    // Some of these arguments, such as numbers, are valid names for a new member.
    let is_invalid = |argument: &&str| command[..2] != ["spawn", X] || MemberName::parse(argument).is_err();
    let invalid = candidates.find(is_invalid).expect("most candidates are invalid names");
    let mut args = vec!["-t", "survey"];
    args.extend(command.iter().map(|arg| if *arg == X { invalid } else { *arg }));
    let output = run.env.teamctl_with(&args, &[]);
    assert!((64..=78).contains(&output.code), "{output:#?}");
    let printed = format!("{}{}", output.stdout, output.stderr);
    let is_control_char =
        |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!printed.contains(is_control_char), "{output:#?}");
}

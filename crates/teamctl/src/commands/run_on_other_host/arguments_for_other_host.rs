//! Which of the typed arguments belong to the command on another host. The others stay here.

use crate::cli::TEXT_OPTIONS;
use protocol::team_and_member_names::TeamName;

/// Options that name the root, the team or the host for a command. The `teamctl` of this host
/// evaluates them, so they are not sent to the member's host.
const OPTIONS_OF_THIS_HOST: [&str; 6] = ["--host", "--needs", "--root", "--socket", "--team", "-t"];

/// The arguments without the option `--host` of `teamctl` itself, which is before the command. A
/// `--host` after the command `spawn` is an option of `spawn` and stays.
pub(super) fn without_host_option(typed: Vec<String>) -> Vec<String> {
    let mut global = typed;
    let rest = global.split_off(command_index(&global));
    without_options(global, &["--host"]).into_iter().chain(rest).collect()
}

/// The index of the command's name: of the first argument that is no option and no value of one.
fn command_index(typed: &[String]) -> usize {
    let mut index = 0;
    while let Some(argument) = typed.get(index).filter(|argument| argument.starts_with('-')) {
        let takes_next = OPTIONS_OF_THIS_HOST.contains(&argument.as_str())
            || split_team_flag(argument).is_some_and(|(_, value)| value.is_empty());
        index += if takes_next { 2 } else { 1 };
    }
    index.min(typed.len())
}

/// Takes the options `--env` out of the arguments of `spawn` and `ask`. Returns the other arguments
/// and the values of `--env`, which are sent separately because they may be secrets. The arguments
/// of other commands stay unchanged.
pub(super) fn split_env_options(arguments: Vec<String>) -> (Vec<String>, Vec<String>) {
    match arguments.get(command_index(&arguments)).map(String::as_str) {
        Some("spawn" | "ask") => split_options(arguments, &["--env"]),
        _ => (arguments, Vec::new()),
    }
}

/// The arguments for the host of a member of `team`.
pub(super) fn for_member_of(team: &TeamName, typed: Vec<String>) -> Vec<String> {
    let kept = without_options(typed, &OPTIONS_OF_THIS_HOST);
    ["-t".to_owned(), team.to_string()].into_iter().chain(kept).collect()
}

fn without_options(typed: Vec<String>, options: &[&str]) -> Vec<String> {
    split_options(typed, options).0
}

/// Removes `options` and their values from the arguments. Returns the other arguments, and the
/// removed values. An argument after `--`, or after an option that takes any text (such as
/// `--prompt`), is never taken for an option.
fn split_options(typed: Vec<String>, options: &[&str]) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut values) = (Vec::new(), Vec::new());
    let mut typed = typed.into_iter();
    while let Some(argument) = typed.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), None),
        };
        match argument.as_str() {
            "--" => {
                kept.push(argument);
                kept.extend(typed.by_ref());
            }
            _ if options.contains(&name) => values.extend(value.map(str::to_owned).or_else(|| typed.next())),
            text if TEXT_OPTIONS.contains(&text) => {
                kept.push(argument);
                kept.extend(typed.next());
            }
            _ => match options.contains(&"-t").then(|| split_team_flag(&argument)).flatten() {
                Some((flags, value)) => {
                    kept.extend(flags);
                    if value.is_empty() {
                        typed.next();
                    }
                }
                None => kept.push(argument),
            },
        }
    }
    (kept, values)
}

/// Splits an argument with one or more short options, such as `-ft` or `-qtsurvey`, at the option
/// `t`. Returns the options before it, such as `-f`, and the text after it. Returns `None` if the
/// argument has no option `t`.
fn split_team_flag(argument: &str) -> Option<(Option<String>, &str)> {
    let flags = argument.strip_prefix('-').filter(|flags| !flags.starts_with('-'))?;
    let (before, value) = flags.split_once('t')?;
    Some(((!before.is_empty()).then(|| format!("-{before}")), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn host_option_before_the_command_is_removed_and_everything_else_stays() {
        for (typed, expected) in [
            ("--host a status", "status"),
            ("--host=a -t x status -q", "-t x status -q"),
            ("--host a spawn ann --host b -- p --host c", "spawn ann --host b -- p --host c"),
            ("--host a --host b send ann --hosts", "send ann --hosts"),
            ("-t send --host a status --host b", "-t send status --host b"),
            ("-qt send --host a status", "-qt send status"),
            ("--host a", ""),
        ] {
            assert_eq!(without_host_option(words(typed)).join(" "), expected, "{typed}");
        }
    }

    #[test]
    fn values_of_env_are_split_from_the_arguments_of_spawn() {
        for (typed, arguments, values) in [
            ("-q spawn ann --env A=b=c --env=B= --fresh", "-q spawn ann --fresh", "A=b=c B="),
            ("spawn ann --prompt --env -- p --env A=b", "spawn ann --prompt --env -- p --env A=b", ""),
            ("ask --env A=b why", "ask why", "A=b"),
            ("send ann --env A=b", "send ann --env A=b", ""),
        ] {
            let (kept, env) = split_env_options(words(typed));
            assert_eq!((kept.join(" ").as_str(), env.join(" ").as_str()), (arguments, values), "{typed}");
        }
    }

    #[test]
    fn options_of_this_host_are_replaced_by_the_team() {
        let survey = TeamName::parse("survey").unwrap();
        for (typed, expected) in [
            ("spawn ann --host a --root /r -- p --host b -t c", "spawn ann -- p --host b -t c"),
            ("-t x --socket=/s capture ann --lines 5", "capture ann --lines 5"),
            ("logs -ft survey ann", "logs -f ann"),
            ("spawn ann --host any --needs gpu,big -- p --needs b", "spawn ann -- p --needs b"),
            ("-qtsurvey kill ann", "-q kill ann"),
            ("kill ann -t=survey --json", "kill ann --json"),
            ("shutdown ann --reason -this --team y", "shutdown ann --reason -this"),
            ("spawn ann --prompt --host=x --host y", "spawn ann --prompt --host=x"),
        ] {
            let arguments = for_member_of(&survey, words(typed)).join(" ");
            assert_eq!(arguments, format!("-t survey {expected}"), "{typed}");
        }
    }
}

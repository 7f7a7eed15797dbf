//! Commands that teamctl suggests to the user. The user can type each command as printed: it is
//! quoted for the shell and has all options that it needs.

use protocol::shell_quote::shell_quote;
use protocol::task::WaitCycle;
use protocol::team_and_member_names::TeamName;

/// Builds `teamctl` commands with the options that the user needs, placed after the subcommand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuggestedCommands {
    /// The host on which the commands run. It is named before the subcommand.
    host: Option<String>,
    /// Options, each followed by its value.
    options: Vec<String>,
    team: Option<TeamName>,
}

impl SuggestedCommands {
    /// Adds `options` to every suggested command. For example, the options name the root and the
    /// socket, if teamctl would not find these by default.
    pub fn with_options(options: impl IntoIterator<Item = String>) -> SuggestedCommands {
        SuggestedCommands { options: options.into_iter().collect(), ..SuggestedCommands::default() }
    }

    /// These suggestions for commands that run on another host.
    #[must_use]
    pub fn on_host(self, host: Option<String>) -> SuggestedCommands {
        SuggestedCommands { host, ..self }
    }

    /// A copy of these suggestions whose commands also have the option `-t TEAM`.
    #[must_use]
    pub fn for_team(&self, team: &TeamName) -> SuggestedCommands {
        SuggestedCommands { team: Some(team.clone()), ..self.clone() }
    }

    /// A copy of these suggestions whose commands have no option `-t`.
    #[must_use]
    pub fn without_team(&self) -> SuggestedCommands {
        SuggestedCommands { team: None, ..self.clone() }
    }

    /// A copy of these suggestions whose commands also have the option `-t TEAM`. The option is
    /// left out if teamctl selects this team by default. The default is the team in the variable
    /// `TEAMD_TEAM` (`env_team`), or else the only one of `teams` that is not a session team.
    #[must_use]
    pub fn for_team_unless_implied(
        &self,
        team: &TeamName,
        teams: &[TeamName],
        env_team: Option<&str>,
    ) -> SuggestedCommands {
        let is_only = || {
            !team.is_claude_session() && teams.iter().filter(|name| !name.is_claude_session()).count() == 1
        };
        match env_team.map_or_else(is_only, |env_team| env_team == team.as_str()) {
            true => self.clone(),
            false => self.for_team(team),
        }
    }

    /// The command with these words. The first is the subcommand.
    pub fn command(&self, words: &[&str]) -> String {
        let team = self.team.iter().flat_map(|team| ["-t", team.as_str()]);
        let host = self.host.iter().flat_map(|host| ["--host", host]);
        let command = std::iter::once("teamctl").chain(host).chain(words[..1].iter().copied());
        let command = command.chain(self.options.iter().map(String::as_str)).chain(team);
        let command = command.chain(words[1..].iter().copied());
        command.map(shell_quote).collect::<Vec<_>>().join(" ")
    }

    /// The command that removes one dependency of a cycle of tasks.
    pub fn command_to_cut(&self, cycle: &WaitCycle) -> String {
        self.command(&cycle.cut_command().each_ref().map(String::as_str))
    }

    /// Formats a subcommand whose argument is a name or id. A name that looks like an option is
    /// placed after `--`.
    pub fn command_for_name(&self, subcommand: &str, name: &str, options: &[&str]) -> String {
        match name.starts_with('-') {
            true => self.command(&[&[subcommand], options, &["--", name]].concat()),
            false => self.command(&[&[subcommand, name], options].concat()),
        }
    }
}

/// Adds options to all teamctl commands in `text`, for example in a help text from code that does
/// not know the options. The function `options` is called for each command, with the subcommand and
/// the text after the subcommand. It returns the options to insert, or `None` to leave the command
/// unchanged.
pub fn insert_options<'a>(
    text: &str,
    options: impl Fn(&str, &str) -> Option<&'a SuggestedCommands>,
) -> String {
    let mut pieces = text.split("teamctl ");
    let mut result = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(piece.len());
        let (subcommand, rest) = piece.split_at(end);
        match options(subcommand, rest) {
            Some(commands) => result += &commands.command(&[subcommand]),
            None => result.extend(["teamctl ", subcommand]),
        }
        result += rest;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> SuggestedCommands {
        SuggestedCommands::with_options(["--root", "/tmp/a b"].map(str::to_owned))
            .for_team(&TeamName::parse("survey").unwrap())
    }

    #[test]
    fn command_is_quoted_for_the_shell() {
        assert_eq!(commands().command(&["why", "ann"]), "teamctl why --root '/tmp/a b' -t survey ann");
        assert_eq!(
            commands().on_host(Some("far".to_owned())).command(&["why"]),
            "teamctl --host far why --root '/tmp/a b' -t survey"
        );
        assert_eq!(
            SuggestedCommands::default().command(&["logs", "a'b; rm -r ~"]),
            r"teamctl logs 'a'\''b; rm -r ~'"
        );
    }

    #[test]
    fn names_with_a_leading_dash_follow_a_double_dash() {
        let commands = SuggestedCommands::default().for_team(&TeamName::parse("survey").unwrap());
        let deny = |id: &str| commands.command_for_name("deny", id, &["--reason", "TEXT"]);
        assert_eq!(deny("perm-1"), "teamctl deny -t survey perm-1 --reason TEXT");
        assert_eq!(deny("-1"), "teamctl deny -t survey --reason TEXT -- -1");
        let dash_team = SuggestedCommands::default().for_team(&TeamName::parse("-x").unwrap());
        assert_eq!(dash_team.command(&["status"]), "teamctl status -t -x");
    }

    #[test]
    fn team_is_added_unless_implied() {
        let [survey, other, session] =
            ["survey", "other", "session-1"].map(|name| TeamName::parse(name).unwrap());
        let command = |team: &TeamName, teams: &[&TeamName], env_team: Option<&str>| {
            let teams: Vec<TeamName> = teams.iter().copied().cloned().collect();
            SuggestedCommands::default()
                .for_team_unless_implied(team, &teams, env_team)
                .command(&["requests"])
        };
        assert_eq!(command(&survey, &[&survey, &session], None), "teamctl requests");
        assert_eq!(command(&survey, &[&survey, &other], None), "teamctl requests -t survey");
        assert_eq!(command(&survey, &[&survey, &other], Some("survey")), "teamctl requests");
        assert_eq!(command(&survey, &[&survey], Some("other")), "teamctl requests -t survey");
        assert_eq!(command(&session, &[&survey, &session], None), "teamctl requests -t session-1");
    }

    #[test]
    fn options_are_inserted_into_every_command() {
        let commands = commands();
        let options = |verb: &str, _: &str| (verb != "of").then_some(&commands);
        let help = "see: teamctl status; or end it: teamctl task release 3; beside teamctl: make";
        let expected = "see: teamctl status --root '/tmp/a b' -t survey; or end it: \
                      teamctl task --root '/tmp/a b' -t survey release 3; beside teamctl: make";
        assert_eq!(insert_options(help, options), expected);
        assert_eq!(
            insert_options("teamd and teamctl of one release", options),
            "teamd and teamctl of one release"
        );
        assert_eq!(insert_options("", options), "");
    }
}

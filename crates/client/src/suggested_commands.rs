//! Commands that are printed to be typed: each works as it is printed, in the shell and at the place of whoever asked.

use protocol::name::TeamName;
use protocol::text::shell_quote;

/// How `teamctl` is to be typed: with these options behind the verb.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuggestedCommands {
    /// With their values.
    options: Vec<String>,
    team: Option<TeamName>,
}

impl SuggestedCommands {
    /// With root and socket where `teamctl` would not find them by itself.
    pub fn with_options(options: impl IntoIterator<Item = String>) -> SuggestedCommands {
        SuggestedCommands { options: options.into_iter().collect(), team: None }
    }

    /// The same with the team, for what could be meant of another.
    #[must_use]
    pub fn for_team(&self, team: &TeamName) -> SuggestedCommands {
        SuggestedCommands { options: self.options.clone(), team: Some(team.clone()) }
    }

    /// The same for what is about no team.
    #[must_use]
    pub fn without_team(&self) -> SuggestedCommands {
        SuggestedCommands { options: self.options.clone(), team: None }
    }

    /// The same, unless that is meant anyhow: the environment (`TEAMD_TEAM`) says so, or it is the only one of these.
    #[must_use]
    pub fn for_team_unless_implied(
        &self,
        team: &TeamName,
        teams: &[TeamName],
        of_environment: Option<&str>,
    ) -> SuggestedCommands {
        let is_only = || {
            !team.is_claude_session() && teams.iter().filter(|name| !name.is_claude_session()).count() == 1
        };
        match of_environment.map_or_else(is_only, |of| of == team.as_str()) {
            true => self.clone(),
            false => self.for_team(team),
        }
    }

    /// The command of these words, the verb first.
    pub fn command(&self, words: &[&str]) -> String {
        let team = self.team.iter().flat_map(|team| ["-t", team.as_str()]);
        let all = std::iter::once("teamctl").chain(words[..1].iter().copied());
        let all = all.chain(self.options.iter().map(String::as_str)).chain(team);
        let all = all.chain(words[1..].iter().copied());
        all.map(shell_quote).collect::<Vec<_>>().join(" ")
    }

    /// The same about a name or an id, which others have chosen: it may look like an option.
    pub fn command_for_name(&self, verb: &str, whom: &str, options: &[&str]) -> String {
        match whom.starts_with('-') {
            true => self.command(&[&[verb], options, &["--", whom]].concat()),
            false => self.command(&[&[verb, whom], options].concat()),
        }
    }
}

/// Words with commands in them, such as a hint of somebody who does not know where they are read: behind the verb of each
/// goes what `of` gives for it, which gets the verb and all behind it.
pub fn insert_options<'a>(text: &str, of: impl Fn(&str, &str) -> Option<&'a SuggestedCommands>) -> String {
    let mut pieces = text.split("teamctl ");
    let mut placed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(piece.len());
        let (verb, rest) = piece.split_at(end);
        match of(verb, rest) {
            Some(typed) => placed += &typed.command(&[verb]),
            None => placed.extend(["teamctl ", verb]),
        }
        placed += rest;
    }
    placed
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
            SuggestedCommands::default().command(&["logs", "a'b; rm -r ~"]),
            r"teamctl logs 'a'\''b; rm -r ~'"
        );
    }

    #[test]
    fn option_like_names_come_after_dashes() {
        let typed = SuggestedCommands::default().for_team(&TeamName::parse("survey").unwrap());
        let deny = |id: &str| typed.command_for_name("deny", id, &["--reason", "R"]);
        assert_eq!(deny("perm-1"), "teamctl deny -t survey perm-1 --reason R");
        assert_eq!(deny("-1"), "teamctl deny -t survey --reason R -- -1");
        let odd = SuggestedCommands::default().for_team(&TeamName::parse("-x").unwrap());
        assert_eq!(odd.command(&["status"]), "teamctl status -t -x");
    }

    #[test]
    fn team_is_added_unless_implied() {
        let [survey, other, session] =
            ["survey", "other", "session-1"].map(|name| TeamName::parse(name).unwrap());
        let told = |team: &TeamName, teams: &[&TeamName], of: Option<&str>| {
            let teams: Vec<TeamName> = teams.iter().copied().cloned().collect();
            SuggestedCommands::default().for_team_unless_implied(team, &teams, of).command(&["requests"])
        };
        assert_eq!(told(&survey, &[&survey, &session], None), "teamctl requests");
        assert_eq!(told(&survey, &[&survey, &other], None), "teamctl requests -t survey");
        assert_eq!(told(&survey, &[&survey, &other], Some("survey")), "teamctl requests");
        assert_eq!(told(&survey, &[&survey], Some("other")), "teamctl requests -t survey");
        assert_eq!(told(&session, &[&survey, &session], None), "teamctl requests -t session-1");
    }

    #[test]
    fn options_are_inserted_into_every_command() {
        let typed = commands();
        let of = |verb: &str, _: &str| (verb != "of").then_some(&typed);
        let hint = "see: teamctl status; or end it: teamctl task release 3; beside teamctl: make";
        let wanted = "see: teamctl status --root '/tmp/a b' -t survey; or end it: \
                      teamctl task --root '/tmp/a b' -t survey release 3; beside teamctl: make";
        assert_eq!(insert_options(hint, of), wanted);
        assert_eq!(
            insert_options("teamd and teamctl of one release", of),
            "teamd and teamctl of one release"
        );
        assert_eq!(insert_options("", of), "");
    }
}

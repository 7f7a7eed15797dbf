//! Commands that are printed to be typed: each works as it is printed, in the shell and at the place of whoever asked.

use crate::words::quoted;
use protocol::name::TeamName;

/// How `teamctl` is to be typed: with these options behind the verb.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typed {
    /// With their values.
    options: Vec<String>,
    team: Option<TeamName>,
}

impl Typed {
    /// With root and socket where `teamctl` would not find them by itself.
    pub fn with(options: impl IntoIterator<Item = String>) -> Typed {
        Typed { options: options.into_iter().collect(), team: None }
    }

    /// The same with the team, for what could be meant of another.
    #[must_use]
    pub fn about_team(&self, team: &TeamName) -> Typed {
        Typed { options: self.options.clone(), team: Some(team.clone()) }
    }

    /// The same for what is about no team.
    #[must_use]
    pub fn about_none(&self) -> Typed {
        Typed { options: self.options.clone(), team: None }
    }

    /// The same, unless that is meant anyhow: the environment (`TEAMD_TEAM`) says so, or it is the only one of these.
    #[must_use]
    pub fn among(&self, team: &TeamName, teams: &[TeamName], of_environment: Option<&str>) -> Typed {
        let is_only = || {
            !team.is_claude_session() && teams.iter().filter(|name| !name.is_claude_session()).count() == 1
        };
        match of_environment.map_or_else(is_only, |of| of == team.as_str()) {
            true => self.clone(),
            false => self.about_team(team),
        }
    }

    /// The command of these words, the verb first.
    pub fn teamctl(&self, words: &[&str]) -> String {
        let team = self.team.iter().flat_map(|team| ["-t", team.as_str()]);
        let all = std::iter::once("teamctl").chain(words[..1].iter().copied());
        let all = all.chain(self.options.iter().map(String::as_str)).chain(team);
        let all = all.chain(words[1..].iter().copied());
        all.map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// The same about a name or an id, which others have chosen: it may look like an option.
    pub fn about(&self, verb: &str, whom: &str, options: &[&str]) -> String {
        match whom.starts_with('-') {
            true => self.teamctl(&[&[verb], options, &["--", whom]].concat()),
            false => self.teamctl(&[&[verb, whom], options].concat()),
        }
    }
}

/// Words with commands in them, such as a hint of somebody who does not know where they are read: behind the verb of each
/// goes what `of` gives for it, which gets the verb and all behind it.
pub fn placed<'a>(text: &str, of: impl Fn(&str, &str) -> Option<&'a Typed>) -> String {
    let mut pieces = text.split("teamctl ");
    let mut placed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(piece.len());
        let (verb, rest) = piece.split_at(end);
        match of(verb, rest) {
            Some(typed) => placed += &typed.teamctl(&[verb]),
            None => placed.extend(["teamctl ", verb]),
        }
        placed += rest;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed() -> Typed {
        Typed::with(["--root", "/tmp/a b"].map(str::to_owned)).about_team(&TeamName::parse("survey").unwrap())
    }

    #[test]
    fn a_command_is_typed_as_it_is_printed() {
        assert_eq!(typed().teamctl(&["why", "ann"]), "teamctl why --root '/tmp/a b' -t survey ann");
        assert_eq!(Typed::default().teamctl(&["logs", "a'b; rm -r ~"]), r"teamctl logs 'a'\''b; rm -r ~'");
    }

    #[test]
    fn what_looks_like_an_option_stands_behind_the_options() {
        let typed = Typed::default().about_team(&TeamName::parse("survey").unwrap());
        let deny = |id: &str| typed.about("deny", id, &["--reason", "R"]);
        assert_eq!(deny("perm-1"), "teamctl deny -t survey perm-1 --reason R");
        assert_eq!(deny("-1"), "teamctl deny -t survey --reason R -- -1");
        let odd = Typed::default().about_team(&TeamName::parse("-x").unwrap());
        assert_eq!(odd.teamctl(&["status"]), "teamctl status -t -x");
    }

    #[test]
    fn the_team_is_named_where_another_could_be_meant() {
        let [survey, other, session] =
            ["survey", "other", "session-1"].map(|name| TeamName::parse(name).unwrap());
        let told = |team: &TeamName, teams: &[&TeamName], of: Option<&str>| {
            let teams: Vec<TeamName> = teams.iter().copied().cloned().collect();
            Typed::default().among(team, &teams, of).teamctl(&["requests"])
        };
        assert_eq!(told(&survey, &[&survey, &session], None), "teamctl requests");
        assert_eq!(told(&survey, &[&survey, &other], None), "teamctl requests -t survey");
        assert_eq!(told(&survey, &[&survey, &other], Some("survey")), "teamctl requests");
        assert_eq!(told(&survey, &[&survey], Some("other")), "teamctl requests -t survey");
        assert_eq!(told(&session, &[&survey, &session], None), "teamctl requests -t session-1");
    }

    #[test]
    fn a_hint_names_the_place_in_each_of_its_commands_and_nowhere_else() {
        let typed = typed();
        let of = |verb: &str, _: &str| (verb != "of").then_some(&typed);
        let hint = "see: teamctl status; or end it: teamctl task release 3; beside teamctl: make";
        let wanted = "see: teamctl status --root '/tmp/a b' -t survey; or end it: \
                      teamctl task --root '/tmp/a b' -t survey release 3; beside teamctl: make";
        assert_eq!(placed(hint, of), wanted);
        assert_eq!(placed("teamd and teamctl of one release", of), "teamd and teamctl of one release");
        assert_eq!(placed("", of), "");
    }
}

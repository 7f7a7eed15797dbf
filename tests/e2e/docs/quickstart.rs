//! The first commands of README.md: from a clone to a running team.

use super::page_parser::DocPage;
use super::read_document;
use super::shell_session::ShellSession;

/// The commands, with a local repository as the address to clone.
fn commands() -> Vec<String> {
    let readme = read_document("README.md");
    let mut blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let (block, _) = blocks.find(|(block, _)| block.starts_with("git clone ")).unwrap();
    block.lines().map(|line| line.replace("ADDRESS", "~/project")).collect()
}

#[test]
fn two_commands_start_a_team_from_a_clone() {
    let (session, commands) = (ShellSession::open(), commands());
    let run_lines = |lines: &str| session.run_page(&DocPage::read(&format!("```sh\n{lines}\n```\n"))?);
    assert_eq!(run_lines("cd ~"), Ok(()));
    assert_eq!(run_lines(&commands.join("\n")), Ok(()));
    let status = session.env.json(["status", "-t", "first"]);
    let members = status["teams"][0]["members"].as_array().unwrap();
    let is_running =
        |name: &str| members.iter().any(|member| member["name"] == name && member["lifecycle"] == "running");
    assert!(["ann", "bob", "cat"].iter().all(|name| is_running(name)), "{status}");
    harness::record_result("commands_from_clone_to_team", u64::try_from(commands.len()).unwrap());
    assert_eq!(commands.len(), 2, "{commands:?}");
    // The second command can be repeated, and the team can be ended.
    assert_eq!(run_lines(&commands[1]), Ok(()));
    assert_eq!(run_lines("teamctl shutdown --all\nteamctl delete first\nteamctl down"), Ok(()));
    session.close();
}

//! From nothing to a team: what README.md has typed first.

use super::page_parser::DocPage;
use super::read_document;
use super::shell_session::ShellSession;

/// The lines, for a repository at home.
fn commands() -> Vec<String> {
    let readme = read_document("README.md");
    let mut blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let (block, _) = blocks.find(|(block, _)| block.starts_with("git clone ")).unwrap();
    block.lines().map(|line| line.replace("ADDRESS", "~/project")).collect()
}

#[test]
fn two_commands_start_a_team_from_a_clone() {
    let (session, commands) = (ShellSession::open(), commands());
    let typed = |lines: &str| session.run_page(&DocPage::read(&format!("```sh\n{lines}\n```\n"))?);
    assert_eq!(typed("cd ~"), Ok(()));
    assert_eq!(typed(&commands.join("\n")), Ok(()));
    let status = session.env.json(["status", "-t", "first"]);
    let members = status["teams"][0]["members"].as_array().unwrap();
    let running = |name: &str| members.iter().any(|one| one["name"] == name && one["lifecycle"] == "running");
    assert!(["ann", "bob", "cat"].iter().all(|name| running(name)), "{status}");
    harness::record_result("commands_from_clone_to_team", u64::try_from(commands.len()).unwrap());
    assert_eq!(commands.len(), 2, "{commands:?}");
    // Typed again it is there already; and it ends as it says.
    assert_eq!(typed(&commands[1]), Ok(()));
    assert_eq!(typed("teamctl shutdown --all\nteamctl delete first\nteamctl down"), Ok(()));
    session.close();
}

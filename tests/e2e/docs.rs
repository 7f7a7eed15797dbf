//! What the documents promise, typed as they print it.

use harness::House;

const AGENTS: &str = include_str!("../../docs/agents.md");

/// The blocks between fences of a section, with the word after the fence.
fn blocks(document: &'static str, title: &str) -> Vec<(&'static str, &'static str)> {
    let section = document.split("\n## ").find(|section| section.starts_with(title)).unwrap();
    let fenced = section.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

/// What changes from one machine to the next, taken out of what a command prints.
fn as_printed(house: &House, text: &str) -> String {
    let text = text.replace(&house.path("home").display().to_string(), "/home/me");
    let mut words = Vec::new();
    for word in text.trim_end().split(' ') {
        let number = |text: &str| text.trim_end_matches(['.', ',']).chars().all(|c| c.is_ascii_digit());
        let varies =
            word.strip_prefix('%').is_some_and(number) || words.last() == Some(&"pid") && number(word);
        words.push(if varies { "N" } else { word });
    }
    words.join(" ")
}

/// The commands of a console, each with what it prints.
fn commands(console: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let typed = console.split("$ ").skip(1);
    typed.map(|piece| piece.split_once('\n').unwrap())
}

fn shell(house: &House, line: &str) -> String {
    let mut command = house.command("sh");
    let output = command.args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_that_has_no_profile_joins_as_the_document_says() {
    let mut house = House::with_team();
    let blocks = blocks(AGENTS, "A program that has no profile");
    let [("sh", program), ("text", profile), ("console", console)] = blocks[..] else {
        panic!("a script, a profile, and what to type: {blocks:?}")
    };
    let path = format!("{}:{}", house.path("home/bin").display(), shell(&house, "printf %s \"$PATH\""));
    house.variables.push(("PATH".into(), path));
    shell(&house, "mkdir -p ~/bin ~/.config/teamd/agents");
    house.script("home/bin/minutes", program);
    house.script("home/.config/teamd/agents/minutes.toml", profile);
    for (line, printed) in commands(console) {
        let printed = as_printed(&house, printed);
        if line.starts_with("teamctl send") {
            // Nobody types so quickly that its first turn goes on.
            house.until("ann is idle", || house.member("ann").filter(|ann| ann["activity"] == "idle"));
        }
        if line.starts_with("teamctl capture") {
            // A person looks when the turn has ended.
            house.until(&printed, || (as_printed(&house, &shell(&house, line)) == printed).then_some(()));
        } else {
            assert_eq!(as_printed(&house, &shell(&house, line)), printed, "{line}");
        }
    }
    house.end();
}

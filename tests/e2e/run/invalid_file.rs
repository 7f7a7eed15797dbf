//! Checks that a run with an invalid file or with a member that cannot be started leaves nothing
//! behind.

use super::{assert_team_deleted, run_file, started_tasks};
use harness::TestEnv;

#[test]
fn all_validation_errors_are_reported_and_nothing_starts() {
    let env = TestEnv::new();
    let file = env.write_file("team.toml", "name = \"My \\u001b\"\n[[member]]\nname = 'ann'\ncommand = ['no-such-program']\n[[task]]\nkey = 'a'\nsubject = 's'\nowner = 'amn'\n",
    );
    let output = env.teamctl(["run", &file, "--json"]);
    assert_eq!(output.code, 65, "{output:#?}");
    let lines: Vec<&str> = output.stderr.lines().skip(1).collect();
    let places: Vec<String> = lines.iter().map(|line| line.replace(&file, "F")).collect();
    let starts = ["F:1:", "F:4:1: cannot start no-such-program", "F:8:9: the owner \"amn\" is no member"];
    assert!(
        places.len() == 3 && places.iter().zip(starts).all(|(at, start)| at.starts_with(start)),
        "{places:#?}"
    );
    assert!(!output.stderr.contains('\u{1b}'), "control characters are escaped");
    let error = output.json()["error"].clone();
    assert_eq!(
        (&error["kind"], &error["validation_errors"][2]["line"], &error["validation_errors"][2]["column"]),
        (&"invalid_data".into(), &8.into(), &9.into())
    );
    let good = run_file(["ann"]).task("a", "", "").write_run_file(&env);
    let error = env.teamctl(["run", &good, "-t", "other"]).expect_failure(64);
    assert!(error.contains("it names its team survey"), "{error}");
    assert_eq!(env.teamctl(["status"]).code, 69, "no daemon was started");
    assert!(!env.path("root/teams/my").exists());
    env.teamctl(["run", "no-such-file.toml"]).expect_failure(72);
    env.shut_down();
}

#[test]
fn failed_member_start_removes_the_team() {
    let env = TestEnv::with_daemon();
    // The program exists but cannot be started.
    env.write_script("out/broken", "#!/no/such/interpreter\n");
    let file = run_file(["ann"]).task("a", "", "").write_run_file(&env);
    let text = std::fs::read_to_string(&file).unwrap();
    let eve = "[[member]]\nname = 'eve'\ncommand = ['out/broken']\n[[task]]";
    let file = env.write_file("team.toml", text.replacen("[[task]]", eve, 1));
    let error = env.teamctl(["run", &file]).expect_failure(72);
    assert!(error.contains("out/broken"), "{error}");
    assert!(started_tasks(&env).is_empty());
    assert_team_deleted(&env);
    env.shut_down();
}

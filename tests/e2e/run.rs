//! A whole team from a file: it ends by itself, whatever is killed in the middle, and says truly how.

use harness::{House, Ran};
use serde_json::Value;
use std::io::{Read, Write};
use std::process::Child;

/// A team of workers on tasks that each add their key to `out/log`.
struct Team {
    workers: Vec<&'static str>,
    policy: &'static str,
    tasks: String,
}

fn team<const N: usize>(workers: [&'static str; N]) -> Team {
    Team { workers: workers.to_vec(), policy: "", tasks: String::new() }
}

impl Team {
    /// A task that notes its key, then does `then`; `more` are further lines of it.
    fn task(mut self, key: &str, then: &str, more: &str) -> Team {
        let command = format!("echo {key} >> out/log; {then}");
        self.tasks.push_str(&format!(
            "[[task]]\nkey = {key:?}\nsubject = \"do {key}\"\ncommand = '''{command}'''\n{more}\n"
        ));
        self
    }

    fn policy(mut self, policy: &'static str) -> Team {
        self.policy = policy;
        self
    }

    /// Writes it into the house; the file's name is a word for the command line.
    fn in_house(&self, house: &House) -> String {
        let member = |name: &&str| format!("[[member]]\nname = {name:?}\nagent = \"worker\"\n");
        let members: String = self.workers.iter().map(member).collect();
        put(house, &format!("name = \"survey\"\n[policy]\n{}\n{members}{}", self.policy, self.tasks))
    }
}

fn put(house: &House, text: &str) -> String {
    put_at(house, "team.toml", text);
    house.path("team.toml").display().to_string()
}

fn put_at(house: &House, name: &str, text: &str) {
    std::fs::File::create(house.path(name)).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Keys in the order in which their commands began.
fn log(house: &House) -> Vec<String> {
    house.read("out/log").lines().map(str::to_owned).collect()
}

fn sorted(house: &House) -> Vec<String> {
    let mut all = log(house);
    all.sort();
    all
}

/// Outcome and reason of each task, by key.
fn outcomes(result: &Value) -> Vec<String> {
    let one = |task: &Value| {
        let why = task["why"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{} {}{why}", task["key"].as_str().unwrap_or("-"), task["outcome"].as_str().unwrap())
    };
    result["tasks"].as_array().unwrap().iter().map(one).collect()
}

/// `teamctl run …` in the middle.
fn running(house: &House, file: &str, more: &[&str]) -> Child {
    let mut command = house.command(harness::programs().join("teamctl"));
    command.args(["run", file]).args(more);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.spawn().unwrap()
}

/// How it ended and what it said.
fn ended(mut child: Child) -> Ran {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = child.wait().unwrap().code().unwrap_or(-1);
    Ran { command: "run".to_owned(), code, stdout, stderr }
}

fn signal(pid: u32, name: &str) {
    std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
}

/// For a run that starts a daemon: on the house's server, as in a pane of it.
fn tmux(house: &House) -> String {
    format!("{},0,0", house.tmux_socket().display())
}

fn gone(house: &House) {
    assert!(!house.path("root/teams/survey").exists(), "{}", house.portrait());
    assert!(!house.path("root/tasks/survey").exists(), "{}", house.portrait());
}

/// A command that says that it has begun, and goes on when the test says so; once it has, it is never held again.
const HELD: &str = "[ -e out/go ] || { echo $$ > out/held; read _ < out/gate; }";

fn gate(house: &House) {
    let made = house.command("mkfifo").arg(house.path("out/gate")).status().unwrap();
    assert!(made.success());
}

/// Lets the command that is held go on.
fn open_gate(house: &House) {
    std::fs::File::create(house.path("out/go")).unwrap();
    // It waits until the command reads, which it does: it has said so.
    let mut gate = std::fs::File::options().write(true).open(house.path("out/gate")).unwrap();
    gate.write_all(b"\n").unwrap();
}

fn held(house: &House) {
    house.until("the command has begun", || house.read("out/held").ends_with('\n').then_some(()));
}

#[test]
fn a_team_from_a_file_runs_to_its_end_and_is_gone() {
    let house = House::empty();
    let file = team(["ann", "bob", "cat"])
        .task("report", "cat out/log > out/report", "blocked_by = ['a', 'b']\nowner = 'bob'")
        .task("a", "", "owner = 'ann'\nmetadata = { priority = 1 }")
        .task("b", "", "description = 'two'")
        .in_house(&house);
    let ran = house.teamctl_with(&["run", &file, "--json"], &[("TMUX", &tmux(&house))]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let result = ran.json();
    assert_eq!(outcomes(&result), ["report completed", "a completed", "b completed"]);
    assert_eq!((&result["completed"], &result["total"], &result["ok"]), (&3.into(), &3.into(), &true.into()));
    assert_eq!((&result["tasks"][0]["owner"], &result["tasks"][1]["owner"]), (&"bob".into(), &"ann".into()));
    assert_eq!(sorted(&house), ["a", "b", "report"]);
    assert_eq!(house.read("out/report").lines().count(), 3, "it waits for both, and has noted itself");
    gone(&house);
    assert_eq!(house.teamctl(["status"]).code, 0, "the daemon stays");
    house.end();
}

#[test]
fn people_see_events_and_a_table_and_quiet_ones_only_what_failed() {
    let house = House::start();
    let file = team(["ann"]).task("good", "", "").task("bad", "exit 3", "").in_house(&house);
    let ran = house.teamctl(["run", &file]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stdout.contains("ann@survey") && ran.stdout.contains("1 of 2 tasks are completed."),
        "{ran:#?}"
    );
    let row = ran.stdout.lines().find(|line| line.starts_with("bad ")).unwrap();
    assert!(row.contains("ann") && row.contains("failed (exit 3"), "{row}");
    assert!(ran.stdout.ends_with("see why: teamctl logs ann -t survey\n"), "{ran:#?}");
    let quiet = house.teamctl(["run", &file, "-q"]);
    assert_eq!((quiet.code, quiet.stdout.lines().count()), (1, 2), "{quiet:#?}");
    assert!(quiet.stdout.lines().nth(1).is_some_and(|line| line.starts_with("bad ")), "{quiet:#?}");
    house.end();
}

#[test]
fn what_waits_for_a_failed_task_can_not_be_done() {
    let house = House::start();
    let file = team(["ann", "bob"])
        .task("bad", "exit 7", "")
        .task("next", "", "blocked_by = ['bad']")
        .task("last", "", "blocked_by = ['next']")
        .task("free", "", "")
        .in_house(&house);
    let ran = house.teamctl(["run", &file, "--json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let result = ran.json();
    let found = outcomes(&result);
    assert!(found[0].starts_with("bad failed: exit 7"), "{found:?}");
    assert_eq!(found[1..3], ["next not_done: it waits for bad", "last not_done: it waits for next"]);
    assert_eq!(found[3], "free completed");
    assert_eq!(sorted(&house), ["bad", "free"]);
    house.end();
}

#[test]
fn a_failed_task_is_tried_again_as_often_as_the_policy_says() {
    let house = House::start();
    let file = team(["ann", "bob"])
        .policy("retries = 2")
        .task("shaky", "[ $(grep -c shaky out/log) -ge 3 ]", "owner = 'ann'")
        .task("next", "", "blocked_by = ['shaky']")
        .in_house(&house);
    let ran = house.teamctl(["run", &file, "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(log(&house), ["shaky", "shaky", "shaky", "next"]);
    assert_eq!(ran.json()["tasks"][0]["owner"], "ann");
    let file = team(["ann"]).policy("retries = 2").task("never", "false", "").in_house(&house);
    assert_eq!(house.teamctl(["run", &file]).code, 1);
    assert_eq!(log(&house).iter().filter(|key| *key == "never").count(), 3);
    house.end();
}

#[test]
fn a_task_that_an_agent_adds_counts_too() {
    let house = House::start();
    let file = team(["ann"]).task("a", "teamctl task create added", "").in_house(&house);
    let ran = house.teamctl(["run", &file, "--json"]);
    assert_eq!(ran.code, 1, "nothing is there to be run for it: {ran:#?}");
    let result = ran.json();
    assert!(result["tasks"][1]["key"].is_null() && result["tasks"][1]["subject"] == "added", "{result:#}");
    assert_eq!((&result["total"], &result["completed"]), (&2.into(), &1.into()));
    house.end();
}

#[test]
fn a_team_without_tasks_ends_when_everybody_is_done() {
    let house = House::start();
    let file = put(
        &house,
        "name = 'survey'\n[[member]]\nname = 'ann'\ncommand = ['sh', '-c', 'echo hi > out/hi']\n",
    );
    let ran = house.teamctl(["run", &file, "--json"]);
    assert_eq!((ran.code, house.read("out/hi").as_str()), (0, "hi\n"), "{ran:#?}");
    assert_eq!(ran.json()["total"], 0);
    gone(&house);
    house.end();
}

#[test]
fn what_its_owner_alone_may_do_ends_with_its_owner() {
    let house = House::start();
    // It dies when it is told of its task.
    let eve = "[[member]]\nname = 'eve'\ncommand = ['sh', '-c', 'read _ <&$TEAMD_WAKE_FD; read _ <&$TEAMD_WAKE_FD; exit 1']\n";
    let ann = "[[member]]\nname = 'ann'\nagent = 'worker'\n";
    let hers = "[[task]]\nkey = 'hers'\nsubject = 's'\nowner = 'eve'\ncommand = 'true'\n";
    let next = "[[task]]\nkey = 'next'\nsubject = 's'\nblocked_by = ['hers']\ncommand = 'true'\n";
    let free = "[[task]]\nkey = 'free'\nsubject = 's'\ncommand = 'true'\n";
    let file = put(&house, &format!("name = 'survey'\n{eve}{ann}{hers}{next}{free}"));
    let ran = house.teamctl(["run", &file, "--json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let found = outcomes(&ran.json());
    assert_eq!(found[0], "hers not_done: eve, whose it is, is gone");
    assert!(found[1].starts_with("next not_done: it waits for") && found[2] == "free completed", "{found:?}");
    gone(&house);
    house.end();
}

#[test]
fn a_worker_that_is_killed_leaves_its_task_to_the_others() {
    let house = House::start();
    gate(&house);
    let tasks = ["b", "c", "d", "e"];
    let mut team = team(["ann", "bob"]).task("slow", HELD, "");
    for key in tasks {
        team = team.task(key, "", "blocked_by = ['slow']");
    }
    let run = running(&house, &team.in_house(&house), &["--json"]);
    held(&house);
    kill_worker(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(sorted(&house), ["b", "c", "d", "e", "slow", "slow"], "none twice but the one it was in");
    gone(&house);
    house.end();
}

#[test]
fn a_worker_that_is_killed_and_comes_back_takes_up_its_task() {
    let house = House::start();
    gate(&house);
    let file = team(["ann"])
        .task("slow", HELD, "owner = 'ann'")
        .task("next", "", "owner = 'ann'\nblocked_by = ['slow']")
        .in_house(&house);
    let text = std::fs::read_to_string(&file).unwrap();
    let file =
        put(&house, &text.replace("agent = \"worker\"", "agent = \"worker\"\nrestart = \"on-failure\""));
    let run = running(&house, &file, &["--json"]);
    held(&house);
    kill_worker(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(log(&house), ["slow", "slow", "next"]);
    house.end();
}

#[test]
fn a_daemon_that_is_killed_is_started_again_and_nothing_runs_twice() {
    let house = House::start();
    gate(&house);
    let file = team(["ann", "bob"])
        .task("slow", HELD, "")
        .task("b", "", "")
        .task("next", "", "blocked_by = ['slow', 'b']")
        .in_house(&house);
    let run = running(&house, &file, &["--json"]);
    held(&house);
    let daemon = house.daemon();
    house.kill_9(daemon);
    house.until("the next daemon answers", || {
        let status = house.teamctl(["status", "--json"]);
        (status.code == 0 && status.json()["daemon"]["pid"] != daemon).then_some(())
    });
    open_gate(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(sorted(&house), ["b", "next", "slow"]);
    gone(&house);
    house.end();
}

#[test]
fn a_daemon_that_keeps_dying_is_given_up_and_the_team_is_left_as_it_is() {
    let house = House::start();
    gate(&house);
    let file = team(["ann"]).task("slow", HELD, "").in_house(&house);
    let run = running(&house, &file, &[]);
    held(&house);
    for _ in 0..5 {
        let daemon = house.daemon();
        house.kill_9(daemon);
        house.until("the next daemon answers", || {
            let status = house.teamctl(["status", "--json"]);
            (status.code == 0 && status.json()["daemon"]["pid"] != daemon).then_some(())
        });
    }
    house.kill_9(house.daemon());
    let said = ended(run).fails(69);
    assert!(said.contains("died 5 times within a minute") && said.contains("ann may still run"), "{said}");
    house.start_daemon();
    let run = running(&house, &file, &["--resume"]);
    open_gate(&house);
    assert_eq!(ended(run).code, 0);
    assert_eq!(log(&house), ["slow"]);
    house.end();
}

#[test]
fn a_daemon_that_is_taken_down_stays_down_and_the_run_ends() {
    let house = House::start();
    gate(&house);
    let file = team(["ann", "bob"])
        .task("slow", HELD, "owner = 'ann'")
        .task("next", "", "owner = 'bob'\nblocked_by = ['slow']")
        .in_house(&house);
    let run = running(&house, &file, &[]);
    held(&house);
    let down = house.teamctl_running(["down"]);
    let said = ended(run).fails(69);
    assert!(said.contains("somebody has taken teamd down") && said.contains("--resume"), "{said}");
    open_gate(&house);
    down.wait_with_output().unwrap();
    assert_eq!(house.teamctl(["status"]).code, 69, "no daemon was started");
    assert!(house.path("root/teams/survey/config.json").exists(), "{}", house.portrait());
    house.start_daemon();
    let ran = house.teamctl(["run", &file, "--resume", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(log(&house), ["slow", "next"]);
    gone(&house);
    house.end();
}

#[test]
fn a_team_whose_member_does_not_start_is_taken_down() {
    let house = House::start();
    // A program that is there, and can't be started.
    house.script("out/broken", "#!/no/such/interpreter\n");
    let file = team(["ann"]).task("a", "", "").in_house(&house);
    let text = std::fs::read_to_string(&file).unwrap();
    let eve = "[[member]]\nname = 'eve'\ncommand = ['out/broken']\n[[task]]";
    let file = put(&house, &text.replacen("[[task]]", eve, 1));
    let said = house.teamctl(["run", &file]).fails(72);
    assert!(said.contains("out/broken"), "{said}");
    assert!(log(&house).is_empty());
    gone(&house);
    house.end();
}

#[test]
fn a_run_that_is_killed_is_taken_up_where_it_was() {
    let house = House::start();
    gate(&house);
    let file = team(["ann", "bob"])
        .task("first", "", "")
        .task("slow", HELD, "blocked_by = ['first']")
        .task("next", "", "blocked_by = ['slow']")
        .in_house(&house);
    let run = running(&house, &file, &[]);
    held(&house);
    house.kill_9(run.id());
    assert_ne!(ended(run).code, 0);
    let said = house.teamctl(["run", &file]).fails(73);
    assert!(said.contains("--resume"), "{said}");
    let run = running(&house, &file, &["--resume", "--json"]);
    open_gate(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(outcomes(&ran.json()), ["first completed", "slow completed", "next completed"]);
    assert_eq!(log(&house), ["first", "slow", "next"]);
    gone(&house);
    house.end();
}

#[test]
fn a_run_that_is_killed_with_all_its_workers_is_taken_up_too() {
    let house = House::start();
    gate(&house);
    let file = team(["ann"])
        .task("first", "", "")
        .task("slow", HELD, "owner = 'ann'\nblocked_by = ['first']")
        .task("next", "", "blocked_by = ['slow']")
        .in_house(&house);
    let run = running(&house, &file, &[]);
    held(&house);
    house.kill_9(run.id());
    assert_ne!(ended(run).code, 0);
    house.kill_9(house.daemon());
    kill_pane_process(&house, "ann");
    std::fs::File::create(house.path("out/go")).unwrap();
    let ran = house.teamctl_with(&["run", &file, "--resume", "--json"], &[("TMUX", &tmux(&house))]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(log(&house), ["first", "slow", "slow", "next"]);
    house.end();
}

#[test]
fn ctrl_c_asks_the_team_to_stop_and_lets_it_finish_what_it_is_in() {
    let house = House::start();
    gate(&house);
    let file =
        team(["ann"]).task("slow", HELD, "").task("next", "", "blocked_by = ['slow']").in_house(&house);
    let run = running(&house, &file, &["--json"]);
    held(&house);
    signal(run.id(), "INT");
    house.until("it is asked", || {
        let asked =
            |message: &Value| message["text"].as_str().is_some_and(|text| text.contains("shutdown_request"));
        house.inbox("survey", "ann").iter().any(asked).then_some(())
    });
    open_gate(&house);
    let ran = ended(run);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let result = ran.json();
    assert_eq!(outcomes(&result)[0], "slow completed");
    assert!(!log(&house).contains(&"next".to_owned()));
    assert_eq!((&result["ok"], &result["error"]["kind"]), (&false.into(), &"partly".into()));
    gone(&house);
    house.end();
}

/// `teamctl run …` in a pane of its own, which stays when it has ended.
fn in_a_pane(house: &House, words: &str) -> String {
    // Into a file, since nobody is told of what comes on the screen.
    let run = format!("trap : INT; teamctl run {words}; echo \"exit $?\" >out/ended; read _");
    house.tmux([
        "new-session",
        "-d",
        "-x",
        "90",
        "-y",
        "30",
        "-P",
        "-F",
        "#{pane_id}",
        "--",
        "sh",
        "-c",
        &run,
    ])
}

fn screen(house: &House, pane: &str) -> String {
    house.tmux(["capture-pane", "-p", "-t", pane])
}

#[test]
fn the_table_goes_on_while_the_team_is_asked_to_stop() {
    let house = House::start();
    gate(&house);
    let file = team(["ann"]).task("slow", HELD, "").in_house(&house);
    let pane = in_a_pane(&house, &file);
    held(&house);
    house.tmux(["send-keys", "-t", &pane, "C-c"]);
    let stops = "stopping: the members are asked, 30s at most; Ctrl-C again ends it at once";
    let row = || {
        let screen = screen(&house, &pane);
        let row = screen.lines().find(|line| line.starts_with("running "))?.to_owned();
        screen.contains(stops).then_some(row)
    };
    let first = house.until("it says that it stops", row);
    house.until("the clock goes on", || row().filter(|row| *row != first));
    open_gate(&house);
    house.until("it has ended", || (house.read("out/ended") == "exit 1\n").then_some(()));
    gone(&house);
    house.end();
}

#[test]
fn ctrl_c_twice_ends_it() {
    let house = House::start();
    gate(&house);
    let file = team(["ann"]).task("slow", HELD, "").in_house(&house);
    let run = running(&house, &file, &["--json"]);
    held(&house);
    signal(run.id(), "INT");
    house.until("it is asked", || (house.member("ann")?["phase"] == "stopping").then_some(()));
    signal(run.id(), "TERM");
    let ran = ended(run);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert_eq!(outcomes(&ran.json()), ["slow not_done: it was not finished"]);
    gone(&house);
    house.end();
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    let house = House::start();
    gate(&house);
    let file = team(["ann"]).policy("grace = '100ms'").task("slow", HELD, "").in_house(&house);
    let ran = house.teamctl(["run", &file, "--timeout", "2s", "--json"]);
    assert_eq!(ran.code, 75, "{ran:#?}");
    assert_eq!(ran.json()["error"]["kind"], "timeout");
    gone(&house);
    let ran = house.teamctl(["run", &file, "--timeout", "1ms"]);
    let said = "the time is over: the members are asked, 0.1s at most; Ctrl-C ends it at once";
    assert!(ran.code == 75 && ran.stdout.contains(said), "{ran:#?}");
    house.end();
}

#[test]
fn a_team_that_is_kept_can_be_looked_at_and_taken_up() {
    let house = House::start();
    let file = team(["ann"]).task("a", "", "").in_house(&house);
    house.teamctl(["run", &file, "--keep"]).ok();
    assert!(house.member("ann").is_none(), "its members have ended");
    let tasks = house.json(["task", "list"]);
    assert_eq!(
        (&tasks["tasks"][0]["status"], &tasks["tasks"][0]["metadata"]["key"]),
        (&"completed".into(), &"a".into())
    );
    let said = house.teamctl(["run", &file]).fails(73);
    assert!(said.contains("nothing is left to do in it") && said.contains("teamctl delete survey"), "{said}");
    let ran = house.teamctl(["run", &file, "--resume"]);
    assert!(ran.code == 0 && ran.stderr.contains("nothing is left to do, and team survey stays"), "{ran:#?}");
    assert!(!ran.stderr.contains("failed"), "{ran:#?}");
    assert_eq!(log(&house), ["a"], "what is completed never runs again");
    assert!(house.path("root/teams/survey/config.json").exists());
    house.teamctl(["delete", "survey"]).ok();
    house.teamctl(["run", &file, "--resume"]).ok();
    assert_eq!(log(&house), ["a", "a"], "where nothing is, it begins");
    house.end();
}

#[test]
fn a_failed_task_of_a_team_that_was_kept_is_tried_again_only_once_it_is_released() {
    let house = House::start();
    let file = team(["ann"])
        .task("bad", "[ -e out/mended ]", "")
        .task("next", "", "blocked_by = ['bad']")
        .in_house(&house);
    assert_eq!(house.teamctl(["run", &file, "--keep"]).code, 1);
    let ran = house.teamctl(["run", &file, "--resume", "--json"]);
    assert!(ran.code == 1 && ran.stderr.contains("teamctl task release ID -t survey"), "{ran:#?}");
    let said = ran.stderr.clone();
    let bad = ran.json()["tasks"][0].clone();
    let id = bad["id"].as_str().unwrap();
    assert!(bad["outcome"] == "failed" && said.contains(&format!("its failed tasks ({id}):")), "{said}");
    assert_eq!(log(&house), ["bad"]);
    std::fs::File::create(house.path("out/mended")).unwrap();
    house.teamctl(["task", "release", id, "-t", "survey"]).ok();
    let text = std::fs::read_to_string(&file).unwrap();
    let file = put(&house, &text.replace("do next", "do it otherwise"));
    let ran = house.teamctl(["run", &file, "--resume", "--json"]);
    assert!(ran.stderr.contains("task next differs from the file (subject): the team's stays"), "{ran:#?}");
    assert_eq!(outcomes(&ran.json()), ["bad completed", "next completed"]);
    assert_eq!(log(&house), ["bad", "bad", "next"]);
    gone(&house);
    house.end();
}

#[test]
fn a_team_that_others_made_is_not_taken_up() {
    let house = House::with_team();
    house.teamctl(["task", "create", "somebody's"]).ok();
    let file = team(["ann"]).task("a", "", "").in_house(&house);
    house.teamctl(["run", &file]).fails(73);
    let said = house.teamctl(["run", &file, "--resume"]).fails(76);
    assert!(said.contains("none of its tasks"), "{said}");
    house.teamctl(["spawn", "eve", "--", "sleep", "3600"]).ok();
    let said = house.teamctl(["run", &file, "--resume"]).fails(76);
    assert!(said.contains("eve is on it, and the file has no such member (any more)"), "{said}");
    assert_eq!(house.json(["task", "list"])["tasks"].as_array().unwrap().len(), 1);
    assert!(house.member("eve").is_some());
    house.end();
}

#[test]
fn two_runs_of_one_team_do_not_go_on_side_by_side() {
    let house = House::start();
    gate(&house);
    let file = team(["ann"]).task("slow", HELD, "").in_house(&house);
    let run = running(&house, &file, &[]);
    held(&house);
    let said = house.teamctl(["run", &file, "--resume"]).fails(73);
    assert!(said.contains("another teamctl run"), "{said}");
    open_gate(&house);
    assert_eq!(ended(run).code, 0);
    house.end();
}

#[test]
fn a_file_with_faults_starts_nothing_and_tells_them_all() {
    let house = House::empty();
    let file = put(
        &house,
        "name = \"My \\u001b\"\n[[member]]\nname = 'ann'\ncommand = ['no-such-program']\n[[task]]\nkey = 'a'\nsubject = 's'\nowner = 'amn'\n",
    );
    let ran = house.teamctl(["run", &file, "--json"]);
    assert_eq!(ran.code, 65, "{ran:#?}");
    let lines: Vec<&str> = ran.stderr.lines().skip(1).collect();
    let places: Vec<String> = lines.iter().map(|line| line.replace(&file, "F")).collect();
    let starts = ["F:1:", "F:4:1: cannot start no-such-program", "F:8:9: the owner \"amn\" is no member"];
    assert!(
        places.len() == 3 && places.iter().zip(starts).all(|(at, start)| at.starts_with(start)),
        "{places:#?}"
    );
    assert!(!ran.stderr.contains('\u{1b}'), "what steers a terminal is made visible");
    let error = ran.json()["error"].clone();
    assert_eq!(
        (&error["kind"], &error["faults"][2]["line"], &error["faults"][2]["column"]),
        (&"data".into(), &8.into(), &9.into())
    );
    let good = team(["ann"]).task("a", "", "").in_house(&house);
    let said = house.teamctl(["run", &good, "-t", "other"]).fails(64);
    assert!(said.contains("it names its team survey"), "{said}");
    assert_eq!(house.teamctl(["status"]).code, 69, "no daemon was started");
    assert!(!house.path("root/teams/my").exists());
    house.teamctl(["run", "no-such-file.toml"]).fails(72);
    house.end();
}

/// Kills the first process of the worker that is in the task, once it can't be held up any more.
fn kill_worker(house: &House) {
    std::fs::File::create(house.path("out/go")).unwrap();
    let tasks = house.json(["task", "list"]);
    let busy = tasks["tasks"].as_array().unwrap().iter().find(|task| task["status"] == "in_progress");
    let owner = busy.unwrap()["owner"].as_str().unwrap().to_owned();
    kill_pane_process(house, &owner);
}

fn kill_pane_process(house: &House, name: &str) {
    let panes = house.tmux(["list-panes", "-a", "-F", "#{@teamd_name} #{pane_pid}"]);
    let pid = panes.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
    house.kill_9(pid.parse().unwrap());
}

/// A repository with an example in it, and programs of its own in front of the PATH.
fn project(example: &str) -> House {
    let mut house = House::start();
    let path = format!(
        "{}:{}:{}",
        house.path("bin").display(),
        harness::programs().display(),
        std::env::var("PATH").unwrap()
    );
    for directory in ["bin", "project", "project/src", "project/examples"] {
        std::fs::create_dir(house.path(directory)).unwrap();
    }
    let example = format!("{}/../examples/{example}", env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(example, house.path("project/examples/team.toml")).unwrap();
    put_at(&house, "project/src/lib.rs", "//! Nothing.\npub fn nothing() {}\n");
    house.script("bin/cargo", "#!/bin/sh\necho \"$*\" >> \"$HOUSE/out/cargo\"\necho Finished >&2\n");
    let git = |arguments: &[&str]| {
        let status = house.command("git").arg("-C").arg(house.path("project")).args(arguments).status();
        assert!(status.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    house.variables.push(("PATH".to_owned(), path));
    house
}

#[test]
fn the_example_of_a_survey_runs() {
    let house = project("survey.toml");
    let ran = house.teamctl(["run", "project/examples/team.toml", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let report = house.read("project/target/survey/report");
    assert!(report.contains("2 src/lib.rs") && report.contains("Finished"), "{report}");
    house.end();
}

#[test]
fn the_example_of_a_pipeline_runs_in_order() {
    let house = project("cargo-pipeline.toml");
    let ran = house.teamctl(["run", "project/examples/team.toml", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let called: Vec<String> =
        house.read("out/cargo").lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let place = |word: &str| {
        called.iter().position(|call| call == word).unwrap_or_else(|| panic!("{word}: {called:?}"))
    };
    assert!(
        place("clippy") < place("test") && place("fmt") < place("test") && place("test") < place("bench"),
        "{called:?}"
    );
    house.end();
}

//! `teamctl ask`: one question to an agent outside any team, without teamd and without tmux.

use harness::{TaggedProcesses, TestEnv};
use serde_json::Value;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

/// A program that continues a session, counts its questions in a file, and answers in JSON lines.
const SESSION_PROGRAM: &str = "#!/bin/sh\necho \"{\\\"thread_id\\\":\\\"s-7\\\"}\"\nread question\n\
    echo \"$* $question\" >>\"$ASKED\"\necho \"working\" >&2\n\
    echo \"{\\\"text\\\":\\\"answer $(wc -l <\"$ASKED\" | tr -d ' ')\\\",\\\"usage\\\":{\\\"tokens\\\":12}}\"\n";
const SESSION_PROFILE: &str = "delivery = \"turn\"\nprogram = \"counter\"\nargs = [\"new\", \"{options}\"]\n\
    resume_args = [\"resume\", \"{session}\", \"{options}\"]\nsession = { output_key = \"thread_id\" }\n\
    reply = { key = \"text\" }\nusage = { tokens = [\"usage.tokens\"], scope = \"turn\" }\n\
    model = [\"--model\", \"{model}\"]\n";

/// An environment with the program `counter` and its profile `counter-turn`.
fn env_with_session_program() -> TestEnv {
    let mut env = TestEnv::new();
    std::fs::create_dir_all(env.path("out/bin")).unwrap();
    env.write_script("out/bin/counter", SESSION_PROGRAM);
    env.write_file("home/.config/teamd/profiles/counter-turn.toml", SESSION_PROFILE);
    env.write_file(
        "home/.config/teamd/profiles/counter.toml",
        "delivery = \"pull\"\nprogram = \"counter\"\n",
    );
    let path = format!("{}:{}:/usr/bin:/bin", env.path("out/bin").display(), harness::programs().display());
    let asked = env.path("out/asked").display().to_string();
    env.variables.extend([("PATH".to_owned(), path), ("ASKED".to_owned(), asked)]);
    env
}

/// Starts a command whose output is read later.
fn start(env: &TestEnv, args: &[&str]) -> Child {
    let mut command = env.command("teamctl");
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Ends a process that this test has started.
fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

/// The pid that the asked program has written to `out/pid`.
fn program_pid(env: &TestEnv) -> u32 {
    let read = || std::fs::read_to_string(env.path("out/pid")).ok()?.trim().parse().ok();
    env.wait_until("the program runs", read)
}

/// A program that writes its pid and never answers. A process of it leaves its session.
fn endless_program(env: &TestEnv) -> String {
    format!("exec 2>/dev/null; setsid sleep 3600 & echo $$ >{}; sleep 3600", env.path("out/pid").display())
}

/// Waits until only the tmux server of the environment runs.
fn wait_until_nothing_runs(env: &TestEnv) {
    let is_of_ask = |line: &String| ["sh -c", "sleep", "teamd-shim"].iter().any(|word| line.contains(word));
    let lines = || TaggedProcesses::with_tag(&env.process_tag()).list();
    env.wait_until("nothing of the ask runs", || (!lines().iter().any(is_of_ask)).then_some(()));
}

/// Checks that the command has returned only after its processes had ended.
fn assert_nothing_runs(env: &TestEnv) {
    let lines = TaggedProcesses::with_tag(&env.process_tag()).list();
    assert!(!lines.iter().any(|line| line.contains("sleep 3600")), "{lines:#?}");
}

/// The records of all asks.
fn records(env: &TestEnv) -> Vec<Value> {
    let files = harness::files_below(&env.path("state"));
    let is_record = |path: &std::path::PathBuf| {
        let is_in_asks = path.parent().is_some_and(|parent| parent.ends_with("asks"));
        is_in_asks && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ask-"))
    };
    let records = files.into_iter().filter(is_record);
    records.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
}

#[test]
fn answer_is_on_stdout_and_progress_on_stderr() {
    let env = TestEnv::new();
    let mut child = env.command("teamctl");
    child.args(["ask", "-", "--", "sh", "-c", "echo thinking >&2; read q; echo \"heard $q\""]);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"2 + 2?\nand more").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "heard 2 + 2?\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "thinking\n");
    let quiet = env.teamctl(["-q", "ask", "x", "--", "sh", "-c", "echo thinking >&2; cat"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str(), quiet.code), ("x\n", "", 0));
    assert!(!env.path("root/teams").exists(), "no team was made");
    env.shut_down();
}

#[test]
fn resumed_ask_continues_the_session_with_the_same_options() {
    let env = env_with_session_program();
    let first = env.json(["ask", "--profile", "counter", "--model", "m-1", "first"]);
    assert_eq!((first["answer"].as_str(), first["session_id"].as_str()), (Some("answer 1"), Some("s-7")));
    assert_eq!(first["usage"]["tokens"], 12);
    let id = first["id"].as_str().unwrap();
    let second = env.teamctl(["ask", "--resume", id, "second"]).expect_success();
    assert_eq!(second, "answer 2\n");
    assert_eq!(env.read("out/asked"), "new --model m-1 first\nresume s-7 --model m-1 second\n");
    env.shut_down();
}

#[test]
fn failures_have_a_reason_and_an_exit_code() {
    let env = env_with_session_program();
    let error =
        env.teamctl(["-q", "ask", "x", "--", "sh", "-c", "echo not logged in >&2; exit 3"]).expect_failure(1);
    assert!(error.contains("exit 3: not logged in"), "{error}");
    let error = env.teamctl(["ask", "x", "--", "nosuch"]).expect_failure(72);
    assert!(error.contains("nosuch"), "{error}");
    let error = env.teamctl(["ask", "x", "--profile", "worker"]).expect_failure(64);
    assert!(error.contains("worker"), "{error}");
    env.teamctl(["ask", "x", "--profile", "counter", "--mode", "plan"]).expect_failure(64);
    env.teamctl(["ask", "x", "--cwd", "/nowhere", "--", "cat"]).expect_failure(72);
    for invalid in [&["ask"][..], &["ask", "x", "--jobs", "2"], &["ask", "x", "--mode", "fast"]] {
        assert_eq!(env.teamctl_with(invalid, &[]).code, 64, "{invalid:?}");
    }
    env.teamctl(["ask", "--each", "/nowhere", "--", "cat"]).expect_failure(72);
    env.write_file("out/long", "x".repeat(300 << 10));
    let long = env.path("out/long").display().to_string();
    let lines = env.teamctl(["ask", "--each", &long, "--", "cat"]).stdout;
    assert!(lines.contains("262144 at most"), "{}", &lines[lines.len().saturating_sub(400)..]);
    env.teamctl(["ask", "--resume", "ask-00000000", "x"]).expect_failure(67);
    env.teamctl(["ask", "--resume", "../x", "x"]).expect_failure(67);
    env.teamctl(["wait", "ask-00000000"]).expect_failure(67);
    let id = env.json(["ask", "x", "--", "cat"])["id"].as_str().unwrap().to_owned();
    let error = env.teamctl(["ask", "--resume", &id, "x"]).expect_failure(76);
    assert!(error.contains("no session"), "{error}");
    env.shut_down();
}

#[test]
fn timeout_and_interrupt_leave_nothing() {
    let env = TestEnv::new();
    let program = endless_program(&env);
    let error =
        env.teamctl(["ask", "x", "--timeout", "200ms", "--", "sh", "-c", &program]).expect_failure(75);
    assert!(error.contains("--timeout"), "{error}");
    assert_nothing_runs(&env);
    for name in ["-INT", "-TERM"] {
        std::fs::remove_file(env.path("out/pid")).ok();
        let child = start(&env, &["ask", "x", "--", "sh", "-c", &program]);
        program_pid(&env);
        signal(child.id(), name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"), "{output:?}");
        assert_nothing_runs(&env);
    }
    env.shut_down();
}

#[test]
fn interrupted_ask_is_continued() {
    let env = env_with_session_program();
    env.write_file(
        "home/.config/teamd/profiles/named-turn.toml",
        "delivery = \"turn\"\nprogram = \"counter\"\nargs = [\"new\", \"{session}\"]\n\
         resume_args = [\"resume\", \"{session}\"]\nsession = \"generated\"\n",
    );
    env.write_script("out/bin/counter", &format!("#!/bin/sh\n{}\n", endless_program(&env)));
    let child = start(&env, &["ask", "x", "--profile", "named-turn"]);
    program_pid(&env);
    signal(child.id(), "-INT");
    let error = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let record = records(&env).pop().unwrap();
    let (id, session) = (record["id"].as_str().unwrap(), record["session_id"].as_str().unwrap());
    assert!(error.contains(&format!("--resume {id}")), "{error}");
    env.write_script("out/bin/counter", "#!/bin/sh\necho \"$*\"\n");
    let answer = env.teamctl(["ask", "--resume", id, "go on"]).expect_success();
    assert!(answer.starts_with(&format!("resume {session}")), "{answer}");
    env.shut_down();
}

#[test]
fn killed_processes_leave_no_program_behind() {
    let env = TestEnv::new();
    let program = endless_program(&env);
    let mut child = start(&env, &["ask", "x", "--", "sh", "-c", &program]);
    program_pid(&env);
    signal(child.id(), "-KILL");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    wait_until_nothing_runs(&env);
    assert_eq!(records(&env)[0]["state"]["outcome"], "interrupted");

    std::fs::remove_file(env.path("out/pid")).unwrap();
    let child = start(&env, &["ask", "x", "--", "sh", "-c", &program]);
    program_pid(&env);
    let is_running = |record: &Value| record["state"]["state"] == "running";
    let running = records(&env).into_iter().find(is_running).unwrap();
    signal(u32::try_from(running["shim"]["pid"].as_u64().unwrap()).unwrap(), "-KILL");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("was killed"), "{output:?}");
    assert_nothing_runs(&env);
    env.shut_down();
}

#[test]
fn background_ask_is_waited_for() {
    let env = TestEnv::new();
    let ask = |text: &str, gate: &str| {
        let program = format!("cat; read line <{}; echo answered", env.create_gate(gate));
        let id = env.teamctl(["ask", "--background", text, "--", "sh", "-c", &program]).expect_success();
        id.trim().to_owned()
    };
    let (first, second) = (ask("one ", "first-gate"), ask("two ", "second-gate"));
    let error = env.teamctl(["wait", &first, "--timeout", "1ms"]).expect_failure(75);
    assert!(error.contains(&first), "{error}");
    env.teamctl(["ask", "--resume", &first, "x"]).expect_failure(76);
    let waiting = start(&env, &["wait", &first, &second]);
    env.open_gate("first-gate");
    env.open_gate("second-gate");
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one answered\ntwo answered\n", "{output:?}");
    assert_eq!(env.teamctl(["wait", &second]).expect_success(), "two answered\n", "the answer stays");
    env.shut_down();
}

#[test]
fn ask_ends_with_the_mcp_server_that_has_started_it() {
    let mut env = env_with_session_program();
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    env.write_script("out/bin/counter", &format!("#!/bin/sh\n{}\n", endless_program(&env)));
    for is_background in [false, true] {
        let input =
            serde_json::json!({"prompt": "x", "profile": "counter", "run_in_background": is_background});
        let mut lead = harness::McpClient::connect(&env, &[]);
        lead.call_and_kill("Ask", &input, || assert!(program_pid(&env) > 1));
        env.wait_until("the ask has ended", || {
            let is_over = |record: &Value| record["state"]["outcome"] == "interrupted";
            (records(&env).iter().filter(|record| is_over(record)).count() == 1 + usize::from(is_background))
                .then_some(())
        });
        assert_nothing_runs(&env);
        std::fs::remove_file(env.path("out/pid")).unwrap();
    }
    env.variables.clear();
    env.shut_down();
}

#[test]
fn asks_are_listed_and_ended() {
    let env = TestEnv::new();
    assert_eq!(env.teamctl(["ask", "--list"]).expect_success(), "no asks\n");
    let answered = env.json(["ask", "first", "--", "cat"])["id"].as_str().unwrap().to_owned();
    let start_endless = || {
        let id =
            env.teamctl(["ask", "--background", "second\nline", "--", "sh", "-c", &endless_program(&env)]);
        let id = id.expect_success().trim().to_owned();
        program_pid(&env);
        std::fs::remove_file(env.path("out/pid")).unwrap();
        id
    };
    let ids = [start_endless(), start_endless()];
    let shim = records(&env).into_iter().find(|record| record["id"] == *ids[1]).unwrap()["shim"].take();
    signal(u32::try_from(shim["pid"].as_u64().unwrap()).unwrap(), "-KILL");
    let states = |expected: [&str; 3]| {
        env.wait_until("the states of the asks", || {
            let asks = env.json(["ask", "--list"])["asks"].take();
            let states: Vec<&str> = asks.as_array()?.iter().filter_map(|ask| ask["state"].as_str()).collect();
            (states == expected).then_some(())
        });
    };
    states(["answered", "running", "lost"]);
    let table = env.teamctl(["ask", "--list"]).expect_success();
    assert!(table.contains(&ids[0]) && table.contains("second") && !table.contains("line"), "{table}");
    for id in &ids {
        assert_eq!(env.teamctl(["ask", "--end", id]).expect_success(), format!("ended {id}\n"));
    }
    assert_nothing_runs(&env);
    states(["answered", "interrupted", "lost"]);
    for id in [&answered, &ids[0]] {
        let error = env.teamctl(["ask", "--end", id]).expect_failure(76);
        assert!(error.contains("has ended already"), "{error}");
    }
    env.teamctl(["ask", "--end", "ask-00000000"]).expect_failure(67);
    env.teamctl(["ask", "x", "--starter", "4194304", "--", "cat"]).expect_failure(76);
    for invalid in [&["ask", "--list", "x"][..], &["ask", "--end"], &["ask", "--end", &answered, "--list"]] {
        assert_eq!(env.teamctl_with(invalid, &[]).code, 64, "{invalid:?}");
    }
    env.shut_down();
}

#[test]
fn background_ask_whose_shim_was_killed_is_reported() {
    let env = TestEnv::new();
    let id = env.teamctl(["ask", "--background", "x", "--", "sh", "-c", &endless_program(&env)]);
    let id = id.expect_success().trim().to_owned();
    program_pid(&env);
    let shim = records(&env)[0]["shim"]["pid"].as_u64().unwrap();
    signal(u32::try_from(shim).unwrap(), "-KILL");
    let error = env.teamctl(["wait", &id]).expect_failure(1);
    assert!(error.contains("was killed") && error.contains("ask again"), "{error}");
    assert_nothing_runs(&env);
    env.shut_down();
}

/// Each second program is killed while it works.
#[test]
fn every_line_of_a_file_is_accounted_for() {
    let env = TestEnv::new();
    let questions: String = (0..200).map(|number| format!("{number}\n")).collect();
    env.write_file("out/questions", questions);
    let program = "read n; setsid sleep 3600 & [ $((n % 2)) = 0 ] || kill -9 $$; echo \"<$n>\"";
    let questions = env.path("out/questions").display().to_string();
    let output = env.teamctl(["ask", "--each", &questions, "-j", "16", "--", "sh", "-c", program]);
    let mut lines: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let error = output.expect_failure(1);
    assert!(error.contains("100 of 200"), "{error}");
    lines.retain(|line| line.get("line").is_some());
    lines.sort_by_key(|line| line["line"].as_u64());
    assert_eq!(lines.len(), 200);
    for (number, line) in lines.iter().enumerate() {
        assert_eq!(line["question"], number.to_string());
        let expected =
            if number % 2 == 0 { ("answered", format!("<{number}>")) } else { ("failed", String::new()) };
        assert_eq!(
            (line["outcome"].as_str().unwrap(), line["answer"].as_str().unwrap()),
            (expected.0, expected.1.as_str())
        );
    }
    assert_nothing_runs(&env);
    env.shut_down();
}

/// Each line of the terminal is a complete object. The line below them counts the answers.
#[test]
fn counts_are_below_the_answers_on_a_terminal() {
    let env = TestEnv::new();
    let questions = env.write_file("out/questions", "1\n2\n3\n");
    let ask = format!("teamctl ask --each {questions} -- cat; echo $? >out/code; read _");
    env.tmux(["new-session", "-d", "-x", "300", "-y", "24", "--", "sh", "-c", &ask]);
    env.wait_until("the asks have ended", || (env.read("out/code") == "0\n").then_some(()));
    let screen = env.tmux(["capture-pane", "-p"]);
    let lines: Vec<&str> = screen.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!((lines.len(), lines[3]), (4, "3 of 3 answered, 0 failed"), "{screen}");
    for line in &lines[..3] {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {screen}"));
    }
    env.shut_down();
}

/// The test does not read standard error, so that the pipe is full.
#[test]
fn unread_progress_delays_no_timeout() {
    let env = TestEnv::new();
    let mut command = env.command("teamctl");
    let program = "yes progress | head -c 1000000 >&2; sleep 3600";
    command.args(["ask", "x", "--timeout", "300ms", "--", "sh", "-c", program]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(75));
    assert_nothing_runs(&env);
    env.shut_down();
}

#[test]
fn answer_is_found_in_a_long_output_and_kept_as_it_is() {
    let env = env_with_session_program();
    let answer = "printf 'a\\tb\\rc \\302\\240 \\042\\042'";
    assert_eq!(env.teamctl(["ask", "x", "--", "sh", "-c", answer]).expect_success(), "a\tb\rc \u{a0} \"\"\n");
    let half = "yes '\"\"' | tr -d '\\n' | head -c 1000000";
    let id = env.teamctl(["-q", "ask", "--background", "x", "--", "sh", "-c", half]).expect_success();
    assert_eq!(env.teamctl(["wait", id.trim()]).expect_success().len(), 1_000_001);
    let longest = "yes x | tr -d '\\n' | head -c 1048576; echo";
    assert_eq!(env.teamctl(["ask", "x", "--", "sh", "-c", longest]).expect_success().len(), 1_048_577);
    let long = env.teamctl(["ask", "x", "--", "head", "-c", "2000000", "/dev/zero"]).expect_failure(1);
    assert!(long.contains("1048576"), "{long}");
    let noise = "printf '{\"text\":\"short\"}\\n'; yes '{\"x\":1}' | head -c 20000000";
    env.write_script("out/bin/counter", &format!("#!/bin/sh\n{noise}\n"));
    assert_eq!(env.teamctl(["ask", "x", "--profile", "counter"]).expect_success(), "short\n");
    env.shut_down();
}

#[test]
fn lead_asks_by_mcp_and_a_member_may_not() {
    let mut env = env_with_session_program();
    env.start_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let mut lead = harness::McpClient::connect(&env, &[]);
    let first = lead.call("Ask", &serde_json::json!({"prompt": "first", "profile": "counter"})).unwrap();
    assert_eq!(first["answer"], "answer 1");
    let further = serde_json::json!({"prompt": "second", "resume": first["id"]});
    assert_eq!(lead.call("Ask", &further).unwrap()["answer"], "answer 2");
    let error = lead.call("Ask", &serde_json::json!({"prompt": "x", "profile": "worker"})).unwrap_err();
    assert!(error.contains("worker"), "{error}");
    assert_eq!(lead.close(), 0);
    let ann = env.spawn_member("survey", "ann");
    let mut member = env.mcp_as(&ann);
    let error = member.call("Ask", &serde_json::json!({"prompt": "x"})).unwrap_err();
    assert!(error.contains("lead"), "{error}");
    member.close();
    env.variables.clear();
    env.shut_down();
}

/// A program that leads the team, asks in the background, and gets the message by its turn-end hook.
const LEADING_PROGRAM: &str = r#"
teamctl lead survey
teamctl ask --background 'x' -- sh -c 'read gate <out/gate; echo "a <b>"; echo second' >out/id
read gate <out/hook
echo '{"hook_event_name":"Stop"}' | teamd-shim hook turn-end >out/mail.new
mv out/mail.new out/mail
read _
"#;

#[test]
fn lead_session_is_notified_of_the_end_of_a_background_ask() {
    let env = TestEnv::with_team();
    ["out/gate", "out/hook"].into_iter().for_each(|gate| drop(env.create_gate(gate)));
    env.tmux(["new-session", "-d", "-x", "80", "-y", "24", "--", "sh", "-c", LEADING_PROGRAM]);
    let id = env.wait_until("the ask runs", || {
        Some(env.read("out/id").trim().to_owned()).filter(|id| !id.is_empty())
    });
    assert_eq!(env.payloads_to_lead(&id, "task_notification"), Vec::<Value>::new());
    env.open_gate("out/gate");
    let payload =
        env.wait_until("the lead has a message", || env.payloads_to_lead(&id, "task_notification").pop());
    assert_eq!((payload["task_id"].as_str(), payload["status"].as_str()), (Some(&*id), Some("completed")));
    let record: Value =
        serde_json::from_slice(&std::fs::read(payload["output_file"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(record["state"]["answer"], "a <b>\nsecond");
    env.open_gate("out/hook");
    env.wait_until("the hook has printed the message", || env.path("out/mail").exists().then_some(()));
    let mail = env.read("out/mail");
    for part in [
        format!("<task_id>{id}</task_id>"),
        "<status>completed</status>".into(),
        "a &lt;b&gt;</message>".into(),
    ] {
        assert!(mail.contains(&part), "{mail}");
    }
    let inbox = env.teamctl(["inbox", "team-lead"]).expect_success();
    assert!(inbox.contains(&format!("{id} has answered")), "{inbox}");
    env.shut_down();
}

#[test]
fn only_a_caller_with_an_inbox_is_notified() {
    let env = TestEnv::with_team();
    let id = env.teamctl(["ask", "--background", "x", "--", "cat"]).expect_success();
    env.teamctl(["wait", id.trim()]).expect_success();
    assert_eq!(env.inbox("survey", "team-lead"), Vec::<Value>::new(), "the caller is a person's shell");
    let mut lead = harness::McpClient::connect(&env, &["--team", "survey"]);
    env.write_profile("failing", "delivery = \"turn\"\nprogram = \"false\"\nargs = []\n");
    let input = serde_json::json!({"prompt": "x", "profile": "failing", "run_in_background": true});
    let id = lead.call("Ask", &input).unwrap()["id"].take();
    let payload = env.wait_until("the lead has a message", || {
        env.payloads_to_lead(id.as_str()?, "task_notification").pop()
    });
    assert_eq!(payload["status"], "failed");
    assert!(payload["message"].as_str().unwrap().contains("exit 1"), "{payload}");
    assert_eq!(lead.close(), 0);
    env.shut_down();
}

#[test]
fn asked_program_does_not_act_as_a_person() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    let ask = |program: &str| env.teamctl(["-q", "ask", "x", "--", "sh", "-c", program]);
    for command in ["kill ann", "send ann hi", "task create x", "up", "down", "mcp", "ask y", "events"] {
        let error = ask(&format!("teamctl -t survey {command}")).expect_failure(1);
        assert!(error.contains("exit 77") && error.contains("on no team"), "{command}: {error}");
    }
    let error = ask("env -i HOME=\"$HOME\" PATH=\"$PATH\" teamctl mcp </dev/null").expect_failure(1);
    assert!(error.contains("exit 77"), "without its environment: {error}");
    let status = ask(&format!("teamctl --root {} status", env.root().display())).expect_success();
    assert!(status.contains("ann"), "{status}");
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.shut_down();
}

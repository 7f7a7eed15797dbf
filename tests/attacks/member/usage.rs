//! Stops the team by reports of usage that no program can have.

use crate::attack_log::AttackLog;
use harness::TestEnv;
use serde_json::{Value, json};

/// The budget of the team, above what one member can have used a moment after its start.
const MAX_TOKENS: u64 = 3_000_000_000;

fn report(session: &str, usage_session: Option<&str>, tokens: u64, microdollars: u64) -> Value {
    let usage =
        json!({"session_id": usage_session, "usage": {"tokens": tokens, "microdollars": microdollars}});
    json!({"report_hook": {"session_id": session, "usage": usage, "event": "session_started"}})
}

pub(crate) fn attack(log: &mut AttackLog) {
    let env = TestEnv::with_daemon();
    let policy = format!("[policy]\nmax_tokens = {MAX_TOKENS}\nmax_cost = 3000\n");
    let policy = env.write_file("out/policy.toml", policy);
    env.teamctl(["create", "survey", "--policy", &policy]).expect_success();
    env.spawn_member("survey", "bob");
    let script = env.member_script("survey", "eve");
    env.write_profile(
        "hooked",
        &format!("delivery = \"hook\"\nprogram = \"sh\"\nargs = [\"-c\", \"{script}\"]\n"),
    );
    env.teamctl(["spawn", "eve", "--profile", "hooked"]).expect_success();
    let eve = env.read_member_env("survey", "eve");
    let mut try_reports = |tried: &str, reports: &[Value]| {
        let replies: Vec<Value> =
            reports.iter().map(|report| env.call_daemon(Some(eve.token()), report)).collect();
        let team = env.json(["status"])["teams"][0].clone();
        let runs = team["members"].as_array().unwrap().iter().filter(|member| member["pid"].is_u64()).count();
        let budget = &team["budget"];
        let outcome = match (&budget["exhausted_reason"], runs) {
            (Value::Null, 2) => Ok(format!("counted: {}", budget["usage"])),
            (reason, runs) => Err(format!("{reason}, {runs} members run, last reply {:?}", replies.last())),
        };
        log.record(tried, outcome);
    };
    let huge = 1_000_000_000_000;
    try_reports("10^12 tokens", &[report("s", Some("s"), huge, 0)]);
    try_reports("10^12 millionths of a dollar", &[report("s", Some("s"), 0, huge)]);
    try_reports("2^64 - 1 of both", &[report("s", Some("s"), u64::MAX, u64::MAX)]);
    try_reports("10^12 tokens of another session", &[report("s", Some("other"), huge, 0)]);
    try_reports("10^12 tokens of no session", &[report("s", None, huge, 0)]);
    let many: Vec<Value> = (0..50)
        .map(|number| format!("s{number}"))
        .map(|id| report(&id, Some(&id), 900_000_000, 900_000_000))
        .collect();
    try_reports("9 * 10^8 tokens in each of 50 sessions", &many);
    let growing: Vec<Value> = (0..50).map(|step| report("g", Some("g"), step * 100_000_000, 0)).collect();
    try_reports("a session that grows by 10^8 tokens in each of 50 reports", &growing);
    env.kill_process(env.daemon_pid());
    env.start_daemon();
    try_reports("10^12 tokens, after a restart of the daemon", &[report("t", Some("t"), huge, 0)]);
    env.shut_down();
}

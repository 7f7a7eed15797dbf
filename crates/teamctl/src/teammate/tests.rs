//! The life on real files, with a host that runs nothing: each turn does to the files what a program would.

use super::*;
use crate::here::now;
use protocol::id::TaskId;
use protocol::message::Message;
use protocol::name::{AgentName, TeamName};
use protocol::payload::{IdleNotification, IdleReason, Payload, ShutdownRequest};
use protocol::task::{Task, TaskStatus};
use protocol::turn::{Session, TurnAgent, TurnProgram, Worker};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Instant;
use store::{Durability, NewTask, Root, Team};

/// What happens during a wait: something to the files, and then this.
type Scene = Box<dyn FnMut(&Team) -> Happened>;

/// Plays its scenes one after the other; then the life is to end.
struct Stage {
    team: Team,
    scenes: VecDeque<Scene>,
    begun: Vec<Process>,
    told: Vec<TurnNow>,
    said: Vec<String>,
    interrupted: usize,
    missing: bool,
    /// What every turn says.
    words: String,
}

impl Host for Stage {
    fn begin(&mut self, work: &TurnOf) -> Result<u32, CannotStart> {
        if self.missing {
            return Err(CannotStart::Ever("cannot start p: no such program".to_owned()));
        }
        self.begun.push(match work {
            TurnOf::Process(process) => process.clone(),
            TurnOf::Text(text) => Process { input: Some(text.clone()), ..Process::default() },
        });
        Ok(77)
    }

    fn next(&mut self, _: Option<Instant>) -> Happened {
        self.scenes.pop_front().map_or(Happened::End, |mut scene| scene(&self.team))
    }

    fn said(&mut self) -> Vec<u8> {
        self.words.clone().into_bytes()
    }

    fn tell(&mut self, now: &TurnNow) {
        self.told.push(now.clone());
    }

    fn interrupted(&mut self) {
        self.interrupted += 1;
    }

    fn say(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }
}

/// A team of the lead, ann and bob; ann is the one who lives.
struct Ground {
    dir: tempfile::TempDir,
    team: Team,
}

impl Ground {
    fn new() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        let root =
            Root::open(&dir.path().join("root"), &dir.path().join("aside"), Durability::Process).unwrap();
        let member = |name: &str| {
            format!(
                r#"{{"agentId":"{name}@t","name":"{name}","agentType":"x","model":"","joinedAt":1,"tmuxPaneId":"","cwd":"/","subscriptions":[]}}"#
            )
        };
        let members = ["team-lead", "ann", "bob"].map(member).join(",");
        let config = format!(
            r#"{{"name":"t","createdAt":1,"leadAgentId":"team-lead@t","leadSessionId":"x","members":[{members}]}}"#
        );
        std::fs::create_dir_all(root.path().join("teams/t/inboxes")).unwrap();
        put(&root.path().join("teams/t/config.json"), &config);
        let team = root.team(&TeamName::parse("t").unwrap()).unwrap();
        Ground { dir, team }
    }

    fn write(&self, from: &str, text: &str) {
        send(&self.team, from, "ann", text);
    }

    fn task(&self, subject: &str) -> Task {
        self.team.tasks().create(NewTask::new(subject, &AgentName::lead())).unwrap()
    }

    fn unread(&self) -> usize {
        let entries = self.team.inbox(&name("ann")).read().unwrap();
        entries.iter().filter(|entry| entry.unread().is_some()).count()
    }

    /// What the lead was told, in order.
    fn lead(&self) -> Vec<Payload> {
        let entries = self.team.inbox(&AgentName::lead()).read().unwrap();
        entries.iter().map(|entry| Payload::parse(&entry.message.as_ref().unwrap().text).unwrap()).collect()
    }

    fn idles(&self) -> Vec<IdleNotification> {
        let idle = |payload| match payload {
            Payload::IdleNotification(idle) => Some(idle),
            _ => None,
        };
        self.lead().into_iter().filter_map(idle).collect()
    }

    fn live(&self, program: TurnProgram, beginning: Beginning, scenes: Vec<Scene>) -> (Stage, Over) {
        self.live_on(self.stage(scenes), program, beginning)
    }

    fn stage(&self, scenes: Vec<Scene>) -> Stage {
        let (team, scenes) = (self.team.clone(), scenes.into());
        let (begun, told, said) = (Vec::new(), Vec::new(), Vec::new());
        Stage {
            team,
            scenes,
            begun,
            told,
            said,
            interrupted: 0,
            missing: false,
            words: "the plan".to_owned(),
        }
    }

    fn live_on(&self, stage: Stage, program: TurnProgram, beginning: Beginning) -> (Stage, Over) {
        self.live_again_on(stage, program, beginning, None)
    }

    fn live_again_on(
        &self,
        stage: Stage,
        program: TurnProgram,
        beginning: Beginning,
        session: Option<&str>,
    ) -> (Stage, Over) {
        let session = session.map(str::to_owned);
        let program = Program::new(program, session, self.dir.path().join("state"), "ann@t");
        let post = Post::new(self.team.clone(), name("ann"), Some("blue".to_owned()));
        Teammate::new(stage, post, program).live(beginning)
    }
}

fn put(path: &std::path::Path, text: &str) {
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn send(team: &Team, from: &str, to: &str, text: &str) {
    team.inbox(&name(to)).append(&Message::new(&AgentName::foreign(from), text.to_owned(), now())).unwrap();
}

fn agent() -> TurnProgram {
    TurnProgram::Agent(TurnAgent {
        first: vec!["p".into()],
        next: vec![],
        session: Session::None,
        ..TurnAgent::default()
    })
}

fn worker(run: &str) -> TurnProgram {
    TurnProgram::Worker(Worker { run: Some(run.to_owned()), ..Worker::default() })
}

fn nothing() -> Beginning {
    Beginning { prompt: String::new(), again: false, ..Beginning::default() }
}

fn prompt(text: &str) -> Beginning {
    Beginning { prompt: text.to_owned(), again: false, ..Beginning::default() }
}

fn ends(code: i32) -> Scene {
    after(move |_| {}, code)
}

/// A turn in which the agent gives the task back.
fn gives_back(id: TaskId) -> Scene {
    after(move |team| drop(team.tasks().release(&id, &name("ann")).unwrap()), 0)
}

/// A turn in which this happens, and then its end.
fn after(mut act: impl FnMut(&Team) + 'static, code: i32) -> Scene {
    Box::new(move |team| {
        act(team);
        let how = How::Status(ExitStatus::from_raw(code << 8));
        Happened::Turn(TurnEnd { how, last: "its last words".to_owned() })
    })
}

fn wake(mut act: impl FnMut(&Team) + 'static) -> Scene {
    Box::new(move |team| {
        act(team);
        Happened::Wake
    })
}

fn request(id: &str) -> String {
    let (from, timestamp) = ("team-lead".to_owned(), String::new());
    let request_id = protocol::id::RequestId::parse(id).unwrap();
    Payload::ShutdownRequest(ShutdownRequest { request_id, from, reason: None, timestamp }).to_text()
}

#[test]
fn the_prompt_is_the_first_turn_and_each_message_another() {
    let ground = Ground::new();
    ground.write("team-lead", "do it");
    ground.write("bob", "hi <ann>");
    ground.write("user", "stop that");
    let (stage, over) = ground.live(agent(), prompt("do it"), vec![ends(0), ends(0), ends(0)]);
    assert!(matches!(over, Over::Ended));
    let texts: Vec<&str> = stage.begun.iter().map(|process| process.input.as_deref().unwrap()).collect();
    let letter = "<teammate-message teammate_id=\"bob\">\nhi &lt;ann&gt;\n</teammate-message>";
    assert_eq!(texts, ["do it", "stop that", letter]);
    assert_eq!(ground.unread(), 0);
    assert_eq!(ground.idles().len(), 3, "one for each turn");
    let idle: Vec<u64> =
        stage.told.iter().filter(|now| now.activity == Activity::Idle).map(|now| now.number).collect();
    assert_eq!(idle, [3], "no flicker while there is more to do");
    let active: Vec<Option<u32>> =
        stage.told.iter().filter(|now| now.activity == Activity::Active).map(|now| now.pid).collect();
    assert_eq!(active, [Some(77); 3]);
}

#[test]
fn a_message_is_read_once_its_turn_runs_and_not_before() {
    let ground = Ground::new();
    ground.write("bob", "hi");
    let unread = |team: &Team| {
        team.inbox(&name("ann")).read().unwrap().iter().filter(|entry| entry.unread().is_some()).count()
    };
    let (_, over) = ground.live(agent(), nothing(), vec![after(move |team| assert_eq!(unread(team), 0), 0)]);
    assert!(matches!(over, Over::Ended));
    ground.write("bob", "again");
    let stage = Stage {
        team: ground.team.clone(),
        scenes: VecDeque::new(),
        begun: vec![],
        told: vec![],
        said: vec![],
        interrupted: 0,
        missing: true,
        words: String::new(),
    };
    let (_, over) = ground.live_on(stage, agent(), nothing());
    assert!(matches!(over, Over::NotStarted(why) if why.contains("no such program")));
    assert_eq!(ground.unread(), 1, "nobody was given it");
}

#[test]
fn a_task_is_done_in_its_file_before_the_lead_is_told() {
    let ground = Ground::new();
    let (first, second) = (ground.task("one"), ground.task("two"));
    let (stage, _) = ground.live(worker("true"), nothing(), vec![ends(0), ends(7)]);
    assert_eq!(stage.begun.len(), 2);
    assert_eq!(ground.team.tasks().get(&first.id).unwrap().status, TaskStatus::Completed);
    let failed = ground.team.tasks().get(&second.id).unwrap();
    assert_eq!((failed.failure(), &failed.status), (Some("exit 7: its last words"), &TaskStatus::InProgress));
    let idles = ground.idles();
    assert_eq!(ground.lead().len(), 2, "and no other letters");
    let told = |idle: &IdleNotification| (idle.completed_task_id.clone(), idle.completed_status.clone());
    assert_eq!(told(&idles[0]), (Some("1".into()), Some("completed".into())));
    assert_eq!(told(&idles[1]), (Some("2".into()), Some("failed".into())));
    assert_eq!(idles[1].idle_reason, IdleReason::Failed);
    assert_eq!(idles[1].failure_reason.as_deref(), Some("exit 7: its last words"));
    assert_eq!(ground.unread(), 0, "assignments are consumed");
}

#[test]
fn what_an_agent_says_about_its_task_counts_and_not_its_exit_code() {
    let ground = Ground::new();
    let (done, hopeless, back) = (ground.task("done"), ground.task("hopeless"), ground.task("back"));
    let tasks = |team: &Team| team.tasks();
    let scenes = vec![
        after(move |team| drop(tasks(team).complete(&done.id, &name("ann"))), 1),
        after(move |team| drop(tasks(team).fail(&hopeless.id, "no access")), 0),
        gives_back(back.id),
        gives_back(back.id),
        gives_back(back.id),
        wake(|_| {}),
    ];
    let (stage, _) = ground.live(agent(), nothing(), scenes);
    assert_eq!(stage.begun.len(), 5, "what was given back is taken twice again, and no more");
    let status = ground.idles().into_iter().map(|idle| idle.completed_status).collect::<Vec<_>>();
    assert_eq!(status, [Some("completed".into()), Some("failed".into()), None, None, None]);
    assert_eq!(ground.idles()[1].failure_reason.as_deref(), Some("no access"));
    assert_eq!(ground.team.tasks().get(&back.id).unwrap().status, TaskStatus::Pending);
}

#[test]
fn an_interrupted_turn_fails_its_task_and_is_answered_when_the_agent_idles() {
    let ground = Ground::new();
    let task = ground.task("long");
    let interrupted: Scene =
        Box::new(|_| Happened::Turn(TurnEnd { how: How::Interrupted, last: "noise".to_owned() }));
    let (stage, _) = ground.live(worker("sleep 9"), nothing(), vec![interrupted]);
    assert_eq!(ground.team.tasks().get(&task.id).unwrap().failure(), Some("interrupted"));
    let idle = &ground.idles()[0];
    assert_eq!(
        (idle.idle_reason, idle.failure_reason.as_deref()),
        (IdleReason::Interrupted, Some("interrupted"))
    );
    assert_eq!(stage.interrupted, 1);
    assert_eq!(stage.told.last().unwrap().reason, Some(IdleReason::Interrupted));
    assert_eq!(stage.told.last().unwrap().activity, Activity::Idle);
}

#[test]
fn a_request_in_the_middle_of_a_turn_is_told_at_once_and_approved_at_its_end() {
    let ground = Ground::new();
    ground.task("one");
    ground.task("two");
    let scenes = vec![wake(|team| send(team, "team-lead", "ann", &request("x-1"))), ends(0)];
    let (stage, over) = ground.live(worker("true"), nothing(), scenes);
    assert!(matches!(over, Over::Approved));
    assert_eq!(stage.begun.len(), 1, "no further task");
    assert!(stage.told.iter().any(|now| now.shutdown_requested && now.pid == Some(77)));
    assert!(matches!(ground.lead()[..], [Payload::IdleNotification(_), Payload::ShutdownApproved(_)]));
    assert_eq!(ground.unread(), 0);
}

#[test]
fn a_busy_worker_that_is_to_say_no_says_it_in_the_turn() {
    let ground = Ground::new();
    ground.task("one");
    let busy = TurnProgram::Worker(Worker { run: Some("x".into()), busy_reject: true, ..Worker::default() });
    let scenes = vec![wake(|team| send(team, "team-lead", "ann", &request("x-1"))), ends(0)];
    let (_, over) = ground.live(busy, nothing(), scenes);
    assert!(matches!(over, Over::Ended));
    let Payload::ShutdownRejected(no) = &ground.lead()[0] else { panic!("{:?}", ground.lead()) };
    assert_eq!((no.request_id.as_str(), no.reason.as_str()), ("x-1", "task 1 runs"));
}

#[test]
fn a_life_again_takes_up_what_the_last_one_left() {
    let ground = Ground::new();
    let (left, failed) = (ground.task("left"), ground.task("failed"));
    for task in [&left, &failed] {
        ground.team.tasks().claim(Some(&task.id), &name("ann")).unwrap();
    }
    ground.team.tasks().fail(&failed.id, "exit 1").unwrap();
    ground.write("bob", "hi");
    let again = Beginning { prompt: String::new(), again: true, ..Beginning::default() };
    let (stage, _) = ground.live(agent(), again, vec![ends(0), ends(0)]);
    let texts: Vec<&str> = stage.begun.iter().map(|process| process.input.as_deref().unwrap()).collect();
    assert!(texts.len() == 2 && texts[0].contains("left") && texts[1].contains("hi"), "{texts:?}");
    assert_eq!(ground.team.tasks().get(&left.id).unwrap().status, TaskStatus::Completed);
}

#[test]
fn a_task_that_somebody_released_meanwhile_is_not_taken_up() {
    let ground = Ground::new();
    let (first, second) = (ground.task("first"), ground.task("second"));
    for task in [&first, &second] {
        ground.team.tasks().claim(Some(&task.id), &name("ann")).unwrap();
    }
    let taken = second.id;
    let scene = after(
        move |team| {
            team.tasks().release(&taken, &AgentName::lead()).unwrap();
            team.tasks().claim(Some(&taken), &name("bob")).unwrap();
        },
        0,
    );
    let again = Beginning { prompt: String::new(), again: true, ..Beginning::default() };
    let (stage, _) = ground.live(worker("true"), again, vec![scene, ends(0)]);
    assert_eq!(stage.begun.len(), 1);
    assert_eq!(ground.team.tasks().get(&taken).unwrap().owner, Some(name("bob")));
}

#[test]
fn a_task_that_the_agent_claimed_in_another_turn_is_its_next() {
    let ground = Ground::new();
    let (one, two) = (ground.task("one"), ground.task("two"));
    let scenes = vec![
        after(move |team| drop(team.tasks().claim(Some(&two.id), &name("ann")).unwrap()), 0),
        ends(1),
        ends(1),
        wake(|_| {}),
    ];
    let (stage, over) = ground.live(agent(), prompt("take the second"), scenes);
    assert!(matches!(over, Over::Ended));
    let subjects: Vec<bool> =
        stage.begun.iter().map(|process| process.input.as_deref().unwrap().contains("two")).collect();
    assert_eq!(subjects, [false, true, false], "a failed one is not taken up again");
    let failure = |id| ground.team.tasks().get(id).unwrap().failure().map(str::to_owned);
    assert!(failure(&one.id).is_some() && failure(&two.id).is_some());
}

#[test]
fn letters_to_peers_are_told_and_those_to_the_lead_are_not() {
    let ground = Ground::new();
    ground.write("bob", "early");
    let scene = after(
        |team| {
            send(team, "ann", "bob", "the gate\nis open");
            send(team, "ann", "team-lead", r#"{"type":"teammate_terminated","message":"x"}"#);
            send(team, "cat", "bob", "not hers");
        },
        0,
    );
    ground.live(agent(), nothing(), vec![scene]);
    assert_eq!(ground.idles()[0].summary.as_deref(), Some("[to bob] the gate"));
}

#[test]
fn a_damaged_inbox_keeps_nobody_from_tasks_nor_a_task_list_from_mail() {
    let ground = Ground::new();
    let task = ground.task("one");
    let inbox = ground.team.inbox(&name("ann")).path();
    put(&inbox, "[{\"from\"");
    let (stage, over) = ground.live(worker("true"), nothing(), vec![ends(0)]);
    assert!(matches!(over, Over::Ended));
    assert_eq!(ground.team.tasks().get(&task.id).unwrap().status, TaskStatus::Completed);
    assert!(stage.said.iter().any(|line| line.contains("cannot parse")), "{:?}", stage.said);
}

#[test]
fn a_damaged_inbox_of_the_lead_keeps_nobody_from_the_next_item_and_is_told_once_it_is_mended() {
    let ground = Ground::new();
    ground.write("bob", "one");
    ground.write("bob", "two");
    let lead = ground.team.inbox(&AgentName::lead()).path();
    let (spoilt, mended) = (lead.clone(), lead.clone());
    let scenes =
        vec![after(move |_| put(&spoilt, "[{"), 0), ends(0), wake(|_| {}), wake(move |_| put(&mended, "[]"))];
    let (stage, over) = ground.live(agent(), nothing(), scenes);
    assert!(matches!(over, Over::Ended));
    assert_eq!(stage.begun.len(), 2);
    assert_eq!(ground.idles().len(), 2);
    let complaints = stage.said.iter().filter(|line| line.contains("cannot parse")).count();
    assert_eq!(complaints, 1, "{:?}", stage.said);
}

#[test]
fn who_asks_it_to_end_is_answered_while_it_waits_for_a_file() {
    let ground = Ground::new();
    let task = ground.task("one");
    let file = ground.dir.path().join(format!("root/tasks/t/{}.json", task.id));
    assert!(file.exists());
    let spoilt = file.clone();
    let scenes = vec![
        after(move |_| put(&spoilt, "{"), 0),
        wake(|_| {}),
        wake(|team| send(team, "team-lead", "ann", &request("x-1"))),
    ];
    let (_, over) = ground.live(worker("true"), nothing(), scenes);
    assert!(matches!(over, Over::Approved));
    assert!(matches!(ground.lead()[..], [Payload::ShutdownApproved(_)]));
}

#[test]
fn a_prompt_whose_message_can_not_be_found_yet_is_not_given_twice() {
    let ground = Ground::new();
    let inbox = ground.team.inbox(&name("ann")).path();
    put(&inbox, "[{");
    let mended = inbox.clone();
    let mend = after(
        move |team| {
            put(&mended, "[]");
            send(team, "team-lead", "ann", "do it");
            send(team, "team-lead", "ann", "and that");
        },
        0,
    );
    let (stage, _) = ground.live(agent(), prompt("do it"), vec![mend, ends(0), ends(0)]);
    let texts: Vec<&str> = stage.begun.iter().map(|process| process.input.as_deref().unwrap()).collect();
    assert!(texts.len() == 2 && texts[0] == "do it" && texts[1].contains("and that"), "{texts:?}");
    assert_eq!(ground.unread(), 0);
}

#[test]
fn a_turn_that_fails_on_an_earlier_lifes_session_is_run_once_more_with_a_new_one() {
    let program = || {
        let (first, next) = (["p", "{session}"], ["q", "{session}"]);
        let [first, next] = [first, next].map(|words| words.map(str::to_owned).to_vec());
        TurnProgram::Agent(TurnAgent { first, next, session: Session::Ours, ..TurnAgent::default() })
    };
    let again = || Beginning { prompt: String::new(), again: true, ..Beginning::default() };
    let run = |scenes: Vec<Scene>| {
        let ground = Ground::new();
        let task = ground.task("left");
        ground.team.tasks().claim(Some(&task.id), &name("ann")).unwrap();
        let (stage, _) = ground.live_again_on(ground.stage(scenes), program(), again(), Some("old"));
        let argv = stage.begun.iter().map(|process| process.argv[0].clone()).collect::<Vec<_>>();
        (argv, ground.idles().len(), ground.team.tasks().get(&task.id).unwrap())
    };
    let (argv, idles, task) = run(vec![ends(1), ends(0)]);
    assert_eq!((argv.join(" "), idles, task.status), ("q p".to_owned(), 1, TaskStatus::Completed));
    let (argv, idles, task) = run(vec![ends(1), ends(2)]);
    assert_eq!((argv.join(" "), idles), ("q p".to_owned(), 1), "once, and told once");
    assert!(task.failure().unwrap().starts_with("exit 2"));
    let id = TaskId::from_number(1).unwrap();
    let fails = after(move |team| drop(team.tasks().fail(&id, "no access").unwrap()), 1);
    let (argv, _, task) = run(vec![fails]);
    assert_eq!((argv.join(" "), task.failure()), ("q".to_owned(), Some("no access")));
}

#[test]
fn a_session_that_was_told_is_told_on_at_once() {
    let ground = Ground::new();
    let told = Session::Told { key: "id".into() };
    let program = TurnAgent {
        first: vec!["p".into()],
        next: vec!["q".into(), "{session}".into()],
        session: told,
        ..TurnAgent::default()
    };
    ground.write("bob", "one");
    ground.write("bob", "two");
    let tells: Scene = Box::new(|_| Happened::Session("abc".to_owned()));
    let (stage, _) = ground.live(TurnProgram::Agent(program), nothing(), vec![tells, ends(0), ends(0)]);
    assert_eq!(stage.begun[1].argv, ["q", "abc"]);
    let session = stage.told.iter().find(|now| now.session.is_some()).unwrap();
    assert_eq!((session.number, session.pid), (1, Some(77)));
}

fn planner(plan: PlanStage) -> Beginning {
    let mode = Some(protocol::mode::PermissionMode::Plan);
    Beginning { mode, plan: Some(plan), ..Beginning::default() }
}

fn plans() -> TurnProgram {
    let modes = [("plan", "--read-only"), ("acceptEdits", "--edit")];
    let modes = modes.map(|(mode, argument)| (mode.to_owned(), vec![argument.to_owned()]));
    let first = ["p", "{mode}", "-"].map(str::to_owned).to_vec();
    TurnProgram::Agent(TurnAgent { first, modes: modes.into(), ..TurnAgent::default() })
}

/// The plan requests that the lead has, in order.
fn handed_in(team: &Team) -> Vec<protocol::payload::PlanApprovalRequest> {
    let entries = team.inbox(&AgentName::lead()).read().unwrap();
    let plan = |entry: &Entry| match Payload::parse(&entry.message.as_ref().ok()?.text)? {
        Payload::PlanApprovalRequest(plan) => Some(plan),
        _ => None,
    };
    entries.iter().filter_map(plan).collect()
}

fn answer(team: &Team, rest: &str) {
    let id = handed_in(team).last().unwrap().request_id.clone();
    let text = format!(r#"{{"type":"plan_approval_response","requestId":"{id}",{rest}}}"#);
    send(team, "team-lead", "ann", &text);
}

#[test]
fn a_plan_is_handed_in_rejected_and_handed_in_again_and_approved_it_is_carried_out() {
    let ground = Ground::new();
    let task = ground.task("count");
    let scenes: Vec<Scene> = vec![
        ends(0),
        Box::new(|team| {
            answer(team, r#""approved":false,"feedback":"smaller""#);
            Happened::Wake
        }),
        ends(0),
        Box::new(|team| {
            answer(team, r#""approved":true,"permissionMode":"acceptEdits""#);
            Happened::Wake
        }),
        Box::new(|team| {
            assert_eq!(
                team.tasks().list().unwrap()[0].status,
                TaskStatus::InProgress,
                "until it is carried out"
            );
            Happened::Turn(TurnEnd { how: How::Status(ExitStatus::from_raw(0)), last: String::new() })
        }),
    ];
    let (stage, _) = ground.live(plans(), planner(PlanStage::Planning), scenes);
    let argv: Vec<String> = stage.begun.iter().map(|process| process.argv.join(" ")).collect();
    assert_eq!(argv, ["p --read-only -", "p --read-only -", "p --edit -"]);
    let plans = handed_in(&ground.team);
    assert_eq!(plans.len(), 2);
    assert_ne!(plans[0].request_id, plans[1].request_id, "under a new id");
    assert_eq!((plans[0].plan_content.as_str(), plans[0].from.as_str()), ("the plan", "ann"));
    assert_eq!(std::fs::read_to_string(&plans[1].plan_file_path).unwrap(), "the plan");
    let input = |at: usize| stage.begun[at].input.clone().unwrap();
    assert!(input(0).starts_with(plan::ASKED) && input(0).contains("count"), "{}", input(0));
    assert!(input(1).contains("smaller") && input(2).contains("Your plan is approved"));
    assert!(!input(2).contains(plan::ASKED));
    assert_eq!(ground.team.tasks().get(&task.id).unwrap().status, TaskStatus::Completed);
    let last = stage.told.last().unwrap();
    assert_eq!((last.mode, &last.plan), (Some(protocol::mode::PermissionMode::AcceptEdits), &None));
}

#[test]
fn who_waits_for_approval_takes_no_task_and_no_mode_and_only_its_own_answer_counts() {
    let ground = Ground::new();
    ground.write("team-lead", "plan it");
    let scenes: Vec<Scene> = vec![
        ends(0),
        Box::new(|team| {
            team.tasks().create(NewTask::new("later", &AgentName::lead())).unwrap();
            send(
                team,
                "team-lead",
                "ann",
                r#"{"type":"mode_set_request","mode":"acceptEdits","from":"team-lead"}"#,
            );
            let other = r#"{"type":"plan_approval_response","requestId":"plan-x","approved":true}"#;
            send(team, "team-lead", "ann", other);
            Happened::Wake
        }),
    ];
    let (stage, _) = ground.live(plans(), planner(PlanStage::Planning), scenes);
    assert_eq!(stage.begun.len(), 1, "{:?}", stage.said);
    assert!(matches!(stage.told.last().unwrap().plan, Some(PlanStage::Waiting { .. })));
    assert_eq!(ground.unread(), 0);
}

#[test]
fn a_turn_in_plan_mode_that_says_nothing_has_failed_and_so_has_its_task() {
    let ground = Ground::new();
    let task = ground.task("count");
    let mut stage = ground.stage(vec![ends(0)]);
    stage.words = String::new();
    ground.live_on(stage, plans(), planner(PlanStage::Planning));
    assert!(handed_in(&ground.team).is_empty());
    assert!(ground.team.tasks().get(&task.id).unwrap().failure().unwrap().contains("no plan"));
}

#[test]
fn the_next_life_hands_its_plan_in_again_unless_it_was_answered() {
    let ground = Ground::new();
    let file = ground.team.write_plan("the old plan").unwrap();
    let request = protocol::id::RequestId::parse("plan-0").unwrap();
    let waiting = || PlanStage::Waiting { request: request.clone(), file: file.clone() };
    ground.live(plans(), planner(waiting()), vec![Box::new(|_| Happened::End)]);
    let again = handed_in(&ground.team);
    assert_eq!((again.len(), again[0].plan_content.as_str()), (1, "the old plan"));
    ground.write(
        "team-lead",
        r#"{"type":"plan_approval_response","requestId":"plan-0","approved":false,"feedback":"x"}"#,
    );
    ground.write("team-lead", r#"{"type":"plan_approval_response","requestId":"plan-0","approved":true}"#);
    let (stage, _) = ground.live(plans(), planner(waiting()), vec![ends(0)]);
    assert_eq!(handed_in(&ground.team).len(), 1);
    assert_eq!(
        stage.begun[0].argv.join(" "),
        "p -",
        "of several answers an approval wins; its mode is default"
    );
    assert_eq!(ground.unread(), 0);
}

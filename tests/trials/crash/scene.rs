//! The house of the sweep, what it is like at rest, and one try in it.

use super::desk::{self, Deed, Point};
use super::operations::{self, OPERATIONS, Operation, RESIDENTS, as_str, is_no_half, text};
use super::sight::{Sight, What, sight, unkept};
use super::tally::TmuxDied;
use super::{Case, trees};
use harness::House;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::Duration;

/// What the daemon could not write it tries again at its next rescan, up to 30 s later.
const RESCANNED: Duration = Duration::from_secs(45);

/// The house, and what it is like at rest.
pub(super) struct Scene {
    pub(super) house: House,
    daemon: Option<Child>,
    pub(super) n: u64,
    rest: Option<Sight>,
    /// Mail and tasks that must be there, once.
    kept: BTreeSet<(What, String)>,
    /// The tmux server that all of it began on.
    server: String,
}

impl Scene {
    /// Where there is a desk crash points are looked at.
    pub(super) fn new(desk: bool) -> Scene {
        let mut house = House::empty();
        house.put("crash/code", "");
        // As typed in a pane there: a `run` that finds no daemon from its begin starts one on this server.
        let tmux = format!("{},0,0", house.tmux_socket().display());
        house.variables.push(("TMUX".to_owned(), tmux));
        if desk {
            desk::open(&mut house);
        }
        trees::repository(&house);
        let server = house.tmux(["display-message", "-p", "#{pid}"]);
        let mut scene = Scene { house, daemon: None, n: 0, rest: None, kept: BTreeSet::new(), server };
        scene.up();
        scene.house.teamctl(["create", "survey"]).ok();
        for (name, backend) in RESIDENTS.iter().zip(["in-process", "tmux"]) {
            let words = ["spawn", "-t", "survey", name, "--backend", backend, "--", "sleep", "3600"];
            scene.house.teamctl(words).ok();
        }
        // Long, so that each message after it is one of those that change the end alone.
        scene.house.teamctl(["-t", "survey", "send", "ann", &"long ".repeat(4_000)]).ok();
        scene.house.quiet(Duration::from_millis(200));
        scene.rest = Some(sight(&scene.house));
        scene
    }

    /// Waits as the house does, as long as there is a tmux server.
    pub(super) fn until<T>(&self, what: &str, condition: impl FnMut() -> Option<T>) -> T {
        self.until_within(Duration::from_secs(30), what, condition)
    }

    fn until_within<T>(&self, patience: Duration, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
        self.house.until_within(patience, what, || {
            self.has_tmux();
            condition()
        })
    }

    pub(super) fn has_tmux(&self) {
        if harness::start_time(self.server.parse().unwrap()).is_none() {
            std::panic::panic_any(TmuxDied);
        }
    }

    /// Starts a daemon that may be killed as soon as it begins.
    fn start(&mut self) {
        self.reap();
        let teamd = self.house.teamd().stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.daemon = Some(teamd.unwrap());
    }

    /// Kills it, and starts one under this program; it answers then, or has ended.
    pub(super) fn restart_under(&mut self, program: &str, words: &[String]) {
        self.kill_daemon();
        let (mut under, teamd) = (self.house.command(program), self.house.teamd());
        under.current_dir(self.house.path("")).args(words).arg(teamd.get_program()).args(teamd.get_args());
        let mut child = under.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.until("it answers or has ended", || {
            let ended = child.try_wait().unwrap().is_some();
            (ended || self.answers().is_some()).then_some(())
        });
        self.daemon = Some(child);
        self.house.quiet(desk::REST);
    }

    /// There is one, and it answers.
    pub(super) fn up(&mut self) {
        if self.house.teamctl(["status"]).code == 69 {
            self.start();
            self.until("the daemon answers", || (self.house.teamctl(["status"]).code == 0).then_some(()));
        }
    }

    pub(super) fn reap(&mut self) {
        self.daemon.iter_mut().for_each(|daemon| drop(daemon.try_wait()));
    }

    pub(super) fn kill_daemon(&mut self) {
        self.house.kill_9(self.house.daemon());
        // One that was started while another was, by a `run`, may have waited for its place.
        self.daemon.take().iter_mut().for_each(|daemon| drop(daemon.kill().and_then(|()| daemon.wait())));
    }

    /// Does what is typed, and tells how it ended; at once where it is stopped.
    pub(super) fn type_in(&self, words: &[String]) {
        self.house.put("crash/code", "");
        let mut command = self.house.command("sh");
        command.args(["-c", r#""$@" >crash/out 2>crash/err; echo $? >crash/code"#, "sh"]);
        command.arg(harness::programs().join("teamctl")).args(words);
        if words.iter().any(|word| word == "inbox" || word == "claim") {
            command.envs([("TEAMD_TEAM", "survey"), ("TEAMD_AGENT", "ann")]);
        }
        let mut child = command.spawn().unwrap();
        std::thread::spawn(move || child.wait());
    }

    pub(super) fn code(&self) -> Option<i32> {
        self.house.read("crash/code").trim().parse().ok()
    }

    /// What one try passes, in its operation and then in the recovery from a kill at its end.
    pub(super) fn record(&mut self, operation: Option<usize>) -> Vec<Point> {
        self.n += 1;
        let words = operation.map(|which| (OPERATIONS[which].begin)(&self.house, self.n));
        self.house.quiet(Duration::from_millis(100));
        if words.is_none() {
            self.kill_daemon();
        }
        desk::begin(&self.house, None);
        match &words {
            None => {
                self.start();
                self.until("it answers", || self.answers());
            }
            Some(words) => {
                self.type_in(words);
                let code = self.until("it ends", || self.code());
                assert_eq!(code, 0, "{words:?}: {}", self.house.read("crash/err"));
            }
        }
        let passed = desk::passed(&self.house);
        desk::end(&self.house);
        self.up();
        if let Some(which) = operation {
            self.settle(&OPERATIONS[which], "unbroken");
        }
        passed
    }

    /// One try; how many of its points were hit.
    pub(super) fn try_case(&mut self, case: &Case) -> u64 {
        self.has_tmux();
        self.n += 1;
        let n = self.n;
        let operation = case.operation.map(|which| &OPERATIONS[which]);
        let words = operation.map(|operation| (operation.begin)(&self.house, n));
        if operation.is_none() {
            self.kill_daemon();
        }
        desk::begin(&self.house, Some((&case.at, case.deed)));
        let mut hits = match words {
            None => self.hit_start(),
            Some(words) => self.hit(&words, case.deed),
        };
        for point in case.then.iter().filter(|_| case.deed == Deed::Kill) {
            desk::begin(&self.house, Some((point, Deed::Kill)));
            if self.house.teamctl_with(&["status"], &[("TEAMD_FAILPOINTS", "")]).code == 69 {
                hits += self.hit_start();
            }
        }
        desk::end(&self.house);
        self.house.age_leftovers();
        self.up();
        match operation {
            None => self.rests(&format!("{case:?}")),
            Some(operation) => {
                let may_be_killed = case.deed == Deed::Kill && case.at.program == "teamd-pane";
                self.stands(operation, &format!("{case:?}"), may_be_killed);
                self.settle(operation, &format!("{case:?}"));
            }
        }
        hits
    }

    /// Before anybody asks again: done at most once, not by halves, and if it was said to be done, it is.
    pub(super) fn stands(&self, operation: &Operation, case: &str, may_be_killed: bool) {
        let done = (operation.done)(&self.house, self.n);
        assert!(done <= 1, "{case}: done {done} times\n{}", self.house.portrait());
        if done == 0 && self.code() == Some(0) {
            self.undone(operation, case, may_be_killed);
        }
        is_no_half(&self.house, self.n).unwrap_or_else(|why| panic!("{case}: {why}"));
    }

    /// Told as done, and it is not: the first process of one that was shut down says its last word before it ends; or an
    /// agent whose first process was killed just after, which the lead is told.
    fn undone(&self, operation: &Operation, case: &str, may_be_killed: bool) {
        if operation.is_shutdown() {
            let is_done = || ((operation.done)(&self.house, self.n) == 1).then_some(());
            return self.until(&format!("{case}: its first process ends"), is_done);
        }
        let is_killed = operation.is_spawn() && may_be_killed;
        assert!(is_killed, "{case}: exit code 0, and not done\n{}", self.house.portrait());
        let is_told = || operations::has_ended_once(&self.house, self.n).ok();
        self.until(&format!("{case}: its end is told"), is_told);
    }

    /// A daemon's start is broken.
    fn hit_start(&mut self) -> u64 {
        self.start();
        self.until("it answers or is broken", || self.answers().or_else(|| desk::did(&self.house).map(drop)));
        let Some(pid) = desk::done(&self.house) else { return 0 };
        desk::ended(pid);
        1
    }

    /// A daemon does; who asks passes no point.
    fn answers(&self) -> Option<()> {
        (self.house.teamctl_with(&["status"], &[("TEAMD_FAILPOINTS", "")]).code == 0).then_some(())
    }

    fn hit(&mut self, words: &[String], deed: Deed) -> u64 {
        self.type_in(words);
        let over = || {
            // A panic is ordered where the point is known to be passed, if only after the answer.
            let ended = self.code().filter(|_| deed != Deed::Panic);
            ended.map(drop).or_else(|| desk::did(&self.house).map(drop))
        };
        self.until("it is over or broken", over);
        let hit = desk::done(&self.house);
        let held = match (hit, deed) {
            (Some(pid), Deed::Kill | Deed::Panic) => {
                desk::ended(pid);
                true
            }
            (Some(pid), Deed::Pause) => {
                let stays = self.has_stopped(pid);
                self.meanwhile();
                resume(&self.house, pid);
                stays
            }
            _ => hit.is_some(),
        };
        self.reap();
        self.until(&format!("{words:?} ends"), || self.code());
        u64::from(held)
    }

    /// Waits until it has. False where that does not last: tmux has the first process of a pane go on at once, and one
    /// that waits for it may have ended it.
    fn has_stopped(&self, pid: u32) -> bool {
        self.until(&format!("{pid} has stopped"), || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split(' ').skip(1);
            match (fields.next(), fields.next()) {
                (None | Some("Z"), _) => Some(false),
                (_, Some(parent)) if parent == self.server => Some(false),
                (state, _) => (state == Some("T")).then_some(true),
            }
        })
    }

    /// Others go on, and take what is old for abandoned: the lock of the one that has stopped, if it holds one.
    fn meanwhile(&mut self) {
        self.house.age_leftovers();
        let mail = format!("the mail that came meanwhile in the {}th", self.n);
        for to in ["bob", "ann"] {
            let ran =
                self.house.teamctl_with(&["-t", "survey", "send", to, &mail], &[("TEAMD_FAILPOINTS", "")]);
            assert_eq!(ran.code, 0, "{ran:#?}");
        }
        self.kept.insert((What::Mail, mail));
    }

    /// Asked again until it is so; then it is so exactly; then it goes.
    pub(super) fn settle(&mut self, operation: &Operation, case: &str) {
        let n = self.n;
        let mut asked = 0;
        let why = std::cell::RefCell::new(String::new());
        let whole = || {
            if (operation.done)(&self.house, n) == 0 {
                asked += 1;
                let Some(words) = (operation.again)(&self.house, n) else {
                    let words = (operation.begin)(&self.house, n);
                    self.house.teamctl_with(&as_str(&words), &[]).ok();
                    return None;
                };
                let acting = [("TEAMD_TEAM", "survey"), ("TEAMD_AGENT", "ann")];
                let own = words.iter().any(|word| word == "inbox" || word == "claim");
                let ran = self.house.teamctl_with(&as_str(&words), if own { &acting } else { &[] });
                *why.borrow_mut() = format!("{ran:?}");
            }
            (operation.whole)(&self.house, n).map_err(|told| *why.borrow_mut() += &told).ok()
        };
        self.until_within(RESCANNED, &format!("{case} is done in the end"), whole);
        assert!(asked < 20, "{case}: asked {asked} times: {}", why.borrow());
        self.clean(operation, case);
    }

    /// It goes, and all is as before.
    pub(super) fn clean(&mut self, operation: &Operation, case: &str) {
        let n = self.n;
        (operation.clean)(&self.house, n);
        self.kept.extend(operation.keeps.map(|what| (what, text(n))));
        self.rests(case);
    }

    /// Whose first process has not found this daemon yet: what that passes on its way would be the next case's.
    fn unheard(&self) -> String {
        let status = self.house.teamctl_with(&["status", "--json"], &[("TEAMD_FAILPOINTS", "")]);
        let runs = |name: &&str| {
            let members = serde_json::from_str::<Value>(&status.stdout).unwrap_or_default();
            let teams = members["teams"].as_array().cloned().unwrap_or_default();
            let mut all = teams.iter().flat_map(|team| team["members"].as_array().into_iter().flatten());
            all.any(|member| member["name"] == **name && member["phase"] == "running")
        };
        RESIDENTS.iter().filter(|name| !runs(name)).map(|name| format!("{name} is not heard\n")).collect()
    }

    /// Everything is as it was before.
    pub(super) fn rests(&mut self, case: &str) {
        let rest = self.rest.as_ref().expect("it was looked at");
        let mut last = String::new();
        let same = || {
            let now = sight(&self.house);
            let other = now.unlike(rest) + &unkept(&self.house, &self.kept) + &self.unheard();
            if other != last {
                // For the portrait of a house that does not come to rest.
                self.house.put("out/unlike", &other);
            }
            last = other;
            last.is_empty().then_some(())
        };
        self.until_within(RESCANNED, &format!("{case}: all is as before"), same);
    }
}

/// Lets a stopped process go on; it may have been ended.
fn resume(house: &House, pid: u32) {
    drop(house.command("kill").args(["-CONT", &pid.to_string()]).stderr(Stdio::null()).status());
}

//! Worktrees of teammates: made, found again, and never removed with work in them. Twelve kinds of unsaved work, each
//! met by a delete, by a kill of its agent, and by crashes of agent and daemon.

use harness::House;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A house with a team and a repository `repo` with a remote, both with one commit.
fn house() -> House {
    let mut house = House::empty();
    let name = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    house.variables = vec![
        name("GIT_CONFIG_GLOBAL", "/dev/null"),
        name("GIT_AUTHOR_NAME", "t"),
        name("GIT_AUTHOR_EMAIL", "t@example.org"),
        name("GIT_COMMITTER_NAME", "t"),
        name("GIT_COMMITTER_EMAIL", "t@example.org"),
        name("GIT_EDITOR", "true"),
    ];
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    repository(&house, "repo");
    house
}

fn repository(house: &House, name: &str) -> PathBuf {
    let path = house.path(name);
    std::fs::create_dir(&path).unwrap();
    git(house, &path, &["init", "--quiet", "--initial-branch", "main"]);
    for (file, text) in [("a", "one\n"), ("sub/b", "two\n"), (".gitignore", "*.log\n")] {
        put(&path.join(file), text);
    }
    git(house, &path, &["add", "--all"]);
    git(house, &path, &["commit", "--quiet", "--message", "first"]);
    path
}

fn ran(house: &House, at: &Path, arguments: &[&str]) -> std::process::Output {
    house.command("git").current_dir(at).args(arguments).output().unwrap()
}

fn git(house: &House, at: &Path, arguments: &[&str]) -> String {
    let output = ran(house, at, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[allow(clippy::disallowed_methods, reason = "a test's own file")]
fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A member that does nothing until it is ended, in a worktree; gives where that is.
fn spawn(house: &House, name: &str, repository: &Path) -> PathBuf {
    let cwd = text(repository);
    house.teamctl(["spawn", name, "--agent", "worker", "--cwd", cwd, "--worktree"]).ok();
    path_of(house, name).expect("it has a worktree")
}

fn path_of(house: &House, name: &str) -> Option<PathBuf> {
    let team = house.json(["status"])["teams"][0].clone();
    let trees = team["worktrees"].as_array()?;
    trees.iter().find(|tree| tree["member"] == name).map(|tree| path(&tree["path"]))
}

fn path(value: &Value) -> PathBuf {
    value.as_str().expect("a path").into()
}

fn ended(house: &House, name: &str) {
    house.teamctl(["shutdown", name]).ok();
}

/// The kinds, each with what a refusal says of it.
const KINDS: [(&str, &str); 12] = [
    ("staged", "staged: a"),
    ("unstaged", "changed and not staged: a"),
    ("untracked", "untracked: new"),
    ("ignored", "ignored: kept.log"),
    ("unpushed", "1 commit that no other branch has"),
    ("stashed", "1 stash"),
    ("locked", "locked: mine"),
    ("submodule", "work in the submodule part"),
    ("detached", "1 commit on no branch"),
    ("in-use", "in use by process"),
    ("mid-rebase", "in the middle of a rebase"),
    ("no-remote", "1 commit that no other branch has"),
];

/// What is open while a test runs.
struct Dirty {
    kind: &'static str,
    says: &'static str,
    repository: PathBuf,
    tree: PathBuf,
    member: String,
    inside: Option<std::process::Child>,
    /// Everything of it that could be lost.
    before: (BTreeMap<PathBuf, Vec<u8>>, String),
}

impl Dirty {
    /// One member for each kind, each with a repository of its own.
    fn all(house: &House) -> Vec<Dirty> {
        KINDS.iter().map(|(kind, says)| Dirty::new(house, kind, says)).collect()
    }

    fn new(house: &House, kind: &'static str, says: &'static str) -> Dirty {
        let repository = repository(house, &format!("repo-{kind}"));
        if kind != "no-remote" {
            let remote = house.path(&format!("remote-{kind}.git"));
            git(house, &house.path(""), &["clone", "--quiet", "--bare", text(&repository), text(&remote)]);
            git(house, &repository, &["remote", "add", "origin", text(&remote)]);
            git(house, &repository, &["fetch", "--quiet", "origin"]);
        }
        if kind == "submodule" {
            let from = format!("{}/.git", text(&house.path("repo")));
            let file = "protocol.file.allow=always";
            git(house, &repository, &["-c", file, "submodule", "--quiet", "add", &from, "part"]);
            git(house, &repository, &["commit", "--quiet", "--message", "a part"]);
            git(house, &repository, &["push", "--quiet", "origin", "main"]);
        }
        let member = format!("of-{kind}");
        let tree = spawn(house, &member, &repository);
        let inside = soiled(house, kind, &repository, &tree);
        let mut dirty = Dirty { kind, says, repository, tree, member, inside, before: Default::default() };
        dirty.before = dirty.content(house);
        dirty
    }

    /// Files, and what git knows: the commits, the index, the stashes, what is under way.
    fn content(&self, house: &House) -> (BTreeMap<PathBuf, Vec<u8>>, String) {
        let tell = |arguments: &[&str]| {
            String::from_utf8_lossy(&ran(house, &self.tree, arguments).stdout).into_owned()
        };
        let git = [
            tell(&["rev-parse", "HEAD", "teamd/survey/of-x"]),
            tell(&["status", "--porcelain", "--branch", "--ignored"]),
            tell(&["diff", "--cached"]),
            tell(&["stash", "list"]),
            tell(&["log", "--walk-reflogs", "--format=%H", "HEAD", "--"]),
            tell(&["submodule", "foreach", "--quiet", "git rev-parse HEAD; git status --porcelain"]),
        ];
        (files(&self.tree), git.concat())
    }

    fn is_untouched(&self, house: &House) {
        assert_eq!(self.content(house), self.before, "{} is as it was", self.kind);
    }
}

/// Every file below, but for `.git`.
fn files(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(at) = left.pop() {
        for entry in top.join(&at).read_dir().into_iter().flatten().flatten() {
            let name = at.join(entry.file_name());
            match entry.file_type().unwrap() {
                _ if entry.file_name() == ".git" => {}
                kind if kind.is_dir() => left.push(name),
                _ => drop(found.insert(name.clone(), std::fs::read(top.join(&name)).unwrap())),
            }
        }
    }
    found
}

/// Puts unsaved work of that kind into it.
fn soiled(house: &House, kind: &str, repository: &Path, tree: &Path) -> Option<std::process::Child> {
    let commit = |at: &Path, file: &str, text: &str| {
        put(&at.join(file), text);
        git(house, at, &["add", "--all"]);
        git(house, at, &["commit", "--quiet", "--message", text]);
    };
    match kind {
        "staged" => {
            put(&tree.join("a"), "staged\n");
            git(house, tree, &["add", "a"]);
        }
        "unstaged" => put(&tree.join("a"), "unstaged\n"),
        "untracked" => put(&tree.join("new"), "untracked\n"),
        "ignored" => put(&tree.join("kept.log"), "ignored\n"),
        "unpushed" | "no-remote" => commit(tree, "a", "committed\n"),
        "stashed" => {
            put(&tree.join("a"), "stashed\n");
            git(house, tree, &["stash", "--quiet"]);
        }
        "locked" => drop(git(house, repository, &["worktree", "lock", "--reason", "mine", text(tree)])),
        "submodule" => {
            let file = "protocol.file.allow=always";
            git(house, tree, &["-c", file, "submodule", "--quiet", "update", "--init"]);
            commit(&tree.join("part"), "a", "in the part\n");
            git(house, &tree.join("part"), &["branch", "kept"]);
            git(house, tree, &["submodule", "--quiet", "update", "--force"]);
        }
        "detached" => {
            git(house, tree, &["switch", "--quiet", "--detach"]);
            commit(tree, "a", "on no branch\n");
        }
        "in-use" => {
            let mut cat = house.command("cat");
            return Some(cat.current_dir(tree).stdin(std::process::Stdio::piped()).spawn().unwrap());
        }
        "mid-rebase" => {
            commit(tree, "a", "mine\n");
            commit(repository, "a", "theirs\n");
            assert!(!ran(house, tree, &["rebase", "main"]).status.success(), "a conflict");
        }
        other => panic!("{other} is no kind"),
    }
    None
}

/// Refused, with every path and its reason, and nothing is gone.
fn is_refused(house: &House, all: &[Dirty]) {
    let said = house.teamctl(["delete", "survey", "--force"]).fails(76);
    for dirty in all {
        let line = said.lines().find(|line| line.contains(&format!("({}): ", dirty.member)));
        let line = line.unwrap_or_else(|| panic!("{}: {said}", dirty.kind));
        assert!(line.contains(text(&dirty.tree)) && line.contains(dirty.says), "{}: {line}", dirty.kind);
        assert!(said.contains(&format!("--discard {}", text(&dirty.tree))), "{said}");
        dirty.is_untouched(house);
    }
    assert!(house.path("root/teams/survey/config.json").exists() && house.path("root/tasks/survey").exists());
}

fn let_go(all: &mut [Dirty]) {
    for inside in all.iter_mut().filter_map(|dirty| dirty.inside.as_mut()) {
        inside.kill().and_then(|()| inside.wait()).unwrap();
    }
}

#[test]
fn of_twelve_kinds_none_is_lost_by_a_delete() {
    let house = house();
    let mut all = Dirty::all(&house);
    is_refused(&house, &all);
    is_refused(&house, &all);
    let_go(&mut all);
    house.end();
}

#[test]
fn of_twelve_kinds_none_is_lost_by_a_kill() {
    let house = house();
    let mut all = Dirty::all(&house);
    for dirty in &all {
        house.teamctl(["kill", &dirty.member]).ok();
        dirty.is_untouched(&house);
    }
    is_refused(&house, &all);
    let_go(&mut all);
    house.end();
}

#[test]
fn of_twelve_kinds_none_is_lost_by_crashes() {
    let house = house();
    let mut all = Dirty::all(&house);
    for dirty in &all {
        let pid = house.member(&dirty.member).expect("it lives")["pid"].as_u64().unwrap();
        house.kill_9(u32::try_from(pid).unwrap());
    }
    house.until("all have ended", || {
        all.iter().all(|dirty| house.member(&dirty.member).is_none_or(|it| it["pid"].is_null())).then_some(())
    });
    all.iter().for_each(|dirty| dirty.is_untouched(&house));
    // A daemon that is killed while it deletes, at whatever point.
    let mut deleting = house.teamctl_running(["delete", "survey", "--force"]);
    house.kill_9(house.daemon());
    deleting.wait().unwrap();
    all.iter().for_each(|dirty| dirty.is_untouched(&house));
    house.start_daemon();
    is_refused(&house, &all);
    let_go(&mut all);
    house.end();
}

#[test]
fn of_twelve_kinds_each_that_is_discarded_can_be_had_back() {
    let house = house();
    let mut all = Dirty::all(&house);
    let mut words = vec!["--json".to_owned(), "delete".into(), "survey".into(), "--force".into()];
    words.extend(all.iter().flat_map(|dirty| ["--discard".to_owned(), text(&dirty.tree).to_owned()]));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = house.teamctl_with(&words, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let told = ran.json();
    let trashed = told["trashed"].as_array().expect("what was saved");
    assert_eq!(trashed.len(), 12, "{told}");
    for dirty in &all {
        let it = trashed.iter().find(|it| path(&it["path"]) == dirty.tree).expect(dirty.kind);
        assert!(!dirty.tree.exists(), "{}", dirty.kind);
        is_restored(&house, dirty, &path(&it["trash"]));
    }
    assert!(!house.path("root/teams/survey").exists());
    let_go(&mut all);
    house.end();
}

/// Follows the words in the trash, in a fresh clone.
fn is_restored(house: &House, dirty: &Dirty, trash: &Path) {
    let clone = house.path(&format!("clone-{}", dirty.kind));
    git(house, &house.path(""), &["clone", "--quiet", text(&dirty.repository), text(&clone)]);
    let readme = std::fs::read_to_string(trash.join("README")).unwrap();
    let is_order = |line: &&str| ["git ", "cd ", "tar "].iter().any(|word| line.starts_with(word));
    let orders: Vec<&str> = readme.lines().filter(is_order).collect();
    let mut shell = house.command("sh");
    let done = shell.current_dir(&clone).args(["-ec", &orders.join("\n")]).output().unwrap();
    assert!(done.status.success(), "{}: {readme}\n{}", dirty.kind, String::from_utf8_lossy(&done.stderr));
    let restored = PathBuf::from(format!("{}.restored", text(&dirty.tree)));
    let mut before = dirty.before.0.clone();
    // Those of a submodule are in its own bundle.
    before.retain(|file, _| !file.starts_with("part"));
    assert_eq!(files(&restored), before, "{}", dirty.kind);
    let head = dirty.before.1.lines().next().unwrap();
    assert_eq!(git(house, &restored, &["rev-parse", "HEAD"]), head, "{}", dirty.kind);
    match dirty.kind {
        "staged" => assert_eq!(git(house, &restored, &["diff", "--cached", "--name-only"]), "a"),
        "stashed" => assert_eq!(git(house, &restored, &["show", "refs/restored/stash-0:a"]), "stashed"),
        "submodule" => {
            let bundle = trash.join("submodules/0/commits.bundle");
            let part = house.path("repo");
            git(house, &part, &["fetch", "--quiet", text(&bundle), "refs/heads/kept:refs/heads/kept"]);
            assert_eq!(git(house, &part, &["show", "kept:a"]), "in the part");
        }
        _ => {}
    }
}

#[test]
fn it_is_made_beside_the_repository_and_goes_with_the_team() {
    let house = house();
    let repository = house.path("repo");
    let sub = repository.join("sub");
    let agent = house.script("where.sh", "#!/bin/sh\npwd >\"$HOUSE/out/$TEAMD_AGENT\"\nexec cat <&0\n");
    for name in ["ann", "bob"] {
        let cwd = text(&sub);
        house
            .teamctl(["spawn", name, "--cwd", cwd, "--worktree", "--backend", "window", "--", text(&agent)])
            .ok();
    }
    for name in ["ann", "bob"] {
        let tree = house.path(&format!("repo.worktrees/survey-{name}"));
        let at = house.until("it says where it is", || {
            let said = house.read(&format!("out/{name}"));
            said.ends_with('\n').then_some(said)
        });
        assert_eq!(at.trim_end(), text(&tree.join("sub")));
        assert_eq!(git(&house, &tree, &["branch", "--show-current"]), format!("teamd/survey/{name}"));
        let config: Value = serde_json::from_str(&house.read("root/teams/survey/config.json")).unwrap();
        let entry = config["members"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
        assert_eq!((path(&entry["worktreePath"]), path(&entry["cwd"])), (tree.clone(), tree.join("sub")));
        let said = house.teamctl(["status", name]).ok();
        assert!(said.contains(&format!("worktree {}, branch teamd/survey/{name}", text(&tree))), "{said}");
    }
    assert_eq!(house.json(["delete", "survey", "--force"])["removed"].as_array().unwrap().len(), 2);
    assert!(!house.path("repo.worktrees").exists());
    assert_eq!(git(&house, &repository, &["branch", "--list", "teamd/*"]), "");
    house.end();
}

#[test]
fn a_member_that_comes_again_goes_on_in_its_worktree() {
    let house = house();
    let repository = house.path("repo");
    let tree = spawn(&house, "ann", &repository);
    put(&tree.join("half"), "done\n");
    ended(&house, "ann");
    let said = house.teamctl(["status", "ann"]).ok();
    assert!(said.contains(text(&tree)), "also of one that has ended: {said}");
    // Across daemons.
    house.kill_9(house.daemon());
    house.start_daemon();
    assert_eq!(spawn(&house, "ann", &repository), tree);
    assert_eq!(files(&tree)[Path::new("half")], b"done\n");
    ended(&house, "ann");
    // In another repository it is another one.
    let other = self::repository(&house, "other");
    let cwd = text(&other);
    house.teamctl(["spawn", "ann", "--agent", "worker", "--cwd", cwd, "--worktree", "topic"]).ok();
    assert!(house.path("other.worktrees/survey-ann/a").exists());
    assert_eq!(git(&house, &other, &["branch", "--list", "topic"]), "+ topic");
    let again = ["spawn", "bob", "--agent", "worker", "--cwd", cwd, "--worktree", "topic"];
    let said = house.teamctl(again).fails(73);
    assert!(said.contains("cannot check out topic"), "{said}");
    assert!(house.member("bob").is_none() && path_of(&house, "bob").is_none(), "nothing is left of it");
    house.end();
}

#[test]
fn what_can_not_be_had_is_refused_before_anything_runs() {
    let house = house();
    let spawn = |cwd: &str, branch: &[&str], variables: &[(&str, &str)]| {
        let words = ["spawn", "ann", "--agent", "worker", "--cwd", cwd, "--worktree"];
        house.teamctl_with(&[&words, branch].concat(), variables)
    };
    let (home, repository) = (house.path("home"), house.path("repo"));
    assert!(spawn(text(&home), &[], &[]).fails(76).contains("in no git repository"));
    let empty = house.path("empty");
    git(&house, &house.path(""), &["init", "--quiet", text(&empty)]);
    assert!(spawn(text(&empty), &[], &[]).fails(76).contains("no commit yet"));
    assert!(spawn(text(&repository), &["a..b"], &[]).fails(64).contains("a..b"));
    assert!(spawn(text(&repository), &[], &[("PATH", "/nowhere")]).fails(72).contains("cannot find git"));
    assert!(house.member("ann").is_none());
    // A worktree of another repository is none of the team's.
    let said = house.teamctl(["delete", "survey", "--discard", text(&repository)]).fails(64);
    assert!(said.contains("no worktree of survey"), "{said}");
    house.teamctl(["delete", "survey"]).ok();
    assert!(repository.join("a").exists());
    house.end();
}

#[test]
fn a_path_in_a_file_is_never_deleted() {
    let house = house();
    let treasure = house.path("home/treasure");
    put(&treasure.join("gold"), "x");
    spawn(&house, "ann", &house.path("repo"));
    ended(&house, "ann");
    let config = house.path("root/teams/survey/config.json");
    let mut team: Value = serde_json::from_str(&house.read("root/teams/survey/config.json")).unwrap();
    let mut member = team["members"][0].clone();
    member["name"] = "eve".into();
    member["worktreePath"] = text(&treasure).into();
    team["members"].as_array_mut().unwrap().push(member);
    team["members"][0]["worktreePath"] = text(&house.path("repo")).into();
    put(&config, &team.to_string());
    house.teamctl(["delete", "survey", "--force"]).ok();
    assert!(treasure.join("gold").exists() && house.path("repo/a").exists());
    house.end();
}

#[test]
fn what_lies_in_its_place_is_left_alone() {
    let house = house();
    let tree = spawn(&house, "ann", &house.path("repo"));
    let other = spawn(&house, "bob", &house.path("repo"));
    for name in ["ann", "bob"] {
        ended(&house, name);
    }
    // Removed and made anew by somebody else; and gone altogether.
    git(&house, &house.path("repo"), &["worktree", "remove", text(&tree)]);
    put(&tree.join("somebody's"), "x");
    git(&house, &house.path("repo"), &["worktree", "remove", text(&other)]);
    let said = house.teamctl(["doctor"]).stdout;
    assert!(said.contains(text(&other)) && said.contains("is gone"), "{said}");
    let said = house.teamctl(["delete", "survey"]).ok();
    assert!(said.contains("Left alone") && tree.join("somebody's").exists(), "{said}");
    house.end();
}

#[test]
fn a_daemon_that_is_killed_while_it_makes_one_knows_of_it() {
    let house = house();
    let repository = house.path("repo");
    // The hook holds git up until somebody opens the gate, and tells who git is.
    let (held, gate) = (house.path("out/held"), house.path("out/gate"));
    git(&house, &repository, &["config", "core.hooksPath", text(&house.path("hooks"))]);
    std::fs::create_dir(house.path("hooks")).unwrap();
    let made = house.command("mkfifo").arg(&gate).status().unwrap();
    assert!(made.success());
    let hook = format!(
        "#!/bin/sh\necho $PPID >'{0}.new'; mv '{0}.new' '{0}'\nread _ <'{1}'\n",
        text(&held),
        text(&gate)
    );
    house.script("hooks/post-checkout", &hook);
    let words = ["spawn", "ann", "--agent", "worker", "--cwd", text(&repository), "--worktree"];
    let mut waiting = house.teamctl_running(words);
    house.until("git is at work", || held.exists().then_some(()));
    assert!(house.teamctl(["delete", "survey"]).fails(76).contains("is being made"));
    assert!(house.teamctl(words).fails(73).contains("ann"), "the name is held");
    house.kill_9(house.daemon());
    assert_eq!(waiting.wait().unwrap().code(), Some(69));
    house.start_daemon();
    let tree = path_of(&house, "ann").expect("it was written down before");
    let said = house.teamctl(["delete", "survey"]).fails(76);
    assert!(said.contains("in use by process"), "git is at work in it: {said}");
    let pid = i32::try_from(house.read("out/held").trim().parse::<u32>().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let git = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    drop(std::fs::File::options().write(true).open(&gate).unwrap());
    rustix::event::poll(&mut [rustix::event::PollFd::new(&git, rustix::event::PollFlags::IN)], None).unwrap();
    std::fs::remove_file(&gate).unwrap();
    house.teamctl(["delete", "survey"]).ok();
    assert!(!tree.exists());
    house.end();
}

#[test]
fn a_run_gives_each_member_its_worktree_and_stays_where_work_is_left() {
    let house = house();
    let file = house.path("run.toml");
    let commit = "echo $TEAMD_AGENT >>a && git commit --quiet --all --message work";
    put(
        &file,
        &format!(
            "name = 'crew'\ncwd = 'repo'\nagent = 'worker'\n\
             [[member]]\nname = 'ann'\nworktree = true\n[[member]]\nname = 'bob'\nworktree = 'topic'\n\
             [[task]]\nkey = 'one'\nsubject = 'x'\nowner = 'ann'\ncommand = '{commit}'\n\
             [[task]]\nkey = 'two'\nsubject = 'y'\nowner = 'bob'\ncommand = '{commit}'\n"
        ),
    );
    let ran = house.teamctl(["run", text(&file)]);
    assert_eq!(ran.code, 0, "the tasks are done: {ran:#?}");
    assert!(ran.stderr.contains("team crew stays") && ran.stderr.contains("--discard"), "{ran:#?}");
    for (branch, name) in [("teamd/crew/ann", "ann"), ("topic", "bob")] {
        let at = format!("{branch}:a");
        assert_eq!(git(&house, &house.path("repo"), &["show", &at]), format!("one\n{name}"));
    }
    git(&house, &house.path("repo"), &["merge", "--quiet", "teamd/crew/ann"]);
    git(&house, &house.path("repo"), &["branch", "kept", "topic"]);
    house.teamctl(["delete", "crew"]).ok();
    assert_eq!(git(&house, &house.path("repo"), &["branch", "--list", "topic"]), "  topic", "it has commits");
    house.end();
}

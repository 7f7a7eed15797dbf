//! The arrows between the rooms, and what no room may know.

mod module_imports;
mod rust_tokens;

use cargo_metadata::{DependencyKind, MetadataCommand, Package};
use module_imports::ModuleImports;
use std::collections::BTreeSet;

/// Who may import whom, beyond the libraries of others.
const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 16] = [
    ("acp", &["protocol"]),
    ("failpoint", &[]),
    ("protocol", &[]),
    ("store", &["failpoint", "protocol"]),
    ("tmux", &["failpoint"]),
    ("client", &["failpoint", "protocol", "store"]),
    ("worktree", &["failpoint", "protocol"]),
    ("teamd", &["failpoint", "protocol", "store", "tmux", "worktree"]),
    ("profile", &["protocol", "store"]),
    ("shim", &["client", "failpoint", "profile", "protocol", "store"]),
    ("runner", &["client", "profile", "protocol", "store"]),
    ("teamctl", &["client", "failpoint", "profile", "protocol", "runner", "store", "worktree"]),
    ("top", &["client", "protocol", "store"]),
    ("mcp", &["client", "protocol", "store"]),
    ("tests", &["protocol"]),
    ("teamd-agents", &["acp", "mcp", "shim", "teamctl", "teamd", "top"]),
];

/// Libraries that stay out of a room.
const FORBIDDEN_LIBRARIES: [(&str, &[&str]); 6] = [
    ("protocol", &["nix", "rustix", "tokio", "notify", "tempfile"]),
    ("store", &["tokio", "notify", "tmux_interface"]),
    ("tmux", &["tokio", "notify"]),
    ("client", &["tokio", "tmux_interface"]),
    ("worktree", &["tokio", "notify", "tmux_interface"]),
    ("teamctl", &["tokio", "tmux_interface"]),
];

fn packages() -> Vec<Package> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec();
    metadata.expect("cargo knows the workspace").packages
}

/// The directory's name: that of the library, whatever its package is called on crates.io.
fn crate_name(package: &Package) -> String {
    let directory = package.manifest_path.parent().expect("a manifest lies in a directory");
    directory.file_name().expect("it has a name").to_owned()
}

/// As they are called here.
fn dependencies(package: &Package) -> Vec<String> {
    let normal = package.dependencies.iter().filter(|needed| needed.kind == DependencyKind::Normal);
    normal.map(|needed| needed.rename.clone().unwrap_or_else(|| needed.name.clone())).collect()
}

#[test]
fn crate_dependencies_are_allowed() {
    let packages = packages();
    let rooms: Vec<String> = packages.iter().map(crate_name).collect();
    assert_eq!(rooms.len(), ALLOWED_DEPENDENCIES.len(), "{rooms:?}: name the new room's arrows");
    for package in &packages {
        let name = crate_name(package);
        let (_, allowed) =
            ALLOWED_DEPENDENCIES.iter().find(|(room, _)| *room == name).expect("it is one of the list");
        for needed in dependencies(package).iter().filter(|needed| rooms.contains(needed)) {
            assert!(allowed.contains(&needed.as_str()), "{name} → {needed} is not allowed");
        }
    }
}

#[test]
fn crates_do_not_use_forbidden_libraries() {
    for package in packages() {
        let name = crate_name(&package);
        let strangers = FORBIDDEN_LIBRARIES.iter().find(|(room, _)| *room == name);
        for needed in dependencies(&package) {
            assert!(
                !strangers.is_some_and(|(_, strangers)| strangers.contains(&needed.as_str())),
                "{name} must not know {needed}"
            );
        }
    }
    let importers = |library: &str| -> Vec<String> {
        let all = packages()
            .into_iter()
            .filter(|package| dependencies(package).iter().any(|needed| needed == library));
        all.map(|package| crate_name(&package)).collect()
    };
    assert_eq!(importers("tmux_interface"), ["tmux"]);
    assert_eq!(importers("rmcp"), ["mcp"]);
    assert_eq!(importers("ratatui"), ["top"]);
    assert_eq!(importers("tokio"), ["acp", "mcp", "teamd"]);
    assert_eq!(importers("agent-client-protocol"), ["acp"]);
}

/// The text of every source file of the programs and their libraries.
fn sources() -> Vec<(String, String)> {
    sources_below(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"))
}

/// Every source file in a directory, by its path from there.
fn sources_below(top: &str) -> Vec<(String, String)> {
    let (mut found, mut left) = (Vec::new(), vec![std::path::PathBuf::from(top)]);
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(top).unwrap().display().to_string();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

/// A sentence of a test's name, with the modules ahead of it that the page gives.
#[test]
fn tests_named_in_docs_exist() {
    let [stories, faults] =
        ["e2e", "faults"].map(|tests| sources_below(&format!("{}/{tests}", env!("CARGO_MANIFEST_DIR"))));
    let all: Vec<(String, String)> = sources().into_iter().chain(stories).chain(faults).collect();
    let pages = ["ARCHITECTURE", "incidents", "hazards", "promises"].map(|page| {
        std::fs::read_to_string(format!("{}/../docs/{page}.md", env!("CARGO_MANIFEST_DIR"))).unwrap()
    });
    let page = pages.concat();
    let sentences = page.split('`').skip(1).step_by(2).filter(|text| text.matches('_').count() > 3);
    let names: Vec<&str> = sentences.filter_map(|text| text.split(' ').next_back()).collect();
    assert!(names.len() > 50, "{names:?}");
    for name in names.into_iter().filter(|name| !name.ends_with('*')) {
        let (modules, test) = name.rsplit_once("::").unwrap_or(("", name));
        let declared = format!("fn {test}(");
        let is_it = |(path, text): &&(String, String)| {
            text.contains(&declared) && modules.split("::").all(|module| path.contains(module))
        };
        assert!(all.iter().any(|file| is_it(&file)), "{name} is no test any more");
    }
}

/// A release never looks whether it is to crash.
#[test]
fn failpoints_exist_only_in_debug_builds() {
    let sources = sources();
    let asking: Vec<&str> = sources
        .iter()
        .filter(|(_, text)| text.contains("TEAMD_FAILPOINTS"))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(asking.iter().filter(|name| !name.ends_with("failpoint/src/lib.rs")).count(), 1, "{asking:?}");
    let gate = sources.iter().find(|(name, _)| name == "failpoint/src/lib.rs").expect("it is there");
    assert!(gate.1.contains("#[cfg(debug_assertions)]\nmod directory;"), "{}", gate.1);
}

#[test]
fn unsafe_code_is_limited_to_two_modules_and_explained() {
    let unsafe_ones =
        sources().into_iter().filter(|(_, text)| text.contains("unsafe {") || text.contains("unsafe_code)"));
    let unsafe_ones: Vec<(String, String)> = unsafe_ones.collect();
    let names: Vec<&str> = unsafe_ones.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["shim/src/pre_exec.rs", "store/src/file/write_lease.rs"]);
    for (name, text) in &unsafe_ones {
        assert_eq!(text.matches("unsafe {").count(), text.matches("// SAFETY:").count(), "{name}");
    }
}

/// The same without tests.
pub(crate) fn non_test_sources() -> Vec<(String, String)> {
    let sources = sources().into_iter().filter(|(name, _)| !name.contains("tests"));
    sources
        .map(|(name, text)| (name, text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned()))
        .collect()
}

/// Files that name one of these tmux commands, or the library's type for it.
fn files_using_commands(commands: &[&str]) -> Vec<String> {
    let names =
        |text: &str| commands.iter().any(|word| text.contains(word) || text.contains(&camel_case(word)));
    let naming: BTreeSet<String> =
        non_test_sources().into_iter().filter(|(_, text)| names(text)).map(|(name, _)| name).collect();
    naming.into_iter().collect()
}

/// `kill-pane`: `KillPane`.
fn camel_case(word: &str) -> String {
    word.split('-').map(|part| part[..1].to_uppercase() + &part[1..]).collect()
}

/// A pane's first process closes its own where no daemon is there to do it; both ask tmux first whose it is. `doctor`
/// spells the command, with that question, and runs none but a list. The control client closes only the idle pane of
/// its own session.
#[test]
fn only_one_module_closes_panes() {
    let doctor = "teamctl/src/commands/diagnose/doctor/orphan_panes.rs";
    assert_eq!(
        files_using_commands(&["kill-pane"]),
        ["shim/src/close_own_pane.rs", doctor, "tmux/src/control_client_process.rs", "tmux/src/kill_pane.rs"]
    );
    let others = files_using_commands(&["kill-server", "kill-session", "kill-window"]);
    assert!(others.is_empty(), "{others:?}: panes are closed one by one, and only ours");
}

#[test]
fn no_module_types_into_panes() {
    let typing = files_using_commands(&["send-keys", "paste-buffer", "load-buffer", "set-buffer"]);
    assert!(typing.is_empty(), "{typing:?}");
}

/// The environment of an environment and of a bench leads to no other server either, should one be asked without an address.
#[test]
fn tests_use_their_own_tmux_server() {
    let all = sources().into_iter().filter(|(name, _)| name.contains("/tests/"));
    let all = all.chain(sources_below(env!("CARGO_MANIFEST_DIR")));
    let mut started = BTreeSet::new();
    for (name, text) in all {
        for (at, _) in text.match_indices("(\"tmux\")") {
            let starts = [".command", "Command::new", "Command::new(self.path"];
            if starts.iter().any(|start| text[..at].ends_with(start)) {
                let words: String = text[at..].chars().take(200).collect();
                assert!(words.contains("\"-S\""), "{name} starts a tmux without -S: {words}");
                started.insert(name.clone());
            }
        }
    }
    assert!(
        started.contains("harness/test_env.rs") && started.contains("tmux/tests/panes/test_server.rs"),
        "{started:?}"
    );
    let bare = |text: &str| text.contains("env_clear()") && text.contains("\"TMUX_TMPDIR\", self.path(");
    assert!(
        sources_below(env!("CARGO_MANIFEST_DIR"))
            .iter()
            .any(|(name, text)| name == "harness/test_env.rs" && bare(text))
    );
}

/// Each crate with the imports between its modules.
fn module_imports() -> Vec<(String, ModuleImports)> {
    let packages = packages().into_iter().filter(|package| crate_name(package) != "tests");
    let read = |package: Package| {
        let source = package.manifest_path.with_file_name("src");
        (crate_name(&package), ModuleImports::read(&sources_below(source.as_str())))
    };
    packages.map(read).collect()
}

#[test]
fn modules_have_no_import_cycles() {
    for (name, imports) in module_imports() {
        let cycles = imports.cycles();
        assert!(cycles.is_empty(), "{name}: {cycles:#?}");
    }
}

#[test]
fn child_modules_import_nothing_from_their_parent() {
    for (name, imports) in module_imports() {
        let items = imports.parent_imports();
        assert!(items.is_empty(), "{name}: {items:#?}");
    }
}

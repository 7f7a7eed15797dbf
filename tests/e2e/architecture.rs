//! Rules for the source code: which crates and modules may import which, which libraries a crate
//! may use, and which files may close panes or have unsafe code.

mod module_imports;
mod rust_tokens;

use module_imports::ModuleImports;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The crates of the workspace that each crate may depend on.
const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 19] = [
    ("acp", &["protocol"]),
    ("failpoint", &[]),
    ("platform", &[]),
    ("protocol", &[]),
    ("store", &["failpoint", "platform", "protocol"]),
    ("tmux", &["failpoint", "platform"]),
    ("client", &["failpoint", "platform", "protocol", "store", "worktree"]),
    ("worktree", &["failpoint", "platform", "protocol"]),
    ("link", &["protocol", "store"]),
    ("mirror", &["protocol", "store"]),
    ("teamd", &["failpoint", "link", "mirror", "platform", "protocol", "store", "tmux", "worktree"]),
    ("profile", &["protocol", "store"]),
    ("shim", &["client", "failpoint", "platform", "profile", "protocol", "store"]),
    ("runner", &["client", "platform", "profile", "protocol", "store"]),
    ("teamctl", &["client", "failpoint", "platform", "profile", "protocol", "runner", "store", "worktree"]),
    ("top", &["client", "platform", "protocol", "store"]),
    ("mcp", &["client", "protocol", "store"]),
    ("tests", &["platform", "protocol"]),
    ("teamd-agents", &["acp", "mcp", "shim", "teamctl", "teamd", "top"]),
];

/// Libraries that a crate must not depend on.
const FORBIDDEN_LIBRARIES: [(&str, &[&str]); 6] = [
    ("protocol", &["nix", "rustix", "tokio", "notify", "tempfile"]),
    ("store", &["tokio", "notify", "tmux_interface"]),
    ("tmux", &["tokio", "notify"]),
    ("client", &["tokio", "tmux_interface"]),
    ("worktree", &["tokio", "notify", "tmux_interface"]),
    ("teamctl", &["tokio", "tmux_interface"]),
];

/// The packages of the workspace, as `cargo metadata` describes them.
fn packages() -> Vec<Value> {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
    cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"));
    let mut metadata = harness::run_command(cargo).json();
    serde_json::from_value(metadata["packages"].take()).expect("cargo reads the workspace")
}

fn manifest_path(package: &Value) -> PathBuf {
    package["manifest_path"].as_str().expect("a package has a manifest").into()
}

/// The name of the crate's directory. It is the name of the library; the package can have another
/// name on crates.io.
fn crate_name(package: &Value) -> String {
    let manifest = manifest_path(package);
    let directory = manifest.parent().and_then(Path::file_name).expect("a manifest is in a directory");
    directory.to_str().expect("the name is UTF-8").to_owned()
}

/// The normal dependencies of a package, by the names that its code uses.
fn dependencies(package: &Value) -> Vec<String> {
    let all = package["dependencies"].as_array().expect("a package has dependencies").iter();
    // Those of tests and build scripts have a kind.
    let normal = all.filter(|dependency| dependency["kind"].is_null());
    let name = normal.map(|dependency| dependency["rename"].as_str().or(dependency["name"].as_str()));
    name.map(|name| name.expect("a dependency has a name").to_owned()).collect()
}

#[test]
fn crate_dependencies_are_allowed() {
    let packages = packages();
    let crates: Vec<String> = packages.iter().map(crate_name).collect();
    assert_eq!(
        crates.len(),
        ALLOWED_DEPENDENCIES.len(),
        "{crates:?}: list each crate in ALLOWED_DEPENDENCIES"
    );
    for package in &packages {
        let name = crate_name(package);
        let (_, allowed) = ALLOWED_DEPENDENCIES
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .expect("the crate is in ALLOWED_DEPENDENCIES");
        for dependency in dependencies(package).iter().filter(|dependency| crates.contains(dependency)) {
            assert!(allowed.contains(&dependency.as_str()), "{name} → {dependency} is not allowed");
        }
    }
}

#[test]
fn crates_do_not_use_forbidden_libraries() {
    for package in packages() {
        let name = crate_name(&package);
        let forbidden = FORBIDDEN_LIBRARIES.iter().find(|(crate_name, _)| *crate_name == name);
        for dependency in dependencies(&package) {
            assert!(
                !forbidden.is_some_and(|(_, forbidden)| forbidden.contains(&dependency.as_str())),
                "{name} must not depend on {dependency}"
            );
        }
    }
    let importers = |library: &str| -> Vec<String> {
        let users = packages()
            .into_iter()
            .filter(|package| dependencies(package).iter().any(|dependency| dependency == library));
        users.map(|package| crate_name(&package)).collect()
    };
    assert_eq!(importers("tmux_interface"), ["tmux"]);
    assert_eq!(importers("rmcp"), ["mcp"]);
    assert_eq!(importers("ratatui"), ["top"]);
    assert_eq!(importers("tokio"), ["acp", "link", "mcp", "teamd"]);
    assert_eq!(importers("agent-client-protocol"), ["acp"]);
}

/// Path and text of every source file below `crates`.
fn sources() -> Vec<(String, String)> {
    sources_below(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"))
}

/// Every source file below `top`: its path from there, and its text.
fn sources_below(top: &str) -> Vec<(String, String)> {
    let (mut files, mut directories) = (Vec::new(), vec![std::path::PathBuf::from(top)]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(top).unwrap().display().to_string();
                files.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files
}

/// A page names a test in a code span that has more than three underscores and is no path. The path of the test's
/// file contains the modules that the page writes before the name.
#[test]
fn tests_named_in_docs_exist() {
    let [e2e, faults] =
        ["e2e", "faults"].map(|tests| sources_below(&format!("{}/{tests}", env!("CARGO_MANIFEST_DIR"))));
    let files: Vec<(String, String)> = sources().into_iter().chain(e2e).chain(faults).collect();
    let texts = ["ARCHITECTURE", "incidents", "hazards", "promises"].map(|page| {
        std::fs::read_to_string(format!("{}/../docs/{page}.md", env!("CARGO_MANIFEST_DIR"))).unwrap()
    });
    let text = texts.concat();
    let is_test = |span: &&str| span.matches('_').count() > 3 && !span.ends_with(".rs");
    let spans = text.split('`').skip(1).step_by(2).filter(is_test);
    let names: Vec<&str> = spans.filter_map(|text| text.split(' ').next_back()).collect();
    assert!(names.len() > 50, "{names:?}");
    for name in names.into_iter().filter(|name| !name.ends_with('*')) {
        let (modules, test) = name.rsplit_once("::").unwrap_or(("", name));
        let declaration = format!("fn {test}(");
        let is_in = |(path, text): &&(String, String)| {
            text.contains(&declaration) && modules.split("::").all(|module| path.contains(module))
        };
        assert!(files.iter().any(|file| is_in(&file)), "there is no test {name}");
    }
}

/// A page names a source file by a code span with its path below `crates`, and after it functions of the file in
/// parentheses.
#[test]
fn source_files_and_functions_named_in_docs_exist() {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let pages = ["CONTRIBUTING.md", "docs/ARCHITECTURE.md"];
    let text = pages.map(|page| std::fs::read_to_string(format!("{top}/{page}")).unwrap()).concat();
    let paths =
        text.match_indices("/src/").map(|(middle, _)| &text[text[..middle].rfind('`').unwrap() + 1..]);
    let mut checked_functions = 0;
    for (path, after) in paths.map(|from_path| from_path.split_once('`').unwrap()) {
        let file = format!("{top}/crates/{}", path.trim_start_matches("crates/"));
        assert!(std::path::Path::new(&file).exists(), "there is no file {path}");
        let list = after.strip_prefix(" (`").filter(|_| path.ends_with(".rs"));
        let functions = list.and_then(|list| list.split_once("`)"));
        for name in functions.iter().flat_map(|(names, _)| names.split("`, `")) {
            let source = std::fs::read_to_string(&file).unwrap();
            assert!(source.contains(&format!("fn {name}")), "{path} has no function {name}");
            checked_functions += 1;
        }
    }
    assert!(checked_functions > 60, "{checked_functions}");
}

/// A release build does not read the variable that turns failpoints on.
#[test]
fn failpoints_exist_only_in_debug_builds() {
    let sources = non_test_sources();
    let readers: Vec<&str> = sources
        .iter()
        .filter(|(_, text)| text.contains("TEAMD_FAILPOINTS"))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        readers.iter().filter(|name| !name.ends_with("failpoint/src/lib.rs")).count(),
        1,
        "{readers:?}"
    );
    let library =
        sources.iter().find(|(name, _)| name == "failpoint/src/lib.rs").expect("the crate has a lib.rs");
    assert!(library.1.contains("#[cfg(debug_assertions)]\nmod hit_failpoint;"), "{}", library.1);
}

/// Words for facilities of one operating system.
const SYSTEM_FACILITIES: [&str; 7] = ["/proc", "pidfd", "epoll", "inotify", "prctl", "kqueue", "memfd"];

/// Facilities of one operating system are used in the crate `platform` alone, and not in its portable part.
#[test]
fn only_the_platform_crate_knows_operating_systems() {
    for (name, text) in non_test_sources() {
        let is_portable = !name.starts_with("platform/") || name.starts_with("platform/src/posix/");
        let found = SYSTEM_FACILITIES.iter().find(|word| is_portable && text.contains(**word));
        assert_eq!(found, None, "{name}");
        assert!(name.starts_with("platform/") || !text.contains("target_os"), "{name}");
    }
}

#[test]
fn unsafe_code_is_limited_to_four_modules_and_explained() {
    let files =
        sources().into_iter().filter(|(_, text)| text.contains("unsafe {") || text.contains("unsafe_code)"));
    let files: Vec<(String, String)> = files.collect();
    let names: BTreeSet<String> = files.iter().map(|(name, _)| name.clone()).collect();
    let modules = ["bsd/watch_process_exit.rs", "close_inherited_descriptors.rs", "linux/write_leases.rs"]
        .map(|file| format!("platform/src/{file}"));
    let modules: BTreeSet<String> = modules.into_iter().chain(["shim/src/pre_exec.rs".to_owned()]).collect();
    assert_eq!(names, modules);
    for (name, text) in &files {
        assert_eq!(text.matches("unsafe {").count(), text.matches("// SAFETY:").count(), "{name}");
    }
}

/// Path and text of every source file below `crates`, without tests.
pub(crate) fn non_test_sources() -> Vec<(String, String)> {
    let sources = sources().into_iter().filter(|(name, _)| !name.contains("tests"));
    sources
        .map(|(name, text)| (name, text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned()))
        .collect()
}

/// The files that contain the name of one of these tmux commands, or of the library's type for it.
fn files_using_commands(commands: &[&str]) -> Vec<String> {
    let uses_one = |text: &str| {
        commands.iter().any(|command| text.contains(command) || text.contains(&camel_case(command)))
    };
    let files: BTreeSet<String> =
        non_test_sources().into_iter().filter(|(_, text)| uses_one(text)).map(|(name, _)| name).collect();
    files.into_iter().collect()
}

/// `kill-pane` gives `KillPane`.
fn camel_case(word: &str) -> String {
    word.split('-').map(|part| part[..1].to_uppercase() + &part[1..]).collect()
}

/// The daemon closes panes with `kill_pane.rs`, and a shim without a daemon closes its own pane.
/// Both commands first check the tag of the pane. `doctor` only prints such a command. The control
/// client closes only the idle pane of its own session. `attach` ends only sessions that it has created,
/// and only while another session has their windows.
#[test]
fn only_one_module_closes_panes() {
    let doctor = "teamctl/src/commands/diagnose/doctor/orphan_panes.rs";
    assert_eq!(
        files_using_commands(&["kill-pane"]),
        ["shim/src/close_own_pane.rs", doctor, "tmux/src/control_client_process.rs", "tmux/src/kill_pane.rs"]
    );
    let files = files_using_commands(&["kill-server", "kill-session", "kill-window"]);
    let attach = "teamctl/src/commands/attach/grouped_tmux_session.rs";
    assert_eq!(files, [attach], "teamd closes only its own panes, each by its id");
}

/// Only `top` fills a buffer of tmux, with the text that a person copies by a key. It pastes nothing.
#[test]
fn no_module_types_into_panes() {
    let files = files_using_commands(&["send-keys", "paste-buffer"]);
    assert!(files.is_empty(), "{files:?}");
    let files = files_using_commands(&["load-buffer", "set-buffer"]);
    assert_eq!(files, ["top/src/tmux_client_of_this_pane.rs"]);
}

/// Each tmux command of a test has `-S`. In addition, `TMUX_TMPDIR` in the test environment is a
/// directory of the test, so that a tmux command without `-S` does not find the user's server.
#[test]
fn tests_use_their_own_tmux_server() {
    let files = sources().into_iter().filter(|(name, _)| name.contains("/tests/"));
    let files = files.chain(sources_below(env!("CARGO_MANIFEST_DIR")));
    let mut users = BTreeSet::new();
    for (name, text) in files {
        for (index, _) in text.match_indices("(\"tmux\")") {
            let prefixes = [".command", "Command::new", "Command::new(self.path"];
            if prefixes.iter().any(|prefix| text[..index].ends_with(prefix)) {
                let call: String = text[index..].chars().take(200).collect();
                assert!(call.contains("\"-S\""), "{name} starts a tmux without -S: {call}");
                users.insert(name.clone());
            }
        }
    }
    assert!(
        users.contains("harness/test_env.rs") && users.contains("tmux/tests/panes/test_server.rs"),
        "{users:?}"
    );
    let has_own_environment =
        |text: &str| text.contains("env_clear()") && text.contains("\"TMUX_TMPDIR\", self.path(");
    assert!(
        sources_below(env!("CARGO_MANIFEST_DIR"))
            .iter()
            .any(|(name, text)| name == "harness/test_env.rs" && has_own_environment(text))
    );
}

/// The imports between the modules of each crate, by the name of the crate.
fn module_imports() -> Vec<(String, ModuleImports)> {
    let packages = packages().into_iter().filter(|package| crate_name(package) != "tests");
    let read = |package: Value| {
        let source = manifest_path(&package).with_file_name("src");
        let source = source.to_str().expect("the path is UTF-8");
        (crate_name(&package), ModuleImports::read(&sources_below(source)))
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

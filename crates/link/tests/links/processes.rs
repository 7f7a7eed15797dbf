//! A home and an annex in processes of their own, which are killed while they exchange items.
//!
//! The processes are this test program again. Its own output goes to standard error, so that the
//! annex has a clean pipe.

use crate::end::{DEADLINE, End, command, start, wait_for_items};
use link::{ConnectionSource, LinkRole, LinkStream};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// The directory of the test, for its processes.
const VARIABLE: &str = "LINK_TEST_DIRECTORY";

const ITEMS: u64 = 3_000;

/// Starts this program as one of the processes below. Descriptor 3 is the output of the process.
const START: &str = r#"exec 3>&1 >/dev/null; exec "$0" --exact "$1""#;

fn directory() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

/// Waits until no other process of the same end runs, because only one may use the files. The lock
/// lasts as long as the process. Afterwards the file `NAME.pid` has the process id.
fn lock(dir: &Path, name: &str) -> File {
    let mut file = File::options().create(true).append(true).open(dir.join(format!("{name}.pid"))).unwrap();
    file.lock().unwrap();
    file.set_len(0).unwrap();
    file.write_all(std::process::id().to_string().as_bytes()).unwrap();
    file
}

#[tokio::test]
async fn annex_process() {
    let Some(dir) = directory() else { return };
    let _lock = lock(&dir, "annex");
    let open = pipe::OpenOptions::new();
    let (input, output) = (open.open_receiver("/dev/fd/0").unwrap(), open.open_sender("/dev/fd/3").unwrap());
    let (streams, incoming) = mpsc::channel(1);
    streams.send(LinkStream::new(input, output)).await.unwrap();
    let annex = start(&dir.join("annex"), LinkRole::Annex, ConnectionSource::Incoming(incoming));
    annex.submit_through(ITEMS);
    wait_for_interruption(annex).await;
}

#[tokio::test]
async fn home_process() {
    let Some(dir) = directory() else { return };
    let _lock = lock(&dir, "home");
    let program = std::env::current_exe().unwrap();
    let words = ["sh", "-c", START, program.to_str().unwrap(), "processes::annex_process"];
    let home = start(&dir.join("home"), LinkRole::Home { epoch: 1 }, command(&words));
    home.submit_through(ITEMS);
    std::future::pending::<()>().await;
}

async fn wait_for_interruption(mut end: End) {
    while let Some(report) = end.reports.recv().await {
        if matches!(report, link::LinkReport::Disconnected(_)) {
            return;
        }
    }
}

fn start_home(dir: &Path) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", START]).arg(std::env::current_exe().unwrap()).arg("processes::home_process");
    command.env(VARIABLE, dir).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    command.spawn().unwrap()
}

/// Kills the annex, if it runs. The connect command is its parent process, so the home connects again.
async fn kill_annex(dir: &Path) {
    let Ok(file) = File::open(dir.join("annex.pid")) else { return };
    if file.try_lock().is_ok() {
        return;
    }
    let pid = std::fs::read_to_string(dir.join("annex.pid")).unwrap();
    if !pid.is_empty() {
        Command::new("kill").args(["-9", &pid]).stderr(Stdio::null()).status().await.unwrap();
    }
}

#[tokio::test]
async fn killed_processes_lose_and_double_nothing() {
    if directory().is_some() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for round in 0..12 {
        let mut home = start_home(dir.path());
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(20..150))).await;
            kill_annex(dir.path()).await;
        }
        home.kill().await.unwrap();
        assert!(dir.path().join("home").exists(), "round {round}");
    }
    let home = start_home(dir.path());
    let all = async {
        wait_for_items(&dir.path().join("home"), ITEMS).await;
        wait_for_items(&dir.path().join("annex"), ITEMS).await;
    };
    tokio::time::timeout(DEADLINE, all).await.unwrap();
    drop(home);
}

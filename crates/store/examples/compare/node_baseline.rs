//! Runs the Node program that the store is compared with. The Node process reads its commands line
//! by line. Measurements of the store and of the Node program alternate, so that changes of the
//! machine's speed affect both.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A baseline process for one file.
pub(crate) struct NodeProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl NodeProcess {
    /// Starts the process. `None` if Node or its library is not installed.
    pub(crate) fn start(file: &Path) -> Option<NodeProcess> {
        let mut child = command(file)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(NodeProcess { child, input, output })
    }

    /// Runs `operation` in the Node process. Returns the duration by the Node process's own clock,
    /// without the time to send the operation through a pipe.
    pub(crate) fn run(&mut self, operation: &str) -> Duration {
        writeln!(self.input, "{operation}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        Duration::from_nanos(line.trim().parse().unwrap())
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The command line of the baseline for `file`. `None` if its library is not installed.
pub(crate) fn command(file: &Path) -> Option<Command> {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let modules = crates.join("../../tests/compat/writers/node_modules");
    let mut node = Command::new("node");
    node.arg(crates.join("examples/compare/baseline.js")).arg(file).env("NODE_PATH", &modules);
    modules.join("proper-lockfile").is_dir().then_some(node)
}

/// The sorted durations of both programs, and the median of their ratios.
pub(crate) struct PairedTimings {
    pub(crate) ours: Vec<Duration>,
    pub(crate) theirs: Vec<Duration>,
    pub(crate) ratio: f64,
}

/// Measures `count` pairs.
pub(crate) fn time_pairs(
    count: usize,
    mut ours: impl FnMut(usize),
    mut theirs: impl FnMut() -> Duration,
) -> PairedTimings {
    let (mut all, mut ratios) = ((Vec::new(), Vec::new()), Vec::new());
    for n in 0..count {
        let start = Instant::now();
        ours(n);
        let (ours, theirs) = (start.elapsed(), theirs());
        ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
        all.0.push(ours);
        all.1.push(theirs);
    }
    all.0.sort();
    all.1.sort();
    ratios.sort_by(f64::total_cmp);
    PairedTimings { ours: all.0, theirs: all.1, ratio: ratios[count / 2] }
}

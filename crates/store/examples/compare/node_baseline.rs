//! The baseline, a Node process that is told what to do a line at a time, and how the two are measured: in turn, so that
//! a drift of the machine meets both.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A baseline at one file.
pub(crate) struct NodeProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl NodeProcess {
    /// None where there is no Node.
    pub(crate) fn start(file: &Path) -> Option<NodeProcess> {
        let mut child = command(file)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(NodeProcess { child, input, output })
    }

    /// Does `what`, and says how long it took by its own clock: without the way to it and back.
    pub(crate) fn run(&mut self, what: &str) -> Duration {
        writeln!(self.input, "{what}").unwrap();
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

/// The baseline's command line at `file`; none where its library is not installed.
pub(crate) fn command(file: &Path) -> Option<Command> {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let modules = crates.join("../../tests/compat/writers/node_modules");
    let mut node = Command::new("node");
    node.arg(crates.join("examples/compare/baseline.js")).arg(file).env("NODE_PATH", &modules);
    modules.join("proper-lockfile").is_dir().then_some(node)
}

/// What both took, sorted, and the median of their ratios.
pub(crate) struct PairedTimings {
    pub(crate) ours: Vec<Duration>,
    pub(crate) theirs: Vec<Duration>,
    pub(crate) ratio: f64,
}

/// So many pairs.
pub(crate) fn time_pairs(
    count: usize,
    mut ours: impl FnMut(usize),
    mut theirs: impl FnMut() -> Duration,
) -> PairedTimings {
    let (mut all, mut ratios) = ((Vec::new(), Vec::new()), Vec::new());
    for n in 0..count {
        let begun = Instant::now();
        ours(n);
        let (ours, theirs) = (begun.elapsed(), theirs());
        ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
        all.0.push(ours);
        all.1.push(theirs);
    }
    all.0.sort();
    all.1.sort();
    ratios.sort_by(f64::total_cmp);
    PairedTimings { ours: all.0, theirs: all.1, ratio: ratios[count / 2] }
}

//! A scripted model: a program of ours in JavaScript that real agent programs take for the one that they think with. It
//! answers on 127.0.0.1 alone.

use crate::TestEnv;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

/// One that answers until it is dropped.
pub struct ScriptedModel {
    child: Child,
    address: String,
}

impl ScriptedModel {
    /// Starts `script`, a file below tests/compat, which notes in `log` what it was asked and did.
    pub fn start(env: &TestEnv, script: &str, log: &Path) -> ScriptedModel {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat").join(script);
        let mut command = env.command("node");
        command.arg(script).arg(log).stdout(Stdio::piped());
        let mut child = command.spawn().expect("node starts");
        let mut port = String::new();
        let said = BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut port);
        said.expect("the model says its port");
        ScriptedModel { child, address: format!("http://127.0.0.1:{}", port.trim()) }
    }

    /// Where to ask it.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

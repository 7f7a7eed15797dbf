//! A team's home, and the host `far` that a real ssh connection reaches. Both are on this machine.

use crate::{SshServer, TestEnv};

/// A home with the team `survey`, and the host `far` with a daemon. Both share one test environment: the
/// files of `far` are in the directory `far`.
pub struct HomeAndSshHost {
    /// The environment of the home.
    pub env: TestEnv,
    /// The server, until [`HomeAndSshHost::shut_down`].
    pub server: SshServer,
}

impl HomeAndSshHost {
    /// The directory of the other host's team files, relative to the environment.
    pub const FAR_ROOT: &str = "far/home/root";

    /// Starts the server and both daemons. `None` if there is no ssh server here.
    pub fn start() -> Option<HomeAndSshHost> {
        let env = TestEnv::with_team();
        let Some(server) = SshServer::start(&env) else {
            env.shut_down();
            return None;
        };
        let hosts = format!("[host.far]\n{}root = '~/root'\n", server.connect_line());
        env.write_file("home/.config/teamd/hosts.toml", hosts);
        for program in ["teamctl", "teamd", "teamd-shim"] {
            let link = env.path("far/bin").join(program);
            std::os::unix::fs::symlink(crate::programs().join(program), link)
                .expect("the link can be created");
        }
        env.teamctl(["--host", "far", "up"]).expect_success();
        Some(HomeAndSshHost { env, server })
    }

    /// The environment entry that only processes of the other host have.
    pub fn tag_of_processes_there(&self) -> String {
        format!("XDG_STATE_HOME={}", self.env.path("far/state").display())
    }

    /// Ends both daemons and the server.
    pub fn shut_down(self) {
        // The home would connect again, and so start the daemon again that ends.
        self.env.teamctl(["down"]).expect_success();
        self.env.teamctl(["--host", "far", "down"]).expect_success();
        drop(self.server);
        self.env.shut_down();
    }
}

# A formula for Homebrew. `scripts/formula` fills in where the source lies, and its checksum.
class TeamdAgents < Formula
  desc "Supervises teams of coding agents in tmux panes"
  url "@URL@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build
  # On macOS, teamd was never run: docs/platforms.md.
  depends_on "tmux"

  def install
    # Out of the way of libteam's teamd. The programs find each other in bin and libexec/teamd of this prefix.
    system "cargo", "install", *std_cargo_args(path: "crates/teamd-agents", root: libexec)
    (libexec/"libexec/teamd").install Dir[libexec/"bin/teamd-*"]
    bin.install_symlink libexec/"bin/teamctl"
    system bin/"teamctl", "man", man1
    generate_completions_from_executable(bin/"teamctl", "completions", shells: [:bash, :zsh, :fish])
    doc.install "examples"
  end

  service do
    run [opt_bin/"teamctl", "up", "--resume"]
    environment_variables PATH: std_service_path_env
  end

  test do
    ENV["TEAMD_ROOT"] = testpath/"root"
    ENV["XDG_STATE_HOME"] = testpath/"state"
    assert_match version.to_s, shell_output("#{bin}/teamctl --version")
    server = "teamd-formula-#{Process.pid}"
    begin
      assert_match "teamd is ready", shell_output("env -u TMUX #{bin}/teamctl up -L #{server}")
      assert_match "teamd has ended", shell_output("#{bin}/teamctl down")
    ensure
      system "tmux", "-L", server, "kill-server"
    end
  end
end

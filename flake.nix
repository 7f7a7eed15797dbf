# `nix profile install .` installs teamd with tmux. It was never built.
{
  description = "Supervises teams of coding agents in tmux panes";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" ];
      forEachSystem = build: nixpkgs.lib.genAttrs systems (system: build nixpkgs.legacyPackages.${system});
    in
    {
      packages = forEachSystem (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "teamd-agents";
          version = "0.1.0";
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "-p" "teamd-agents" ];
          # The tests start tmux servers and need programs of other package managers: `make test` runs them.
          doCheck = false;
          nativeBuildInputs = [ pkgs.makeWrapper ];
          # The programs find each other in bin and in libexec/teamd.
          postInstall = ''
            mkdir -p $out/libexec/teamd
            mv $out/bin/teamd-* $out/libexec/teamd/
            wrapProgram $out/bin/teamctl --suffix PATH : ${pkgs.lib.makeBinPath [ pkgs.tmux pkgs.git ]}
          '';
        };
      });
    };
}

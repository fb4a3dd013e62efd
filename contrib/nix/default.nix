# In a configuration: pkgs.callPackage ./contrib/nix { }
# On the command line: nix-build contrib/nix
{
  pkgs ? import <nixpkgs> { },
  lib ? pkgs.lib,
  rustPlatform ? pkgs.rustPlatform,
  pkg-config ? pkgs.pkg-config,
  sqlite ? pkgs.sqlite,
  coreutils ? pkgs.coreutils,
}:

let
  root = ../..;
  manifest = (builtins.fromTOML (builtins.readFile (root + "/Cargo.toml"))).package;
in
rustPlatform.buildRustPackage {
  pname = manifest.name;
  inherit (manifest) version;

  # Without build results and git.
  src = builtins.path {
    name = "${manifest.name}-${manifest.version}-source";
    path = root;
    filter = path: type: !(builtins.elem (baseNameOf path) [ ".git" "target" "result" ]);
  };
  cargoLock.lockFile = root + "/Cargo.lock";

  nativeBuildInputs = [ pkg-config ];
  buildInputs = [ sqlite ];
  buildNoDefaultFeatures = true;

  # Only the unit tests: the other tests need compositors and backends (contrib/test).
  cargoTestFlags = [ "--lib" ];

  installPhase = ''
    runHook preInstall
    patchShebangs contrib/install
    PREFIX=$out OPENRC_DIR=$out/share/doc/murald/examples \
      contrib/install "$(find target -path '*/release/murald' -type f)"
    substituteInPlace $out/lib/systemd/user/murald.service --replace-fail /bin/kill ${coreutils}/bin/kill
    runHook postInstall
  '';

  meta = {
    inherit (manifest) description;
    license = with lib.licenses; [ mit asl20 ];
    platforms = lib.platforms.linux;
    mainProgram = "murald";
  };
}

# shellcheck shell=bash
# Sourced by the scripts beside it: sees to it that there is a Rust compiler that is new enough.

# rustup puts it there; a shell that was started before does not know.
command -v cargo >/dev/null || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
rust_needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../Cargo.toml")
rust_found=$(cargo --version 2>/dev/null | cut -d ' ' -f 2) || true
if ! printf '%s\n' "$rust_needed" "${rust_found:-0}" | sort -C -V; then
  {
    echo "${0##*/}: needs Rust $rust_needed or newer, with rustfmt and clippy; found: ${rust_found:-none}."
    echo "  https://rustup.rs installs it. So do 'apt install rustup && rustup default stable' on Debian 13,"
    echo "  and 'apt install cargo-web rust-web-clippy rustfmt-web' on Debian 12. Then run this again."
  } >&2
  exit 1
fi

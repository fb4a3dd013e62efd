# shellcheck shell=bash
# Sourced by the scripts beside it: makes sure that a Rust compiler is installed that is new enough.
# Debian 12 and 13 have one in their packages for web browsers.

# rustup puts it there; a shell that was started before does not know.
command -v cargo >/dev/null || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
rust_here=$(dirname "${BASH_SOURCE[0]}")
rust_needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$rust_here/../Cargo.toml")

rust_is_new_enough() {
  rust_found=$(cargo --version 2>/dev/null | cut -d ' ' -f 2) || true
  printf '%s\n' "$rust_needed" "${rust_found:-0}" | sort -C -V
}

rust_is_new_enough || ! command -v apt-get >/dev/null ||
  "$rust_here/../tests/desktop/install" cargo-web rust-web-clippy rustfmt-web >&2 || true
rust_is_new_enough || {
  {
    echo "${0##*/}: needs Rust $rust_needed or newer, with rustfmt and clippy; found: ${rust_found:-none}."
    echo "  Install it from https://rustup.rs, or 'apt install cargo-web rust-web-clippy rustfmt-web' on Debian 12"
    echo "  and 13. Then run this again."
  } >&2
  exit 1
}

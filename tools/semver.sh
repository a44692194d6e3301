#!/usr/bin/env bash
# What of the public interfaces of Rust changed since a revision, and whether the version number says so:
# `tools/semver.sh REVISION`, by default the newest tag. Installs cargo-semver-checks if it is missing (some minutes).
# Exits with an error where the interface broke and the version did not move with it.
set -euo pipefail
cd "$(dirname "$0")/.."
baseline=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
[ -n "$baseline" ] || { echo "no tag yet: name a revision to compare with"; exit 2; }
cargo semver-checks --version >/dev/null 2>&1 || cargo install cargo-semver-checks --locked
cargo semver-checks --baseline-rev "$baseline" --release-type "${RELEASE_TYPE:-minor}" \
    -p zubilo -p zubilo-typed -p lmdb-file -p lmdb-import

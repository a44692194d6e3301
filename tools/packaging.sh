#!/usr/bin/env bash
# What packagers rely on: the crates that are published can be packed; they build with the oldest Rust that the
# manifest promises (`rust-version`; rustup installs it if it is missing); and an installation below DESTDIR is
# complete: a program finds the library by pkg-config, the command runs and has its manual.
set -euo pipefail
cd "$(dirname "$0")/.."
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1.0/p' Cargo.toml)
rustup run "$oldest" rustc --version 2>/dev/null || rustup toolchain install "$oldest" --profile minimal
published=(-p zubilo -p lmdb-file -p lmdb-import -p zubilo-derive -p zubilo-typed -p zubilo-cli)
cargo "+$oldest" check --target-dir target/oldest "${published[@]}" -p liblmdb -p lmdb-tools
cargo package "${published[@]}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libdir=/usr/lib/$(gcc -dumpmachine)
DESTDIR=$work/root cargo xtask install --prefix /usr --libdir "$libdir"
cat > "$work/version.c" <<'END'
#include <lmdb.h>
#include <stdio.h>
int main(void) {
    puts(mdb_version(NULL, NULL, NULL));
    return 0;
}
END
export PKG_CONFIG_SYSROOT_DIR=$work/root PKG_CONFIG_LIBDIR=$work/root$libdir/pkgconfig
read -ra flags <<< "$(pkg-config --cflags --libs lmdb)"
gcc -Wall -Werror -o "$work/version" "$work/version.c" "${flags[@]}"
LD_LIBRARY_PATH=$work/root$libdir "$work/version" | grep Zubilo
"$work/root/usr/bin/zubilo" --version
"$work/root/usr/bin/zubilo" --help | grep -oE '^  [a-z]+ ' | while read -r command; do
    [ "$command" = help ] || test -s "$work/root/usr/share/man/man1/zubilo-$command.1"
done
bash -n "$work/root/usr/share/bash-completion/completions/zubilo"
echo "packaging: fine"

#!/bin/sh
# Compiles and links the module for Windows (GNU) and for Linux with musl on an x86-64 machine, by Debian's tools, and looks at what it needs and
# exports; runs the tests of the core with musl, whose programs this machine runs. No Python of either is among the packages of Debian and PyPI.
#
#     sh tests/cross/modules.sh      as root
set -eu
. "$(dirname "$0")/root.sh"

if [ ! -e "$here/modules" ]; then
	step "downloads the sources of the standard library, and linkers for Windows and musl: 0.3 GB"
	# Systems with musl have a libgcc_s of their own: here that of this machine is there to link with.
	inside "$apt update; $apt install --no-install-recommends rust-src musl-tools gcc-mingw-w64-x86-64
		ln -sf /lib/x86_64-linux-gnu/libgcc_s.so.1 /usr/lib/x86_64-linux-musl/" >>"$here/apt.log"
	touch "$here/modules"
fi
# Debian has no standard library for these targets: it is compiled with the module, which takes an option of compilers under development.
RUSTC_BOOTSTRAP=1 cargo fetch --quiet --manifest-path "$root/usr/lib/rustlib/src/rust/library/Cargo.toml"
enter
with_std="export RUSTC_BOOTSTRAP=1; cargo"
options="--locked --profile fast -Z build-std=std,panic_unwind"

step "links the module for Windows, about 5 minutes"
built "$with_std build $options --package oxigrad-python --target x86_64-pc-windows-gnu"
inside "x86_64-w64-mingw32-objdump -p /target/x86_64-pc-windows-gnu/fast/_core.dll" >"$here/windows.txt"
grep -q PyInit__core "$here/windows.txt" && grep -q "DLL Name: python3.dll" "$here/windows.txt" || { echo "$0: no module of Python" >&2; exit 1; }

step "links the module for musl, about 5 minutes"
# Dynamically, as modules are. The root has no Python to ask, which the stable interface does not need.
musl="export PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1 RUSTFLAGS='-C target-feature=-crt-static'; $with_std"
built "$musl build $options --package oxigrad-python --target x86_64-unknown-linux-musl"
inside "objdump -p -T /target/x86_64-unknown-linux-musl/fast/lib_core.so" >"$here/musl.txt"
grep -q PyInit__core "$here/musl.txt" && ! grep -q "GLIBC_\|libc.so.6" "$here/musl.txt" || { echo "$0: no module of musl" >&2; exit 1; }

step "runs the tests of the core with musl, about 10 minutes"
built "$musl test $options --package oxigrad-core --target x86_64-unknown-linux-musl -- --skip 2_to_the_32"

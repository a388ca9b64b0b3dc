#!/bin/sh
# Compiles and links the module for Windows (GNU) and for Linux with musl on an x86-64 machine, by Debian's tools, and looks at what it needs and
# exports; runs the tests of the core with musl, whose programs this machine runs. No Python of either is among the packages of Debian and PyPI.
#
#     sh tests/cross/modules.sh [PYTHON]      as root; PYTHON has pip
set -eu
. "$(dirname "$0")/root.sh"

python=${1:-.venv/bin/python}

if [ ! -e "$here/modules" ]; then
	step "downloads the sources of the standard library, and linkers for Windows and musl: 0.3 GB"
	inside "$apt update; $apt install --no-install-recommends rust-src musl-tools gcc-mingw-w64-x86-64" >>"$here/apt.log"
	# Debian has no libgcc_s for musl, by which panics unwind: NumPy's wheel for musl brings one, under a name of its own.
	"$python" -m pip download --quiet --dest "$here/wheels" --only-binary=:all: --no-deps --platform musllinux_1_2_x86_64 numpy
	"$python" -m zipfile -e "$here"/wheels/numpy-*-musllinux_*_x86_64.whl "$here/numpy"
	cp "$here"/numpy/numpy.libs/libgcc_s-*.so.1 "$root/usr/lib/x86_64-linux-musl/"
	inside "cd /usr/lib/x86_64-linux-musl; for library in libgcc_s-*; do ln -sf \$library libgcc_s.so.1; done"
	rm -r "$here/numpy"
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
built "$musl test $options --package oxigrad-core --target x86_64-unknown-linux-musl"

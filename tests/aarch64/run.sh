#!/bin/sh
# Tests oxigrad for aarch64 on an x86-64 machine with Debian's tools: the core's tests, and tests of the Python package under an arm64
# Python, by qemu's emulation of a process; then compares digests of steps and derivatives with those of this machine.
#
#     sh tests/aarch64/run.sh [PYTHON]        as root, for debootstrap and chroot; PYTHON has oxigrad installed
#
# The compiler is Debian's, in a root of Debian sid in target/aarch64, since rustup's target may not be there.
set -eu

python=${1:-.venv/bin/python}
here=$PWD/target/aarch64
root=$here/root
target=aarch64-unknown-linux-gnu
mirror=http://deb.debian.org/debian
tests="tests/rules tests/tree tests/schedules tests/optim/test_composition.py tests/stepping/test_step.py tests/autodiff/test_modes.py"

[ "$(id -u)" = 0 ] || { echo "$0: debootstrap and chroot need root" >&2; exit 1; }
command -v debootstrap >/dev/null || apt-get install --yes --quiet debootstrap

# The list of a mirror that is a copy may have expired; its signature is checked all the same.
apt="apt-get --quiet --yes --option Acquire::Check-Valid-Until=false --option APT::Sandbox::User=root"
inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -euc "$*"; }

if [ ! -e "$here/installed" ]; then
	rm -rf "$root"
	mkdir -p "$here"
	debootstrap --variant=minbase --include=ca-certificates sid "$root" "$mirror"
	inside "dpkg --add-architecture arm64; $apt update
		$apt install --no-install-recommends cargo rustc libstd-rust-dev:arm64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
	# An arm64 Python beside the amd64 one: its packages are unpacked, and not installed.
	inside "mkdir -p /debs /arm64; cd /debs
		packages=\$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances python3.13:arm64 |
			grep '^[a-z].*:arm64\$' | sort -u)
		$apt download \$packages libstdc++6:arm64 libgomp1:arm64
		for package in *.deb; do dpkg --extract \$package /arm64; done; rm -rf /debs"
	touch "$here/installed"
fi

mkdir -p "$root/project" "$root/cargo" "$root/target" "$here/target" "$here/site"
mounted=
trap 'for place in $mounted; do umount "$root/$place"; done' EXIT
for pair in ".:project" "${CARGO_HOME:-$HOME/.cargo}:cargo" "$here/target:target" "/proc:proc" "/dev:dev"; do
	mkdir -p "${pair%%:*}"
	mount --bind "${pair%%:*}" "$root/${pair##*:}"
	mounted="${pair##*:} $mounted"
done
cp /etc/resolv.conf "$root/etc/resolv.conf"

cargo() {
	inside "cd /project; CARGO_HOME=/cargo CARGO_TARGET_DIR=/target PYO3_NO_PYTHON=1 \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu' cargo $*"
}
echo '* the tests of the core'
cargo test --locked --package oxigrad-core --target $target
echo '* the Python package'
cargo build --locked --profile fast --package oxigrad-python --target $target

site=$here/target/site
rm -rf "$site"
mkdir -p "$site"
"$python" -m pip download --quiet --dest "$here/wheels" --only-binary=:all: --python-version 3.13 --implementation cp \
	--abi cp313 --abi abi3 --abi none --no-deps \
	--platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
	numpy safetensors array-api-compat ml-dtypes pytest iniconfig pluggy packaging pygments hypothesis sortedcontainers
for wheel in "$here"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$site"; done
cp -r python/oxigrad "$site"
rm -f "$site"/oxigrad/_core*.so
cp "$here/target/$target/fast/lib_core.so" "$site/oxigrad/_core.abi3.so"

arm64() {
	inside "cd /project; export PYTHONPATH=/target/site PYTHONDONTWRITEBYTECODE=1; qemu-aarch64 -L /arm64 /arm64/usr/bin/python3.13 $*"
}
arm64 -c "'import platform; print(platform.machine())'" | grep aarch64
echo '* tests of the Python package'
arm64 -m pytest --quiet -p no:cacheprovider --combinations=sample "$tests"
echo '* digests of steps and derivatives, beside those of this machine'
arm64 tests/aarch64/digests.py >"$here/arm64.txt"
"$python" tests/aarch64/digests.py >"$here/here.txt"
diff "$here/here.txt" "$here/arm64.txt" >"$here/differences.txt" || { head -20 "$here/differences.txt"; exit 1; }
echo "$(wc -l <"$here/here.txt") digests are equal"

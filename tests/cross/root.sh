# A root of Debian sid in target/cross, for the scripts beside this one: its compiler, assemblers and linkers are packages for more targets than those of
# this machine. What is there from an earlier run is used again. Mounts are made in a namespace of the script, and end with it, however it ends.

[ "$(id -u)" = 0 ] || { echo "$0: debootstrap, chroot and mount need root" >&2; exit 1; }
[ -n "${IN_NAMESPACE:-}" ] || IN_NAMESPACE=1 exec unshare --mount --propagation private sh "$0" "$@"

here=$PWD/target/cross
root=$here/root
# The list of a mirror that is a copy may have expired; its signature is checked all the same.
apt="apt-get --quiet --quiet --yes --option Acquire::Check-Valid-Until=false --option APT::Sandbox::User=root"

inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 sh -euc "$*"; }
step() { echo "* $(date +%T) $*"; }

if [ ! -e "$here/installed" ]; then
	step "downloads a root of Debian sid with Rust: 0.2 GB"
	command -v debootstrap >/dev/null || apt-get install --yes --quiet debootstrap
	rm -rf "$root"
	mkdir -p "$here"
	debootstrap --variant=minbase --include=ca-certificates sid "$root" http://deb.debian.org/debian >"$here/debootstrap.log"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	inside "$apt update; $apt install --no-install-recommends cargo rustc gcc; mkdir /project /cargo /target" >"$here/apt.log"
	touch "$here/installed"
fi

# Makes the project, the sources of crates and the folder of what is built visible inside of the root.
enter() {
	mkdir -p "$here/target"
	cargo fetch --locked --quiet
	for pair in "$PWD:project" "${CARGO_HOME:-$HOME/.cargo}:cargo" "$here/target:target" "/proc:proc" "/dev:dev"; do
		mount --bind "${pair%%:*}" "$root/${pair##*:}"
	done
}

# Runs a command of cargo in the root, without a network.
built() {
	inside "cd /project; export CARGO_HOME=/cargo CARGO_TARGET_DIR=/target CARGO_NET_OFFLINE=true PATH=/usr/bin:/bin
		export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
		export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu'
		export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER=musl-gcc
		export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
		$*"
}

#!/bin/sh
# Tests oxigrad for aarch64 on an x86-64 machine with Debian's tools: the core's tests, and those of the Python package from a wheel under an
# arm64 Python, by qemu's emulation of a process; then compares digests of steps and derivatives with those of this machine.
#
#     sh tests/cross/aarch64.sh [PYTHON]      as root; PYTHON has oxigrad and maturin installed
set -eu
. "$(dirname "$0")/root.sh"

python=${1:-.venv/bin/python}
target=aarch64-unknown-linux-gnu
# Optimizers, autodiff, kernels, recordings. The core's tests have every kernel on every instruction set of this processor.
tests="tests/optim/test_composition.py tests/rules/test_rules.py tests/step/test_step.py tests/step/test_precision.py
	tests/autodiff/test_modes.py tests/autodiff/test_tape.py tests/autodiff/test_rule_programs.py
	tests/recording/test_record.py tests/recording/test_record_table.py"

if [ ! -e "$here/aarch64" ]; then
	step "downloads a linker, qemu and an arm64 Python: 0.2 GB"
	inside "dpkg --add-architecture arm64; $apt update
		$apt install --no-install-recommends libstd-rust-dev:arm64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" >"$here/apt.log"
	# Packages of an arm64 Python are unpacked beside those of this machine, and not installed. Its name is that of a script, so that
	# tests can start it.
	inside "mkdir /debs /arm64; cd /debs
		packages=\$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances python3:arm64 |
			grep '^[a-z].*:arm64\$' | sort -u)
		$apt download \$packages libstdc++6:arm64 libgomp1:arm64
		for package in *.deb; do dpkg --extract \$package /arm64; done; rm -rf /debs
		name=\$(echo /arm64/usr/bin/python3.[0-9]*[0-9]); mv \$name /arm64/python
		printf '#!/bin/sh\nexec qemu-aarch64 -L /arm64 -0 \"\$0\" /arm64/python \"\$@\"\n' >\$name; chmod +x \$name" >>"$here/apt.log"
	touch "$here/aarch64"
fi
enter

step "compiles and runs the tests of the core, half an hour"
built cargo test --locked --profile fast --package oxigrad-core --target $target

step "builds the wheel, about 5 minutes"
cp "$(dirname "$python")/maturin" "$root/usr/local/bin/maturin"
rm -rf "$here/target/dist"
built /usr/local/bin/maturin build --locked --profile fast --target $target --compatibility linux --out /target/dist

version=$(basename "$(echo "$root"/arm64/usr/bin/python3.[0-9]*[0-9])")
step "installs it for $version of arm64, with NumPy and pytest"
digits=${version#python3.}
rm -rf "$here/target/site" "$here/wheels"
"$python" -m pip download --quiet --dest "$here/wheels" --only-binary=:all: --no-deps --implementation cp \
	--python-version "3.$digits" --abi "cp3$digits" --abi abi3 --abi none \
	--platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
	numpy safetensors array-api-compat ml-dtypes pytest iniconfig pluggy packaging pygments hypothesis sortedcontainers
for wheel in "$here"/wheels/*.whl "$here"/target/dist/*.whl; do "$python" -m zipfile -e "$wheel" "$here/target/site"; done
arm64() {
	inside "cd /project; export PYTHONPATH=/target/site PYTHONDONTWRITEBYTECODE=1
		/arm64/usr/bin/$version $*"
}
arm64 -m oxigrad doctor
step "runs tests of the Python package, about 5 minutes"
arm64 -m pytest --quiet -p no:cacheprovider -m "not slow" $tests

step "compares digests of steps and derivatives with those of this machine"
arm64 tests/cross/digests.py >"$here/aarch64.txt"
"$python" tests/cross/digests.py >"$here/x86_64.txt"
diff "$here/x86_64.txt" "$here/aarch64.txt" || { echo "$0: digests differ" >&2; exit 1; }
echo "$(wc -l <"$here/x86_64.txt") digests are equal"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian 12 machine ready to build tenonnx: installs the Debian packages that are missing, and
# fills the cache with ONNX Runtime, onnx and the Python of the tests. What is there already is not
# touched, so that a second run takes no time and needs no network.
#
# usage: tools/setup.sh [test] [check] [aarch64] [peers] [bench]
#        tools/setup.sh qnn=VERSION   (./dev vendor qnn)
#   test      also the Python of the tests
#   check     also clang-format and clang-tidy
#   aarch64   also the cross compiler, the arm64 libraries and qemu
#   peers     also the tools that tests with the label peers measure us against
#   bench     also what `./dev bench kernels` measures the operators against; with peers
#   qnn=...   Qualcomm's provider and nothing else: only where somebody asked for it by name
#
# The cache is ${TENONNX_CACHE:-$HOME/.cache/tenonnx}; every checkout on the machine shares it.
set -euo pipefail
setup_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/setup
source "$setup_dir/steps.sh"

ORT_VERSION=1.29.0  # with onnx 1.21.0: both know opset 26 and IR version 13
ORT_HEADERS=com.github.asus4.onnxruntime@0.4.9  # carries the Android archive of the same version
ONNX_VERSION=1.21.0

cache=${TENONNX_CACHE:-$HOME/.cache/tenonnx}
arch=$(uname -m)
deps=$cache/$arch
logs=$cache/logs

packages=(g++ cmake ninja-build ccache python3 python3-pip python3-venv unzip
          libprotobuf-dev protobuf-compiler libhwy-dev libcli11-dev nlohmann-json3-dev libfmt-dev
          libspdlog-dev libgtest-dev libgmock-dev libbenchmark-dev libssl-dev libopencv-core-dev
          libopencv-imgproc-dev libjpeg62-turbo-dev libmimalloc-dev libpng-dev zlib1g-dev)
with_test=false
with_aarch64=false
with_peers=false
with_bench=false
qnn_version=
for argument in "$@"; do
  case $argument in
    test) with_test=true ;;
    check) packages+=(clang-format clang-tidy) ;;
    aarch64)
      with_aarch64=true
      packages+=(g++-aarch64-linux-gnu qemu-user) ;;
    peers) with_peers=true ;;
    bench) with_peers=true with_bench=true ;;
    qnn=*) qnn_version=${argument#qnn=} ;;
    *)
      echo "tools/setup.sh: '$argument' is not one of: test, check, aarch64, peers, bench" >&2
      exit 2 ;;
  esac
done

die() {
  echo "tools/setup.sh: $*" >&2
  exit 1
}

# Debian's own Python 3.11 when it is there: the hashes in requirements-test.txt are for it.
find_python() {
  if [ -x /usr/bin/python3 ]; then echo /usr/bin/python3; else command -v python3; fi
}

missing_packages() {
  local package
  declare -A installed=()
  while read -r state package; do
    [ "$state" = ii ] && installed[$package]=1
  done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
  for package in "${packages[@]}"; do
    [ -n "${installed[$package]:-}" ] || echo "$package"
  done
}

install_packages() {
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "not root and no sudo: install these yourself: $*"
    sudo=(sudo -n)
  fi
  "${sudo[@]}" apt-get update
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@"
}

expected_hash() {
  awk -v name="$1" '$2 == name { print $1; found = 1 } END { exit !found }' \
    "$setup_dir/archives.sha256" || die "'$1' is not listed in tools/setup/archives.sha256"
}

# verify FILE: its SHA-256 is the one in archives.sha256, else it is not used.
verify() {
  local expected actual
  [ -f "$1" ] || die "the download did not bring '$1'"
  expected=$(expected_hash "$1")
  actual=$(sha256sum "$1" | cut -d ' ' -f 1)
  [ "$actual" = "$expected" ] ||
    die "'$1' has SHA-256 $actual, tools/setup/archives.sha256 says $expected:" \
        "the download is damaged or not what it was; it was not unpacked"
  echo "verified $1"
}

# publish DIR NAME: a finished directory becomes $deps/NAME in one rename.
publish() {
  touch "$1/.complete"
  rm -rf "$deps/$2.old"
  if [ -e "$deps/$2" ]; then mv -T "$deps/$2" "$deps/$2.old"; fi
  mv -T "$1" "$deps/$2"
  rm -rf "$deps/$2.old"
}

# complete NAME: $deps/NAME was filled to the end.
complete() { [ -e "$deps/$1/.complete" ]; }

work_directory() {
  mkdir -p "$deps"
  mktemp -d "$deps/.work.XXXXXX"  # on the same file system, so that publish is a rename
}

# pip_download PYTHON ARCHIVE REQUIREMENT OPTION…: one archive into the current directory. pip compares
# the hash before it looks inside; what it leaves here is compared again.
pip_download() {
  local python=$1 archive=$2 requirement=$3
  shift 3
  echo "$requirement --hash=sha256:$(expected_hash "$archive")" >requirement.txt
  "$python" -m pip download --disable-pip-version-check -q --no-deps --require-hashes -d . \
    -r requirement.txt "$@"
  verify "$archive"
}

# fetch_onnxruntime ARCH: headers from the npm package's Android archive, the library from the wheel.
fetch_onnxruntime() {
  local work out headers wheel
  work=$(work_directory)
  trap "rm -rf '$work'" EXIT  # expanded now: 'work' is gone when it runs
  out=$work/out
  mkdir -p "$out/include" "$out/lib"
  cd "$work"
  headers=$deps/onnxruntime-$ORT_VERSION/include
  if [ "$1" != "$arch" ] && [ -e "$headers/onnxruntime_cxx_api.h" ]; then
    cp "$headers"/* "$out/include/"  # the same for every architecture
  else
    npm pack --silent "$ORT_HEADERS"
    verify "${ORT_HEADERS/@/-}.tgz"
    tar xzf "${ORT_HEADERS/@/-}.tgz" package/Plugins/Android/onnxruntime.aar
    unzip -qoj package/Plugins/Android/onnxruntime.aar 'headers/*' -d "$out/include"
    grep -q "define ORT_API_VERSION ${ORT_VERSION:2:2}$" "$out/include/onnxruntime_c_api.h" ||
      die "the headers in $ORT_HEADERS are not those of ONNX Runtime $ORT_VERSION"
  fi
  wheel=onnxruntime-$ORT_VERSION-cp311-cp311-manylinux_2_28_$1.whl
  pip_download "$(find_python)" "$wheel" "onnxruntime==$ORT_VERSION" --only-binary=:all: \
    --platform "manylinux_2_28_$1" --python-version 3.11 --implementation cp --abi cp311
  unzip -qoj "$wheel" "onnxruntime/capi/libonnxruntime.so.$ORT_VERSION" \
    onnxruntime/capi/libonnxruntime_providers_shared.so -d "$out/lib"
  unzip -qoj "$wheel" onnxruntime/LICENSE onnxruntime/ThirdPartyNotices.txt -d "$out"
  ln -s "libonnxruntime.so.$ORT_VERSION" "$out/lib/libonnxruntime.so.1"
  ln -s libonnxruntime.so.1 "$out/lib/libonnxruntime.so"
  publish "$out" "../$1/onnxruntime-$ORT_VERSION"
}

# build_onnx ARCH [CMAKE-ARGUMENT…]: the static libraries libonnx and libonnx_proto.
build_onnx() {
  local target=$1 work
  shift
  work=$(work_directory)
  trap "rm -rf '$work'" EXIT  # expanded now: 'work' is gone when it runs
  cd "$work"
  # pip asks a source package for its metadata, which takes the build tools that it names; in an
  # environment of their own these are the ones whose hashes are known.
  "$(find_python)" -m venv fetch
  fetch/bin/pip install --disable-pip-version-check -q --only-binary=:all: --require-hashes \
    -r "$setup_dir/requirements-onnx.txt"
  pip_download fetch/bin/python "onnx-$ONNX_VERSION.tar.gz" "onnx==$ONNX_VERSION" \
    --no-build-isolation --no-binary onnx
  tar xzf "onnx-$ONNX_VERSION.tar.gz"
  # Debian 12 has CMake 3.25.1, which builds it just as well.
  sed -i 's/cmake_minimum_required(VERSION 3.26)/cmake_minimum_required(VERSION 3.25)/' \
    "onnx-$ONNX_VERSION/CMakeLists.txt"
  cmake -S "onnx-$ONNX_VERSION" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_STANDARD=20 -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
    -DONNX_USE_UNITY_BUILD=ON "-DCMAKE_INSTALL_PREFIX=$work/out" "$@"
  cmake --build build
  cmake --install build
  cp "onnx-$ONNX_VERSION/LICENSE" out/
  publish "$work/out" "../$target/onnx-$ONNX_VERSION"
}

# venv_name KIND: its name carries the hash of what is in it, requirements-KIND.txt.
venv_name() {
  echo "$1-python-$(sha256sum "$setup_dir/requirements-$1.txt" | cut -c 1-12)"
}

# A virtual environment cannot be moved, so it is made in place and its stamp comes last.
make_venv() {
  local venv
  venv=$deps/$(venv_name "$1")
  rm -rf "$venv"
  "$(find_python)" -m venv "$venv"
  "$venv/bin/pip" install --disable-pip-version-check --only-binary=:all: --require-hashes \
    -r "$setup_dir/requirements-$1.txt"
  touch "$venv/.complete"
}

# fetch_qnn VERSION: the wheel unpacked, as pip would lay it out; no Python runs of it.
fetch_qnn() {
  local work wheel platform
  work=$(work_directory)
  trap "rm -rf '$work'" EXIT  # expanded now: 'work' is gone when it runs
  cd "$work"
  platform=manylinux_2_35_x86_64
  if [ "$arch" = aarch64 ]; then platform=manylinux_2_34_aarch64; fi
  wheel=onnxruntime_qnn-$1-cp311-cp311-$platform.whl
  pip_download "$(find_python)" "$wheel" "onnxruntime-qnn==$1" --only-binary=:all: \
    --platform "$platform" --python-version 3.11 --implementation cp --abi cp311
  mkdir out
  unzip -qo "$wheel" -d out
  [ -e out/onnxruntime_qnn/libonnxruntime_providers_qnn.so ] ||
    die "'$wheel' holds no onnxruntime_qnn/libonnxruntime_providers_qnn.so"
  publish "$work/out" "qnn-$1"
}

case $arch in
  x86_64 | aarch64) ;;
  *) die "the architecture $arch is not one of: x86_64, aarch64" ;;
esac
[ -n "$qnn_version" ] || command -v apt-get >/dev/null ||
  die "no apt-get: this script is for Debian 12. Elsewhere install: ${packages[*]}"

# One set-up at a time: a second one waits, then finds everything done.
mkdir -p "$deps" "$logs"
exec 9>"$cache/.lock"
flock 9
rm -rf "$deps"/.work.*  # left by one that was killed

if [ -n "$qnn_version" ]; then
  if complete "qnn-$qnn_version"; then exit 0; fi
  for tool in unzip "$(find_python)"; do
    command -v "$tool" >/dev/null || die "'$tool' is missing: install it"
  done
  steps_total 1
  step "$logs/qnn-$qnn_version.log" "fetching onnxruntime-qnn $qnn_version" fetch_qnn "$qnn_version"
  exit 0
fi

tasks=()
if ! complete "onnxruntime-$ORT_VERSION"; then
  command -v npm >/dev/null || packages+=(npm)
  tasks+=(onnxruntime)
fi
complete "onnx-$ONNX_VERSION" || tasks+=(onnx)
if $with_test && ! complete "$(venv_name test)"; then tasks+=(python); fi
if $with_peers && ! complete "$(venv_name peers)"; then tasks+=(peers); fi
if $with_bench && ! complete "$(venv_name bench)"; then tasks+=(bench); fi
if $with_aarch64; then source "$setup_dir/aarch64.sh" && tasks+=($(aarch64_tasks)); fi
mapfile -t missing < <(missing_packages)
[ ${#missing[@]} -eq 0 ] || tasks=(packages "${tasks[@]}")
[ ${#tasks[@]} -gt 0 ] || exit 0

steps_total ${#tasks[@]}
for task in "${tasks[@]}"; do
  case $task in
    packages)
      step "$logs/packages.log" "installing ${#missing[@]} Debian packages and what they need" \
        install_packages "${missing[@]}" ;;
    onnxruntime)
      step "$logs/onnxruntime.log" "fetching ONNX Runtime $ORT_VERSION" fetch_onnxruntime "$arch" ;;
    onnx) step "$logs/onnx.log" "building onnx $ONNX_VERSION" build_onnx "$arch" ;;
    python) step "$logs/python.log" "installing the Python packages of the tests" make_venv test ;;
    peers) step "$logs/peers.log" "installing the tools that we are measured against" make_venv peers ;;
    bench) step "$logs/bench.log" "installing what the operators are measured against" make_venv bench ;;
    *) "$task" ;;
  esac
done

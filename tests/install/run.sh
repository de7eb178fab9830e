#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh SOURCE BUILD
# Installs the build into an empty directory, moves it, and uses it from there: the command deploys a
# package, and a program outside the tree is built against the library and runs that package.
set -euo pipefail
source_dir=$1
build_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/moved
unset TENONNX_ONNXRUNTIME LD_LIBRARY_PATH

fail() {
  echo "FAILED: $*"
  exit 1
}

cmake --install "$build_dir" --prefix "$work/prefix" >"$work/install.log"
mv "$work/prefix" "$prefix"  # nothing may depend on where it was installed
lib=$(dirname "$(find "$prefix" -name libtenonnx.so)")
[ -e "$prefix/bin/tenonnx" ] || fail "no command installed"
[ -e "$prefix/share/tenonnx/devices/cpu.json" ] || fail "no device files installed"

# Only public names leave the library.
foreign=$(nm -DC --defined-only "$lib/libtenonnx.so" | cut -c 20- |
  grep -v -E '^(vtable for |typeinfo (name )?for )?tenonnx::' || true)
[ -z "$foreign" ] || fail "libtenonnx.so exports what is not its own: $foreign"
nm -DC --defined-only "$lib/libtenonnx.so" | grep -q 'tenonnx::Pipeline::init()' ||
  fail "libtenonnx.so does not export tenonnx::Pipeline::init()"

# The command uses the ONNX Runtime beside it, when one was installed.
"$prefix/bin/tenonnx" doctor >"$work/doctor.txt" || fail "doctor: $(cat "$work/doctor.txt")"
if [ -e "$lib/libonnxruntime.so.1" ]; then
  grep -qF "$lib/libonnxruntime.so" "$work/doctor.txt" ||
    fail "doctor names another ONNX Runtime than $lib/libonnxruntime.so.1: $(cat "$work/doctor.txt")"
fi

cd "$work"
"$prefix/bin/tenonnx" data shapes --count 4 --seed 1000000 -o images
"$prefix/bin/tenonnx" deploy "$source_dir/examples/models/shapes_deimv2.onnx" --target sim-htp \
  --images images -o model-package >deploy.txt || fail "deploy: $(cat deploy.txt)"

cmake -S "$source_dir/tests/install/consumer" -B consumer -G Ninja \
  "-DCMAKE_PREFIX_PATH=$prefix" >consumer.log || fail "$(cat consumer.log)"
cmake --build consumer >>consumer.log || fail "$(cat consumer.log)"
consumer/consumer model-package
echo "installed, moved and used"

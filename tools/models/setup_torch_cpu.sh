#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
#
# A CPU-only PyTorch for the scripts in this folder, without the 3 GB of CUDA libraries that the
# published wheel asks for: stand-in libraries take their place (make_cuda_stubs.py). Measured:
# 77 s on idle cores and 2.1 GB. A developer's tool; the product, the demo and the default tests do
# not need it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
torch_version=2.13.0
cache=${TENONNX_CACHE:-$HOME/.cache/tenonnx}

usage() {
  cat <<END
usage: setup_torch_cpu.sh [VENV]

Makes the virtual environment VENV (default: $cache/venv-torch-$torch_version)
with PyTorch $torch_version, transformers, libreyolo, onnx and onnxruntime.
Needs python3-venv, gcc and binutils. A second run does nothing.
END
}

case "${1:-}" in
  -h | --help) usage; exit 0 ;;
  -*) echo "setup_torch_cpu.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
esac
venv=${1:-$cache/venv-torch-$torch_version}
done_marker=$venv/.tenonnx-ready
requirements=$(sha256sum "$here/requirements-torch.txt" | cut -d' ' -f1)

if [[ -f $done_marker && $(cat "$done_marker") == "$requirements" ]]; then
  echo "PyTorch $torch_version is ready in $venv"
  exit 0
fi
for tool in python3 gcc readelf; do
  command -v "$tool" >/dev/null || {
    echo "setup_torch_cpu.sh: '$tool' is missing (apt-get install python3-venv gcc binutils)" >&2
    exit 2
  }
done

echo "Setting up PyTorch $torch_version in $venv (about 90 s, 2.1 GB)"
python3 -m venv "$venv"
# --no-deps: the requirements file is complete, and PyTorch's own list would bring CUDA.
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps \
  -r "$here/requirements-torch.txt"
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
"$venv/bin/python" "$here/make_cuda_stubs.py" "$site"
"$venv/bin/python" -W ignore -c '
import torch, torchvision, transformers
assert not torch.cuda.is_available()
print("PyTorch", torch.__version__, "transformers", transformers.__version__)'
echo "$requirements" >"$done_marker"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
#
# usage: record_torch_test.sh ROOT TENONNX
# Sets PyTorch up in the cache where it is missing and runs record_torch_test.py with it.
set -euo pipefail
"$1/tools/models/setup_torch_cpu.sh"
export OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=0
exec "${TENONNX_CACHE:-$HOME/.cache/tenonnx}/venv-torch-2.13.0/bin/python" \
  "$1/tests/models/record_torch_test.py" "$1" "$2"

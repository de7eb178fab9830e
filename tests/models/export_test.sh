#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
#
# usage: export_test.sh ROOT
# Sets PyTorch up in the cache where it is missing, trains the example's architecture for three
# steps, and exports full-size detectors with both exporters into a temporary directory. Fails where
# an export fails, has a row without a counterpart in PyTorch's outputs, or has no cut.
set -euo pipefail
root=$1
models=$root/tools/models
"$models/setup_torch_cpu.sh"
python=${TENONNX_CACHE:-$HOME/.cache/tenonnx}/venv-torch-2.13.0/bin/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=0

fail() {
  echo "export_test.sh: $*" >&2
  exit 1
}

"$python" "$models/train_shapes.py" --steps 3 --images 40 --out "$work/trained/deimv2"
test -s "$work/trained/deimv2_ts.onnx" || fail "training wrote no TorchScript export"
grep -q '"cut"' "$work/trained/deimv2_ts.contract.json" || fail "the trained export has no cut"

"$python" "$models/export_models.py" --out "$work/exports" \
  deimv2_s deimv2_n dfine_s rtdetr_r18 deformable_detr_r18 | tee "$work/log"
grep -q 'against PyTorch' "$work/log" || fail "nothing was compared"
if grep 'against PyTorch' "$work/log" | grep -v 'without a counterpart 0,'; then
  fail "an export gives other detections than PyTorch"
fi
if grep -q 'cut: none found' "$work/log"; then fail "an export has no cut"; fi

# One that the dynamo exporter's optimiser leaves whole, and one that it does not.
"$python" "$models/export_models.py" --out "$work/exports" --exporter dynamo \
  dfine_n deformable_detr_r18_single | tee "$work/log"
[ "$(grep -c 'without a counterpart 0,' "$work/log")" = 2 ] ||
  fail "a dynamo export is missing or gives other detections than PyTorch"

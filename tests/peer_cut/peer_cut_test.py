#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: peer_cut_test.py TENONNX MODEL-OR-DIRECTORY...

The automatic cut of a model and of what onnxsim makes of it, which renames and folds as it likes: the same
kind of cut, the same shapes in the same order, the same number of sampling sites behind it.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SIMPLIFY = """
import onnx, onnxsim, sys
model, _ = onnxsim.simplify(onnx.load(sys.argv[1]), check_n=0)
onnx.save(model, sys.argv[2])
"""


def automatic_cut(tenonnx, model):
    done = subprocess.run(
        [tenonnx, "split", model, "--list", "--json"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"split --list of {model}: {done.stderr.strip()[-500:]}")
    cuts = [c for c in json.loads(done.stdout)["candidates"] if c["mark"] == "auto"]
    if len(cuts) != 1:
        raise RuntimeError(f"{model}: {len(cuts)} automatic cuts")
    return {
        "kind": cuts[0]["kind"],
        "shapes": [t["shape"] for t in cuts[0]["tensors"]],
        "sampling sites behind": cuts[0]["sampling_behind"],
    }


def main(tenonnx, *paths):
    models = []
    for path in map(pathlib.Path, paths):
        models += sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    if not models:
        print("no models: tools/models/export_models.py makes the exports")
        return 77
    failures = 0
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            simplified = pathlib.Path(folder) / "simplified.onnx"
            subprocess.run(
                [sys.executable, "-c", SIMPLIFY, model, simplified],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            before = automatic_cut(tenonnx, model)
            after = automatic_cut(tenonnx, simplified)
        same = before == after
        failures += not same
        print(f"{model.name}: {before}" + ("" if same else f"\n  simplified: {after}"), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

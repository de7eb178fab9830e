#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""locate on Qualcomm's HTP emulator names the places that it names on sim:htp-v73, within 40 trials.

usage: locate_test.py TENONNX SOURCE [EVIDENCE.json]

Skipped, with the reason, where './dev vendor qnn' has not installed the vendor's package. With a third
argument what locate printed is written there with the date; docs/evidence/locate_qualcomm.json is such
a file.
"""
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

SKIP = 77
DEVICE = "qnn:soc=43,arch=73"
TENONNX, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def located(work, device):
    command = [str(TENONNX), "locate", str(SOURCE / "examples/models/shapes_deimv2_fragile.onnx"), "--on", device,
               "--images", str(work / "images"), "--budget", "40", "--max-cuts", "2", "--cache", "none",
               "--keep", str(work / "keep.txt"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 1, f"exit code {done.returncode}, expected 1:\n{done.stderr[-2000:]}"
    return json.loads(done.stdout)


def main():
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        tried = subprocess.run([str(TENONNX), "doctor", "--json"], capture_output=True, text=True)
        found = json.loads(tried.stdout)["facts"]["Qualcomm HTP (qnn)"]
        if not found.startswith("onnxruntime-qnn"):
            print(f"skipped: the vendor's package is not there: {found}")
            return SKIP
        subprocess.run([str(TENONNX), "data", "shapes", "--count", "1", "--seed", "1000000", "-o",
                        str(work / "images")], check=True, capture_output=True)
        device, simulated = located(work, DEVICE), located(work, "sim:htp-v73")
        listed = (work / "keep.txt.affinity.json").read_text() if (work / "keep.txt.affinity.json").exists() else ""
        if len(sys.argv) > 3:
            evidence = {"schema_version": 1, "date": datetime.date.today().isoformat(),
                        "what": "tests/vendor/locate_test.py on the vendor's HTP emulator: not a chip",
                        "locate": device}
            pathlib.Path(sys.argv[3]).write_text(json.dumps(evidence, indent=2) + "\n")
        products = {f"Mul '/model/model/decoder/layers.{i}/mlp/Mul'" for i in range(4)}
        for name, result in (("device", device), ("simulated", simulated)):
            assert {s.get("value_made_by") for s in result["suspects"][:4]} == products, (name, result["suspects"])
            assert len(result["keep"]["nodes"]) == 4 and result["keep"]["minimal"], (name, result["keep"])
            assert any("mends it" in side for side in result["sides"]), (name, result["sides"])
            assert result["trials"]["used"] <= 40
        assert device["keep"]["nodes"] == simulated["keep"]["nodes"]
        assert json.loads(listed) == {"op_type": {"MatMul": "cpu"}}, listed
        print(f"ok: {device['headline']}; {device['trials']['used']} trials")
    return 0


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev vendor without the network: what it refuses, and what a finished installation costs.

usage: usage_test.py SOURCE
"""
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
failures = []


def vendor(*arguments, cache=None):
    environment = {**os.environ, "TENONNX_CACHE": str(cache)} if cache else None
    done = subprocess.run([str(source / "dev"), "vendor", *arguments], capture_output=True, text=True,
                          env=environment, timeout=60)
    return done.returncode, done.stdout, done.stderr


def refused(text, *arguments):
    code, _, error = vendor(*arguments)
    if code != 2 or text not in error:
        failures.append(f"vendor {' '.join(arguments)}: {code}, {error!r}; expected 2 with {text!r}")


refused("name the vendor's toolchain: qnn")
refused("there is no toolchain 'rknn'; there is: qnn", "rknn")
refused("there is no option '--verison'", "qnn", "--verison", "2.7.0")
refused("--version needs a version", "qnn", "--version")
refused("'2.5.0' is not one of the versions whose hashes are known: 2.7.0, 2.6.0", "qnn", "--version", "2.5.0")

with tempfile.TemporaryDirectory() as directory:
    installed = pathlib.Path(directory) / platform.machine() / "qnn-2.7.0"
    installed.mkdir(parents=True)
    (installed / ".complete").touch()
    code, out, error = vendor("qnn", cache=directory)
    if code != 0 or "Qualcomm AI Stack License" not in out or "bundles nothing" not in out:
        failures.append(f"a second installation: {code}, {out!r}, {error!r}")
    if sorted(p.name for p in installed.iterdir()) != [".complete"]:
        failures.append("a finished installation was touched")

print("\n".join(failures) or "./dev vendor refuses what it should")
sys.exit(1 if failures else 0)

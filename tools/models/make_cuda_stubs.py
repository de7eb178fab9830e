#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""Let the published (CUDA) build of PyTorch load on a machine without CUDA's libraries.

Reads the undefined symbols of torch/lib/*.so and builds, for each library that is missing, a shared
object which exports them under the right name and symbol versions. Every function in it returns
100, cudaErrorNoDevice, so torch.cuda.is_available() is False and nothing on the CPU changes.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

SYSTEM_LIBRARY = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp)\.so|ld-linux")
CUDA_SYMBOL = re.compile(r"^(cu|__cuda|nccl|nvshmem|nvrtc|nvtx|nvJit|cupti|CUPTI)", re.IGNORECASE)
RETURNS_TEXT = re.compile(r"Get\w*(String|Name)$")

# library -> symbol version ("" for none) -> symbols
Stubs = dict[str, dict[str, set[str]]]


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def find_missing(library_dir: pathlib.Path) -> Stubs:
    """What the libraries of `library_dir` need and neither they nor the system have."""
    libraries = sorted(library_dir.glob("*.so*"))
    present = {path.name for path in libraries}
    needed: set[str] = set()
    defined: set[str] = set()
    undefined: set[tuple[str, str]] = set()
    library_of_version: dict[str, str] = {}
    for path in libraries:
        for name in re.findall(r"NEEDED.*\[(.*)\]", _run("readelf", "-dW", str(path))):
            if name not in present and not SYSTEM_LIBRARY.match(name):
                needed.add(name)
        library = None
        for line in _run("readelf", "-VW", str(path)).splitlines():
            if match := re.search(r"Version: 1\s+File: (\S+)", line):
                library = match[1]
            elif (match := re.search(r"Name: (\S+)\s+Flags", line)) and library:
                library_of_version[match[1]] = library
        for line in _run("readelf", "--dyn-syms", "-W", str(path)).splitlines():
            fields = line.split()
            if len(fields) < 8 or not fields[0].endswith(":"):
                continue
            name, _, version = fields[7].partition("@")
            if fields[6] != "UND":
                defined.add(name)
            elif fields[4] != "WEAK":
                undefined.add((name, version.lstrip("@")))

    stubs: Stubs = collections.defaultdict(lambda: collections.defaultdict(set))
    runtime = next((n for n in sorted(needed) if n.startswith("libcudart.so")), None)
    for name, version in undefined:
        library = library_of_version.get(version)
        if library in needed:
            stubs[library][version].add(name)
        elif not version and name not in defined and CUDA_SYMBOL.match(name):
            # A symbol without a version names no library; any of the missing ones serves.
            stubs[runtime or sorted(needed)[0]][""].add(name)
    for library in needed:
        _ = stubs[library]  # a library of which no symbol is used must exist too
    return stubs


def build_stub(target: pathlib.Path, versions: dict[str, set[str]]) -> int:
    """Compile `target`; returns how many symbols it exports."""
    names = sorted(set().union(*versions.values())) if versions else []
    functions = ['static const char stub_text[] = "stub: no CUDA";']
    for name in names:
        if RETURNS_TEXT.search(name) and not name.startswith("cu_"):
            functions.append(f"const char* {name}(){{return stub_text;}}")
        else:
            functions.append(f"long {name}(){{return 100;}}")
    script = [
        f"{version} {{ global: {' '.join(s + ';' for s in sorted(symbols))} }};"
        for version, symbols in versions.items()
        if version and symbols
    ]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "stub.c")
        source.write_text("\n".join(functions) + "\n", encoding="utf-8")
        command = ["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-O1", str(source)]
        command += ["-o", str(target), f"-Wl,-soname,{target.name}"]
        if script:
            version_script = pathlib.Path(folder, "stub.map")
            version_script.write_text("\n".join(script), encoding="utf-8")
            command.append(f"-Wl,--version-script={version_script}")
        subprocess.run(command, check=True)
    return len(names)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site_packages", type=pathlib.Path, help="where torch/ is installed")
    args = parser.parse_args()
    library_dir = args.site_packages / "torch" / "lib"
    if not library_dir.is_dir():
        print(f"make_cuda_stubs: no PyTorch in '{args.site_packages}'", file=sys.stderr)
        return 2
    stubs = find_missing(library_dir)
    symbols = sum(build_stub(library_dir / name, versions) for name, versions in stubs.items())
    print(f"{len(stubs)} stand-in libraries with {symbols} symbols in {library_dir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

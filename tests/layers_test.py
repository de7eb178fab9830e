#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layers of the source tree.

usage: layers_test.py layers|headers|self [ROOT]

layers   A module includes only the modules that its USES in CMakeLists.txt names, and these stand
         above it; the list in docs/design.md has the same modules in the same order; public headers
         include only each other and the standard library; the library neither prints nor ends the
         process. Tests and benches are free.
headers  Every source file begins with its SPDX line.
self     Both checks find what is planted in a small tree of their own.
"""
import pathlib
import re
import sys
import tempfile

CXX = {".h", ".cc", ".inc"}
SCRIPTS = {".py", ".sh", ".cmake"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# Calls that print or end the process; a name that only contains one of these words is none.
FORBIDDEN = re.compile(
    r"(?<![\w:.>])(?:std::)?(?:cout|cerr|abort|exit|_Exit|quick_exit|terminate|printf|puts)\s*(?:\(|<<)")
SPDX = "SPDX-License-Identifier: Apache-2.0"


def free(path):
    return path.stem.endswith(("_test", "_bench"))


def read_modules(root):
    """{module: [used modules]} in the order of CMakeLists.txt."""
    text = (root / "CMakeLists.txt").read_text()
    modules = {}
    for body in re.findall(r"tenonnx_module\(([^)]*)\)", text):
        words = body.split()
        name, uses, target = words[0], [], None
        for word in words[1:]:
            if word in ("USES", "LINK"):
                target = word
            elif target == "USES":
                uses.append(word)
        modules[name] = uses
    return modules


def included_module(kind, header, modules):
    """The module that an include names, or None. <tenonnx/x.h> is the public face of module x."""
    parts = header.split("/")
    if len(parts) < 2:
        return None
    name = pathlib.PurePath(parts[1]).stem if parts[0] == "tenonnx" else parts[0]
    if parts[0] != "tenonnx" and kind == "<":
        return None
    return name if name in modules else None


def without_comments_and_strings(text):
    """Blanks them out, lines kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check_layers(root):
    errors = []
    modules = read_modules(root)
    order = list(modules)
    if not modules:
        errors.append("CMakeLists.txt: no tenonnx_module(...) found")
    for name, uses in modules.items():
        for used in uses:
            if used not in modules:
                errors.append(f"CMakeLists.txt: module '{name}' uses '{used}', which is no module")
            elif order.index(used) >= order.index(name):
                errors.append(f"CMakeLists.txt: module '{name}' uses '{used}', which does not stand above it")

    design = root / "docs" / "design.md"
    if not design.exists():
        errors.append("docs/design.md is missing: it lists the modules in their order")
    else:
        listed = re.findall(r"^(?:[-*|]\s*)?`?src/(\w+)/", design.read_text(), re.M)
        listed = [m for m in dict.fromkeys(listed) if (root / "src" / m).is_dir()]
        declared_in_docs = [m for m in listed if m in modules]
        for name in order:
            if name not in listed:
                errors.append(f"docs/design.md: module '{name}' of CMakeLists.txt is not in the list of modules")
        if declared_in_docs != [m for m in order if m in listed]:
            errors.append(f"docs/design.md lists the modules as {', '.join(declared_in_docs)}; "
                          f"CMakeLists.txt as {', '.join(order)}")

    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in CXX:
            continue
        name = path.relative_to(root / "src").parts[0]
        text = path.read_text()
        where = path.relative_to(root)
        if name not in modules:
            errors.append(f"{where}: '{name}' is no module of CMakeLists.txt")
            continue
        if free(path):
            continue
        for match in INCLUDE.finditer(text):
            used = included_module(match[1], match[2], modules)
            line = text.count("\n", 0, match.start(2)) + 1
            if used and used != name and used not in modules[name]:
                above = order.index(used) < order.index(name)
                hint = f"add it to USES of '{name}' in CMakeLists.txt" if above else (
                    f"'{used}' stands below '{name}': what both need belongs above both")
                errors.append(f"{where}:{line}: module '{name}' includes {match[2]} of module '{used}'; {hint}")
        for match in FORBIDDEN.finditer(without_comments_and_strings(text)):
            line = text.count("\n", 0, match.start()) + 1
            errors.append(f"{where}:{line}: '{match.group().rstrip('(< ')}' in the library: it returns a Status "
                          "and leaves printing and exiting to cli/")

    public = root / "include" / "tenonnx"
    for path in sorted(public.rglob("*.h")):
        for match in INCLUDE.finditer(path.read_text()):
            header = match[2]
            ours = header.startswith("tenonnx/") and (public.parent / header).exists()
            if not ours and ("/" in header or header.endswith(".h")):
                errors.append(f"{path.relative_to(root)}: includes {header}; a public header includes only "
                              "public headers and those of the standard library")
        own = path.stem
        if own in modules:
            for match in INCLUDE.finditer(path.read_text()):
                used = included_module(match[1], match[2], modules)
                if used and used != own and used not in modules[own]:
                    errors.append(f"{path.relative_to(root)}: module '{own}' includes {match[2]} of module '{used}', "
                                  "which its USES in CMakeLists.txt does not name")
    return errors


def source_files(root):
    for folder in ("src", "include", "cli", "cmake", "tests", "tools", "provider", "python", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
    for name in ("dev", "CMakeLists.txt", ".ci/run"):
        if (root / name).exists():
            yield root / name


def check_headers(root):
    errors = []
    for path in source_files(root):
        script = path.suffix in SCRIPTS or path.name == "CMakeLists.txt"
        if path.suffix not in CXX and not script:
            with path.open("rb") as file:
                if file.read(2) != b"#!":
                    continue
        lines = path.read_text().splitlines()
        where = path.relative_to(root)
        if path.suffix in CXX:
            head = [f"// {SPDX}", "// Copyright The tenonnx authors"]
            if path.suffix == ".inc":  # a table, included into a file that has the whole header
                head = head[:1]
            if lines[:len(head)] != head:
                errors.append(f"{where}: does not begin with {' and '.join(repr(h) for h in head)}")
        elif f"# {SPDX}" not in lines[:2]:
            errors.append(f"{where}: '# {SPDX}' is not among its first two lines")
    return errors


def check_self():
    """What must be found is found, and nothing else."""
    head = f"// {SPDX}\n// Copyright The tenonnx authors\n"
    files = {
        "CMakeLists.txt": f"# {SPDX}\ntenonnx_module(low LINK fmt::fmt)\ntenonnx_module(mid USES low)\n"
                          "tenonnx_module(high USES low)\n",
        "docs/design.md": "```\nsrc/low/   the first\nsrc/mid/   the second\nsrc/high/  the third\n```\n",
        "src/low/a.cc": head + '#include "mid/b.h"\n',
        "src/low/a_test.cc": head + '#include "high/c.h"\n',
        "src/mid/b.h": head + '#include "low/a.h"\n#include <vector>\n',
        "src/high/c.cc": head + '#include "mid/b.h"\n// exit(1)\nauto s = "abort()";\nvoid f() { std::abort(); }\n',
        "include/tenonnx/low.h": head + "#include <onnxruntime_cxx_api.h>\n#include <string>\n",
        "src/high/d.cc": "int x;\n",
    }
    expected_layers = [
        "include/tenonnx/low.h: includes onnxruntime_cxx_api.h",
        "src/high/c.cc:3: module 'high' includes mid/b.h of module 'mid'; add it to USES",
        "src/high/c.cc:6: 'std::abort' in the library",
        "src/low/a.cc:3: module 'low' includes mid/b.h of module 'mid'; 'mid' stands below 'low'",
    ]
    expected_headers = ["src/high/d.cc: does not begin with"]
    errors = []

    def compare(what, found, expected):
        for start in expected:
            if not any(f.startswith(start) for f in found):
                errors.append(f"self: the {what} check did not find '{start}'")
        for f in found:
            if not any(f.startswith(start) for start in expected):
                errors.append(f"self: the {what} check found too much: '{f}'")

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        compare("layers", check_layers(root), expected_layers)
        compare("headers", check_headers(root), expected_headers)
        (root / "docs/design.md").write_text("src/low/\nsrc/high/\nsrc/mid/\n")
        compare("layers", check_layers(root), expected_layers + ["docs/design.md lists the modules as low, high, mid"])
        cmake = (root / "CMakeLists.txt").read_text().replace("module(low ", "module(low USES mid ")
        (root / "CMakeLists.txt").write_text(cmake)
        (root / "docs/design.md").write_text(files["docs/design.md"])
        compare("layers", check_layers(root), expected_layers[:3] + [
            "CMakeLists.txt: module 'low' uses 'mid', which does not stand above it"])
    return errors


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    root = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parent.parent
    checks = {"layers": lambda: check_layers(root), "headers": lambda: check_headers(root), "self": check_self}
    if what not in checks:
        sys.exit(__doc__)
    errors = checks[what]()
    for error in errors:
        print(error)
    print(f"{what}: {len(errors)} error(s)")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

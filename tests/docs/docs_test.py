#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents are tests.

usage: docs_test.py links ROOT           every relative link, and every #heading, leads somewhere
       docs_test.py run ROOT BUILD FILE  the commands in FILE work, in a copy of what they use
       docs_test.py self                 both find what is planted

A ```console block holds commands after "$ " (a line that ends with a backslash goes on) and what they
print; a ```sh block is a script. Blocks of a file run one after the other in the same directory: a copy
of README.md, docs/, examples/ and devices/, with the build's bin/ at build/bin and on PATH. What
a block prints is not compared. In the line above a block
    <!-- not run -->   leaves it out (its ./dev commands must still exist)
    <!-- exits 1 -->   says with which code its one command ends; without it all succeed
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

COPIED = ("README.md", "docs", "examples", "devices")
BLOCK_TIMEOUT = 300  # seconds; far more than any command in the documents should take
FENCE = re.compile(r"^(\s*)(```+|~~~+)\s*([\w-]*)")


def documents(root):
    files = sorted(root.glob("*.md"))
    for folder in ("docs", "examples", "tools"):
        files += sorted((root / folder).rglob("*.md"))
    return files


def parse(text):
    """(blocks, prose): blocks as dicts of line, language, marker, lines; prose as (line, text)."""
    blocks, prose, open_block, fence, marker = [], [], None, "", ""
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if open_block is not None:
            if match and match[2].startswith(fence) and not match[3]:
                blocks.append(open_block)
                open_block = None
            else:
                open_block["lines"].append(line)
        elif match:
            open_block = {"line": number, "language": match[3], "marker": marker, "lines": []}
            fence, marker = match[2], ""
        else:
            prose.append((number, line))
            comment = re.match(r"^\s*<!--\s*(.*?)\s*-->\s*$", line)
            if comment:
                marker = comment[1]
            elif line.strip():
                marker = ""
    return blocks, prose


def commands(block):
    """The shell text of a block."""
    if block["language"] == "sh":
        return "\n".join(block["lines"])
    result, continued = [], False
    for line in block["lines"]:
        stripped = line.strip()
        if continued:
            result.append(stripped.removeprefix("> "))
        elif stripped.startswith("$ "):
            result.append(stripped[2:])
        else:
            continue
        continued = result[-1].endswith("\\")
    return "\n".join(result)


def slug(heading):
    heading = re.sub(r"`|\*|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(path):
    _, prose = parse(path.read_text())
    found = {}
    names = set()
    for _, line in prose:
        heading = re.match(r"^#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            name = slug(heading[1])
            count = found.get(name, 0)
            found[name] = count + 1
            names.add(name if count == 0 else f"{name}-{count}")
        names.update(re.findall(r'<a\s+(?:id|name)="([^"]+)"', line))
    return names


def check_links(root):
    errors = []
    for path in documents(root):
        _, prose = parse(path.read_text())
        for number, line in prose:
            line = re.sub(r"`[^`]*`", "", line)
            targets = re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", line)
            targets += re.findall(r"^\s*\[[^\]]+\]:\s+(\S+)", line)
            targets += re.findall(r"<(?:img|a)[^>]*\s(?:src|href)=\"([^\"]+)\"", line)
            for target in targets:
                if re.match(r"^[a-z][a-z0-9+.-]*:", target):
                    continue  # an address outside the repository
                name, _, anchor = target.partition("#")
                where = f"{path.relative_to(root)}:{number}: "
                linked = (path.parent / name).resolve() if name else path
                if not linked.exists():
                    errors.append(where + f"the link '{target}' leads to '{name}', which does not exist")
                elif not linked.is_relative_to(root.resolve()) and name:
                    errors.append(where + f"the link '{target}' leaves the repository")
                elif anchor and linked.suffix == ".md" and anchor not in anchors(linked):
                    errors.append(where + f"the link '{target}': no heading gives '#{anchor}'")
    return errors


def dev_commands(root):
    help_text = subprocess.run(["bash", str(root / "dev"), "help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  ([a-z0-9]+)", help_text, re.M))


def check_dev_commands(root, document, blocks):
    errors = []
    for block in blocks:
        if block["language"] not in ("sh", "console"):
            continue
        for name in re.findall(r"(?:^|\s)\./dev\s+(\S+)", commands(block)):
            if name not in dev_commands(root):
                errors.append(f"{document}:{block['line']}: './dev {name}': ./dev help knows no such command")
    return errors


def run_document(root, build, document, keep_output=True):
    """Runs the blocks of a document; returns errors and the number of blocks that ran."""
    blocks, _ = parse((root / document).read_text())
    errors = check_dev_commands(root, document, blocks) if (root / "dev").exists() else []
    ran = 0
    with tempfile.TemporaryDirectory(prefix="tenonnx_docs_") as folder:
        work = pathlib.Path(folder) / "tenonnx"
        work.mkdir()
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, work / name, symlinks=True)
            elif source.exists():
                shutil.copy2(source, work / name)
        (work / "build").mkdir()
        (work / "build" / "bin").symlink_to(build.resolve() / "bin")
        environment = dict(os.environ, PATH=f"{build.resolve() / 'bin'}:{os.environ['PATH']}",
                           HOME=folder, LC_ALL="C.UTF-8")
        for block in blocks:
            script = commands(block) if block["language"] in ("sh", "console") else ""
            if not script.strip() or block["marker"] == "not run":
                continue
            where = f"{document}:{block['line']}: "
            exits = re.match(r"^exits (\d+)$", block["marker"])
            expected = int(exits[1]) if exits else 0
            if block["marker"].startswith("exits") and not exits:
                errors.append(where + f"cannot read the mark '{block['marker']}'")
            if exits and len(re.sub(r"\\\n", " ", script).strip().splitlines()) != 1:
                errors.append(where + "a block marked with an exit code holds one command, so that it is that one's")
                break
            ran += 1
            try:
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=work, env=environment, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      timeout=BLOCK_TIMEOUT)
            except subprocess.TimeoutExpired:
                errors.append(where + f"still running after {BLOCK_TIMEOUT} s: {script}")
                break
            if keep_output:
                print(f"--- {where}{script}\n{done.stdout}")
            if done.returncode != expected:
                errors.append(where + f"exit code {done.returncode}, expected {expected}:\n{script}\n{done.stdout}")
                break  # what follows builds on it
    return errors, ran


def check_self():
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "build" / "bin").mkdir(parents=True)
        (root / "docs").mkdir()
        (root / "dev").write_text("echo '  build  builds it'\n")
        (root / "README.md").write_text(
            "# A Title: `x`\n[good](docs/a.md#two-words) [bad](docs/b.md) [worse](docs/a.md#three)\n"
            "[here](#a-title-x) `[code](no.md)`\n"
            "```console\n$ echo one \\\n> two > made\nprinted\n$ grep -q 'one two' made\n```\n"
            "<!-- exits 3 -->\n\n```sh\ntest -s made && \\\n  exit 3\n```\n"
            "<!-- not run -->\n```sh\nfalse\n./dev build\n```\n```text\n$ false\n```\n")
        (root / "docs" / "a.md").write_text(
            "## Two words\n```sh\ntrue\n```\n```sh\nfalse\ntrue\n```\n```sh\ntouch x\n```\n"
            "<!-- not run -->\n```sh\n./dev fly\n```\n")
        links = check_links(root)
        if len(links) != 2 or "docs/b.md" not in links[0] or "#three" not in links[1]:
            errors.append(f"self: links found {links}")
        found, ran = run_document(root, root / "build", "README.md", keep_output=False)
        if found or ran != 2:
            errors.append(f"self: README.md ran {ran} blocks, with errors {found}")
        found, ran = run_document(root, root / "build", "docs/a.md", keep_output=False)
        if ran != 2 or len(found) != 2 or "./dev fly" not in found[0] or "docs/a.md:5" not in found[1]:
            errors.append(f"self: docs/a.md ran {ran} blocks, with errors {found}")
    return errors


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["links"] and len(arguments) == 2:
        errors = check_links(pathlib.Path(arguments[1]))
    elif arguments[:1] == ["run"] and len(arguments) == 4:
        errors, ran = run_document(pathlib.Path(arguments[1]), pathlib.Path(arguments[2]), arguments[3])
        print(f"{arguments[3]}: {ran} block(s) ran")
    elif arguments == ["self"]:
        errors = check_self()
    else:
        sys.exit(__doc__)
    for error in errors:
        print(error)
    print(f"{len(errors)} error(s)")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: documents.py combine OUT JSON...   one file of the runs of bench_kernels.py, the oldest ONNX Runtime first
       documents.py write ROOT           the generated parts of the pages
       documents.py check ROOT           exits with 1 where a page differs from what `write` gives
       documents.py self                 what `check` and the tables are good for

    docs/performance.md         all of it: performance.md of this folder, with the figures of
                                docs/performance*.json (`./dev bench kernels --json FILE`), a file a machine,
                                in their place
    docs/reference/kernels.md   what stands between <!-- begin: peers --> and <!-- end: peers -->, of
                                docs/reference/kernels_peers.json (non_finite.py)
"""
import contextlib
import io
import json
import math
import pathlib
import re
import sys
import tempfile
import textwrap

OWN = "tenonnx"
FIGURES = "<!-- figures -->\n"
TEMPLATE = pathlib.Path(__file__).with_name("performance.md")


def rounded(value):
    """Four digits: more are noise."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def combine(files):
    reports = [json.loads(pathlib.Path(f).read_text()) for f in files]
    same = ("schema_version", "date", "processor", "cores", "instruction_set", "method")
    for key in same:
        if key != "date" and len({str(r[key]) for r in reports}) > 1:
            raise SystemExit(f"documents.py: the runs differ in '{key}': they are of different machines")
    runs = [{"load": r["load"], "versions": r["versions"], "results": rounded(r["results"])} for r in reports]
    return {**{key: reports[-1][key] for key in same}, "runs": runs}


def columns(report):
    """[(title, run, peer)]: every run's ONNX Runtime, and the other peers of the last run that has them."""
    found = [(f"ONNX Runtime {r['versions']['ONNX Runtime']}", i, "ONNX Runtime")
             for i, r in enumerate(report["runs"])]
    for peer in ("OpenVINO", "PyTorch", "MNN"):
        having = [i for i, r in enumerate(report["runs"]) if peer in r["versions"]]
        if having:
            found.append((peer, having[-1], peer))
    return found


def index(report):
    """{(case, threads): [result of each run or None]}, in the order of the last run."""
    found = {}
    for i in reversed(range(len(report["runs"]))):
        for result in report["runs"][i]["results"]:
            key = (result["case"], result["threads"])
            found.setdefault(key, [None] * len(report["runs"]))[i] = result
    return found


def ratio(result, peer):
    if not result or "ms" not in result or peer not in result["ms"]:
        return None
    return result["ms"][peer]["min"] / result["ms"][OWN]["min"]


def digits(value):
    return "–" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def last(results):
    """Of the last run, of which results of one case may be missing."""
    return (results[-1] or {}) if results else {}


def performance(report):
    found, shown = index(report), columns(report)
    versions = report["runs"][-1]["versions"]
    short = {"OpenVINO": lambda v: v.split("-")[0]}
    about = (f"{report['date']}, {report['processor']}, {report['cores']} cores, instruction set "
             f"{report['instruction_set']} (Highway's name). "
             + ", ".join(f"{title} {short.get(peer, str)(versions[peer])}" if title == peer else title
                         for title, _, peer in shown)
             + f". Load of the machine before: {report['runs'][0]['load']}.")
    lines = textwrap.wrap(about, 115)
    cases = list(dict.fromkeys(case for case, _ in found))
    operators = dict.fromkeys(re.split(r"[, ]", case)[0] for case in cases)
    for operator in operators:
        of_it = [c for c in cases if re.split(r"[, ]", c)[0] == operator]
        gathers = any(last(found.get((case, 1))).get("gather") for case in of_it)
        lines += ["", f"### {operator}", "",
                  "| | " + OWN + ", ms | " + " | ".join(title for title, _, _ in shown)
                  + (" | of random gather" if gathers else "") + " | of the bound |",
                  "|---|---|" + "---|" * len(shown) + "---|" * gathers + "---|"]
        for case in of_it:
            one, two = (found.get((case, n)) for n in (1, 2))
            own = [digits(r[-1]["ms"][OWN]["min"]) if r and r[-1] and "ms" in r[-1] else "–" for r in (one, two)]
            cells = [" / ".join(digits(ratio(r[run], peer) if r else None) for r in (one, two))
                     for _, run, peer in shown]
            bound, gather = (last(one).get(key) for key in ("bound", "gather"))
            share = f"{100 * bound['share']:.0f} % ({bound['of']})" if bound else ""
            if gathers:
                share = (f"{100 * gather['share']:.0f} % | " if gather else " | ") + share
            name = re.sub(rf"^{operator},? ", "", case)
            lines.append(f"| {name} | {' / '.join(own)} | {' | '.join(cells)} | {share} |")
    lines += ["", "### In short", ""]
    for title, run, peer in shown:
        others = [ratio(r[run], peer) for (case, n), r in found.items() if n == 1 and "align_corners" in case]
        others = [r for r in others if r]
        if others:
            mean = math.exp(sum(map(math.log, others)) / len(others))
            lines.append(f"- GridSample's other modes against {title}, 1 thread: geometric mean "
                         f"{digits(mean)}, least {digits(min(others))}, of {len(others)} cases.")
    slower = [f"{case}, {n} thread{'s' * (n > 1)}: {title} ({digits(ratio(r[run], peer))})"
              for (case, n), r in found.items() for title, run, peer in shown
              if (ratio(r[run], peer) or 1) < 1]
    lines.append("- Slower than a peer: " + ("; ".join(slower) if slower else "nowhere") + ".")
    left_out = {}
    for (case, n), runs in found.items():
        for title, run, peer in shown:
            why = (runs[run] or {}).get("refused", {}).get(peer)
            if why and n == 1:
                left_out.setdefault((title, re.sub(r"differs by \S+", "differs", why)), []).append(case)
    for (title, why), which in left_out.items():
        lines.append(f"- Left out: {title}, in {len(which)} case{'s' * (len(which) > 1)}, the first "
                     f"“{which[0]}”: {why}.")
    return lines


TITLES = {
    "coordinates": "GridSample with a coordinate that is no finite number. x of all points; y is the centre of the row "
                   "whose pixels are 5, 6, 7, 8:",
    "values": "Values that are not sampled, and locations of attention. GridSample: the centre of the pixel that is 6, or "
              "the edge of its row, 5. Attention: three points at a pixel of 11 with weights of 0.25 are 8.25; the "
              "fourth samples nothing:"}


def peers(report):
    """Rows that differ only in the number, and not in what comes out, are one."""
    lines = [f"Measured on {report['date']}."]
    for part in report["tables"]:
        order = sorted(range(len(part["columns"])),
                       key=lambda i: (part["columns"][i] != OWN, "ONNX Runtime" not in part["columns"][i]))
        merged = {}
        for name, cells in part["rows"].items():
            number = re.search(r"NaN|\+Inf|−Inf|Inf", name)
            key = (name.replace(number[0], "{}"), *(cells[i] for i in order))
            merged.setdefault(key, []).append(number[0])
        lines += ["", *textwrap.wrap(TITLES[part["name"]], 115), "",
                  "| | " + " | ".join(part["columns"][i] for i in order) + " |", "|---|" + "---|" * len(order)]
        lines += [f"| {name.format(', '.join(numbers))} | {' | '.join(cells)} |"
                  for (name, *cells), numbers in merged.items()]
    return lines


def performance_page(reports):
    before, found, after = TEMPLATE.read_text().partition(FIGURES)
    assert found, TEMPLATE
    machines = ["\n".join([f"## Figures: {report['instruction_set']}", "", *performance(report)]) for report in reports]
    return ("<!-- Generated by tests/bench_kernels/documents.py: edit tests/bench_kernels/performance.md -->\n"
            + before + "\n\n".join(machines) + "\n" + after)


def between(text, lines):
    parts = re.split(r"(<!-- (?:begin|end): peers -->)", text)
    if len(parts) != 5:
        raise SystemExit("documents.py: the page needs one '<!-- begin: peers -->' and one '<!-- end: peers -->'")
    parts[2] = "\n" + "\n".join(lines) + "\n"
    return "".join(parts)


def generated(root):
    """{path: text}. A page without its figures, or figures without their page, are an error."""
    made = {}
    files, target = sorted((root / "docs").glob("performance*.json")), root / "docs/performance.md"
    if files:
        made[target] = performance_page([json.loads(file.read_text()) for file in files])
    elif target.exists():
        raise SystemExit(f"documents.py: {target} is generated from docs/performance*.json, which are not there")
    figures, target = root / "docs/reference/kernels_peers.json", root / "docs/reference/kernels.md"
    if target.exists():
        made[target] = between(target.read_text(), peers(json.loads(figures.read_text())))
    return made


def check(root):
    stale = [path for path, text in generated(root).items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path} is not what its data gives: run tests/bench_kernels/documents.py write ROOT")
    return 1 if stale else 0


def self_test():
    def result(case, own, peer, **more):
        return {"case": case, "threads": 1, "refused": {}, "bound": None,
                "ms": {OWN: {"min": own}, "ONNX Runtime": {"min": peer}}, **more}
    report = {"schema_version": 1, "date": "2000-01-01", "processor": "P", "cores": 2, "instruction_set": "I",
              "runs": [{"load": 0, "versions": {"ONNX Runtime": v}, "results": [
                  result("A, one", 2.0, peer, bound={"of": "chunks", "ms": 1.5, "share": 0.75}),
                  result("A, align_corners 1", 1.0, 4.0), result("A, align_corners 2", 1.0, 9.0)]}
                  for v, peer in (("1.0", 5.0), ("2.0", 1.0))]}
    text = "\n".join(performance(report))
    for wanted in ("| one | 2 / – | 2.5 / – | 0.5 / – | 75 % (chunks) |", "geometric mean 6, least 4, of 2 cases",
                   "Slower than a peer: A, one, 1 thread: ONNX Runtime 2.0 (0.5)."):
        assert wanted in text, (wanted, text)
    report["runs"][1]["results"][1]["gather"] = {"of": "gather", "ms": 1.2, "share": 1.2}
    text = "\n".join(performance(report))
    for wanted in ("| one | 2 / – | 2.5 / – | 0.5 / – |  | 75 % (chunks) |", "| 1 / – | 4 / – | 4 / – | 120 % |  |"):
        assert wanted in text, (wanted, text)
    assert between("x\n<!-- begin: peers -->\nold\n<!-- end: peers -->\ny\n", ["new"]) == (
        "x\n<!-- begin: peers -->\nnew\n<!-- end: peers -->\ny\n")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        target = root / "docs/performance.md"
        (root / "docs/performance.json").write_text(json.dumps(report))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            assert check(root) == 1 and main(["write", folder]) == 0 and check(root) == 0
            target.write_text(target.read_text().replace("2.5", "25"))
            assert check(root) == 1
        assert "performance.md is not what its data gives" in said.getvalue()
    return 0


def main(arguments):
    if arguments[:1] == ["combine"] and len(arguments) > 2:
        pathlib.Path(arguments[1]).write_text(json.dumps(combine(arguments[2:]), indent=1) + "\n")
        return 0
    if len(arguments) == 2 and arguments[0] == "write":
        for path, text in generated(pathlib.Path(arguments[1])).items():
            path.write_text(text)
        return 0
    if len(arguments) == 2 and arguments[0] == "check":
        return check(pathlib.Path(arguments[1]))
    if arguments == ["self"]:
        return self_test()
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

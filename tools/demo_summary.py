#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: demo_summary.py DEMO   what `./dev demo` ends with, from the JSON that its commands wrote"""
import json
import pathlib
import sys


def milliseconds(latency):
    def one(figure):
        return f"{figure['value']:7.2f} ms [{figure['low']:.2f}, {figure['high']:.2f}]"

    return f"P50 {one(latency['p50'])}   P95 {one(latency['p95'])}"


def main():
    demo = pathlib.Path(sys.argv[1])
    package = demo / "model-package"
    manifest = json.loads((package / "manifest.json").read_text())
    bench = json.loads((demo / "bench.json").read_text())
    summary = manifest["summary"]

    print(f"\n{manifest['source_model']['name']} on {manifest['target']}: {manifest['verdict']}\n")
    # Segments, then boundary tensors: the first two tables of deploy's own text, as it printed them.
    tables = (demo / "deploy.txt").read_text().split("\n\n")
    print(f"Where it runs\n{tables[1]}\n\nWhat crosses\n{tables[2]}")

    print("\nVerdicts")
    width = max(len(check["name"]) for check in manifest["checks"])
    for check in manifest["checks"]:
        value = "" if check["value"] is None else f"{check['value']:.6g} {check['comparison']} {check['limit']:.4g}"
        print(f"  {check['verdict']:<13}{check['name']:<{width}}  {value}")
    if "coverage" in summary:
        print(f"  over {summary['coverage']['over']}")

    if precision := summary.get("average_precision"):
        print(f"\nmAP over {precision['images']} labelled images")
        print(f"  whole on cpu  {precision['whole']['ap']:.3f}\n  package       {precision['package']['ap']:.3f}")

    print(f"\nTime on this machine, a simulation of the device (it says nothing about the device's own speed); "
          f"{bench['settings']['runs']} runs")
    print(f"  forward only  {milliseconds(bench['forward']['latency'])}")
    print(f"  end to end    {milliseconds(bench['end_to_end']['latency'])}")

    drawn = sorted(path for path in (demo / "out").rglob("*.png"))
    print(f"\nDrawn boxes: {len(drawn)} images in {(drawn[0].parent if drawn else demo / 'out')}/"
          + (f", as {drawn[0].name}" if drawn else ""))
    print(f"The package: {package}/; all figures: {demo}/deploy.txt, {demo}/bench.json")


if __name__ == "__main__":
    main()

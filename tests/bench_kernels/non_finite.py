#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""usage: non_finite.py OPS_LIBRARY [--torch SITE] [--json FILE] [--check FILE]

What operators make of NaN and infinity, in coordinates and in values that are not sampled: ours and each
peer that this Python has. Each runtime runs in a process of its own, as some read outside of their
memory. --json: adds the columns of this Python's peers to the tables in FILE. --check: exits with 1 where
the columns of ours and of this Python's ONNX Runtime differ from those in FILE.

An image of 4 x 4 pixels, 8 channels alike, 16 points alike, so that vectors and scalar loops both run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
from onnx import helper

import attention
import peers
from case import model

SIZE, CHANNELS, POINTS = 4, 8, 16
MODES, PADDINGS = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")
NAN, INF = float("nan"), float("inf")


def at(pixel):
    """The grid's coordinate of a pixel, align_corners 0: exact for halves and quarters."""
    return (2 * pixel + 1) / SIZE - 1


def image(replaced=()):
    value = np.arange(1, SIZE * SIZE + 1, dtype=np.float32).reshape(SIZE, SIZE)
    for x, y, number in replaced:
        value[y, x] = number
    return np.broadcast_to(value, (1, CHANNELS, SIZE, SIZE)).copy()


def sampling(mode, padding, x, y, value):
    grid = np.broadcast_to(np.array([x, y], np.float32), (1, 1, POINTS, 2)).copy()
    onnx_mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)

    def make(domain):
        node = helper.make_node("GridSample", ["X", "grid"], ["out"], domain=domain, mode=onnx_mode,
                                padding_mode=padding, align_corners=0)
        return model([node], arrays, [1, CHANNELS, 1, POINTS], own_domain=bool(domain))

    def torch_function(torch, X, grid):
        return torch.nn.functional.grid_sample(X, grid, mode=onnx_mode, padding_mode=padding, align_corners=False)
    arrays = {"X": value, "grid": grid}
    return arrays, make("tenonnx"), make(""), [1, CHANNELS, 1, POINTS], torch_function


def attending(x, weight, value):
    """One level; the first of 4 points at pixel (x, 1) with `weight`, the others at pixel (2, 2)."""
    locations = np.full((1, POINTS, 1, 4, 2), 2.5 / SIZE, np.float32)
    locations[..., 0, :] = (x + .5) / SIZE, 1.5 / SIZE
    weights = np.full((1, POINTS, 1, 4), .25, np.float32)
    weights[..., 0] = weight
    arrays = {"value": np.ascontiguousarray(value.reshape(1, CHANNELS, -1).swapaxes(1, 2)[:, :, None]),
              "locations": locations, "weights": weights}
    levels, points = ((SIZE, SIZE),), (4,)
    return (arrays, attention.ours(arrays, levels, points), attention.exported(arrays, levels, points),
            [1, POINTS, CHANNELS], attention.torch_function(levels, points))


def experiments():
    """{(table, row): a function that gives what to run}"""
    made = {}
    for mode in MODES:
        for padding in PADDINGS:
            for number, name in ((NAN, "NaN"), (INF, "+Inf"), (-INF, "−Inf")):
                made["coordinates", f"{mode}, {padding}, x = {name}"] = (
                    lambda mode=mode, padding=padding, x=number: sampling(mode, padding, x, at(1), image()))
    for number, name in ((NAN, "NaN"), (INF, "Inf")):
        rows = {
            "linear: at the centre of a pixel, {} beside it":
                lambda n: sampling("linear", "zeros", at(1), at(1), image([(2, 1, n)])),
            "cubic: at the centre of a pixel, {} beside it":
                lambda n: sampling("cubic", "zeros", at(1), at(1), image([(2, 1, n)])),
            "nearest: {} beside the nearest pixel":
                lambda n: sampling("nearest", "zeros", at(1.25), at(1), image([(2, 1, n)])),
            "linear, zeros: 3 pixels outside, {} at the edge":
                lambda n: sampling("linear", "zeros", at(-3), at(1), image([(0, 1, n)])),
            "linear, border: 3 pixels outside, {} one pixel inside of the edge":
                lambda n: sampling("linear", "border", at(-3), at(1), image([(1, 1, n)])),
            "attention: {} where a point of weight 0 lies":
                lambda n: attending(1, 0, image([(1, 1, n)])),
            "attention: a point outside, {} at the edge":
                lambda n: attending(-3, .25, image([(0, 1, n)])),
        }
        for title, run in rows.items():
            made["values", title.format(name)] = lambda run=run, n=number: run(n)
    for number, name in ((NAN, "NaN"), (INF, "+Inf"), (-INF, "−Inf")):
        made["values", f"attention: a location of x = {name}"] = lambda n=number: attending(n, .25, image())
    return made


def text(result):
    numbers = np.unique(result)  # NaN once
    if numbers.size > 1:
        return "mixed"
    number = float(numbers[0])
    return "NaN" if np.isnan(number) else "Inf" if np.isinf(number) else f"{number:.4g}".replace("-", "−")


def run_peer(peer, ops, site, rows):
    """In a process of its own: prints row numbers and results as they come."""
    modules, _ = peers.available(site)
    every = list(experiments().values())
    for row in rows:
        arrays, ours, standard, output, function = every[row]()
        if peer == "tenonnx":
            made = peers.prepare_ort(ours, arrays, 1, ops)
        elif peer == "ONNX Runtime":
            made = peers.prepare_ort(standard, arrays, 1)
        elif peer == "OpenVINO":
            made = peers.prepare_openvino(modules[peer], standard, arrays, 1)
        elif peer == "PyTorch":
            made = peers.prepare_torch(modules[peer], function, arrays, 1)
        else:
            made = peers.prepare_mnn(modules[peer], standard, arrays, 1, output)
        made.call()
        print(f"{row}\t{text(made.result())}", flush=True)


def column(peer, ops, site):
    """The results of all rows; a process that ends early has crashed in the next row."""
    count, results = len(experiments()), {}
    while len(results) < count:
        left = [row for row in range(count) if row not in results]
        done = subprocess.run([sys.executable, __file__, ops, "--torch", site, "--peer", peer, "--rows",
                               *map(str, left)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
        results |= {int(row): result for row, result in lines}
        if done.returncode > 0:
            raise SystemExit(f"non_finite.py: {peer}: {done.stderr[-2000:]}")
        if done.returncode < 0:
            results[next(row for row in left if row not in results)] = "crashes"
    return [results[row] for row in range(count)]


def add(path, columns):
    """Into the tables of the file, which documents.py writes into the reference."""
    report = json.loads(path.read_text()) if path.exists() else {}
    tables = {table["name"]: table for table in report.get("tables", [])}
    for name in dict.fromkeys(table for table, _ in experiments()):
        table = tables.setdefault(name, {"name": name, "columns": [], "rows": {}})
        for title, results in columns.items():
            if title not in table["columns"]:
                table["columns"].append(title)
            place = table["columns"].index(title)
            for (of, row), result in zip(experiments(), results):
                if of == name:
                    cells = table["rows"].setdefault(row, [])
                    cells += ["–"] * (place + 1 - len(cells))
                    cells[place] = result
    report |= {"schema_version": 1, "date": time.strftime("%Y-%m-%d", time.gmtime()),
               "tables": list(tables.values())}
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


def differences(path, columns):
    report, found = json.loads(path.read_text()), []
    tables = {table["name"]: table for table in report["tables"]}
    for title, results in columns.items():
        for (name, row), result in zip(experiments(), results):
            if title not in tables[name]["columns"]:
                continue
            recorded = tables[name]["rows"][row][tables[name]["columns"].index(title)]
            if recorded != result:
                found.append(f"{title}, {row}: {result}, the page says {recorded}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops")
    for name in ("--torch", "--json", "--check", "--peer"):
        parser.add_argument(name, default="")
    parser.add_argument("--rows", nargs="*", type=int)
    options = parser.parse_args()
    if options.peer:
        run_peer(options.peer, options.ops, options.torch, options.rows)
        return 0
    _, versions = peers.available(options.torch)
    if options.check:
        versions = {"ONNX Runtime": versions["ONNX Runtime"]}
    titles = {"tenonnx": "tenonnx"} | {peer: f"{peer} {version.split('-')[0].split('+')[0]}"
                                       for peer, version in versions.items()}
    columns = {title: column(peer, options.ops, options.torch) for peer, title in titles.items()}
    if options.json:
        add(pathlib.Path(options.json), columns)
    wrong = differences(pathlib.Path(options.check), columns) if options.check else []
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of fused graphs in docs/how_to/replace_grid_sample.md is that of docs/evidence/fused_graphs.json.

usage: page.py check|print SOURCE
"""
import json
import pathlib
import sys

TITLES = {"dfine_s_640_ts": "D-FINE-S", "deimv2_s_640_ts": "DEIMv2-S", "deimv2_n_640_ts": "DEIMv2-N",
          "rtdetr_r18_640_ts": "RT-DETR R18",
          "deformable_encoder_3": "encoder layer of Deformable DETR, 3 levels, 8,400 tokens",
          "deformable_encoder_4": "encoder layer of Deformable DETR, 4 levels, 8,500 tokens"}


def title(graph):
    name, comma, part = graph.partition(", ")
    return TITLES.get(name, name) + comma + part


def table(record):
    lines = ["| graph | original, ms | fused | rows first and fused |", "|---|---|---|---|"]
    for row in record["rows"]:
        spell = lambda middle, low, high: f"{middle:.2f} ({low:.2f} to {high:.2f})"
        cell = lambda way: spell(*row["times"][way]) if way in row["times"] else ""
        lines.append(f"| {title(row['graph'])} | {row['original_ms']:.0f} | {cell('fused')} | "
                     f"{cell('rows first and fused')} |")
    return "\n".join(lines)


def main():
    source = pathlib.Path(sys.argv[2])
    text = table(json.loads((source / "docs/evidence/fused_graphs.json").read_text()))
    if sys.argv[1] == "print":
        print(text)
        return 0
    if text in (source / "docs/how_to/replace_grid_sample.md").read_text():
        return 0
    print(f"docs/how_to/replace_grid_sample.md has another table; expected:\n{text}")
    return 1


if __name__ == "__main__":
    sys.exit(main())

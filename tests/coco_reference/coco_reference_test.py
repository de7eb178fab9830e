# SPDX-License-Identifier: Apache-2.0
# Copyright The tenonnx authors
"""The twelve COCO figures against pycocotools, on random and on adversarial detections.

usage: coco_reference_test.py PATH_OF_coco_eval_cases [RANDOM_CASES [FIRST_SEED]]

Every case is made from its seed or name alone, so that a failure can be repeated. Needs numpy and
pycocotools. Exit code 0 where all figures agree to 1e-9 (the figures are means of some 10^4 doubles
in [0, 1]; the two sides sum in another order, which is worth about 1e-15).
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

TOLERANCE = 1e-9


class Case:
    """A data set and results in the making."""

    def __init__(self, name, images, categories, first_id=1):
        self.name = name
        self.next_id = first_id
        self.annotations = {
            "images": [
                {"id": i, "file_name": f"{i}.png", "width": 640, "height": 640} for i in images
            ],
            "categories": [{"id": c, "name": f"category {c}"} for c in categories],
            "annotations": [],
        }
        self.results = []

    def add_object(self, image, category, box, area=None, crowd=0, ignore=None):
        entry = {
            "id": self.next_id,
            "image_id": image,
            "category_id": category,
            "bbox": [float(v) for v in box],
            "area": float(box[2] * box[3] if area is None else area),
            "iscrowd": crowd,
        }
        if ignore is not None:
            entry["ignore"] = ignore
        self.annotations["annotations"].append(entry)
        self.next_id += 1

    def add_result(self, image, category, box, score):
        self.results.append(
            {
                "image_id": image,
                "category_id": category,
                "bbox": [float(v) for v in box],
                "score": float(score),
            }
        )


def random_case(seed):
    """All the ingredients at once, in proportions that the seed draws."""
    rng = np.random.default_rng(seed)
    images = [int(i) for i in rng.permutation(50)[: rng.integers(1, 7)]]
    categories = [int(c) for c in rng.permutation(20)[: rng.integers(1, 5)]]
    case = Case(f"random seed {seed}", images, categories)
    whole_pixels = rng.random() < 0.5  # exact thresholds and ties of IoU
    levels = int(rng.choice([1, 3, 10, 0]))  # of scores; 0: continuous
    crowd, ignore, jitter = rng.choice([0, 0.1, 0.5]), rng.choice([0, 0.2]), rng.choice([0.02, 0.2])
    largest = int(rng.choice([3, 10, 40]))  # objects in an image

    def score():
        return rng.random() if levels == 0 else rng.integers(1, levels + 1) / levels

    def tidy(box):
        box = np.array(box)
        box[2:] = np.maximum(box[2:], 0)
        return np.round(box) if whole_pixels else box

    for image in images:
        if rng.random() < 0.15:
            continue  # without objects; detections follow below
        for _ in range(rng.integers(0, largest)):
            category = int(rng.choice(categories))
            size = np.exp(rng.uniform(np.log(4), np.log(300), 2))
            box = tidy([*rng.uniform(0, 640 - size), *size])
            flag = int(rng.random() < ignore) if ignore else None
            area = box[2] * box[3] * rng.choice([1, rng.uniform(0.3, 1)])
            case.add_object(image, category, box, area, int(rng.random() < crowd), flag)
            for _ in range(rng.integers(0, 4)):
                near = box + rng.normal(0, jitter, 4) * [size[0], size[1], size[0], size[1]]
                hit = category if rng.random() < 0.9 else int(rng.choice(categories))
                case.add_result(image, hit, tidy(near), score())
    for image in images:
        for _ in range(rng.integers(0, 8)):
            category = int(rng.choice([*categories, 99]))  # 99 is in no data set
            size = np.exp(rng.uniform(np.log(4), np.log(300), 2))
            case.add_result(image, category, tidy([*rng.uniform(0, 640 - size), *size]), score())
    case.results = [case.results[i] for i in rng.permutation(len(case.results))]
    return case


def adversarial_cases():
    square = (100, 100, 40, 40)

    case = Case("nothing at all", [1], [1])
    yield case
    case = Case("objects, no detections", [1, 2], [1, 2])
    case.add_object(1, 1, square)
    yield case
    case = Case("detections, no objects", [1, 2], [1, 2])
    case.add_result(1, 1, square, 0.9)
    yield case

    case = Case("a class without objects and one without detections", [1], [1, 2, 3])
    case.add_object(1, 1, square)
    case.add_result(1, 1, square, 0.9)
    case.add_object(1, 2, square)
    case.add_result(1, 3, square, 0.9)
    yield case

    case = Case("only a crowd, many detections on it", [1], [1])
    case.add_object(1, 1, (0, 0, 400, 400), crowd=1)
    for i in range(20):
        case.add_result(1, 1, (i * 10, i * 10, 40, 40), 0.5 + i / 100)
    yield case

    case = Case("an object inside a crowd", [1], [1])
    case.add_object(1, 1, (0, 0, 400, 400), crowd=1)
    case.add_object(1, 1, square)
    for i in range(6):
        case.add_result(1, 1, (100 + i, 100, 40, 40), 0.9 - i / 10)
    yield case

    case = Case("the ignore field does not count", [1], [1])
    case.add_object(1, 1, square, ignore=1)
    case.add_object(1, 1, (300, 300, 50, 50), ignore=0)
    case.add_result(1, 1, square, 0.9)
    case.add_result(1, 1, (300, 300, 50, 50), 0.8)
    yield case

    for name, first in (("right first", True), ("wrong first", False)):
        case = Case(f"all scores equal, {name}", [1, 2], [1])
        for image in (1, 2):
            case.add_object(image, 1, square)
            boxes = [square, (300, 300, 40, 40)]
            for box in boxes if first else reversed(boxes):
                case.add_result(image, 1, box, 0.5)
        yield case

    case = Case("ties across images in the order of the file, not of the ids", [9, 3, 7], [1])
    for image, hit in ((7, True), (9, False), (3, True)):
        case.add_object(image, 1, square)
        case.add_result(image, 1, square if hit else (300, 300, 40, 40), 0.5)
    yield case

    case = Case("equal IoU with two objects", [1], [1])
    case.add_object(1, 1, (100, 100, 40, 40))
    case.add_object(1, 1, (110, 100, 40, 40))
    case.add_result(1, 1, (105, 100, 40, 40), 0.9)
    case.add_result(1, 1, (100, 100, 40, 40), 0.8)
    yield case

    case = Case("identical objects and identical detections", [1], [1])
    for _ in range(3):
        case.add_object(1, 1, square)
    for _ in range(5):
        case.add_result(1, 1, square, 0.7)
    yield case

    case = Case("IoU exactly at the thresholds", [1], [1])
    for k in range(10, 20):
        y = 20 * (k - 10)
        case.add_object(1, 1, (0, y, 20, 10))
        case.add_result(1, 1, (0, y, k, 10), 0.9 - k / 100)
    yield case

    case = Case("areas at the bounds", [1], [1])
    for i, (side, area) in enumerate(
        ((32, 1024), (32, 1023.999), (32, 1024.001), (96, 9216), (96, 9215.9), (96, 9216.1))
    ):
        box = (100 * i, 0, side, side)
        case.add_object(1, 1, box, area)
        case.add_result(1, 1, box, 0.9 - i / 10)
        case.add_result(1, 1, (100 * i, 200, side, side), 0.85 - i / 10)
    yield case

    case = Case("area of the object and area of its box differ", [1], [1])
    case.add_object(1, 1, (0, 0, 100, 100), area=500)
    case.add_result(1, 1, (0, 0, 100, 100), 0.9)
    case.add_object(1, 1, (200, 0, 20, 20), area=20000)
    case.add_result(1, 1, (200, 0, 20, 20), 0.8)
    yield case

    case = Case("boxes without area", [1], [1])
    case.add_object(1, 1, (10, 10, 0, 0), area=0)
    case.add_object(1, 1, (50, 50, 0, 20), area=0)
    case.add_object(1, 1, square)
    case.add_result(1, 1, (10, 10, 0, 0), 0.9)
    case.add_result(1, 1, (50, 50, 0, 20), 0.8)
    case.add_result(1, 1, square, 0.7)
    yield case

    for per_image in (1, 9, 10, 11, 99, 100, 101, 250):
        rng = np.random.default_rng(per_image)
        case = Case(f"{per_image} detections an image and class", [1, 2], [1, 2])
        for image in (1, 2):
            for category in (1, 2):
                for i in range(12):
                    box = (50 * i, 60 * category, 45, 50)
                    case.add_object(image, category, box)
                for i in range(per_image):
                    box = (50 * int(rng.integers(12)), 60 * category, 45, 50)
                    case.add_result(image, category, box, rng.integers(1, 30) / 30)
        yield case

    case = Case("the right detections come after the hundredth", [1], [1])
    case.add_object(1, 1, square)
    for i in range(100):
        case.add_result(1, 1, (300 + i, 300, 40, 40), 0.9)
    case.add_result(1, 1, square, 0.8)
    yield case

    case = Case("annotation ids from 0", [1], [1], first_id=0)
    for i in range(3):
        case.add_object(1, 1, (100 * i, 0, 40, 40))
        case.add_result(1, 1, (100 * i, 0, 40, 40), 0.9 - i / 10)
    yield case

    case = Case("a better match that is ignored", [1], [1])
    case.add_object(1, 1, (0, 0, 200, 200), crowd=1)
    case.add_object(1, 1, (10, 10, 50, 50))
    case.add_result(1, 1, (12, 12, 50, 50), 0.9)
    case.add_result(1, 1, (10, 10, 50, 50), 0.8)
    yield case

    case = Case("scores of a sign and size that no model gives", [1], [1])
    for i, s in enumerate((-1.0, 0.0, 1e-300, 1.0, 1e9)):
        case.add_object(1, 1, (100 * i, 0, 40, 40))
        case.add_result(1, 1, (100 * i, 0, 40, 40 - i), s)
    yield case


def reference(case):
    """What pycocotools says."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = json.loads(json.dumps(case.annotations))
        truth.createIndex()
        # loadRes cannot take an empty list; a detection of no category of the data set counts as none.
        image = case.annotations["images"][0]["id"]
        nothing = [{"image_id": image, "category_id": -1, "bbox": [0, 0, 1, 1], "score": 1}]
        evaluation = COCOeval(truth, truth.loadRes(case.results or nothing), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return np.array(evaluation.stats)


def main(argv):
    program = argv[1]
    count = int(argv[2]) if len(argv) > 2 else 200
    first = int(argv[3]) if len(argv) > 3 else 0
    cases = [random_case(first + i) for i in range(count)] + list(adversarial_cases())
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "cases.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump([{"annotations": c.annotations, "results": c.results} for c in cases], file)
        done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{program} failed:\n{done.stderr}")
        return 1
    lines = done.stdout.splitlines()
    if len(lines) != len(cases):
        print(f"{len(cases)} cases, but {len(lines)} lines of figures")
        return 1
    worst, failed, measured = 0.0, 0, 0
    for case, line in zip(cases, lines):
        ours, theirs = np.array([float(v) for v in line.split()]), reference(case)
        difference = float(np.abs(ours - theirs).max())
        worst = max(worst, difference)
        measured += int(theirs[0] > 0)
        if not difference <= TOLERANCE:
            failed += 1
            print(f"{case.name}:\n  pycocotools {theirs}\n  tenonnx     {ours}")
    print(f"{len(cases)} cases ({measured} with AP > 0), {failed} differ, largest difference {worst}")
    # Cases without a single true positive would agree whatever is computed.
    return 0 if failed == 0 and measured > len(cases) // 2 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))

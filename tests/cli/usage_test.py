# SPDX-License-Identifier: Apache-2.0
"""Wrong usage and bad input at the command line: what is said, and the exit code 2.

usage: usage_test.py TENONNX SOURCE_DIR
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TENONNX = str(pathlib.Path(sys.argv[1]).resolve())
SOURCE = pathlib.Path(sys.argv[2]).resolve()
EXAMPLE = str(SOURCE / "examples/models/shapes_deimv2.onnx")
# The three features of the example, as its contract names them.
CUT = ",".join(
    json.loads((SOURCE / "examples/models/shapes_deimv2.contract.json").read_text())["cut"])


def run(*arguments, **options):
    return subprocess.run(
        [TENONNX, *arguments], capture_output=True, text=True, check=False, timeout=120, **options
    )


class Usage(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def refuses(self, arguments, *parts, **options):
        result = run(*arguments, cwd=self.scratch, **options)
        self.assertEqual(result.returncode, 2, result.stderr)
        said = " ".join(result.stderr.split())  # lines are broken anywhere
        for part in parts:
            self.assertIn(part, said)
        self.assertEqual(result.stdout, "")
        self.assertEqual(list(self.scratch.glob("out*")), [], "something was left behind")

    def test_unknown_command_lists_the_commands(self):
        self.refuses(["deplyo", "m.onnx"], "there is no command 'deplyo'", "deploy", "inspect")

    def test_unknown_option_names_the_help(self):
        self.refuses(["inspect", EXAMPLE, "--colour"], "--colour", "tenonnx inspect --help")

    def test_missing_target(self):
        self.refuses(["deploy", EXAMPLE, "-o", "out"], "--target")

    def test_unknown_target_lists_the_targets(self):
        self.refuses(["deploy", EXAMPLE, "--target", "no-such-npu", "-o", "out"],
                     "no-such-npu", "sim-htp")

    def test_qualcomm_address(self):
        place = ["placement", EXAMPLE, "--on"]
        self.refuses([*place, "qnn:arch=73"], "'soc' is missing", "43, 52, 57")
        self.refuses([*place, "qnn:soc=9999"], "'soc' is 9999", "QNN_DEVICE_ERROR_INVALID_CONFIG")
        self.refuses([*place, "qnn:soc=43,backend=cpu"], "'backend' is 'cpu'", "takes nothing")
        self.refuses([*place, "qnn:soc=43,perf=fast"], "'perf' is 'fast'", "burst")

    def test_qualcomm_without_its_library(self):
        without = {**os.environ, "TENONNX_QNN": "/not/there"}
        for arguments in (["placement", EXAMPLE, "--on", "qnn:soc=43,arch=73"],
                          ["deploy", EXAMPLE, "--target", "qcs9075", "-o", "out"]):
            self.refuses(arguments, "'/not/there' does not exist", "./dev vendor qnn", env=without)

    def test_device_agree(self):
        both = ["--on", "cpu", "--against", "cpu"]
        self.refuses(["device", "agree", *both, "--only", "MatMull"], "--only 'MatMull'", "'MatMul'")
        self.refuses(["device", "agree", "--on", "cpu"], "--against")
        self.refuses(["device", "agree", *both, "--budget", "-1"], "--budget")

    def test_missing_model(self):
        self.refuses(["deploy", "absent.onnx", "--target", "cpu", "-o", "out"], "absent.onnx")

    def test_model_that_is_not_onnx(self):
        (self.scratch / "text.onnx").write_text("this is not a model\n")
        self.refuses(["inspect", "text.onnx"], "text.onnx")

    def test_input_shape_without_a_name(self):
        self.refuses(["deploy", EXAMPLE, "--target", "cpu", "-o", "out", "--input-shape", "1x3"],
                     "'1x3' is not NAME=DIMS")

    def test_frame_size(self):
        self.refuses(["run", "p", "-", "-o", "out", "--size", "640,480"],
                     "'640,480' is not WIDTHxHEIGHT")

    def test_pixel_format(self):
        self.refuses(["run", "p", "-", "-o", "out", "--pixel-format", "yuyv"],
                     "'yuyv' is none of rgb, bgr, gray, rgba, bgra, nv12")

    def test_numbers_below_zero(self):
        deploy = ["deploy", EXAMPLE, "--target", "cpu", "-o", "out"]
        self.refuses([*deploy, "--max-images", "-1"], "--max-images", "-1")
        self.refuses([*deploy, "--seed", "-1"], "--seed", "-1")

    def test_an_empty_cut_is_not_the_default(self):
        self.refuses(["deploy", EXAMPLE, "--target", "cpu", "-o", "out", "--cut", ""],
                     "--cut", "names no tensor")

    def test_force_replaces_nothing_of_the_users(self):
        (self.scratch / "thesis").mkdir()
        (self.scratch / "thesis/thesis.txt").write_text("precious")
        for command in (["deploy", EXAMPLE, "--target", "cpu"], ["data", "shapes"],
                        ["split", EXAMPLE, "--at", CUT]):
            for out in ("thesis", ".", "thesis/.."):
                self.refuses([*command, "-o", out, "--force"], "thesis.txt", "is not part of")
        self.assertEqual((self.scratch / "thesis/thesis.txt").read_text(), "precious")

    def test_external_data_that_are_missing(self):
        # ModelProto with one initializer 'w', float [1], in 'absent.data'.
        entry = b"\x0a\x08location\x12\x0babsent.data"
        tensor = (b"\x08\x01\x10\x01\x42\x01w\x6a" + bytes([len(entry)]) + entry + b"\x70\x01")
        dim = b"\x0a\x02\x08\x01"
        out = b"\x0a\x01y\x12" + bytes([len(dim) + 6]) + b"\x0a" + bytes([len(dim) + 4]) + \
            b"\x08\x01\x12" + bytes([len(dim)]) + dim
        node = b"\x0a\x01w\x12\x01y\x22\x08Identity"
        graph = (b"\x0a" + bytes([len(node)]) + node + b"\x12\x01g\x2a" + bytes([len(tensor)]) +
                 tensor + b"\x62" + bytes([len(out)]) + out)
        model = b"\x08\x08\x3a" + bytes([len(graph)]) + graph + b"\x42\x04\x0a\x00\x10\x11"
        (self.scratch / "m.onnx").write_bytes(model)
        self.refuses(["inspect", "m.onnx"], "'w'", "absent.data", "No such file")

    def test_a_cut_at_the_outputs_leaves_nothing(self):
        self.refuses(["split", EXAMPLE, "--at", "scores,labels,boxes", "-o", "out"],
                     "leaves nothing behind it", "cut further up")

    def test_split_needs_a_cut_or_a_list(self):
        self.refuses(["split", EXAMPLE], "--at", "--list")
        self.refuses(["split", EXAMPLE, "--at", CUT], "-o DIR")
        self.refuses(["split", EXAMPLE, "--list", "--at", "auto"], "--list", "--at")

    def test_cut_at_an_unknown_tensor(self):
        self.refuses(["split", EXAMPLE, "--at", "no_such_tensor", "-o", "out"], "no_such_tensor")

    def test_package_that_is_none(self):
        (self.scratch / "empty").mkdir()
        for command in (["verify", "empty"], ["bench", "empty"], ["run", "empty", ".", "-o", "out"]):
            with self.subTest(command=command[0]):
                self.refuses(command, "manifest.json")

    def test_help_and_version_pass(self):
        for arguments in (["--help"], ["--version"], ["deploy", "--help"], ["data", "--help"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertNotIn("{false}", result.stdout)
        self.assertIn("Exit codes: 0 done and passed, 1 a gate failed", run("--help").stdout)

    def rewrite_refuses(self, passes, options, *parts):
        self.refuses(["rewrite", EXAMPLE, "--pass", passes, "-o", "out.onnx", *options], *parts)

    def test_score_of_a_pass_that_does_not_run(self):
        self.rewrite_refuses("fold_constants", ["--score", "x"],
                             "--score is an option of pass prune_queries, which does not run")

    def test_pruning_without_a_score(self):
        self.rewrite_refuses("prune_queries", ["--option", "prune_queries.max_count=10"],
                             "no score", "--score TENSOR")

    def test_score_that_the_graph_lacks(self):
        self.rewrite_refuses("prune_queries",
                             ["--score", "score", "--option", "prune_queries.max_count=10"],
                             "the graph has no tensor 'score'", "the nearest names: 'scores'")

    def test_two_scores(self):
        self.rewrite_refuses("prune_queries",
                             ["--score", "a", "--option", "prune_queries.score=b"],
                             "--score means prune_queries.score=a, and --option says b")

    def test_legacy_clamp_of_another_formula(self):
        name = "replace_grid_sample_discrete"
        self.rewrite_refuses(name, ["--legacy-square-clamp", "--option", f"{name}.formula=nearest"],
                             "--legacy-square-clamp means", "formula=historical")
        self.rewrite_refuses("fold_constants", ["--legacy-square-clamp"],
                             f"is an option of pass {name}, which does not run")

    def test_legacy_clamp_does_what_it_says(self):
        passes = "fold_constants,replace_grid_sample_discrete"
        result = run("rewrite", EXAMPLE, "--pass", passes, "--legacy-square-clamp", "--proof",
                     "none", "-o", "clamped.onnx", "--json", cwd=self.scratch)
        self.assertEqual(result.returncode, 0, result.stderr)
        sites = json.loads(result.stdout)["passes"][1]["sites"]
        self.assertEqual(len(sites), 12)
        self.assertIn("both axes bound by H-1", sites[0]["what"])

    def test_a_form_that_the_task_gate_refuses_says_why(self):
        images = run("data", "shapes", "--count", "2", "--seed", "1000000", "-o", "held-out",
                     cwd=self.scratch)
        self.assertEqual(images.returncode, 0, images.stderr)
        passes = "fold_constants,replace_grid_sample_discrete"
        result = run("rewrite", EXAMPLE, "--pass", passes, "--images", "held-out", "-o",
                     "discrete.onnx", cwd=self.scratch)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("replace_grid_sample_discrete was undone: the task gate failed",
                      " ".join(result.stdout.split()))
        self.assertIn("replace_grid_sample_discrete: the task gate: whole graph: ", result.stdout)
        row = next(line.split() for line in result.stdout.splitlines()
                   if line.split()[:2] == ["replace_grid_sample_discrete", "approximate"])
        self.assertEqual(row[4], "FAIL")
        for number in row[5:7]:  # value and limit of the check that failed
            float(number)


class Streams(unittest.TestCase):
    """Standard streams that are closed or full: `2>&-`, `> /dev/full`."""

    def inspect(self, redirect):
        return subprocess.run(
            ["sh", "-c", f'"$0" inspect "$1" {redirect}', TENONNX, EXAMPLE],
            capture_output=True, text=True, check=False, timeout=120)

    def test_closed_error_stream_is_no_failure(self):
        result = self.inspect("2>&-")
        self.assertEqual(result.returncode, 0)
        self.assertIn("shapes_deimv2.onnx", result.stdout)

    def test_closed_error_stream_is_not_the_package(self):
        with tempfile.TemporaryDirectory() as scratch:
            result = subprocess.run(
                ["sh", "-c", 'exec "$0" split "$1" --at "$2" -o out <&- >/dev/null '
                 '2>&-', TENONNX, EXAMPLE, CUT], cwd=scratch, check=False, timeout=120)
            self.assertEqual(result.returncode, 0)
            self.assertTrue((pathlib.Path(scratch) / "out/split.json").exists())

    def test_results_that_cannot_be_written(self):
        for redirect in (">&-", "> /dev/full"):
            with self.subTest(redirect):
                result = self.inspect(redirect)
                self.assertEqual(result.returncode, 2)
                self.assertIn("the results cannot be written to standard output",
                              " ".join(result.stderr.split()))
        self.assertEqual(self.inspect(">&- 2>&-").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])

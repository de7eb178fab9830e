// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare.h"

#include <algorithm>
#include <fstream>

#include "base/files.h"
#include "base/status.h"
#include "flow/compare_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Compare : public CompareFixture {
 protected:
  int count_ = 0;
};

constexpr const char* kToy = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2,8] x) => (float[2,8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
  a = Mul (x, w)
  b = Softmax <axis = -1> (a)
  y = Add (b, a)
})";

TEST_F(Compare, AFloat16DeviceIsWithinItsNoiseFloor) {
  make_device();
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:toy16";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(coverage(result), "compared 3 of 3 tensors, 0 unmapped");
  const TensorComparison& softmax = *at(result, "b").figures;
  EXPECT_GT(softmax.error.max_abs, 0);
  EXPECT_GT(softmax.path.max_abs, 0);
  ASSERT_TRUE(softmax.softmax_sum.has_value());
  // Eight values below 1, each within half a step of 2^-11: the sum within 8 * 2^-12.
  EXPECT_LE(*softmax.softmax_sum, 8 * 0x1p-12);
  EXPECT_LE(*softmax.softmax_baseline, 8 * 0x1p-12);
  EXPECT_THAT(softmax.check.limit.origin, HasSubstr("8 x the noise floor"));
  EXPECT_EQ(result.taken, "as added outputs");
}

// HTP's Softmax is off by more than a rounding: 1/sum alone by up to 3 steps. Its device file says
// so, with a source: what it costs is part of the floor, for the device itself too.
TEST_F(Compare, AFormThatTheDeviceFileDeclaresIsPartOfTheFloor) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  const TensorComparison& softmax = *at(result, "b").figures;
  EXPECT_THAT(softmax.path.origin, HasSubstr("operators in the forms of htp-v73"));
  // More than the rounding of the result, half a step.
  EXPECT_GT(softmax.path.max_abs, 2 * softmax.storage.max_abs);
}

// toy16 rounds every value to float16 and does nothing else to these, as the floor does.
TEST_F(Compare, SaysWhereTheCandidateIsTheFloorItself) {
  make_device();
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:toy16";
  const CompareResult result = run(o);
  EXPECT_EQ(result.at_floor(), 3U);
  EXPECT_EQ(to_json(result)["coverage"]["at_floor"], 3);
  EXPECT_THAT(result.notes,
              ::testing::Contains(AllOf(HasSubstr("in 3 of the 3 tensors that differ"),
                                        HasSubstr("'sim:toy16' computes as the floor does"))));
  EXPECT_THAT(describe(result), HasSubstr("= floor"));
  for (std::size_t i = 1; i < 3; ++i)  // then ordered by their error
    EXPECT_GE(result.worst()[i - 1]->figures->error.relative_l2.value(),
              result.worst()[i]->figures->error.relative_l2.value());
  // An error of its own is measured.
  o.candidate = save("b.onnx", replaced(kToy, "7, 8}", "7, 8.5}"));
  const CompareResult wrong = run(o);
  EXPECT_LT(wrong.at_floor(), 2U);
  EXPECT_THAT(describe(wrong), ::testing::Not(HasSubstr("is the noise floor itself")));
}

TEST_F(Compare, AnErrorBeyondTheFloorIsNamedFirst) {
  std::string wrong = kToy;
  wrong.replace(wrong.find("7, 8}"), 5, "7, 9}");
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.candidate = save("b.onnx", wrong);
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  ASSERT_NE(result.first_beyond(), nullptr);
  EXPECT_EQ(result.first_beyond()->plan.tensor.name, "a");
  EXPECT_THAT(describe(result), HasSubstr("'a' of Mul"));
}

// (x * 0.1) * 0.3 and x * 0.03 differ by a rounding; no floor of optimisation levels shows that.
TEST_F(Compare, MergedConstantsAreWithinOneRoundingMore) {
  const char* apart = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4096] x) => (float[4096] y) <float p = {0.1}, float q = {0.3}> {
      a = Mul (x, p)
      y = Mul (a, q)
    })";
  const char* merged = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4096] x) => (float[4096] y) <float r = {0.03}> { y = Mul (x, r) })";
  CompareOptions o = options(save("a.onnx", apart), {{"x", uniform({4096}, -1, 1, 2)}});
  o.candidate = save("b.onnx", merged);
  std::ofstream(temporary_.path() / "b.passes.json")
      << R"({"names": {"renamed": {}, "removed": {"a": "merge_mul"}}})";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(coverage(result), "compared 1 of 2 tensors, 1 fused away, 0 unmapped");
  EXPECT_GT(at(result, "y").figures->error.differing, 0);
  EXPECT_EQ(result.names, "b.passes.json");
}

TEST_F(Compare, ARecordOfAnotherModelIsNotBelieved) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.candidate = save("b.onnx", kToy);
  const auto write = [&](const std::string& before, const std::string& after) {
    std::ofstream(temporary_.path() / "b.passes.json")
        << fmt::format(R"({{"names": {{"renamed": {{}}, "removed": {{"a": "merge_mul"}}}},
                            "before": {{"sha256": "{}"}}, "after": {{"sha256": "{}"}}}})",
                       before, after);
  };
  const std::string a = *sha256_file(o.reference), b = *sha256_file(o.candidate);
  write(a, b);
  EXPECT_EQ(run(o).count(TensorState::kFused), 1U);
  write(a, std::string(64, '0'));
  const CompareResult stale = run(o);
  EXPECT_EQ(stale.count(TensorState::kFused), 0U);
  EXPECT_EQ(stale.names, "");
  EXPECT_THAT(describe(stale), HasSubstr("'b.passes.json' is not used"));
  write(std::string(64, '0'), b);
  EXPECT_THAT(describe(run(o)), HasSubstr("begins at another model than the reference"));
  write(a, std::string(64, '0'));
  o.names = temporary_.path() / "b.passes.json";
  EXPECT_THAT(compare(o).status().message(),
              AllOf(HasSubstr("b.passes.json' (--names) is of another model"),
                    HasSubstr("give the .passes.json that was written with the candidate")));
}

TEST_F(Compare, OtherNamesAreMatchedByStructure) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.candidate = save("b.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,8] x) => (float[2,8] y) <float[8] v = {1, 2, 3, 4, 5, 6, 7, 8}> {
      n1 = Mul (x, v)
      n2 = Softmax <axis = -1> (n1)
      y = Add (n2, n1)
    })");
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(coverage(result), "compared 3 of 3 tensors, 0 unmapped");
  EXPECT_EQ(at(result, "b").plan.candidate, "n2");
  EXPECT_THAT(describe(result), HasSubstr("2 tensors are under other names in the candidate"));
}

// Inside: an output of another shape is an error.
TEST_F(Compare, ATensorOfAnotherShapeLeavesItInconclusive) {
  CompareOptions o = options(save("a.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[6] y) <int64[1] s = {6}> {
      t = Tanh (x)
      a = Transpose <perm = [0, 1]> (t)
      y = Reshape (a, s)
    })"),
                             {{"x", uniform({2, 3}, -1, 1, 1)}});
  o.candidate = save("b.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[6] y) <int64[1] s = {6}> {
      t = Tanh (x)
      a = Transpose <perm = [1, 0]> (t)
      y = Reshape (a, s)
    })");
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_EQ(at(result, "t").figures->check.verdict, Verdict::kPass);
  EXPECT_EQ(at(result, "y").figures->check.verdict, Verdict::kFail);
}

TEST_F(Compare, WhatHasNoCounterpartLeavesItInconclusive) {
  const char* other = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,8] x) => (float[2,8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
      other = Einsum <equation = "ij,j->ij"> (x, w)
      b = Softmax <axis = -1> (other)
      y = Add (b, other)
    })";
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.candidate = save("b.onnx", other);
  CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(coverage(result), "compared 2 of 3 tensors, 1 unmapped");
  std::ofstream(temporary_.path() / "names.json")
      << R"({"renamed": {"a": "other"}, "removed": {}})";
  o.names = temporary_.path() / "names.json";
  result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(at(result, "a").plan.candidate, "other");
}

// A score that is off by 0.02, beside boxes whose float16 step is 0.5.
TEST_F(Compare, ScoresBesideBoxesAreJudgedByTheirOwnFloor) {
  const char* mixed = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,64] boxes, float[1,2,64] scores) => (float[1,6,64] y) <float nudge = {0}> {
      moved = Add (scores, nudge)
      y = Concat <axis = 1> (boxes, moved)
    })";
  CompareOptions o = options(save("a.onnx", mixed), {{"boxes", uniform({1, 4, 64}, 100, 640, 8)},
                                                     {"scores", uniform({1, 2, 64}, 0.1, 1, 9)}});
  o.candidate = save("b.onnx", replaced(mixed, "nudge = {0}", "nudge = {0.02}"));
  o.storage = "float16";
  o.tensors = "y";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  ASSERT_EQ(at(result, "y").figures->slices.size(), 2U);
  EXPECT_EQ(at(result, "y").figures->slices[0].error.differing, 0);
  EXPECT_THAT(at(result, "y").figures->check.name, HasSubstr("y[4:6 of axis 1]"));
  // Against the whole tensor's floor, the boxes' half step, it would have passed.
  EXPECT_LT(at(result, "y").figures->error.max_abs, 8 * at(result, "y").figures->path.max_abs);
}

TEST_F(Compare, BoundaryRunsThePartsAndSaysSo) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:htp-v73";
  o.tensors = "boundary";
  o.cut = "a";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(coverage(result), "compared 2 of 2 tensors, 0 unmapped");
  EXPECT_EQ(result.taken, "at cuts, part after part");
}

TEST_F(Compare, GoesOnWhereAnEqualRunWasEnded) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:htp-v73";
  o.cache = temporary_.path() / "cache";
  const CompareResult first = run(o);
  EXPECT_EQ(first.recalled, 0U);
  o.resume = true;
  const CompareResult second = run(o);
  EXPECT_EQ(second.recalled, second.windows);
  Json a = to_json(first), b = to_json(second);
  EXPECT_EQ(second.reused, 3U);
  EXPECT_THAT(second.notes, ::testing::Contains(HasSubstr("3 of 3 compared tensors are reused")));
  for (const char* key : {"settings", "notes"}) {
    a.erase(key);
    b.erase(key);
  }
  EXPECT_EQ(a.dump(), b.dump());
  o.factor = 4;  // another question
  EXPECT_EQ(run(o).recalled, 0U);
  for (const auto& entry : fs::recursive_directory_iterator(o.cache))
    if (entry.is_regular_file()) std::ofstream(entry.path()) << "{ cut of";
  EXPECT_EQ(run(o).recalled, 0U);  // what cannot be read is computed again
}

TEST_F(Compare, NamedGatesAreOfferedForTheOutputs) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:htp-v73";
  o.gates = {"allclose", "psnr"};
  const CompareResult result = run(o);
  std::vector<std::string> names;
  for (const Check& check : result.checks) names.push_back(check.name);
  EXPECT_THAT(names, AllOf(::testing::Contains("y: allclose"), ::testing::Contains("y: PSNR")));
  EXPECT_EQ(result.verdict, Verdict::kFail);  // float16 is not within 1e-5
}

TEST_F(Compare, RandomInputsProveNothing) {
  CompareOptions o;
  o.reference = save("a.onnx", kToy);
  o.on = "sim:htp-v73";
  o.cache = "none";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive) << describe(result);
  EXPECT_THAT(describe(result), HasSubstr("random values, not images: give --images DIR"));
}

TEST_F(Compare, AnOutputIsNeitherFusedAwayNorInside) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.candidate = save("b.onnx", kToy);
  std::ofstream(temporary_.path() / "n.json")
      << R"({"renamed": {}, "removed": {"y": "fuse_gemm"}})";
  o.names = temporary_.path() / "n.json";
  EXPECT_THAT(compare(o).status().message(),
              AllOf(HasSubstr("'n.json'"), HasSubstr("'y', which is an output")));
  o.names.clear();
  o.candidate = save("c.onnx", replaced(kToy, "(float[2,8] y)", "(float[2,8] b)"));
  EXPECT_THAT(compare(o).status().message(), AllOf(HasSubstr("outputs of the reference are 'y'"),
                                                   HasSubstr("those of the candidate 'b'")));
  o.tensors = "b";  // asks nothing of the outputs
  EXPECT_EQ(run(o).verdict, Verdict::kPass);
  o.tensors = "all";
  o.reference = save("two.onnx", replaced(kToy, "(float[2,8] y)", "(float[2,8] y, float[2,8] b)"));
  o.candidate = save("turn.onnx", replaced(kToy, "(float[2,8] y)", "(float[2,8] b, float[2,8] y)"));
  const CompareResult turned = run(o);
  EXPECT_EQ(turned.verdict, Verdict::kInconclusive);
  EXPECT_THAT(describe(turned), HasSubstr("order of the outputs"));
}

TEST_F(Compare, WhatAProgramComputedIsNotReused) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.tensors = "y";
  o.cache = temporary_.path() / "cache";
  const auto program = [&](float value) {
    save("y.npz", {{"y", floats({2, 8}, std::vector<float>(16, value))}});
    std::ofstream(temporary_.path() / "run.sh")
        << "cp '" << (temporary_.path() / "y.npz").string() << "' \"$1/outputs.npz\"\n";
  };
  o.on = "exec:sh " + (temporary_.path() / "run.sh").string();
  program(1);
  const CompareResult first = run(o);
  program(2);
  o.resume = true;
  const CompareResult second = run(o);
  EXPECT_EQ(second.reused, 0U);
  EXPECT_NE(at(first, "y").figures->error.max_abs, at(second, "y").figures->error.max_abs);
  EXPECT_THAT(second.notes, ::testing::Contains(HasSubstr("may change without its address")));
}

// What was recorded of another graph is far from this one, and so is no measure of its own noise.
TEST_F(Compare, ARecordedReferenceIsNoNoiseFloor) {
  const TensorMap inputs = {{"x", uniform({2, 8}, -1, 1, 1)}};
  const auto record = [&](const std::string& graph) {
    const auto loaded = make_cpu_executor()->load(parse_model(graph), {});
    EXPECT_TRUE(loaded.ok());
    TensorMap tensors = *(*loaded)->run(inputs);
    tensors.insert(inputs.begin(), inputs.end());
    const fs::path folder =
        temporary_.path() / fmt::format("recorded_{}", tensors.size() + count_++);
    fs::create_directories(folder);
    EXPECT_TRUE(write_npz(folder / "000.npz", tensors).ok());
    return "files:" + folder.string();
  };
  CompareOptions o = options(save("a.onnx", kToy), inputs);
  o.tensors = "y";
  o.ref = record(kToy);
  EXPECT_EQ(run(o).verdict, Verdict::kPass) << describe(run(o));
  o.ref = record(replaced(kToy, "7, 8}", "7, 9}"));
  EXPECT_EQ(run(o).verdict, Verdict::kFail) << describe(run(o));
}

TEST_F(Compare, RefusesBadInputWithWhatWasExpected) {
  const TensorMap good = {{"x", uniform({2, 8}, -1, 1, 1)}};
  CompareOptions o = options(save("a.onnx", kToy), good);
  const auto message = [](const CompareOptions& bad) { return compare(bad).status().message(); };
  CompareOptions bad = o;
  bad.on = "htp:1";
  EXPECT_THAT(message(bad), AllOf(HasSubstr("--on"), HasSubstr("unknown executor address 'htp:1'"),
                                  HasSubstr("sim:NAME")));
  bad = o;
  bad.inputs = save("other.npz", TensorMap{{"images", floats({1}, {1})}});
  EXPECT_THAT(message(bad), AllOf(HasSubstr("no array for the input 'x float32 [2,8]'"),
                                  HasSubstr("'images' float32 [1]")));
  bad.inputs = save("shape.npz", TensorMap{{"x", floats({8}, std::vector<float>(8))}});
  EXPECT_THAT(message(bad), AllOf(HasSubstr("shape [8]"), HasSubstr("takes [2,8]")));
  bad.inputs = save("type.npz", TensorMap{{"x", Tensor(DType::kFloat64, {2, 8})}});
  EXPECT_THAT(message(bad), AllOf(HasSubstr("is float64"), HasSubstr("takes float32")));
  bad.inputs = temporary_.path() / "missing.npz";
  EXPECT_THAT(message(bad), HasSubstr("missing.npz"));
  bad.inputs = temporary_.path() / "a.onnx";
  EXPECT_THAT(message(bad), HasSubstr("neither an .npz nor a folder"));
  bad = o;
  bad.tensors = "softmax*";
  EXPECT_THAT(message(bad), HasSubstr("no tensor matches 'softmax*'"));
  bad = o;
  bad.candidate = save("wide.onnx", replaced(replaced(kToy, "float[2,8] x", "float[4,8] x"),
                                             "float[2,8] y", "float[4,8] y"));
  EXPECT_THAT(message(bad), AllOf(HasSubstr("x float32 [2,8]"), HasSubstr("x float32 [4,8]")));
  bad = o;
  bad.storage = "int8";
  EXPECT_THAT(message(bad), HasSubstr("float16, bfloat16 or float32, got 'int8'"));
  bad = o;
  bad.gates = {"ssim"};
  EXPECT_THAT(message(bad), AllOf(HasSubstr("no gate 'ssim'"), HasSubstr("allclose, psnr, map")));
  bad = o;
  bad.cut = "a";
  EXPECT_THAT(message(bad), HasSubstr("--cut 'a' is of --tensors boundary"));
  bad = o;
  bad.images = temporary_.path();
  EXPECT_THAT(message(bad), HasSubstr("not both"));
  bad = o;
  bad.names = save("c.onnx", kToy);
  bad.candidate = save("d.onnx", kToy);
  EXPECT_FALSE(compare(bad).ok());
}

}  // namespace
}  // namespace tenonnx

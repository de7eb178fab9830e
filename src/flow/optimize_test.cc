// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/optimize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>

#include "base/files.h"
#include "base/npy.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "contract/contract.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const fs::path kExample = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";

class Optimize : public ::testing::Test {
 protected:
  fs::path dir() const { return directory_.path(); }
  fs::path write(const std::string& name, const std::string& text) {
    const Model model = model_from_text(text);
    EXPECT_TRUE(model.save(dir() / name).ok());
    return dir() / name;
  }
  fs::path small() {
    return write("small.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[2,8] x) => (float[2,8] y) { a = Identity (x) b = Relu (a) y = Neg (b) })");
  }
  OptimizeOptions options(const fs::path& model) {
    OptimizeOptions options;
    options.model = model;
    options.out = dir() / "out.onnx";
    options.only = {"fold_constants", "eliminate_identities"};
    return options;
  }
  Status fails(const OptimizeOptions& options) {
    const Status status = optimize_file(options).status();
    EXPECT_FALSE(status.ok());
    // Nothing is left behind, whole or half.
    EXPECT_FALSE(fs::exists(dir() / "out.passes.json"));
    for (const auto& entry : fs::directory_iterator(dir()))
      EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("staged")));
    return status;
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(Optimize, WritesAProvedModelAndItsRecord) {
  const auto result = optimize_file(options(small()));
  ASSERT_TRUE(result.ok()) << result.status().message();
  // A bitwise pass on random inputs is proof enough.
  EXPECT_EQ(result->verdict, Verdict::kPass);
  EXPECT_EQ(result->before.nodes, 3);
  EXPECT_EQ(result->after.nodes, 2);
  const auto out = Model::load(dir() / "out.onnx");
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(op_types(*out), (std::vector<std::string>{"Relu", "Neg"}));
  const auto record = read_json_file(dir() / "out.passes.json");
  ASSERT_TRUE(record.ok());
  EXPECT_EQ((*record)["names"]["removed"], Json({{"a", "eliminate_identities"}}));
  EXPECT_EQ((*record)["after"]["sha256"], *sha256_file(dir() / "out.onnx"));
  EXPECT_EQ((*record)["before"]["sha256"], *sha256_file(dir() / "small.onnx"));
  EXPECT_THAT(describe(*result), AllOf(HasSubstr("small.onnx -> out.onnx: PASS"),
                                       HasSubstr("eliminate_identities"), HasSubstr("3 -> 2")));
}

TEST_F(Optimize, ProofsRunOnGivenTensors) {
  OptimizeOptions o = options(small());
  o.inputs = dir() / "inputs.npz";
  ASSERT_TRUE(write_npz(o.inputs, {{"x", ramp({2, 8})}}).ok());
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kPass);
  EXPECT_FALSE(result->random_inputs);
}

// Asked for and not done is no PASS.
TEST_F(Optimize, ANamedPassThatDeclinesIsInconclusive) {
  OptimizeOptions o = options(write("gelu.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) <float r = {1.41421356}, float one = {1}, float half = {0.5}> {
      a = Div (x, r)  b = Erf (a)  c = Add (b, one)  d = Mul (x, c)  y = Mul (d, half)
    })"));
  o.passes = {"fuse_gelu"};
  auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kInconclusive);
  EXPECT_THAT(describe(*result), AllOf(HasSubstr("DECLINED: fuse_gelu changed nothing"),
                                       HasSubstr("run convert_opset with target=20")));
  // In the order in which they are named, the conversion comes first.
  o.passes = {"convert_opset", "fuse_gelu"};
  o.options = {{"convert_opset.target", "20"}};
  o.force = true;
  result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kPass);
  EXPECT_EQ(result->after.nodes, 1);
}

// How many sites there are, how many layers of how many levels, and why one was left.
TEST_F(Optimize, TheTextCountsTheSitesAndSaysWhyOneWasLeft) {
  const std::string layer =
      "g{0} = GridSample <padding_mode = \"{2}\"> (v, {1}) m{0} = Mul (g{0}, w) "
      "y{0} = ReduceSum <keepdims = 0> (m{0}, last) ";
  OptimizeOptions given = options(write(
      "attention.onnx",
      fmt::format("<ir_version: 9, opset_import: [\"\" : 17]> "
                  "g (float[2,3,2,4] v, float[2,5,4,2] a, float[2,5,4,2] b, float[2,5,4,2] c, "
                  "float[2,1,5,4] w) => (float[2,3,5] y0, float[2,3,5] y1, float[2,3,5] y2) "
                  "<int64[1] last = {{-1}}> {{ {} {} {} }}",
                  fmt::format(fmt::runtime(layer), 0, "a", "zeros"),
                  fmt::format(fmt::runtime(layer), 1, "b", "zeros"),
                  fmt::format(fmt::runtime(layer), 2, "c", "border"))));
  given.only.clear();
  given.passes = {"replace_ms_deform_attn"};
  const auto result = optimize_file(given);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const std::string text = describe(*result);
  EXPECT_THAT(text, HasSubstr("\nsites\n  replace_ms_deform_attn: 2 layers x 1 level = 2 "
                              "GridSample; 2 sites changed, 1 left\n"));
  EXPECT_THAT(text, HasSubstr("1 level (2x4) of 4 points"));
  EXPECT_THAT(text, HasSubstr(" and 1 more\n"));
  EXPECT_THAT(text, HasSubstr("\nskipped\n  replace_ms_deform_attn: "));
  EXPECT_THAT(text, HasSubstr("border"));
  EXPECT_EQ(to_json(*result)["passes"][0]["total"], "2 layers x 1 level = 2 GridSample");
}

// Two sites, of which the pass takes one.
constexpr const char* kLinearAndCubic = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[1,2,4,5] v, float[1,3,4,2] p) => (float[1,2,3,4] y, float[1,2,3,4] z) {
    y = GridSample (v, p)  z = GridSample <mode = "bicubic"> (v, p) })";

TEST_F(Optimize, ANamedPassThatLeavesSomeSitesSaysSoInTheHead) {
  OptimizeOptions o = options(write("two.onnx", kLinearAndCubic));
  o.only.clear();
  o.passes = {"replace_grid_sample_gather"};
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kPass);  // of what was changed
  EXPECT_TRUE(result->declined.empty());
  const std::string text = describe(*result);
  const std::size_t at = text.find("  LEFT: replace_grid_sample_gather left 1 of 2 sites: first ");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_LT(at, text.find("inputs:"));
  EXPECT_THAT(text.substr(at), HasSubstr("its mode is cubic"));
  const Json json = to_json(*result);
  ASSERT_EQ(json["left"].size(), 1u);
  EXPECT_EQ(json["left"][0], result->left[0]);
  EXPECT_EQ((*read_json_file(dir() / "out.passes.json"))["left"], json["left"]);
}

// Of optimize's own passes, and of fold_constants, that is how they are.
TEST_F(Optimize, WhatOtherPassesLeaveIsNoLineInTheHead) {
  OptimizeOptions o = options(write("large.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y, float[100] z) <int64[1] n = {100}, float[4] c = {1, 2, 3, 4}> {
      d = Neg (c)  y = Add (x, d)  z = ConstantOfShape (n) })"));
  o.only.clear();
  o.passes = {"fold_constants"};
  o.options = {{"fold_constants.max_bytes", "64"}};
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_GT(result->passes.passes[0].applied, 0);
  EXPECT_FALSE(result->passes.passes[0].skipped.empty());
  EXPECT_TRUE(result->left.empty());
  EXPECT_THAT(describe(*result), testing::Not(HasSubstr("LEFT")));
}

TEST_F(Optimize, AShapeThatIsNotKnownComesWithWhatMakesItKnown) {
  OptimizeOptions o = options(write("dynamic.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,2,4,5] v, float[N,3,4,2] p) => (float[N,2,3,4] y) { y = GridSample (v, p) })"));
  o.only.clear();
  o.passes = {"tile_grid_sample"};
  o.options = {{"tile_grid_sample.memory", "100"}};
  o.proof = ProofLevel::kNone;
  auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(describe(*result), AllOf(HasSubstr("DECLINED: tile_grid_sample"),
                                       HasSubstr("give --input-shape v=SHAPE, and run "
                                                 "fold_constants first: --pass "
                                                 "fold_constants,tile_grid_sample")));
  o.passes = {"fold_constants", "tile_grid_sample"};
  o.force = true;
  result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->declined.size(), 1u);
  EXPECT_THAT(result->declined[0], AllOf(HasSubstr("--input-shape v=SHAPE"),
                                         testing::Not(HasSubstr("run fold_constants"))));
}

// The pass's bound does not hold for values beyond its range. Minimal cases of that run go when the
// same output passes, if there is nothing else among them.
TEST_F(Optimize, SaysWhatItIsWrittenWithoutAndClearsTheCasesAfterwards) {
  OptimizeOptions o = options(write("two.onnx", kLinearAndCubic));
  o.only.clear();
  o.passes = {"replace_grid_sample_int8_lut"};
  o.options = {{"replace_grid_sample_int8_lut.range", "0.1"}};
  o.force = true;
  const auto run = [&] {
    auto result = optimize_file(o);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return std::move(result).value();
  };
  const OptimizeResult failed = run();
  EXPECT_EQ(failed.verdict, Verdict::kFail);
  EXPECT_TRUE(failed.written);
  EXPECT_THAT(describe(failed),
              HasSubstr("\n  UNDONE: out.onnx is written without replace_grid_sample_int8_lut: its "
                        "proof failed\n"));
  const fs::path cases = dir() / "out.onnx.failed";
  ASSERT_TRUE(fs::exists(cases / "replace_grid_sample_int8_lut_0" / "old.onnx"));
  o.options = {{"replace_grid_sample_int8_lut.range", "8"}};
  const fs::path mine = cases / "replace_grid_sample_int8_lut_0" / "mine.txt";
  ASSERT_TRUE(write_file_atomic(mine, "mine").ok());
  const OptimizeResult passed = run();
  EXPECT_EQ(passed.verdict, Verdict::kPass) << describe(passed);
  EXPECT_THAT(describe(passed), testing::Not(HasSubstr("UNDONE")));
  EXPECT_TRUE(fs::exists(mine));
  fs::remove(mine);
  o.proof = ProofLevel::kNone;  // nothing failed, since nothing was looked at
  run();
  EXPECT_TRUE(fs::exists(cases));
  o.proof = ProofLevel::kRegions;
  run();
  EXPECT_FALSE(fs::exists(cases));
}

TEST_F(Optimize, TheShareOfQueriesThatIsKeptIsShown) {
  OptimizeOptions o = options(write("queries.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,4,5] v, float[1,3,4,2] p, float[1,12] a) => (float[1,2,3,4] y) {
      s = Sigmoid (a)  y = GridSample (v, p) })"));
  o.only.clear();
  o.passes = {"prune_queries"};
  for (const char* threshold : {"", "-4"}) {
    o.options = {{"prune_queries.score", "s"}, {"prune_queries.max_count", "3"}};
    if (*threshold != 0) o.options["prune_queries.threshold"] = threshold;
    o.force = true;
    const auto result = optimize_file(o);
    ASSERT_TRUE(result.ok()) << result.status().message();
    const char* kept = "25 % of 12 queries are kept in the mean of 1 input";
    EXPECT_THAT(describe(*result), AllOf(HasSubstr("note: prune_queries: "), HasSubstr(kept)));
    const Json notes = to_json(*result)["passes"][0]["proofs"][0]["notes"];
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_THAT(notes[0].get<std::string>(), HasSubstr(kept));
  }
}

// ONNX Runtime does not load what is spelled as another opset does.
TEST_F(Optimize, AMisspelledModeIsNamedAndCanBeMended) {
  OptimizeOptions o = options(write("linear.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,4,5] v, float[1,3,4,2] p) => (float[1,2,3,4] y) {
      a = Identity (v)  y = GridSample <mode = "linear"> (a, p) })"));
  for (const ProofLevel level : {ProofLevel::kWhole, ProofLevel::kRegions}) {
    o.proof = level;
    EXPECT_THAT(fails(o).message(), AllOf(HasSubstr("the mode 'linear', which opset 17 spells"),
                                          HasSubstr("--pass normalize_grid_sample")));
  }
  o.only.clear();
  o.passes = {"normalize_grid_sample", "replace_grid_sample_gather"};
  o.force = true;
  auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kInconclusive);
  EXPECT_TRUE(result->written);
  const auto& runs = result->passes.passes;
  EXPECT_EQ(runs[0].verdict, Verdict::kInconclusive);
  EXPECT_EQ(runs[1].verdict, Verdict::kPass);  // it is proved as ever
  EXPECT_THAT(runs[0].proofs[0].worst.note,
              HasSubstr("the graph before does not load in ONNX Runtime: GridSample"));
  EXPECT_THAT(describe(*result), AllOf(HasSubstr("the model does not load in ONNX Runtime"),
                                       HasSubstr("with that spelling mended")));
  o.proof = ProofLevel::kWhole;
  result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kInconclusive);
}

TEST_F(Optimize, TheContractGoesWithTheModel) {
  OptimizeOptions o = options(kExample);
  o.only = {"fold_constants"};
  o.proof = ProofLevel::kNone;
  ASSERT_TRUE(optimize_file(o).ok());
  const auto before = read_contract(*find_contract(kExample));
  const auto after = read_contract(dir() / "out.contract.json");
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(after->cut, before->cut);
  EXPECT_EQ(to_json(*after), to_json(*before));
}

// With packed weights 56 of these 64 sums differ, as packing changes their order.
TEST_F(Optimize, AFoldedWeightIsBitwiseTheSame) {
  std::string weights;
  for (int i = 0; i < 6400; ++i)
    weights += fmt::format("{}{:.9g}", i == 0 ? "" : ", ", (i * 37 % 97) / 48.0 - 1);
  OptimizeOptions o = options(write("weight.onnx", fmt::format(
                                                       R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[1,100] x) => (float[1,64] y) <float[64,100] w = {{{}}}> {{
        v = Transpose <perm = [1, 0]> (w)  y = MatMul (x, v) }})",
                                                       weights)));
  o.only = {"fold_constants"};
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->after.nodes, 1);
  EXPECT_EQ(result->verdict, Verdict::kPass) << describe(*result);
}

// As where the queries of a decoder are parameters. One row: of several, packed and unpacked
// weights give the same bits here.
TEST_F(Optimize, AFoldedMatMulIsBitwiseTheSame) {
  std::string rows, weights;
  for (int i = 0; i < 100; ++i)
    rows += fmt::format("{}{:.9g}", i == 0 ? "" : ", ", (i * 53 % 89) / 44.0 - 1);
  for (int i = 0; i < 6400; ++i)
    weights += fmt::format("{}{:.9g}", i == 0 ? "" : ", ", (i * 37 % 97) / 48.0 - 1);
  OptimizeOptions o = options(write("product.onnx", fmt::format(
                                                        R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[1,64] x) => (float[1,64] y) <float[1,100] q = {{{}}}, float[100,64] w = {{{}}}> {{
        v = MatMul (q, w)  y = Add (x, v) }})",
                                                        rows, weights)));
  o.only = {"fold_constants"};
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->after.nodes, 1);
  EXPECT_EQ(result->verdict, Verdict::kPass) << describe(*result);
}

TEST_F(Optimize, RefusesAnOutputThatIsNoFile) {
  OptimizeOptions o = options(small());
  o.out = dir() / "pipe";
  ASSERT_EQ(::mkfifo(o.out.c_str(), 0600), 0);
  o.force = true;
  EXPECT_THAT(optimize_file(o).status().message(), HasSubstr("no regular file"));
  EXPECT_TRUE(fs::is_fifo(o.out));
}

TEST_F(Optimize, RemovesWhatAKilledRunLeft) {
  // No process has the largest number that Linux may give.
  const fs::path left = dir() / ".out.onnx.staged-4194304-abc";
  ASSERT_TRUE(fs::create_directory(left));
  ASSERT_TRUE(optimize_file(options(small())).ok());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(Optimize, WithoutProofThereIsNoVerdict) {
  OptimizeOptions o = options(small());
  o.proof = ProofLevel::kNone;
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(to_json(*result)["verdict"].is_null());
  EXPECT_THAT(describe(*result), HasSubstr("not checked"));
  o.proof = ProofLevel::kWhole;
  o.force = true;
  const auto whole = optimize_file(o);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->verdict, Verdict::kPass);
  EXPECT_TRUE(whole->passes.passes[1].proofs.empty());
}

TEST_F(Optimize, NamesUnknownPassesAndTheNearest) {
  OptimizeOptions o = options(small());
  o.only = {"eliminate_identity"};
  Status status = fails(o);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("'eliminate_identity'"), HasSubstr("'eliminate_identities'")));
  o = options(small());
  o.skip = {"no_such_pass"};
  EXPECT_EQ(fails(o).code(), StatusCode::kNotFound);
  o.skip = {"deduplicate_initializers"};
  EXPECT_THAT(fails(o).message(), HasSubstr("--only does not name it"));
  o = options(small());
  o.only = {"sim_float16"};
  EXPECT_THAT(fails(o).message(), HasSubstr("tenonnx rewrite MODEL --pass sim_float16"));
}

TEST_F(Optimize, RefusesUnknownOptions) {
  OptimizeOptions o = options(small());
  o.options = {{"fold_constants.limit", "1"}};
  EXPECT_THAT(fails(o).message(),
              AllOf(HasSubstr("unknown option 'limit'"), HasSubstr("max_bytes")));
  o.options = {{"fold_constant.max_bytes", "1"}};
  EXPECT_THAT(fails(o).message(), HasSubstr("belongs to none of the passes"));
}

TEST_F(Optimize, DoesNotWriteOverTheModelOrWhatIsThere) {
  OptimizeOptions o = options(small());
  o.out = dir() / "." / "small.onnx";
  o.force = true;
  EXPECT_THAT(optimize_file(o).status().message(), HasSubstr("is the model itself"));
  o = options(small());
  ASSERT_TRUE(write_file_atomic(o.out, "mine").ok());
  EXPECT_EQ(fails(o).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(*read_file(o.out), "mine");
  o.force = true;
  EXPECT_TRUE(optimize_file(o).ok());
}

TEST_F(Optimize, SaysWhereItCannotWrite) {
  OptimizeOptions o = options(small());
  o.out = dir() / "missing" / "out.onnx";
  EXPECT_THAT(fails(o).message(), HasSubstr("there is no directory"));
  o.out = dir();
  EXPECT_THAT(fails(o).message(), HasSubstr("is a directory"));
  o.out = "/proc/out.onnx";
  EXPECT_THAT(fails(o).message(), HasSubstr("nothing can be written into '/proc'"));
}

TEST_F(Optimize, RandomInputsNeedStaticShapes) {
  const fs::path model = write("dynamic.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,8] x) => (float[N,8] y) { a = Identity (x) y = Relu (a) })");
  OptimizeOptions o = options(model);
  EXPECT_THAT(fails(o).message(), HasSubstr("--input-shape x="));
  o.input_shapes = {{"x", "2x8"}};
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kPass);
}

TEST_F(Optimize, AnApproximateRewriteWithoutImagesIsInconclusive) {
  OptimizeOptions o = options(small());
  o.only.clear();
  o.passes = {"sim_float16"};
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kInconclusive);
  EXPECT_TRUE(result->written);
}

TEST_F(Optimize, ExplainsFromTheFile) {
  const auto text = explain_pass("fold_constants");
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, AllOf(HasSubstr("before: Shape(x)"), HasSubstr("Options: max_bytes"),
                           HasSubstr("class bitwise, opset 7 to 26")));
  EXPECT_EQ(explain_pass("fold_constant").status().code(), StatusCode::kNotFound);
  for (const PassInfo& pass : all_passes())
    EXPECT_THAT(*explain_pass(pass.name), HasSubstr(std::string(pass.name))) << pass.name;
  // Whoever asks for an explanation has no source at hand.
  for (const char* pass : {"replace_grid_sample_gather", "replace_grid_sample_discrete"})
    EXPECT_THAT(*explain_pass(pass),
                AllOf(HasSubstr("two_axis: GatherND"), HasSubstr("elements: GatherElements"),
                      HasSubstr("index_arithmetic=int32 (default)"), HasSubstr("device=NAME"),
                      testing::Not(HasSubstr("grid_sample_gather.h"))));
  EXPECT_THAT(*explain_pass("normalize_grid_sample"),
              AllOf(HasSubstr("TensorRT"), testing::Not(HasSubstr("kMisreads"))));
}

// The raw export of the example has 3,548 nodes, most of them shape arithmetic.
TEST_F(Optimize, NoShapeArithmeticRemainsInTheExample) {
  OptimizeOptions o = options(kExample);
  o.only.clear();
  o.proof = ProofLevel::kWhole;
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_NE(result->verdict, Verdict::kFail) << describe(*result);
  const auto out = Model::load(o.out);
  ASSERT_TRUE(out.ok());
  auto counts = op_counts(*out);
  for (const char* op : {"Shape", "ConstantOfShape", "Range", "Constant", "Identity"})
    EXPECT_EQ(counts[op], 0) << op;
  const GraphIndex index(out->proto().graph());
  for (const auto& node : out->proto().graph().node())
    if (node.op_type() == "Expand") {
      EXPECT_TRUE(index.find(node.input(1))->is_initializer()) << node.name();
    }
}

// The default of s makes w [2,4], a caller's [4,2] another shape: what depends on it is no
// constant.
TEST_F(Optimize, InputsWithAStoredValueBecomeConstantsAndThatIsSaid) {
  const char* text = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[8] x, int64[2] s) => (int64[2] y) <int64[2] s = {2, 4}> {
      w = Reshape (x, s) d = Shape (w) y = Neg (d) })";
  const fs::path model = write("kept.onnx", text);
  Model kept = model_from_text(text);
  const std::vector<std::string> fold = {"fold_constants"};
  ASSERT_TRUE(run_passes(kept, fold, {}).ok());
  EXPECT_EQ(op_types(kept), (std::vector<std::string>{"Reshape", "Shape", "Neg"}));
  OptimizeOptions o = options(model);
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(describe(*result), HasSubstr("1 input with a stored value"));
  const auto out = Model::load(o.out);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->proto().graph().input_size(), 1);
  EXPECT_EQ(op_types(*out), (std::vector<std::string>{"Constant"}));
}

TEST_F(Optimize, WhereAllOutputsAreNaNNothingIsProved) {
  const fs::path model = small();
  Tensor x(DType::kFloat32, {2, 8});
  std::fill_n(x.mutable_data<float>(), x.size(), std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(write_npz(dir() / "nan.npz", {{"x", x}}).ok());
  OptimizeOptions o = options(model);
  o.inputs = dir() / "nan.npz";
  o.proof = ProofLevel::kWhole;
  const auto result = optimize_file(o);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kInconclusive);
  EXPECT_THAT(describe(*result), HasSubstr("not one finite number"));
  EXPECT_THAT(result->notes,
              testing::Contains(HasSubstr("nan.npz: input 'x' float32 [2,8] holds 16 NaN")));
}

}  // namespace
}  // namespace tenonnx

// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/temporary_directory.h"
#include "contract/contract.h"
#include "flow/cuts.h"
#include "model/parse_for_test.h"
#include "ort/executor.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// x -> enc/a -> enc/b -> dec/out, and enc/a -> dec/skip: a cut at enc/b alone is no separator.
constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,4] x, float[1,4] offset) => (float[1,4] y)
<float[4] w = {1, 2, 3, 4}> {
  "enc/a" = Mul (x, w)
  "enc/b" = Relu ("enc/a")
  "dec/b" = Add ("enc/b", "enc/a")
  y = Add ("dec/b", offset)
})";

class Split : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(parse_model(kModel).save(path_).ok()); }
  SplitRequest request(std::vector<std::string> at) const {
    SplitRequest out;
    out.model = path_;
    out.at = std::move(at);
    out.out = temporary_.path() / "parts";
    return out;
  }
  TemporaryDirectory temporary_;
  const fs::path path_ = temporary_.path() / "toy.onnx";
};

TEST_F(Split, PartsComputeTheSame) {
  const auto report = split_file(request({"enc/b", "enc/a"}));
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->boundaries.size(), 2u);
  EXPECT_EQ(report->boundaries[0].name, "feature_0");
  EXPECT_EQ(report->boundaries[0].source, "enc/b");
  EXPECT_EQ(report->boundaries[1].source, "enc/a");
  EXPECT_EQ(report->boundaries[0].bytes, 16u);  // float32 [1,4]
  EXPECT_EQ(report->source_sha256, *sha256_file(path_));

  const auto cpu = make_cpu_executor();
  const auto load = [&](const fs::path& path) {
    const auto model = Model::load(path);
    EXPECT_TRUE(model.ok()) << model.status().message();
    auto graph = cpu->load(*model, {});
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return std::move(graph).value();
  };
  const auto whole = load(path_);
  const auto encoder = load(temporary_.path() / "parts/encoder.onnx");
  const auto decoder = load(temporary_.path() / "parts/decoder.onnx");
  const Tensor x = Tensor::from<float>(DType::kFloat32, {1, 4}, {-1, 2, -3, 4});
  const Tensor offset = Tensor::from<float>(DType::kFloat32, {1, 4}, {10, 20, 30, 40});
  const auto expected = whole->run({{"x", x}, {"offset", offset}});
  auto features = encoder->run({{"x", x}});
  ASSERT_TRUE(features.ok()) << features.status().message();
  features->emplace("offset", offset);
  const auto got = decoder->run(*features);
  ASSERT_TRUE(got.ok()) << got.status().message();
  const float* y = got->at("y").data<float>();
  // y = relu(x w) + x w + offset, by hand.
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{9, 28, 21, 72}));
  const float* whole_y = expected->at("y").data<float>();
  EXPECT_EQ(std::vector<float>(whole_y, whole_y + 4), std::vector<float>(y, y + 4));

  const auto json = read_json_file(temporary_.path() / "parts/split.json");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["schema_version"], 1);
  EXPECT_EQ((*json)["boundaries"][1]["source"], "enc/a");
  EXPECT_EQ((*json)["parts"][0]["sha256"], *sha256_file(temporary_.path() / "parts/encoder.onnx"));
}

TEST_F(Split, PrefixNamesTheBoundary) {
  SplitRequest with_prefix = request({"enc/b", "enc/a"});
  with_prefix.name_prefix = "boundary";
  const auto report = split_file(with_prefix);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->boundaries[1].name, "boundary_1");
}

TEST_F(Split, TakesAUniqueSuffixAndListsAmbiguousOnes) {
  EXPECT_TRUE(split_file(request({"enc/b", "c/a"})).ok());
  fs::remove_all(temporary_.path() / "parts");
  const auto ambiguous = split_file(request({"/b"}));
  ASSERT_FALSE(ambiguous.ok());
  EXPECT_THAT(ambiguous.status().message(),
              AllOf(HasSubstr("'/b'"), HasSubstr("enc/b"), HasSubstr("dec/b")));
  const auto unknown = split_file(request({"nothing"}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.status().message(), HasSubstr("'nothing'"));
}

TEST_F(Split, RefusesWhatIsNoSeparator) {
  const auto refused = split_file(request({"enc/b"}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("enc/a"), HasSubstr("x")));
  EXPECT_FALSE(fs::exists(temporary_.path() / "parts"));
}

TEST_F(Split, RefusesATensorTwiceAndNone) {
  EXPECT_THAT(split_file(request({"enc/a", "enc/a"})).status().message(),
              HasSubstr("names 'enc/a' twice"));
  EXPECT_THAT(split_file(request({})).status().message(), HasSubstr("at least one tensor"));
}

TEST_F(Split, RefusesAPrefixThatIsNoName) {
  SplitRequest named = request({"enc/b", "enc/a"});
  for (const char* prefix : {"", "a b", "a\nb", "\xC3\xA9", "a:b", "a\\b"}) {
    named.name_prefix = prefix;
    const auto refused = split_file(named);
    ASSERT_FALSE(refused.ok()) << prefix;
    EXPECT_THAT(refused.status().message(),
                AllOf(HasSubstr("name prefix '" + std::string(prefix) + "'"),
                      HasSubstr("--name-prefix"), HasSubstr("letters, digits")));
  }
  named.name_prefix = "Neck-1/p.out_";
  EXPECT_TRUE(split_file(named).ok());
}

TEST_F(Split, RefusesASecondPartThatComputesNothing) {
  ASSERT_TRUE(parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,4] x) => (float[1,4] y, float[1,4] z) {
  a = Relu (x)
  b = Identity (a)
  y = Identity (b)
  z = Identity (a)
})")
                  .save(path_)
                  .ok());
  const auto refused = split_file(request({"a"}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("'a'"), HasSubstr("nothing behind it but Identity")));
}

TEST_F(Split, ReplacesOnlyWhenAsked) {
  ASSERT_TRUE(split_file(request({"enc/b", "enc/a"})).ok());
  SplitRequest again = request({"enc/a"});
  EXPECT_THAT(split_file(again).status().message(), HasSubstr("exists"));
  EXPECT_EQ((*read_json_file(temporary_.path() / "parts/split.json"))["boundaries"].size(), 2u);
  again.force = true;
  EXPECT_TRUE(split_file(again).ok());
  EXPECT_EQ((*read_json_file(temporary_.path() / "parts/split.json"))["boundaries"].size(), 1u);
  std::ofstream(temporary_.path() / "parts" / "thesis.txt") << "precious";
  EXPECT_THAT(split_file(again).status().message(),
              HasSubstr("holds 'thesis.txt', which is not part of what 'split' writes"));
  EXPECT_TRUE(fs::exists(temporary_.path() / "parts" / "thesis.txt"));
}

TEST(SpellBytes, PicksTheUnit) {
  EXPECT_EQ(spell_bytes(800), "800 bytes");
  EXPECT_EQ(spell_bytes(102400), "100 KiB");
  EXPECT_EQ(spell_bytes(6451200), "6.15 MiB");  // 1,612,800 float32, the article's boundary
}

TEST_F(Split, WithoutAnAutomaticCutItSaysWhyAndWritesNothing) {
  const auto report = split_file(request({"auto"}));
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.status().message(),
              AllOf(HasSubstr("toy.onnx"), HasSubstr("no automatic cut: "),
                    HasSubstr("no layer with weights"), HasSubstr("split MODEL --list")));
  EXPECT_FALSE(fs::exists(temporary_.path() / "parts"));
}

TEST(SplitExample, TheAutomaticCutIsDescribed) {
  const TemporaryDirectory temporary;
  SplitRequest request;
  request.model = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";
  request.at = {"auto"};
  request.out = temporary.path() / "parts";
  const auto report = split_file(request);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->kind, "features");
  // 64 channels at 1/8, 1/16 and 1/32 of 160 pixels, float32.
  EXPECT_EQ(report->cut.elements, 64 * (20 * 20 + 10 * 10 + 5 * 5));
  EXPECT_EQ(report->cut.bytes, 4 * report->cut.elements);
  EXPECT_EQ(report->cut.sampling_behind, 12u);
  EXPECT_EQ(report->cut.selections_behind, 3u);
  EXPECT_THAT(describe(*report), AllOf(HasSubstr("automatic cut: features: what feeds both"),
                                       HasSubstr("33,600 elements, 131 KiB in float32")));
}

TEST(SplitExample, TheListFitsATerminal) {
  CutListRequest request;
  request.model = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";
  const auto list = list_cuts(request);
  ASSERT_TRUE(list.ok()) << list.status().message();
  std::istringstream lines(describe(*list));
  int automatic = 0;
  bool in_table = true;
  for (std::string line; std::getline(lines, line);) {
    in_table &= !line.empty();  // below it stand names in full
    if (in_table) EXPECT_LE(line.size(), 100u) << line;
    automatic += line.starts_with("auto ");
  }
  EXPECT_EQ(automatic, 1);
}

// Full-size exports (tools/models/export_models.py), folded as every command folds them: the cut
// that their contracts name. Those of the unfolded ones: src/cut/exports_test.cc.
TEST(SplitExportsSlow, FoldedExportsHaveTheCutThatTheirContractsName) {
  const char* cache = std::getenv("TENONNX_CACHE");
  const char* home = std::getenv("HOME");
  const fs::path directory = cache != nullptr ? fs::path(cache) / "exports"
                                              : fs::path(home) / ".cache" / "tenonnx" / "exports";
  int models = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const auto contract_path = find_contract(entry.path());
    if (entry.path().extension() != ".onnx" || !contract_path) continue;
    const auto contract = read_contract(*contract_path);
    if (!contract.ok() || contract->cut.empty()) continue;
    SCOPED_TRACE(entry.path().filename().string());
    auto model = Model::load(entry.path());
    ASSERT_TRUE(model.ok()) << model.status().message();
    ASSERT_TRUE(prepare_graph(*model, {}).ok());
    const auto found = automatic_cut(*model);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->found.cut->tensors, contract->cut);
    ++models;
  }
  if (models == 0) GTEST_SKIP() << "no exports: tools/models/export_models.py makes them";
}

}  // namespace
}  // namespace tenonnx

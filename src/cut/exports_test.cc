// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The automatic cut of trained and of full-size detectors. Their contracts name the cut that
// tools/models/contract_file.py found by the exporter's scopes: another method, and names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "contract/contract.h"
#include "cut/auto_cut.h"
#include "cut/candidates.h"
#include "cut/scramble_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

const fs::path kExamples = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples" / "models";

fs::path exports_directory() {
  if (const char* cache = std::getenv("TENONNX_CACHE")) return fs::path(cache) / "exports";
  const char* home = std::getenv("HOME");
  return home == nullptr ? fs::path() : fs::path(home) / ".cache" / "tenonnx" / "exports";
}

AutoCut automatic(const Model& model) { return find_auto_cut(model, infer_shapes(model)); }

// Where both are known: the unfolded graph of one exporter computes some sizes.
void expect_same_shape(const Shape& a, const Shape& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i] == b[i] || a[i] < 0 || b[i] < 0) << to_string(a) << " " << to_string(b);
}

// As the contract says, and after everything is renamed and put into another order.
void expect_the_contracts_cut(const fs::path& path, int orders) {
  SCOPED_TRACE(path.filename().string());
  const auto model = Model::load(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto contract_path = find_contract(path);
  ASSERT_TRUE(contract_path.has_value());
  const auto contract = read_contract(*contract_path);
  ASSERT_TRUE(contract.ok()) << contract.status().message();
  const AutoCut found = automatic(*model);
  ASSERT_TRUE(found.cut.has_value()) << found.why_none;
  EXPECT_EQ(found.cut->tensors, contract->cut);
  for (int seed = 1; seed <= orders; ++seed) {
    const Scrambled other = scramble(*model, static_cast<unsigned>(seed));
    const AutoCut again = automatic(other.model);
    ASSERT_TRUE(again.cut.has_value()) << again.why_none;
    Names names;
    for (const std::string& name : again.cut->tensors) names.push_back(other.old_names.at(name));
    EXPECT_EQ(names, found.cut->tensors) << "seed " << seed;
    ASSERT_EQ(again.alternatives.size(), found.alternatives.size());
  }
}

TEST(ExampleCut, IsWhatTheContractNames) {
  for (const char* name : {"shapes_deimv2.onnx", "shapes_deimv2_fragile.onnx"})
    expect_the_contracts_cut(kExamples / name, 3);
}

TEST(ExportsSlow, HaveTheCutThatTheirContractsName) {
  int models = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(exports_directory(), error)) {
    if (entry.path().extension() != ".onnx") continue;
    // Contracts of the other exporter name no cut: it leaves no scopes.
    const auto contract = find_contract(entry.path());
    if (!contract || !read_contract(*contract).ok() || read_contract(*contract)->cut.empty())
      continue;
    ++models;
    expect_the_contracts_cut(entry.path(), 1);
  }
  if (models == 0) GTEST_SKIP() << "no exports: tools/models/export_models.py makes them";
}

// PyTorch's other exporter writes other operators and names: the same tensors by their shapes.
TEST(ExportsSlow, BothExportersGiveTheSameBoundary) {
  int models = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(exports_directory(), error)) {
    const std::string name = entry.path().filename().string();
    const std::string end = "_dynamo.onnx";
    if (!name.ends_with(end)) continue;
    const fs::path twin =
        entry.path().parent_path() / (name.substr(0, name.size() - end.size()) + "_ts.onnx");
    if (!fs::exists(twin)) continue;
    SCOPED_TRACE(name);
    const auto first = Model::load(entry.path());
    const auto second = Model::load(twin);
    ASSERT_TRUE(first.ok() && second.ok());
    const DescribedCut one = find_described_cut(*first), other = find_described_cut(*second);
    ASSERT_TRUE(one.found.cut.has_value()) << one.found.why_none;
    ASSERT_TRUE(other.found.cut.has_value()) << other.found.why_none;
    EXPECT_EQ(one.found.cut->kind, other.found.cut->kind);
    ASSERT_EQ(one.description.tensors.size(), other.description.tensors.size());
    for (std::size_t i = 0; i < one.description.tensors.size(); ++i)
      expect_same_shape(one.description.tensors[i].shape, other.description.tensors[i].shape);
    EXPECT_EQ(one.description.sampling_behind, other.description.sampling_behind);
    EXPECT_EQ(one.description.selections_behind, other.description.selections_behind);
    ++models;
  }
  if (models == 0) GTEST_SKIP() << "no exports: export_models.py NAME --exporter both makes them";
}

// The figures of a DEIMv2-S at 640: three levels at 1/8, 1/16 and 1/32 with 192 channels.
TEST(ExportsSlow, DeimV2SHandsOver1612800Elements) {
  for (const char* name : {"deimv2_s_640_ts.onnx", "deimv2_s_gather_640_ts.onnx"}) {
    SCOPED_TRACE(name);
    const auto model = Model::load(exports_directory() / name);
    if (!model.ok()) GTEST_SKIP() << "no exports: tools/models/export_models.py makes them";
    const DescribedCut cut = find_described_cut(*model);
    ASSERT_TRUE(cut.found.cut.has_value()) << cut.found.why_none;
    EXPECT_EQ(cut.found.cut->kind, "features");
    ASSERT_EQ(cut.description.tensors.size(), 3u);
    EXPECT_EQ(cut.description.tensors[0].shape, (Shape{1, 192, 80, 80}));
    EXPECT_EQ(cut.description.tensors[1].shape, (Shape{1, 192, 40, 40}));
    EXPECT_EQ(cut.description.tensors[2].shape, (Shape{1, 192, 20, 20}));
    EXPECT_EQ(cut.description.elements, 1'612'800);
    EXPECT_EQ(cut.description.bytes, 4 * 1'612'800);
    EXPECT_EQ(cut.description.selections_behind, 3u);
  }
}

// Its encoder samples too: the memory is one tensor, and the three levels of the backbone (the
// fourth is made of the last one by the input projection) keep all sampling behind the cut. The
// form of one stage has no query selection either.
TEST(ExportsSlow, DeformableDetrHasMemoryAndBackboneFeatures) {
  for (const char* name :
       {"deformable_detr_r18_640_ts.onnx", "deformable_detr_r18_640_dynamo.onnx",
        "deformable_detr_r18_single_640_ts.onnx", "deformable_detr_r18_single_640_dynamo.onnx"}) {
    SCOPED_TRACE(name);
    const auto model = Model::load(exports_directory() / name);
    if (!model.ok()) GTEST_SKIP() << "no exports: tools/models/export_models.py makes them";
    const AutoCut found = automatic(*model);
    ASSERT_TRUE(found.cut.has_value()) << found.why_none;
    EXPECT_EQ(found.cut->kind, "encoder memory");
    EXPECT_EQ(found.cut->tensors.size(), 1u);
    ASSERT_EQ(found.alternatives.size(), 1u);
    EXPECT_EQ(found.alternatives[0].kind, "backbone features");
    EXPECT_EQ(found.alternatives[0].tensors.size(), 3u);
  }
}

}  // namespace
}  // namespace tenonnx

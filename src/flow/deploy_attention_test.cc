// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Packages whose segments hold operators of libtenonnx_ops.so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cstdlib>
#include <fstream>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "eval/shapes.h"
#include "flow/deploy.h"
#include "flow/verify.h"
#include "ort/ops_library.h"
#include "pipeline/chain.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

const fs::path kModel =
    fs::path(TENONNX_TEST_SOURCE_DIR) / "examples" / "models" / "shapes_deimv2.onnx";

class DeployAttention : public ::testing::Test {
 protected:
  DeployOptions options(bool fuse) const {
    DeployOptions out;
    out.model = kModel;
    out.out = package_;
    out.random_inputs = 1;
    out.fuse_attention = fuse;
    return out;
  }
  static int count_of(const fs::path& model, const char* op_type) {
    const auto loaded = Model::load(model);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    int count = 0;
    for (const auto& node : loaded->proto().graph().node()) count += node.op_type() == op_type;
    return count;
  }
  Status loads() const {
    const auto manifest = read_package(package_);
    if (!manifest.ok()) return manifest.status();
    return PackageChain::load(package_, *manifest, {}).status();
  }

  TemporaryDirectory temporary_;
  const fs::path package_ = temporary_.path() / "pkg";
};

TEST_F(DeployAttention, FusesWhereAskedAndPacksTheLibrary) {
  const auto result = deploy(options(true));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(count_of(package_ / "decoder.onnx", "GridSample"), 0);
  EXPECT_EQ(count_of(package_ / "decoder.onnx", "MSDeformAttn"), 4);
  EXPECT_EQ(count_of(package_ / "encoder.onnx", "MSDeformAttn"), 0);
  const auto library = find_ops_library();
  ASSERT_TRUE(library.ok()) << library.status().message();
  const auto manifest = read_package(package_);
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_THAT(manifest->files,
              Contains(AllOf(Field(&PackagedFile::path, kOpsLibraryFile),
                             Field(&PackagedFile::sha256, *sha256_file(*library)))));
  // The graph level compares what was cut, before it was fused: every bit is the same.
  EXPECT_THAT(result->proof.checks, Contains(AllOf(Field(&Check::name, "cut: differing elements"),
                                                   Field(&Check::verdict, Verdict::kPass))));
  EXPECT_NE(result->proof.verdict, Verdict::kFail) << describe(*result);
  EXPECT_THAT(manifest->settings.at("passes").dump(),
              AllOf(HasSubstr("hoist_gather"), HasSubstr("replace_ms_deform_attn")));
  EXPECT_TRUE(loads().ok()) << loads().message();
}

TEST_F(DeployAttention, OffersItAndLeavesTheModelAlone) {
  const auto result = deploy(options(false));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(result->notes,
              Contains(AllOf(HasSubstr("'decoder' computes deformable attention by GridSample at 4 "
                                       "places"),
                             HasSubstr("--fuse-attention"))));
  EXPECT_EQ(count_of(package_ / "decoder.onnx", "GridSample"), 12);
  EXPECT_FALSE(fs::exists(package_ / kOpsLibraryFile));
}

TEST_F(DeployAttention, ASegmentOnADeviceStaysAsItIs) {
  DeployOptions whole = options(true);
  whole.target = "sim-htp";
  const auto result = deploy(whole);
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (const Segment& segment : result->manifest.segments)
    EXPECT_EQ(count_of(package_ / segment.file, "MSDeformAttn") > 0, segment.executor == "cpu");
}

// The nodes of one attention kept on the cpu: there it is fused, beside the device's segments.
TEST_F(DeployAttention, AKeptAttentionIsFused) {
  const auto model = Model::load(kModel);
  ASSERT_TRUE(model.ok());
  DeployOptions kept = options(true);
  kept.target = "sim-htp";
  kept.keep_on_cpu = temporary_.path() / "kept.txt";
  std::ofstream list(kept.keep_on_cpu);
  int listed = 0;
  for (const auto& node : model->proto().graph().node()) {
    if (node.name().find("/layers.3/encoder_attn/") == std::string::npos) continue;
    list << node.output(0) << "\n";
    ++listed;
  }
  list.close();
  ASSERT_GT(listed, 30);
  const auto result = deploy(kept);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_NE(result->proof.verdict, Verdict::kFail) << describe(*result);
  int on_cpu = 0, on_device = 0;
  for (const Segment& segment : result->manifest.segments) {
    const bool cpu = segment.executor == "cpu";
    (cpu ? on_cpu : on_device) += count_of(package_ / segment.file, "MSDeformAttn");
    EXPECT_EQ(count_of(package_ / segment.file, "GridSample") > 0,
              !cpu && segment.name == "segment_0");
  }
  EXPECT_EQ(on_cpu, 1) << describe(*result);
  EXPECT_EQ(on_device, 0);
  EXPECT_TRUE(loads().ok()) << loads().message();
}

TEST_F(DeployAttention, ImagesPassTheGatesAndVerifyAgain) {
  const fs::path images = temporary_.path() / "images";
  fs::create_directory(images);
  for (std::uint64_t seed = kShapesHeldOutSeed; seed < kShapesHeldOutSeed + 2; ++seed) {
    const ShapesImage image = make_shapes_image(seed);
    std::ofstream(images / (std::to_string(seed) + ".ppm"), std::ios::binary)
        << "P6 160 160 255\n"
        << std::string(image.rgb.begin(), image.rgb.end());
  }
  DeployOptions with = options(true);
  with.images = images;
  const auto result = deploy(with);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->manifest.verdict, "PASS") << describe(*result);
  VerifyOptions verify_options;
  verify_options.package = package_;
  verify_options.images = images;
  verify_options.model = kModel;
  const auto verified = verify(verify_options);
  ASSERT_TRUE(verified.ok()) << verified.status().message();
  EXPECT_EQ(verified->verdict, Verdict::kPass);
  EXPECT_THAT(verified->notes, Contains(HasSubstr("the graph level is the deploy's")));
}

// The library is a file of the package like any other.
TEST_F(DeployAttention, AChangedLibraryIsRefused) {
  ASSERT_TRUE(deploy(options(true)).ok());
  std::ofstream(package_ / kOpsLibraryFile, std::ios::app) << "x";
  EXPECT_THAT(loads().message(), AllOf(HasSubstr(kOpsLibraryFile), HasSubstr("was changed")));
  fs::remove(package_ / kOpsLibraryFile);
  EXPECT_THAT(loads().message(), AllOf(HasSubstr(kOpsLibraryFile), HasSubstr("is missing")));
}

// Code out of a package is not run: this program's library must be the one of the proof.
TEST_F(DeployAttention, AnotherLibraryOfTheProgramIsRefused) {
  ASSERT_TRUE(deploy(options(true)).ok());
  const auto library = find_ops_library();
  ASSERT_TRUE(library.ok());
  const fs::path other = temporary_.path() / "other.so";
  fs::copy_file(*library, other);
  std::ofstream(other, std::ios::app) << "x";  // loads, and is another file
  ASSERT_EQ(::setenv("TENONNX_OPS", other.c_str(), 1), 0);
  const Status status = loads();
  ::unsetenv("TENONNX_OPS");
  EXPECT_THAT(status.message(), AllOf(HasSubstr("segment 'decoder'"), HasSubstr("SHA-256"),
                                      HasSubstr(other.string()), HasSubstr("set TENONNX_OPS")));
}

// A model that was rewritten before packs the library too.
TEST_F(DeployAttention, ARewrittenModelNeedsNoOption) {
  auto model = Model::load(kModel);
  ASSERT_TRUE(model.ok());
  const std::vector<std::string> passes = {"fold_constants", "replace_ms_deform_attn"};
  ASSERT_TRUE(run_passes(*model, passes, {}).ok());
  const fs::path rewritten = temporary_.path() / "rewritten.onnx";
  ASSERT_TRUE(model->save(rewritten).ok());
  fs::copy_file(fs::path(kModel).replace_extension(".contract.json"),
                temporary_.path() / "rewritten.contract.json");
  DeployOptions plain = options(false);
  plain.model = rewritten;
  const auto result = deploy(plain);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(fs::exists(package_ / kOpsLibraryFile));
  EXPECT_TRUE(loads().ok()) << loads().message();
}

}  // namespace
}  // namespace tenonnx

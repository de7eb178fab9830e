// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The provider against sim:, partition by partition: bit for bit, no tolerance. Both run the same
// operators of one ONNX Runtime with its optimisation disabled on the same inputs.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "adapters/address.h"
#include "adapters/provider.h"
#include "model/crossings.h"
#include "model/extract.h"
#include "model/graph.h"
#include "model/tensor_proto.h"
#include "passes/inference.h"
#include "passes/runner.h"

namespace tenonnx {
namespace {

const std::string kExample =
    std::string(TENONNX_TEST_SOURCE_DIR) + "/examples/models/shapes_deimv2.onnx";

Tensor random_input(const TensorInfo& info, std::uint32_t seed) {
  Tensor tensor(info.dtype, info.shape);
  std::mt19937 random(seed);
  if (info.dtype == DType::kFloat32) {
    std::uniform_real_distribution<float> values(0, 1);
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.mutable_data<float>()[i] = values(random);
  } else if (info.dtype == DType::kInt64) {
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.mutable_data<std::int64_t>()[i] = 320;  // sizes of images
  }
  return tensor;
}

void add_output(Model& model, const std::string& name, const Inference& inference) {
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  for (const onnx::ValueInfoProto& output : graph.output())
    if (output.name() == name) return;
  onnx::ValueInfoProto& info = *graph.add_output();
  info.set_name(name);
  const auto type = inference.graphs[0].find(name);
  ASSERT_NE(type, inference.graphs[0].end()) << name;
  info.mutable_type()->mutable_tensor_type()->set_elem_type(type->second.onnx_type);
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

struct Compared {
  int partitions = 0, nodes = 0, tensors = 0, differing = 0;
  int unlike_cpu = 0;  // tensors of the device's partitions that the CPU gives other bits for
};

// Every partition of `model` on the device, fed with what the provider computed before it.
Compared compare_partitions(const Model& source) {
  Compared compared;
  Model model = source.clone();
  const std::vector<std::string> fold = {"fold_constants"};
  EXPECT_TRUE(run_passes(model, fold, {}).ok());
  const auto provider = make_executor("provider:simnpu");
  const auto sim = make_executor("sim:simnpu");
  EXPECT_TRUE(provider.ok() && sim.ok()) << provider.status().message();
  if (!provider.ok() || !sim.ok()) return compared;
  LoadOptions options;
  options.intra_op_threads = 2;
  const auto probe = (*provider)->load(model, options);
  EXPECT_TRUE(probe.ok()) << probe.status().message();
  if (!probe.ok()) return compared;
  const ProviderRecord& record = *provider_record(**probe);

  // Group 0 is the CPU.
  std::map<std::string, int> partition_of, numbers;
  std::set<int> on_host;
  for (const VendorNode& node : record.vendor) {
    const auto [it, is_new] =
        numbers.try_emplace(node.partition, static_cast<int>(numbers.size()) + 1);
    partition_of[node.node] = it->second;
    if (node.backend == "host") on_host.insert(it->second);
  }
  const onnx::GraphProto& graph = model.proto().graph();
  std::vector<int> group_of;
  for (const onnx::NodeProto& node : graph.node()) {
    const auto it = partition_of.find(node.name());
    group_of.push_back(it == partition_of.end() ? 0 : it->second);
    compared.nodes += it != partition_of.end() ? 1 : 0;
  }
  const auto crossings = find_crossings(graph, group_of);
  Model observed = model.clone();
  const Inference inference = infer(model);
  for (const Crossing& crossing : crossings)
    if (crossing.from >= 0) add_output(observed, crossing.tensor, inference);
  const auto whole = (*provider)->load(observed, options);
  EXPECT_TRUE(whole.ok()) << whole.status().message();
  if (!whole.ok()) return compared;
  EXPECT_EQ(provider_record(**whole)->vendor.size(), record.vendor.size())
      << "looking inside changed the partitions";
  TensorMap known;
  std::uint32_t seed = 1;
  for (const TensorInfo& info : model.inputs()) known[info.name] = random_input(info, seed++);
  const auto made = (*whole)->run(known);
  EXPECT_TRUE(made.ok()) << made.status().message();
  if (!made.ok()) return compared;
  for (const auto& [name, tensor] : *made) known.insert_or_assign(name, tensor);

  for (const auto& [name, number] : numbers) {
    std::vector<std::string> inputs, outputs;
    for (const Crossing& crossing : crossings) {
      if (crossing.from == number) outputs.push_back(crossing.tensor);
      if (std::find(crossing.to.begin(), crossing.to.end(), number) != crossing.to.end())
        inputs.push_back(crossing.tensor);
    }
    const auto part = extract(model, inputs, outputs);
    EXPECT_TRUE(part.ok()) << part.status().message();
    if (!part.ok()) continue;
    const auto on_cpu = make_cpu_executor();
    const Executor& executor = on_host.contains(number) ? *on_cpu : **sim;
    const auto loaded = executor.load(*part, options);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    if (!loaded.ok()) continue;
    TensorMap feeds;
    for (const std::string& input : inputs) feeds[input] = known.at(input);
    const auto expected = (*loaded)->run(feeds);
    EXPECT_TRUE(expected.ok()) << expected.status().message();
    if (!expected.ok()) continue;
    ++compared.partitions;
    const auto float32 = on_cpu->load(*part, options);
    EXPECT_TRUE(float32.ok()) << float32.status().message();
    const auto control = float32.ok() ? (*float32)->run(feeds) : Result<TensorMap>(TensorMap());
    EXPECT_TRUE(control.ok()) << control.status().message();
    for (const auto& [tensor, value] : *expected) {
      const Tensor& got = known.at(tensor);
      ++compared.tensors;
      const bool same = equal(got, value);
      if (control.ok() && control->contains(tensor) && !equal(got, control->at(tensor)))
        ++compared.unlike_cpu;
      if (!same) ++compared.differing;
      EXPECT_TRUE(same) << name << " '" << tensor << "' " << to_string(got.shape());
    }
  }
  std::cout << compared.partitions << " partitions, " << compared.nodes << " nodes, "
            << compared.tensors << " tensors compared\n";
  return compared;
}

TEST(SimNpuProvider, EveryPartitionOfTheExampleEqualsSim) {
  const auto model = Model::load(kExample);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Compared compared = compare_partitions(*model);
  EXPECT_EQ(compared.differing, 0);
  EXPECT_GT(compared.partitions, 3);
  EXPECT_GT(compared.nodes, 500);
  EXPECT_GT(compared.unlike_cpu, compared.tensors / 2) << "what equals anything proves nothing";
}

TEST(SimNpuProviderSlow, EveryPartitionOfADetectorAt640EqualsSim) {
  const char* cache = std::getenv("TENONNX_CACHE");
  const char* home = std::getenv("HOME");
  const std::string root = cache != nullptr  ? cache
                           : home != nullptr ? std::string(home) + "/.cache/tenonnx"
                                             : std::string();
  const auto model = Model::load(root + "/exports/deimv2_s_640_ts.onnx");
  if (!model.ok()) GTEST_SKIP() << model.status().message() << " (tools/models makes it)";
  const Compared compared = compare_partitions(*model);
  EXPECT_EQ(compared.differing, 0);
  EXPECT_GT(compared.partitions, 3);
}

}  // namespace
}  // namespace tenonnx

// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The simulated provider in a program that knows nothing of tenonnx: ONNX Runtime's headers alone.
// usage: plain_test LIBRARY MODEL CONTEXT, where MODEL is the example detector and CONTEXT a file
// to be written. Prints what is wrong; ends with 0 where nothing is.
#include <onnxruntime_cxx_api.h>
#include <onnxruntime_session_options_config_keys.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr const char* kProvider = "SimNpuExecutionProvider";
int failures = 0;

void expect(bool condition, const std::string& what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "wrong: %s\n", what.c_str());
}

std::vector<std::vector<float>> run(Ort::Session& session) {
  std::vector<float> image(3 * 160 * 160);
  for (std::size_t i = 0; i < image.size(); ++i)
    image[i] = static_cast<float>(i * 7919 % 256) / 255;
  std::vector<std::int64_t> size = {320, 320};
  const std::vector<std::int64_t> image_shape = {1, 3, 160, 160}, size_shape = {1, 2};
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  std::vector<Ort::Value> values;
  values.push_back(Ort::Value::CreateTensor<float>(memory, image.data(), image.size(),
                                                   image_shape.data(), image_shape.size()));
  values.push_back(Ort::Value::CreateTensor<std::int64_t>(memory, size.data(), size.size(),
                                                          size_shape.data(), size_shape.size()));
  const char* inputs[] = {"images", "orig_target_sizes"};
  const char* outputs[] = {"boxes", "scores"};
  const auto made = session.Run(Ort::RunOptions{}, inputs, values.data(), 2, outputs, 2);
  std::vector<std::vector<float>> out;
  for (const Ort::Value& value : made) {
    const auto* data = value.GetTensorData<float>();
    out.emplace_back(data, data + value.GetTensorTypeAndShapeInfo().GetElementCount());
  }
  return out;
}

int nodes_on_provider(Ort::Session& session) {
  int nodes = 0;
  for (const auto& subgraph : session.GetEpGraphAssignmentInfo())
    if (subgraph.GetEpName() == std::string(kProvider))
      nodes += static_cast<int>(subgraph.GetNodes().size());
  return nodes;
}

void test(const std::string& library, const std::string& model, const std::string& context) {
  Ort::Env env(ORT_LOGGING_LEVEL_FATAL, "plain");
  env.RegisterExecutionProviderLibrary("simnpu.virtual", library);
  std::vector<Ort::ConstEpDevice> devices;
  for (const auto& device : env.GetEpDevices())
    if (device.EpName() == std::string(kProvider)) devices.push_back(device);
  expect(devices.size() == 1, "one device");
  const auto options = [&](std::unordered_map<std::string, std::string> of_provider) {
    Ort::SessionOptions made;
    made.SetGraphOptimizationLevel(ORT_ENABLE_BASIC);
    made.AddConfigEntry(kOrtSessionOptionsRecordEpGraphAssignmentInfo, "1");
    made.AppendExecutionProvider_V2(env, devices, of_provider);
    return made;
  };

  Ort::Session session(env, model.c_str(), options({}));
  expect(nodes_on_provider(session) > 500, "most nodes are on the provider");
  const auto expected = run(session);
  Ort::Session silent(env, model.c_str(), options({{"soc", "v68"}}));
  expect(nodes_on_provider(silent) == 0, "a wrong chip takes nothing");
  expect(run(silent) != expected, "the CPU computes in float32");

  try {
    auto strict = options({});
    strict.AddConfigEntry(kOrtSessionOptionsDisableCPUEPFallback, "1");
    const Ort::Session refused(env, model.c_str(), strict);
    expect(false, "a session that would fall back is refused");
  } catch (const Ort::Exception&) {
  }

  // ONNX Runtime's own way of compiling.
  Ort::ModelCompilationOptions compilation(env, options({}));
  compilation.SetInputModelPath(model.c_str());
  compilation.SetOutputModelPath(context.c_str());
  compilation.SetEpContextEmbedMode(true);
  const Ort::Status compiled = Ort::CompileModel(env, compilation);
  expect(compiled.IsOK(), "compiles: " + (compiled.IsOK() ? "" : compiled.GetErrorMessage()));
  Ort::Session reloaded(env, context.c_str(), options({}));
  expect(run(reloaded) == expected, "the context computes the same bits");
  try {
    const Ort::Session other(env, context.c_str(), options({{"device", "no-such"}}));
    expect(false, "a device that does not exist is refused");
  } catch (const Ort::Exception& error) {
    expect(std::strstr(error.what(), "no device 'no-such'") != nullptr, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    test(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    expect(false, error.what());
  }
  return failures == 0 ? 0 : 1;
}

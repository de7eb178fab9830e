// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adapters/address.h"
#include "adapters/qnn_library.h"
#include "adapters/qnn_options.h"
#include "base/files.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "device/device.h"
#include "model/text.h"
#include "ort/executor.h"
#include "ort/system_info.h"

namespace tenonnx {
namespace {

DoctorCheck from_status(std::string name, const Status& status, const std::string& detail_if_ok) {
  return {std::move(name), status.ok(), status.ok() ? detail_if_ok : status.message()};
}

// Of a board only its user knows the soc.
constexpr const char* kQnnEmulator = "qnn:soc=43,arch=73";
constexpr float kQnnTolerance = 0x1p-22F;  // its outputs are off by one step of float32
constexpr const char* kOneNode = R"(<ir_version: 8, opset_import: ["" : 17]>
one_node (float[4] x) => (float[4] y) { y = Relu(x) })";

// Loads and runs a graph of one node: a library that opens may still fail to run (a wrong
// architecture level, a missing symbol, a container without the memory for its thread pool).
Status run_one_node(std::string_view address, float tolerance = 0) {
  TENONNX_ASSIGN_OR_RETURN(auto executor, make_executor(address));
  TENONNX_ASSIGN_OR_RETURN(Model model, model_from_text(kOneNode));
  LoadOptions options;
  options.intra_op_threads = 1;
  TENONNX_ASSIGN_OR_RETURN(auto graph, executor->load(model, options));
  const std::vector<float> x = {-1, 0, 2, 1024};
  TENONNX_ASSIGN_OR_RETURN(TensorMap outputs,
                           graph->run(TensorMap{{"x", Tensor::from(DType::kFloat32, {4}, x)}}));
  const float* y = outputs.at("y").data<float>();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::abs(y[i] - std::max(x[i], 0.0F)) > tolerance * std::abs(x[i]) || std::isnan(y[i]))
      return Internal("'{}' computes Relu({}) = {}, expected {}", address, x[i], y[i],
                      std::max(x[i], 0.0F));
  return {};
}

// The package writer replaces a directory in one step; not every file system can.
Status replace_a_directory() {
  const TemporaryDirectory scratch;
  if (scratch.path().empty())
    return Io("no temporary directory can be made: set TMPDIR to a directory that can be written");
  const std::filesystem::path target = scratch.path() / "package";
  for (const bool replace : {false, true}) {
    TENONNX_ASSIGN_OR_RETURN(
        auto staged, StagedDirectory::create(target, replace, [](const auto& old) {
          return holds_only(old, "the check",
                            [](const std::string& name) { return name == "file"; });
        }));
    TENONNX_RETURN_IF_ERROR(write_file_atomic(staged.path() / "file", replace ? "new" : "old"));
    TENONNX_RETURN_IF_ERROR(staged.publish());
  }
  TENONNX_ASSIGN_OR_RETURN(const std::string content, read_file(target / "file"));
  if (content != "new")
    return Internal("the directory was not replaced: it still holds '{}'", content);
  return {};
}

// Nobody needs a vendor's provider but who deploys to that vendor's chips: a fact, and a check only
// where it is installed.
void add_qnn(DoctorReport& report) {
  const auto library = find_qnn_library(std::filesystem::path());
  report.facts.emplace_back("Qualcomm HTP (qnn)",
                            library.ok()
                                ? fmt::format("onnxruntime-qnn {} (QNN {}), '{}'", library->version,
                                              library->qnn, library->file.string())
                                : fmt::format("not installed: {}", library.status().message()));
  if (!library.ok() || qnn_place() != QnnPlace::kEmulator) return;
  report.checks.push_back(
      from_status("Qualcomm's HTP emulator runs a graph", run_one_node(kQnnEmulator, kQnnTolerance),
                  fmt::format("executor '{}' computed the expected values", kQnnEmulator)));
}

}  // namespace

bool DoctorReport::fit() const {
  return std::all_of(checks.begin(), checks.end(), [](const DoctorCheck& c) { return c.ok; });
}

DoctorReport doctor() {
  DoctorReport report;
  report.facts = system_info();
  report.checks.push_back(from_status("ONNX Runtime opens and runs a graph", run_one_node("cpu"),
                                      "executor 'cpu' computed the expected values"));
  const std::vector<std::string> names = device_names();
  if (names.empty()) {
    std::string searched;
    for (const auto& directory : device_directories()) searched += " " + directory.string();
    report.checks.push_back(
        {"device files", false,
         fmt::format("none found in:{}. Set TENONNX_DEVICES to the directory that holds them.",
                     searched)});
  }
  for (const std::string& name : names) {
    Result<Device> device = find_device(name);
    std::string detail;
    Status status = device.status();
    if (device.ok()) {
      detail = device->title;
      if (device->arithmetic) {
        status = run_one_node("sim:" + name);
        detail += fmt::format("; 'sim:{}' computed the expected values", name);
      }
    }
    report.checks.push_back(from_status("device file " + name, status, detail));
  }
  add_qnn(report);
  report.checks.push_back(from_status("packages are replaced in one step", replace_a_directory(),
                                      "in the directory for temporary files"));
  return report;
}

Json to_json(const DoctorReport& report) {
  Json json = {{"schema_version", 1}, {"fit", report.fit()}};
  for (const auto& [name, value] : report.facts) json["facts"][name] = value;
  json["checks"] = Json::array();
  for (const DoctorCheck& check : report.checks)
    json["checks"].push_back({{"name", check.name}, {"ok", check.ok}, {"detail", check.detail}});
  return json;
}

std::string to_text(const DoctorReport& report) {
  std::size_t width = 0;
  for (const auto& [name, value] : report.facts) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : report.facts)
    text += fmt::format("{:<{}}  {}\n", name, width, value);
  text += "\n";
  for (const DoctorCheck& check : report.checks)
    text += fmt::format("[{}] {}: {}\n", check.ok ? " ok " : "FAIL", check.name, check.detail);
  text += report.fit() ? "\nThis machine is fit.\n"
                       : "\nThis machine is not fit yet: see the lines with FAIL.\n";
  return text;
}

}  // namespace tenonnx

// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/files.h"
#include "base/half.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "device/agreement.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const fs::path kDevices = fs::path(TENONNX_TEST_SOURCE_DIR) / "devices";

std::vector<fs::path> committed_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kDevices)) {
    if (entry.path().extension() == ".json" && entry.path().stem() != "schema")
      files.push_back(entry.path());
  }
  return files;
}

// A complete device file, to be damaged at one place a test.
Json whole_device() {
  const auto statement = [](Json value) {
    return Json{{"value", std::move(value)}, {"source", "a measurement"}, {"checked", "2026-11"}};
  };
  Json json = {{"schema_version", 1},
               {"name", "toy"},
               {"title", "Toy"},
               {"source", "none"},
               {"checked", "2026-11-29"}};
  json["arithmetic"] = {{"storage", statement("float16")},
                        {"round_inputs", statement(true)},
                        {"round_weights", statement(false)},
                        {"round_outputs", statement(true)},
                        {"overflow_elementwise", statement(Json{{"saturate", 131008}})},
                        {"overflow_matmul_result",
                         statement(Json{{"saturate", 65536}, {"infinite", 131008}, {"nan", 0}})},
                        {"overflow_matmul_operand", statement("infinity")},
                        {"subnormals", statement("flush")},
                        {"indices", statement("int32")},
                        {"relative_error", {{"Softmax", statement(0.001)}}},
                        {"seed", 7}};
  json["arithmetic"]["operators"] = {
      {"Add", statement(Json{{"overflow", "pattern"}})},
      {"Softmax", statement(Json{{"form", "softmax_steps"}, {"reciprocal_error", {0.5, -1}}})},
      {"Reciprocal", statement(Json{{"overflow", {{"saturate", 65504}}},
                                    {"subnormal_results", "flush"},
                                    {"attributes", "rounded"},
                                    {"weights", "float32"}})}};
  json["arithmetic"]["cannot_agree"] = Json::array({{{"operator", "Resize"},
                                                     {"case", "Resize x2, linear"},
                                                     {"range", "normal"},
                                                     {"reason", "not modelled"},
                                                     {"source", "a graph"},
                                                     {"checked", "2026-11"}}});
  json["arithmetic"]["agreement"] = {{"on", "exec:toy"},
                                     {"source", "a measurement"},
                                     {"checked", "2026-11-30"},
                                     {"versions", {{"tool", "1.0"}}},
                                     {"operators",
                                      {{"Add",
                                        {{"cases", 3},
                                         {"good_cases", 2},
                                         {"elements", 10},
                                         {"within_one_step", 9},
                                         {"share", 0.9},
                                         {"bias_steps", -0.5},
                                         {"worst_steps", 7}}}}}};
  json["roles"] = {{"encoder", "sim:toy"}, {"decoder", "cpu"}};
  json["rows"] = Json::array({{{"operator", "Det"},
                               {"toolchain", "tool 1.0"},
                               {"placement", "rejected"},
                               {"source", "a graph"},
                               {"checked", "2026-11"}}});
  return json;
}

class DeviceFile : public ::testing::Test {
 protected:
  Result<Device> read(const Json& json, const std::string& name = "toy") {
    const fs::path file = directory_.path() / (name + ".json");
    std::ofstream(file) << json.dump();
    return read_device(file);
  }
  std::string error(const Json& json) { return read(json).status().message(); }
  TemporaryDirectory directory_;
};

TEST_F(DeviceFile, EveryFieldIsRead) {
  const auto device = read(whole_device());
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device->name, "toy");
  EXPECT_EQ(device->title, "Toy");
  EXPECT_EQ(device->provenance.checked, "2026-11-29");
  ASSERT_TRUE(device->arithmetic.has_value());
  const Arithmetic& a = *device->arithmetic;
  EXPECT_EQ(a.storage, DType::kFloat16);
  EXPECT_TRUE(a.round_inputs);
  EXPECT_FALSE(a.round_weights);
  EXPECT_TRUE(a.round_outputs);
  EXPECT_EQ(a.elementwise.kind, Overflow::Kind::kSaturate);
  EXPECT_EQ(a.elementwise.max, 131008);
  EXPECT_EQ(a.elementwise.infinite, 0);
  EXPECT_FALSE(a.elementwise.nan.has_value());
  EXPECT_EQ(a.matmul_result.max, 65536);
  EXPECT_EQ(a.matmul_result.infinite, 131008);
  EXPECT_EQ(a.matmul_result.nan, 0);
  EXPECT_EQ(a.matmul_operand.kind, Overflow::Kind::kInfinity);
  EXPECT_FALSE(a.keep_subnormals);
  EXPECT_EQ(a.relative_error, (std::map<std::string, double>{{"Softmax", 0.001}}));
  EXPECT_EQ(a.seed, 7u);
  EXPECT_EQ(a.index_type(), DType::kInt32);
  EXPECT_EQ(a.operators.at("Add").overflow->kind, Overflow::Kind::kPattern);
  EXPECT_EQ(a.operators.at("Softmax").form, "softmax_steps");
  EXPECT_EQ(a.operators.at("Softmax").reciprocal_error, (std::vector<double>{0.5, -1}));
  EXPECT_FALSE(a.operators.at("Softmax").overflow.has_value());
  const OperatorArithmetic& reciprocal = a.operators.at("Reciprocal");
  EXPECT_EQ(reciprocal.overflow->max, 65504);
  EXPECT_TRUE(reciprocal.flush_results && reciprocal.round_attributes && reciprocal.keep_weights);
  ASSERT_EQ(a.cannot_agree.size(), 1u);
  EXPECT_EQ(a.cannot_agree[0].name, "Resize x2, linear");
  EXPECT_EQ(a.cannot_agree[0].reason, "not modelled");
  ASSERT_TRUE(a.agreement.has_value());
  EXPECT_EQ(a.agreement->operators.at(0).within, 9);
  EXPECT_EQ(a.agreement->versions,
            (std::vector<std::pair<std::string, std::string>>{{"tool", "1.0"}}));
  EXPECT_TRUE(device->is_target());
  ASSERT_EQ(device->rows.size(), 1u);
  EXPECT_EQ(device->rows[0].op_type, "Det");
  EXPECT_EQ(device->rows[0].placement, "rejected");
  const auto bytes = read_file(device->file);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(device->sha256, sha256_hex(*bytes));
}

TEST_F(DeviceFile, AgreementIsWrittenIntoTheFile) {
  Json json = whole_device();
  ASSERT_TRUE(read(json).ok());
  const fs::path file = directory_.path() / "toy.json";
  MeasuredAgreement measured;
  measured.on = "exec:other";
  measured.checked = "2026-11-30";
  measured.versions = {{"tool", "2.0"}};
  measured.operators = {{"Softmax", 3, 3, 1000, 999, 0.25, 1.5}};
  ASSERT_TRUE(write_agreement(file, measured).ok());
  const auto device = read_device(file);
  ASSERT_TRUE(device.ok()) << device.status().message();
  ASSERT_EQ(device->arithmetic->agreement->operators.size(), 1u);
  const OperatorAgreement& one = device->arithmetic->agreement->operators[0];
  EXPECT_EQ(one.op_type, "Softmax");
  EXPECT_EQ(one.within, 999);
  EXPECT_EQ(one.worst, 1.5);
  // The rest of the file is as it was.
  Json written = *read_json_file(file);
  json["arithmetic"].erase("agreement");
  written["arithmetic"].erase("agreement");
  EXPECT_EQ(written, json);

  measured.checked = "yesterday";
  EXPECT_THAT(write_agreement(file, measured).message(), HasSubstr("expected the date"));
  EXPECT_EQ(read_device(file)->arithmetic->agreement->on, "exec:other") << "the file was changed";
  json.erase("arithmetic");
  std::ofstream(file) << json.dump();
  EXPECT_THAT(write_agreement(file, measured).message(), HasSubstr("no \"arithmetic\" section"));
}

TEST_F(DeviceFile, PatternIsOfFloat16) {
  Json json = whole_device();
  json["arithmetic"]["overflow_matmul_operand"]["value"] = "pattern";
  EXPECT_TRUE(read(json).ok());
  json["arithmetic"]["storage"]["value"] = "bfloat16";
  EXPECT_THAT(error(json), HasSubstr("\"pattern\" is of float16, the storage is bfloat16"));
}

TEST_F(DeviceFile, UnknownFieldIsNamedWithTheAllowedOnes) {
  Json json = whole_device();
  json["arithmetic"]["sub_normals"] = 1;
  EXPECT_THAT(error(json), AllOf(HasSubstr("toy.json"), HasSubstr("/arithmetic"),
                                 HasSubstr("\"sub_normals\""), HasSubstr("subnormals")));
  json = whole_device();
  json["rolls"] = Json::object();
  EXPECT_THAT(error(json), AllOf(HasSubstr("\"rolls\""), HasSubstr("roles")));
  json = whole_device();
  json["arithmetic"]["storage"]["comment"] = "";
  EXPECT_THAT(error(json), AllOf(HasSubstr("/arithmetic/storage"), HasSubstr("\"comment\"")));
  json = whole_device();
  json["rows"][0]["op"] = "Det";
  EXPECT_THAT(error(json), AllOf(HasSubstr("/rows/0"), HasSubstr("\"op\"")));
}

TEST_F(DeviceFile, WrongValuesAreNamedWithTheirPath) {
  struct Case {
    const char* pointer;
    Json value;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"/schema_version", 2, "toy.json: /schema_version: expected 1, got 2"},
      {"/name", "../toy", "/name: expected lower-case letters"},
      {"/name", "other", "/name: expected 'toy', the file's name without .json, got 'other'"},
      {"/title", "", "/title: expected text, got an empty string"},
      {"/checked", "yesterday", "/checked: expected the date of the check, YYYY-MM or YYYY-MM-DD"},
      {"/checked", "2026-13", "got '2026-13'"},
      {"/arithmetic/storage/value", "fp16",
       "/arithmetic/storage/value: expected one of 'float32', 'float16', 'bfloat16', got 'fp16'"},
      {"/arithmetic/indices/value", "int8",
       "/arithmetic/indices/value: expected one of 'int32', 'float32', 'float16', 'bfloat16', got "
       "'int8'"},
      {"/arithmetic/storage/source", "", "/arithmetic/storage/source: expected text"},
      {"/arithmetic/round_inputs/value", 1, "/arithmetic/round_inputs/value: expected a boolean"},
      {"/arithmetic/subnormals/value", "drop", "expected one of 'keep', 'flush', got 'drop'"},
      {"/arithmetic/overflow_matmul_operand/value", "inf",
       "/arithmetic/overflow_matmul_operand/value: expected \"infinity\", \"pattern\" or"},
      {"/arithmetic/overflow_elementwise/value", 65504, "expected \"infinity\", \"pattern\" or"},
      {"/arithmetic/overflow_elementwise/value/saturate", 0,
       "/arithmetic/overflow_elementwise/value/saturate: expected a number above 0"},
      {"/arithmetic/overflow_elementwise/value/saturate", "inf", "expected a number above 0"},
      {"/arithmetic/overflow_matmul_result/value/infinite", -1, "/infinite: expected a number"},
      {"/arithmetic/overflow_matmul_result/value/nan", "nan", "/nan: expected a finite number"},
      {"/arithmetic/relative_error/Softmax/value", 2, "/relative_error/Softmax/value: expected"},
      {"/arithmetic/operators/Add/value/overflow", "ieee",
       "/operators/Add/value/overflow: expected \"infinity\", \"pattern\" or"},
      {"/arithmetic/operators/Add/value/overfow", 1, "\"overfow\""},
      {"/arithmetic/operators/Softmax/value/form", "softmax",
       "/value/form: expected one of 'reciprocal_down' (of Reciprocal), "},
      {"/arithmetic/operators/Softmax/value/form", "gelu_by_tanh",
       "got 'gelu_by_tanh' for Softmax"},
      {"/arithmetic/operators/Softmax/value/reciprocal_error", "0",
       "/reciprocal_error: expected an array"},
      {"/arithmetic/operators/Reciprocal/value/weights", "float64",
       "/value/weights: expected 'float32', got 'float64'"},
      {"/arithmetic/cannot_agree/0/reason", "", "/cannot_agree/0/reason: expected text"},
      {"/arithmetic/agreement/operators/Add/good_cases", 4, "got 4 of 3"},
      {"/arithmetic/agreement/operators/Add/within_one_step", 11, "got 11 of 10"},
      {"/arithmetic/agreement/checked", "today", "/agreement/checked: expected the date"},
      {"/arithmetic/seed", -1, "/arithmetic/seed: expected 0 or more, got -1"},
      {"/arithmetic/seed", 1.5, "/arithmetic/seed: expected an integer"},
      {"/roles", Json::object(), "/roles: expected at least one role"},
      {"/roles/encoder", "", "/roles: expected a segment name and an executor address"},
      {"/rows/0/placement", "npu", "/rows/0/placement: expected one of 'device', 'fallback'"},
      {"/rows/0/operator", "", "/rows/0/operator: expected text"},
  };
  for (const Case& c : cases) {
    Json json = whole_device();
    json[Json::json_pointer(c.pointer)] = c.value;
    EXPECT_THAT(error(json), AllOf(HasSubstr("toy.json"), HasSubstr(c.message))) << c.pointer;
    EXPECT_EQ(read(json).status().code(), StatusCode::kDataLoss) << c.pointer;
  }
}

// Nothing of the arithmetic is inherited or assumed, and no statement stands without its source.
TEST_F(DeviceFile, MemoryIsReadWhereItIsSaid) {
  Json json = whole_device();
  const auto without = read(json);
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_FALSE(without->memory.has_value());
  json["memory"] = {{"value", 8388608}, {"source", "a data sheet"}, {"checked", "2026-11"}};
  const auto with = read(json);
  ASSERT_TRUE(with.ok()) << with.status().message();
  EXPECT_EQ(with->memory, 8388608);
}

TEST_F(DeviceFile, WrongMemoryIsNamed) {
  Json json = whole_device();
  json["memory"] = {{"value", 0}, {"source", "a data sheet"}, {"checked", "2026-11"}};
  EXPECT_THAT(error(json), HasSubstr("/memory/value: expected bytes, 1 or more, got 0"));
  json["memory"]["value"] = "8 MiB";
  EXPECT_THAT(error(json), AllOf(HasSubstr("toy.json"), HasSubstr("/memory/value")));
  json["memory"]["value"] = 0.5;
  EXPECT_THAT(error(json), HasSubstr("/memory/value"));
  json["memory"]["value"] = 1024;
  json["memory"].erase("source");
  EXPECT_THAT(error(json), AllOf(HasSubstr("/memory"), HasSubstr("source")));
  json["memory"] = 1024;  // a number without where it comes from
  EXPECT_THAT(error(json), HasSubstr("/memory"));
}

TEST_F(DeviceFile, MissingFieldsAreNamed) {
  for (const char* pointer : {"/schema_version",
                              "/name",
                              "/title",
                              "/source",
                              "/checked",
                              "/arithmetic/storage",
                              "/arithmetic/round_inputs",
                              "/arithmetic/round_weights",
                              "/arithmetic/round_outputs",
                              "/arithmetic/overflow_elementwise",
                              "/arithmetic/overflow_matmul_result",
                              "/arithmetic/overflow_matmul_operand",
                              "/arithmetic/subnormals",
                              "/arithmetic/subnormals/value",
                              "/arithmetic/subnormals/source",
                              "/arithmetic/subnormals/checked",
                              "/arithmetic/overflow_elementwise/value/saturate",
                              "/arithmetic/relative_error/Softmax/source",
                              "/rows/0/toolchain",
                              "/rows/0/source",
                              "/rows/0/checked"}) {
    Json json = whole_device();
    const Json::json_pointer at(pointer);
    json[at.parent_pointer()].erase(at.back());
    EXPECT_THAT(error(json),
                AllOf(HasSubstr("toy.json"), HasSubstr("\"" + at.back() + "\" is missing")))
        << pointer;
  }
}

TEST_F(DeviceFile, DamagedTextIsAnError) {
  std::ofstream(directory_.path() / "toy.json") << "{\"name\": \"toy\",";
  const auto device = read_device(directory_.path() / "toy.json");
  EXPECT_EQ(device.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(device.status().message(), HasSubstr("toy.json"));
  EXPECT_EQ(read_device(directory_.path() / "absent.json").status().code(), StatusCode::kNotFound);
}

TEST_F(DeviceFile, ExecutorForNamesTheRoles) {
  Json json = whole_device();
  const auto device = read(json);
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(*device->executor_for("encoder"), "sim:toy");
  const Status unknown = device->executor_for("neck").status();
  EXPECT_EQ(unknown.code(), StatusCode::kNotFound);
  EXPECT_THAT(unknown.message(), AllOf(HasSubstr("'neck'"), HasSubstr("decoder, encoder")));
  json["roles"]["default"] = "cpu";
  EXPECT_EQ(*read(json)->executor_for("neck"), "cpu");
  json.erase("roles");
  const Status no_target = read(json)->executor_for("encoder").status();
  EXPECT_EQ(no_target.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(no_target.message(), HasSubstr("not a target"));
}

TEST_F(DeviceFile, FoundInTheDirectoriesOfTheEnvironmentFirst) {
  Json json = whole_device();
  json["name"] = "cpu";
  json["title"] = "Another";
  ASSERT_TRUE(read(json, "cpu").ok());
  ::setenv("TENONNX_DEVICES", ("/nonexistent:" + directory_.path().string()).c_str(), 1);
  EXPECT_EQ(device_directories()[1], directory_.path());
  EXPECT_EQ(find_device("cpu")->title, "Another");
  ::unsetenv("TENONNX_DEVICES");
  EXPECT_NE(find_device("cpu")->title, "Another");
}

TEST(FindDevice, ListsWhatExists) {
  const Status status = find_device("htp-v99").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("'htp-v99'"), HasSubstr("cpu, htp-v73, "), HasSubstr("sim-htp")));
  EXPECT_THAT(device_names(), AllOf(Contains("cpu"), Contains("htp-v73"), Contains("sim-htp"),
                                    Not(Contains("schema"))));
}

TEST(FindDevice, RefusesNamesThatLeaveTheDirectory) {
  for (const char* name :
       {"../cpu", "a/b", "..", "a..b", "", "/etc/passwd", "CPU", "schema", ".cpu"}) {
    const Status status = find_device(name).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr("is not the name of a device")) << name;
  }
}

TEST(CommittedDevices, AllAreRead) {
  const auto files = committed_files();
  EXPECT_GE(files.size(), 3u);
  for (const fs::path& file : files) {
    const auto device = read_device(file);
    EXPECT_TRUE(device.ok()) << device.status().message();
  }
}

// The target of the demonstration: the addresses are the contract with deploy.
TEST(CommittedDevices, SimHtpPlacesEncoderAndDecoder) {
  const auto target = find_device("sim-htp");
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ(*target->executor_for("encoder"), "sim:htp-v73");
  EXPECT_EQ(*target->executor_for("decoder"), "cpu");
  EXPECT_EQ(*target->executor_for("model"), "sim:htp-v73");
  EXPECT_FALSE(target->arithmetic.has_value());
  ASSERT_TRUE(find_device("htp-v73")->arithmetic.has_value());
}

TEST(LargestExactIndex, IsTheLastNumberWithoutAGap) {
  // The next whole number is no value of the type.
  for (std::int64_t n = 0; n <= 4096; ++n) {
    const auto value = static_cast<float>(n);
    EXPECT_EQ(float16_to_float(float_to_float16(value)) == value, n <= 2048 || n % 2 == 0) << n;
    EXPECT_EQ(bfloat16_to_float(float_to_bfloat16(value)) == value,
              n <= 256 || (n % (n <= 512    ? 2
                                : n <= 1024 ? 4
                                : n <= 2048 ? 8
                                            : 16)) == 0)
        << n;
  }
  EXPECT_EQ(largest_exact_index(DType::kFloat16), 2048);
  EXPECT_EQ(largest_exact_index(DType::kBFloat16), 256);
  EXPECT_EQ(static_cast<float>(largest_exact_index(DType::kFloat32) + 1), 16777216.0F);
  EXPECT_EQ(largest_exact_index(DType::kInt32), 2147483647);
}

TEST(Arithmetic, WhatIsNotSaidOfIndicesIsTheStorageType) {
  Arithmetic a;
  a.storage = DType::kFloat16;
  EXPECT_EQ(a.index_type(), DType::kFloat16);
  a.indices = DType::kInt32;
  EXPECT_EQ(a.index_type(), DType::kInt32);
}

TEST(CommittedDevices, LargestKept) {
  const auto device = find_device("htp-v73");
  ASSERT_TRUE(device.ok());
  const Arithmetic& a = *device->arithmetic;
  EXPECT_EQ(largest_kept(a, a.elementwise), 131008);
  EXPECT_EQ(largest_kept(a, a.matmul_operand), 65504);
}

// Everything that the schema allows is known to the reader, and the other way round: the reader's
// errors list the allowed fields.
TEST(Schema, NamesTheFieldsOfTheReader) {
  const auto schema = read_json_file(kDevices / "schema.json");
  ASSERT_TRUE(schema.ok()) << schema.status().message();
  TemporaryDirectory directory;
  const auto allowed_by_reader = [&](const char* pointer) {
    Json json = whole_device();
    Json& at = json[Json::json_pointer(pointer)];
    if (at.is_object()) at["zzz"] = 1;
    const fs::path file = directory.path() / "toy.json";
    std::ofstream(file) << json.dump();
    const std::string message = read_device(file).status().message();
    std::set<std::string> names;
    std::size_t begin = message.find("allowed: ");
    EXPECT_NE(begin, std::string::npos) << message;
    if (begin == std::string::npos) return names;
    std::string rest = message.substr(begin + 9) + ", ";
    for (std::size_t comma; (comma = rest.find(", ")) != std::string::npos;
         rest.erase(0, comma + 2))
      names.insert(rest.substr(0, comma));
    return names;
  };
  const auto allowed_by_schema = [&](const char* pointer) {
    std::set<std::string> names;
    for (const auto& [name, value] : (*schema)[Json::json_pointer(pointer)].items())
      names.insert(name);
    return names;
  };
  EXPECT_EQ(allowed_by_reader(""), allowed_by_schema("/properties"));
  EXPECT_EQ(allowed_by_reader("/arithmetic"),
            allowed_by_schema("/properties/arithmetic/properties"));
  EXPECT_EQ(allowed_by_reader("/rows/0"), allowed_by_schema("/properties/rows/items/properties"));
  EXPECT_EQ(allowed_by_reader("/arithmetic/round_inputs"),
            allowed_by_schema("/$defs/flag/properties"));
  const std::string section = "/properties/arithmetic/properties";
  EXPECT_EQ(allowed_by_reader("/arithmetic/operators/Add/value"),
            allowed_by_schema(
                (section + "/operators/additionalProperties/properties/value/properties").c_str()));
  EXPECT_EQ(allowed_by_reader("/arithmetic/cannot_agree/0"),
            allowed_by_schema((section + "/cannot_agree/items/properties").c_str()));
  EXPECT_EQ(allowed_by_reader("/arithmetic/agreement"),
            allowed_by_schema((section + "/agreement/properties").c_str()));
  EXPECT_EQ(
      allowed_by_reader("/arithmetic/agreement/operators/Add"),
      allowed_by_schema(
          (section + "/agreement/properties/operators/additionalProperties/properties").c_str()));
  EXPECT_EQ(allowed_by_reader("/arithmetic/overflow_elementwise/value"),
            allowed_by_schema("/$defs/overflow_value/oneOf/1/properties"));
}

// With Python's jsonschema where there is one; the reader above is the judge everywhere else.
TEST(Schema, CommittedDevicesPassJsonschema) {
  const fs::path venv = fs::path(TENONNX_TEST_SOURCE_DIR) / ".venv/bin/python";
  std::string python;
  for (const std::string& candidate : {venv.string(), std::string("python3")}) {
    if (std::system((candidate + " -c 'import jsonschema' >/dev/null 2>&1").c_str()) == 0) {
      python = candidate;
      break;
    }
  }
  if (python.empty()) GTEST_SKIP() << "no Python with the package jsonschema";
  for (const fs::path& file : committed_files()) {
    const std::string command = python +
                                " -c \"import json,sys,jsonschema; "
                                "jsonschema.validate(json.load(open(sys.argv[1])), "
                                "json.load(open(sys.argv[2])))\" '" +
                                file.string() + "' '" + (kDevices / "schema.json").string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << file;
  }
}

}  // namespace
}  // namespace tenonnx

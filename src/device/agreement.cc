// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "device/agreement.h"

#include <cmath>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "device/read.h"

namespace tenonnx {
namespace {

Result<OperatorAgreement> operator_of(std::string op_type, const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"cases", "good_cases", "elements", "within_one_step",
                                       "share", "bias_steps", "worst_steps"}));
  OperatorAgreement one;
  one.op_type = std::move(op_type);
  TENONNX_ASSIGN_OR_RETURN(one.cases, reader.integer("cases"));
  TENONNX_ASSIGN_OR_RETURN(one.good, reader.integer("good_cases"));
  TENONNX_ASSIGN_OR_RETURN(one.elements, reader.integer("elements"));
  TENONNX_ASSIGN_OR_RETURN(one.within, reader.integer("within_one_step"));
  TENONNX_ASSIGN_OR_RETURN(one.bias, reader.number("bias_steps"));
  TENONNX_ASSIGN_OR_RETURN(one.worst, reader.number("worst_steps"));
  if (one.cases < 1 || one.good < 0 || one.good > one.cases)
    return DataLoss("{}: expected good_cases from 0 to cases, which is 1 or more; got {} of {}",
                    reader.where(), one.good, one.cases);
  if (one.elements < 1 || one.within < 0 || one.within > one.elements)
    return DataLoss(
        "{}: expected within_one_step from 0 to elements, which is 1 or more; got {} of {}",
        reader.where(), one.within, one.elements);
  return one;
}

}  // namespace

Result<MeasuredAgreement> agreement_from_json(const JsonReader& reader) {
  TENONNX_RETURN_IF_ERROR(reader.only({"on", "checked", "source", "versions", "operators"}));
  MeasuredAgreement out;
  TENONNX_ASSIGN_OR_RETURN(const Provenance provenance, provenance_of(reader));
  out.checked = provenance.checked;
  TENONNX_ASSIGN_OR_RETURN(out.on, filled_string(reader, "on"));
  TENONNX_ASSIGN_OR_RETURN(const JsonReader versions, reader.at("versions"));
  TENONNX_ASSIGN_OR_RETURN(const auto names, versions.members());
  for (const auto& [name, value] : names) {
    TENONNX_ASSIGN_OR_RETURN(std::string version, value.string());
    out.versions.emplace_back(name, std::move(version));
  }
  TENONNX_ASSIGN_OR_RETURN(const JsonReader operators, reader.at("operators"));
  TENONNX_ASSIGN_OR_RETURN(const auto members, operators.members());
  for (const auto& [op_type, value] : members) {
    TENONNX_ASSIGN_OR_RETURN(OperatorAgreement one, operator_of(op_type, value));
    out.operators.push_back(std::move(one));
  }
  return out;
}

Json to_json(const MeasuredAgreement& agreement) {
  // Four digits say which step and which ten-thousandth of the elements.
  const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4; };
  Json versions = Json::object(), operators = Json::object();
  for (const auto& [name, version] : agreement.versions) versions[name] = version;
  for (const OperatorAgreement& one : agreement.operators)
    operators[one.op_type] = {
        {"cases", one.cases},
        {"good_cases", one.good},
        {"elements", one.elements},
        {"within_one_step", one.within},
        {"share", rounded(static_cast<double>(one.within) / static_cast<double>(one.elements))},
        {"bias_steps", rounded(one.bias)},
        {"worst_steps", rounded(one.worst)}};
  return {{"on", agreement.on},
          {"source", "tenonnx device agree --write"},
          {"checked", agreement.checked},
          {"versions", std::move(versions)},
          {"operators", std::move(operators)}};
}

Status write_agreement(const std::filesystem::path& file, const MeasuredAgreement& agreement) {
  TENONNX_ASSIGN_OR_RETURN(const Device before, read_device(file));
  if (!before.arithmetic)
    return InvalidArgument("{} has no \"arithmetic\" section: there is nothing to measure",
                           file.string());
  TENONNX_ASSIGN_OR_RETURN(Json json, read_json_file(file));
  json["arithmetic"]["agreement"] = to_json(agreement);
  TENONNX_RETURN_IF_ERROR(device_from_json(JsonReader(json, file.string())).status());
  return write_json_file(file, json);
}

}  // namespace tenonnx

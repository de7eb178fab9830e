// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/doctor.h"

#include "command.h"

namespace tenonnx::cli {

RunCommand setup_doctor(CLI::App& /*app*/, const Globals& globals) {
  return [&globals] {
    const DoctorReport report = doctor();
    print_result(globals, to_json(report), to_text(report));
    return report.fit() ? kExitPassed : kExitFailedGate;
  };
}

}  // namespace tenonnx::cli

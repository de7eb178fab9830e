// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// docs/how_to/replace_grid_sample.md: its tables are those of passes.inc and of the device files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/status.h"
#include "device/device.h"
#include "passes/grid_sample_gather.h"
#include "passes/runner.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
const fs::path kSource = TENONNX_TEST_SOURCE_DIR;

bool is_form(std::string_view pass) {
  return pass.find("grid") != std::string_view::npos || pass == "replace_ms_deform_attn" ||
         pass == "prune_queries";
}

std::string forms() {
  std::string out = "| pass | class | |\n|---|---|---|\n";
  for (const PassInfo& pass : all_passes())
    if (is_form(pass.name))
      out +=
          fmt::format("| `{}` | {} | {} |\n", pass.name, to_string(pass.exactness), pass.summary);
  return out;
}

GatherOptions counting_in(DType indices) {
  GatherOptions options;
  options.indices = options.coordinates = indices;
  return options;
}

std::string form_for(const GatherOptions& options, std::int64_t side) {
  GridSampleNode site;
  site.batch = 1;
  site.channels = 1;
  site.height = site.width = side;
  site.out_height = site.out_width = side;
  GatherPlan plan;
  return plan_gather(site, options, 0, plan).empty() ? std::string(to_string(plan.form)) : "-";
}

std::string devices() {
  constexpr std::int64_t kSides[] = {20, 40, 80, 160, 320};
  std::string out = "| device file | indices in | exact to |";
  for (const std::int64_t side : kSides) out += fmt::format(" {0} x {0} |", side);
  out += "\n|---|---|---|---|---|---|---|---|\n";
  const auto row = [&](const std::string& name, const GatherOptions& options) {
    out += fmt::format("| {} | {} | {} |", name, to_string(options.indices),
                       largest_exact_index(options.indices));
    for (const std::int64_t side : kSides) out += fmt::format(" {} |", form_for(options, side));
    out += "\n";
  };
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kSource / "devices")) files.insert(entry.path());
  for (const fs::path& file : files) {
    if (file.stem() == "schema") continue;
    const auto device = find_device(file.stem().string());
    EXPECT_TRUE(device.ok()) << device.status().message();
    if (!device.ok() || !device->arithmetic) continue;
    const auto options = gather_options("p", {{"device", device->name}});
    EXPECT_TRUE(options.ok()) << options.status().message();
    if (options.ok()) row("`" + device->name + "`", *options);
  }
  for (const DType type : {DType::kInt32, DType::kFloat32, DType::kFloat16, DType::kBFloat16})
    row("any other", counting_in(type));
  return out;
}

// `page` with what stands between the marks of a section replaced.
std::string with_section(std::string page, const std::string& name, const std::string& text) {
  const std::string mark = "<!-- generated: " + name + " -->\n", end = "<!-- end -->";
  const std::size_t begin = page.find(mark);
  EXPECT_NE(begin, std::string::npos) << name;
  if (begin == std::string::npos) return page;
  const std::size_t from = begin + mark.size();
  return page.replace(from, page.find(end, from) - from, text);
}

TEST(PassTable, TheFormsOfGridSampleAreThoseOfTheTables) {
  const fs::path file = kSource / "docs/how_to/replace_grid_sample.md";
  const auto page = read_file(file);
  ASSERT_TRUE(page.ok()) << page.status().message();
  const std::string made =
      with_section(with_section(*page, "forms", forms()), "devices", devices());
  if (std::getenv("TENONNX_WRITE_DOCS") != nullptr) {  // tools/gen_docs
    ASSERT_TRUE(write_file_atomic(file, made).ok());
    return;
  }
  EXPECT_EQ(*page, made) << "run tools/gen_docs";
}

}  // namespace
}  // namespace tenonnx

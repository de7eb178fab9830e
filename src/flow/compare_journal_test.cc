// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_journal.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

WindowFigures figures() {
  WindowFigures out;
  TensorComparison tensor;
  tensor.error.count = 12;
  tensor.error.relative_l2 = 0.1;
  tensor.error.max_abs = 0.3;
  tensor.path.origin = "the whole path in float16";
  tensor.path.max_abs = 1e-7;
  tensor.psnr = Psnr{std::numeric_limits<double>::infinity(), 640, "boxes are 0..640 pixels"};
  tensor.worst_input = "ä \"1\".png";
  tensor.inputs = 2;
  out.tensors.emplace_back(5, tensor);
  SelectionAgreement agreement;
  agreement.lanes = 1;
  agreement.margin = 0.1 + 0.2;  // no short decimal
  out.selections.emplace_back(0, agreement);
  return out;
}

class CompareJournalFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = CompareJournal::open(temporary_.path(), "key", false);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    journal_ = std::move(*opened);
    ASSERT_TRUE(journal_.remember(5, figures()).ok());
    std::ifstream in(file_of(5), std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(in), {});
    ASSERT_GT(text_.size(), 100U);
  }
  fs::path file_of(int begin) const { return journal_.path() / (std::to_string(begin) + ".json"); }
  void write(int begin, const std::string& text) const {
    std::ofstream(file_of(begin), std::ios::binary | std::ios::trunc) << text;
  }
  TemporaryDirectory temporary_;
  CompareJournal journal_;
  std::string text_;
};

TEST_F(CompareJournalFiles, GiveBackWhatWasRemembered) {
  const auto recalled = journal_.recall(5);
  ASSERT_TRUE(recalled.has_value());
  ASSERT_EQ(recalled->tensors.size(), 1U);
  EXPECT_EQ(recalled->tensors[0].first, 5U);
  EXPECT_EQ(to_json(recalled->tensors[0].second), to_json(figures().tensors[0].second));
  EXPECT_EQ(recalled->selections[0].second.margin, 0.1 + 0.2);
  EXPECT_FALSE(journal_.recall(6).has_value());
}

TEST_F(CompareJournalFiles, AreNotBelievedWhereTheyEndEarly) {
  // Without its last line break the file still holds all.
  const std::size_t end = text_.size() - 2;
  for (std::size_t length = 0; length < end; length += length + 40 < end ? 17 : 1) {
    write(5, text_.substr(0, length));
    EXPECT_FALSE(journal_.recall(5).has_value()) << "the first " << length << " bytes";
  }
  // A file of the right length whose end never reached the disk.
  write(5, text_.substr(0, text_.size() / 2) + std::string(text_.size() - text_.size() / 2, '\0'));
  EXPECT_FALSE(journal_.recall(5).has_value());
  write(5, text_);
  EXPECT_TRUE(journal_.recall(5).has_value());
}

TEST_F(CompareJournalFiles, AreNotBelievedWhereTheyWereChangedOrMoved) {
  std::string changed = text_;
  changed.replace(changed.find("0.3"), 3, "0.2");  // JSON as good as before
  write(5, changed);
  EXPECT_FALSE(journal_.recall(5).has_value());
  write(7, text_);  // another window's
  EXPECT_FALSE(journal_.recall(7).has_value());
  for (const char* text : {"[]", "null", "{}", R"({"sha256": 1, "window": 2})", "3"}) {
    write(5, text);
    EXPECT_FALSE(journal_.recall(5).has_value()) << text;
  }
}

TEST_F(CompareJournalFiles, ThatWereNeverFinishedGoWithTime) {
  const fs::path old = journal_.path() / ".9.json.tmp-old",
                 fresh = journal_.path() / ".9.json.tmp-new";
  std::ofstream(old) << "{";
  std::ofstream(fresh) << "{";  // of an equal run at the same time
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  ASSERT_TRUE(CompareJournal::open(temporary_.path(), "key", true).ok());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_TRUE(journal_.recall(5).has_value());
}

}  // namespace
}  // namespace tenonnx

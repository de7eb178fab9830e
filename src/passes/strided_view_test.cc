// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/strided_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace tenonnx {
namespace {

using ::testing::ElementsAre;

using Elements = std::vector<std::int64_t>;

// Every element of a view, in order: what the modes say, one by one.
Elements elements(const StridedView& view) {
  Elements all = {view.offset()};
  for (std::size_t i = 0; i < view.rank(); ++i)
    for (const StrideMode& mode : view.axis(i)) {
      Elements next;
      for (const std::int64_t at : all)
        for (std::int64_t k = 0; k < mode.size; ++k) next.push_back(at + k * mode.stride);
      all = std::move(next);
    }
  return all;
}

// The same by plain loops over an array.
struct Array {
  Shape shape;
  Elements values;
};

Array iota(const Shape& shape) {
  Array a{shape, Elements(static_cast<std::size_t>(element_count(shape)))};
  std::iota(a.values.begin(), a.values.end(), 0);
  return a;
}

Array transposed(const Array& a, const std::vector<std::int64_t>& perm) {
  Array b;
  for (const std::int64_t axis : perm) b.shape.push_back(a.shape[static_cast<std::size_t>(axis)]);
  const std::size_t rank = a.shape.size();
  std::vector<std::int64_t> index(rank, 0);
  for (std::int64_t n = 0; n < element_count(a.shape); ++n) {
    std::int64_t rest = n;
    for (std::size_t i = rank; i-- > 0; rest /= b.shape[i]) index[i] = rest % b.shape[i];
    std::int64_t from = 0;
    for (std::size_t axis = 0; axis < rank; ++axis)
      for (std::size_t i = 0; i < rank; ++i)
        if (perm[i] == static_cast<std::int64_t>(axis)) from = from * a.shape[axis] + index[i];
    b.values.push_back(a.values[static_cast<std::size_t>(from)]);
  }
  return b;
}

TEST(StridedView, ReshapeAndTransposeInARow) {
  std::mt19937 random(1);
  const std::vector<Shape> shapes = {{2, 3, 4, 6}, {6, 1, 24}, {1, 12, 2, 6}, {4, 36}, {144}};
  int followed = 0;
  for (int round = 0; round < 300; ++round) {
    Array array = iota(shapes[random() % shapes.size()]);
    StridedView view = StridedView::of(array.shape);
    for (int step = 0; step < 4; ++step) {
      if (random() % 2 == 0) {
        const Shape& to = shapes[random() % shapes.size()];
        if (!view.reshape(to)) continue;  // refused: the view must be as it was
        array.shape = to;
      } else {
        std::vector<std::int64_t> perm(array.shape.size());
        std::iota(perm.begin(), perm.end(), 0);
        std::shuffle(perm.begin(), perm.end(), random);
        ASSERT_TRUE(view.transpose(perm));
        array = transposed(array, perm);
      }
      ASSERT_EQ(view.shape(), array.shape);
      ASSERT_EQ(elements(view), array.values);
      ++followed;
    }
  }
  EXPECT_GT(followed, 600);
}

// Batch and heads, moved side by side and merged, are two modes of one axis.
TEST(StridedView, MergedAxesThatAreApartInMemory) {
  StridedView view = StridedView::of({2, 300, 8, 12});
  ASSERT_TRUE(view.transpose({0, 2, 1, 3}));
  ASSERT_TRUE(view.reshape({16, 300, 12}));
  EXPECT_THAT(view.axis(0), ElementsAre(StrideMode{2, 28800}, StrideMode{8, 12}));
  EXPECT_FALSE(view.reshape({3, 16, 1200}));  // 3 goes into neither 2 nor 8
  EXPECT_EQ(view.shape(), (Shape{16, 300, 12}));
}

TEST(StridedView, SlicesOfOneModeAndOfSeveral) {
  StridedView view = StridedView::of({4, 6});
  ASSERT_TRUE(view.slice(1, 2, 3, 1));
  EXPECT_EQ(elements(view), (Elements{2, 3, 4, 8, 9, 10, 14, 15, 16, 20, 21, 22}));
  ASSERT_TRUE(view.reshape({12}));
  StridedView row = view, rows = view, across = view;
  ASSERT_TRUE(row.slice(0, 4, 2, 1));
  EXPECT_EQ(elements(row), (Elements{9, 10}));
  ASSERT_TRUE(rows.slice(0, 3, 6, 1));
  EXPECT_EQ(elements(rows), (Elements{8, 9, 10, 14, 15, 16}));
  EXPECT_FALSE(across.slice(0, 2, 3, 1));
  EXPECT_FALSE(across.slice(0, 10, 3, 1));
  StridedView every_second = StridedView::of({7});
  ASSERT_TRUE(every_second.slice(0, 1, 3, 2));
  EXPECT_EQ(elements(every_second), (Elements{1, 3, 5}));
}

TEST(StridedView, JoinsPartsOneAfterAnother) {
  const StridedView whole = StridedView::of({2, 12});
  std::vector<StridedView> parts(3, whole);
  ASSERT_TRUE(parts[0].slice(1, 0, 3, 1));
  ASSERT_TRUE(parts[1].slice(1, 3, 6, 1));
  ASSERT_TRUE(parts[2].slice(1, 9, 3, 1));
  const auto joined = StridedView::joined(parts, 1);
  ASSERT_TRUE(joined);
  EXPECT_TRUE(joined->is_whole(24));
  std::swap(parts[0], parts[2]);
  EXPECT_FALSE(StridedView::joined(parts, 1));
}

TEST(StridedView, JoinsEqualPartsToAnOuterMode) {
  // [points, levels] read level by level.
  std::vector<StridedView> parts;
  for (std::int64_t level = 0; level < 3; ++level)
    parts.push_back(StridedView::from_axes(level, {{{4, 3}}}));
  const auto joined = StridedView::joined(parts, 0);
  ASSERT_TRUE(joined);
  EXPECT_EQ(elements(*joined), (Elements{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
}

TEST(StridedView, BroadcastRepeatsWithStrideZero) {
  StridedView view = StridedView::of({3, 1, 2});
  ASSERT_TRUE(view.broadcast({2, 3, 2, 2}));
  EXPECT_EQ(elements(view), (Elements{0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5,  //
                                      0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5}));
  EXPECT_FALSE(view.broadcast({2, 3, 4, 2}));
}

TEST(Rearrangement, SaysHowAViewIsMade) {
  StridedView view = StridedView::of({2, 12, 5});
  ASSERT_TRUE(view.reshape({2, 3, 4, 5}) && view.transpose({0, 3, 1, 2}));
  const auto way = rearrangement(view, 120);
  ASSERT_TRUE(way);
  EXPECT_THAT(way->split, ElementsAre(2, 12, 5));
  EXPECT_THAT(way->perm, ElementsAre(0, 2, 1));
  Array array = transposed(iota(way->split), way->perm);
  EXPECT_EQ(elements(view), array.values);
}

TEST(Rearrangement, NoneOfAPartOrOfRepeatedElements) {
  StridedView part = StridedView::of({4, 4});
  ASSERT_TRUE(part.slice(0, 0, 2, 1));
  EXPECT_FALSE(rearrangement(part, 16));
  StridedView twice = StridedView::of({4, 1});
  ASSERT_TRUE(twice.broadcast({4, 2}));
  EXPECT_FALSE(rearrangement(twice, 4));
}

}  // namespace
}  // namespace tenonnx

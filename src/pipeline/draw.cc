// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "base/status.h"

namespace tenonnx {
namespace {

// Below this a label of a readable size would cover the picture.
constexpr int kShortSide = 480;
constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;

// Distinct hues that stand out from most pictures; RGB. Further classes repeat them.
constexpr std::array<std::array<int, 3>, 10> kColours = {{{230, 25, 75},
                                                          {0, 130, 200},
                                                          {60, 180, 75},
                                                          {245, 130, 48},
                                                          {145, 30, 180},
                                                          {255, 225, 25},
                                                          {70, 240, 240},
                                                          {240, 50, 230},
                                                          {128, 128, 0},
                                                          {170, 110, 40}}};

struct Style {
  int line = 2;      // pixels
  double scale = 1;  // of the font
  int stroke = 1;    // pixels
  int padding = 3;   // around the text
};

Style style_for(int width, int height) {
  const double size = std::min(width, height);
  Style style;
  style.line = std::max(2, static_cast<int>(std::lround(size / 240)));
  style.scale = std::max(0.45, size / 1000);
  style.stroke = std::max(1, static_cast<int>(std::lround(size / 500)));
  style.padding = std::max(3, static_cast<int>(std::lround(size / 160)));
  return style;
}

cv::Scalar colour_of(std::int64_t label) {
  const auto& c = kColours[static_cast<std::size_t>(label < 0 ? 0 : label) % kColours.size()];
  return {static_cast<double>(c[0]), static_cast<double>(c[1]), static_cast<double>(c[2])};
}

// Black or white, whichever contrasts more: by luma of BT.601, the middle of the scale deciding.
cv::Scalar text_colour(const cv::Scalar& back) {
  const double luma = 0.299 * back[0] + 0.587 * back[1] + 0.114 * back[2];
  return luma > 140 ? cv::Scalar(0, 0, 0) : cv::Scalar(255, 255, 255);
}

// A box may reach far outside of the picture; OpenCV's coordinates are int.
int to_pixel(float value, int factor, int limit) {
  return static_cast<int>(std::lround(
      std::clamp(value * static_cast<float>(factor), 0.0F, static_cast<float>(limit - 1))));
}

struct Label {
  std::string text;
  cv::Rect area;
  int baseline = 0;  // of the text, from the top of the area
  cv::Scalar colour;
};

// Above the box, below it, inside its upper edge, or at its right end: the first place that lies
// on the canvas and covers no label that is there already; else above, covering it.
cv::Point place_label(const cv::Size& canvas, const cv::Rect& box, const cv::Size& size,
                      const std::vector<Label>& placed) {
  const auto on_canvas = [&](int x, int y) {
    return cv::Point(std::clamp(x, 0, std::max(0, canvas.width - size.width)),
                     std::clamp(y, 0, std::max(0, canvas.height - size.height)));
  };
  const int right = box.x + box.width - size.width, bottom = box.y + box.height;
  for (const cv::Point at : {cv::Point(box.x, box.y - size.height), cv::Point(box.x, bottom),
                             cv::Point(box.x, box.y), cv::Point(right, box.y - size.height),
                             cv::Point(right, bottom), cv::Point(right, bottom - size.height)}) {
    const cv::Rect area(on_canvas(at.x, at.y), size);
    const bool is_free = std::none_of(placed.begin(), placed.end(), [&](const Label& label) {
      return (label.area & area).area() > 0;
    });
    if (area.tl() == at && is_free) return at;
  }
  return on_canvas(box.x, box.y - size.height);
}

Label make_label(const cv::Mat& canvas, const cv::Rect& box, const std::string& text,
                 const cv::Scalar& colour, const Style& style, const std::vector<Label>& placed) {
  int descent = 0;
  const cv::Size size = cv::getTextSize(text, kFont, style.scale, style.stroke, &descent);
  const cv::Size area(size.width + 2 * style.padding, size.height + descent + 2 * style.padding);
  const cv::Point at = place_label(canvas.size(), box, area, placed);
  return {text, cv::Rect(at, area), style.padding + size.height, colour};
}

void draw_label(cv::Mat& canvas, const Label& label, const Style& style) {
  cv::rectangle(canvas, label.area, label.colour, cv::FILLED);
  cv::putText(canvas, label.text, label.area.tl() + cv::Point(style.padding, label.baseline), kFont,
              style.scale, text_colour(label.colour), style.stroke, cv::LINE_AA);
}

}  // namespace

std::string class_name(const std::vector<std::string>& classes, std::int64_t label) {
  if (label >= 0 && label < static_cast<std::int64_t>(classes.size()))
    return classes[static_cast<std::size_t>(label)];
  return fmt::format("class {}", label);
}

Result<Image> draw_detections(const Image& image, std::span<const Detection> detections,
                              const std::vector<std::string>& classes) {
  if (image.channels != 3 || image.width < 1 || image.height < 1)
    return InvalidArgument("boxes are drawn on RGB images, got {} x {} x {}", image.width,
                           image.height, image.channels);
  const int side = std::min(image.width, image.height);
  int factor = side >= kShortSide ? 1 : (kShortSide + side - 1) / side;
  // A long strip is not blown up without bound.
  while (factor > 1 &&
         static_cast<std::int64_t>(image.width) * image.height * factor * factor > kMaxPixels / 4)
    --factor;
  Image out(image.width * factor, image.height * factor, 3);
  try {
    const cv::Mat from(image.height, image.width, CV_8UC3,
                       const_cast<std::uint8_t*>(image.pixels.data()));
    cv::Mat canvas(out.height, out.width, CV_8UC3, out.pixels.data());
    cv::resize(from, canvas, canvas.size(), 0, 0, cv::INTER_NEAREST);
    const Style style = style_for(out.width, out.height);
    std::vector<cv::Rect> boxes;
    // The best last, so that its frame and label lie on top.
    std::vector<const Detection*> order;
    for (const Detection& detection : detections) order.push_back(&detection);
    std::stable_sort(order.begin(), order.end(),
                     [](const Detection* a, const Detection* b) { return a->score < b->score; });
    for (const Detection* detection : order) {
      const Box& b = detection->box;
      const cv::Point upper(to_pixel(b.x0, factor, out.width), to_pixel(b.y0, factor, out.height));
      const cv::Point lower(to_pixel(b.x1, factor, out.width), to_pixel(b.y1, factor, out.height));
      boxes.emplace_back(upper, lower);
      cv::rectangle(canvas, upper, lower, colour_of(detection->label), style.line);
    }
    // The best choose their places first.
    std::vector<Label> labels;
    for (std::size_t i = order.size(); i-- > 0;)
      labels.push_back(make_label(
          canvas, boxes[i],
          fmt::format("{} {:.2f}", class_name(classes, order[i]->label), order[i]->score),
          colour_of(order[i]->label), style, labels));
    std::reverse(labels.begin(), labels.end());
    for (const Label& label : labels) draw_label(canvas, label, style);
  } catch (const std::exception& error) {
    return Internal("OpenCV could not draw on an image of {} x {}: {}", out.width, out.height,
                    error.what());
  }
  return out;
}

}  // namespace tenonnx

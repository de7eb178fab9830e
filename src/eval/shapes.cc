// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "eval/shapes.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>

#include "base/status.h"

namespace tenonnx {
namespace {

constexpr int kSize = kShapesSize;
enum Kind { kCircle, kRectangle, kTriangle, kCross };

// SplitMix64 (Steele, Lea, Flood 2014), its state first spread by a multiplication so that
// neighbouring seeds give unrelated images.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0xD1B54A32D192ED03u + 0x2545F4914F6CDD1Du) {}
  int below(int n) {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<int>(((z ^ (z >> 31)) >> 33) % static_cast<std::uint64_t>(n));
  }
  int between(int low, int high) { return low + below(high - low + 1); }  // both included

 private:
  std::uint64_t state_;
};

// Centre, and half width and half height without the centre pixel.
struct Placement {
  int cx = 0, cy = 0, half_width = 0, half_height = 0;
};

bool covers(int kind, const Placement& p, int x, int y) {
  const int dx = std::abs(x - p.cx), dy = y - p.cy;
  const bool inside = dx <= p.half_width && std::abs(dy) <= p.half_height;
  switch (kind) {
    case kCircle:
      return dx * dx + dy * dy <= p.half_width * p.half_width;
    case kRectangle:
      return inside;
    case kTriangle:  // apex up
      return inside && dx * 2 * p.half_height <= (dy + p.half_height) * p.half_width;
    default:  // cross: bars of a third of the width
      return inside && (dx * 3 <= p.half_width || std::abs(dy) * 3 <= p.half_height);
  }
}

// IoU at most 1/6.
bool apart(const ShapesObject& a, const ShapesObject& b) {
  const int intersection = std::max(0, std::min(a.x1, b.x1) - std::max(a.x0, b.x0)) *
                           std::max(0, std::min(a.y1, b.y1) - std::max(a.y0, b.y0));
  const int together = (a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - intersection;
  return intersection * 6 <= together;
}

// A hash of position, channel and seed: the sum of two 5-bit fields, centred, in [-31,31].
int noise(std::uint64_t seed, int x, int y, int channel) {
  std::uint32_t h = static_cast<std::uint32_t>(x) * 73856093u;
  h ^= static_cast<std::uint32_t>(y) * 19349663u;
  h ^= static_cast<std::uint32_t>(channel + 1) * 83492791u;
  h ^= static_cast<std::uint32_t>(seed * 2654435761u);
  h = (h ^ (h >> 15)) * 0x2C1B3C6Du;
  h = (h ^ (h >> 12)) * 0x297A2D39u;
  h ^= h >> 15;
  return static_cast<int>(h & 31) + static_cast<int>((h >> 8) & 31) - 31;
}

using Colour = std::array<int, 3>;

// Twenty tries for a place where the object overlaps no other by much.
std::optional<ShapesObject> place(Random& random, int label,
                                  const std::vector<ShapesObject>& others, Placement* p) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    p->cx = random.between(p->half_width, kSize - 1 - p->half_width);
    p->cy = random.between(p->half_height, kSize - 1 - p->half_height);
    const ShapesObject object{label, p->cx - p->half_width, p->cy - p->half_height,
                              p->cx + p->half_width + 1, p->cy + p->half_height + 1};
    if (std::all_of(others.begin(), others.end(),
                    [&](const ShapesObject& o) { return apart(object, o); })) {
      return object;
    }
  }
  return std::nullopt;
}

// A colour that differs from the background by at least 120 over the three channels.
Colour visible_colour(Random& random, const Colour& background) {
  Colour colour;
  int distance = 0;
  do {
    distance = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      colour[c] = random.below(256);
      distance += std::abs(colour[c] - background[c]);
    }
  } while (distance < 120);
  return colour;
}

}  // namespace

// The order of the draws is the format: any change of it gives other images.
ShapesImage make_shapes_image(std::uint64_t seed) {
  Random random(seed);
  Colour base, gradient_x, gradient_y;
  for (int& v : base) v = random.between(48, 207);
  for (int& v : gradient_x) v = random.between(-64, 64);
  for (int& v : gradient_y) v = random.between(-64, 64);
  const auto index = [](int x, int y) {
    return (static_cast<std::size_t>(y) * kSize + static_cast<std::size_t>(x)) * 3;
  };
  std::vector<int> pixels(kSize * kSize * 3);
  for (int y = 0; y < kSize; ++y) {
    for (int x = 0; x < kSize; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        // >> of a negative number rounds downward, as in Python.
        pixels[index(x, y) + c] = base[c] + ((gradient_x[c] * (x - kSize / 2)) >> 8) +
                                  ((gradient_y[c] * (y - kSize / 2)) >> 8);
      }
    }
  }

  ShapesImage image;
  const int wanted = random.between(1, 7);
  for (int i = 0; i < wanted; ++i) {
    const int kind = random.below(4);
    Placement p;
    p.half_width = random.below(2) ? random.between(5, 13) : random.between(14, 32);
    p.half_height = p.half_width;
    if (kind == kRectangle || kind == kTriangle)
      p.half_height = std::clamp(p.half_width * random.between(10, 20) / 15, 5, 32);
    const auto object = place(random, kind, image.objects, &p);
    if (!object) continue;
    const Colour colour = visible_colour(random, base);
    for (int y = object->y0; y < object->y1; ++y) {
      for (int x = object->x0; x < object->x1; ++x) {
        if (covers(kind, p, x, y)) std::copy(colour.begin(), colour.end(), &pixels[index(x, y)]);
      }
    }
    image.objects.push_back(*object);
  }

  image.rgb.resize(pixels.size());
  for (int y = 0; y < kSize; ++y) {
    for (int x = 0; x < kSize; ++x) {
      for (int c = 0; c < 3; ++c) {
        const std::size_t i = index(x, y) + static_cast<std::size_t>(c);
        image.rgb[i] =
            static_cast<std::uint8_t>(std::clamp(pixels[i] + noise(seed, x, y, c), 0, 255));
      }
    }
  }
  return image;
}

std::string shapes_file_name(std::uint64_t seed) { return fmt::format("shapes_{:09}.png", seed); }

Result<CocoDataset> shapes_annotations(std::span<const std::uint64_t> seeds) {
  CocoDataset dataset;
  for (std::size_t c = 0; c < kShapesClasses.size(); ++c)
    dataset.categories.push_back({static_cast<std::int64_t>(c), std::string(kShapesClasses[c])});
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed : seeds) {
    if (!seen.insert(seed).second)
      return InvalidArgument("seed {} is given twice: it would be the same image", seed);
    if (seed > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return InvalidArgument("seed {} is too large for an image id; the largest is 2^63 - 1", seed);
    const auto id = static_cast<std::int64_t>(seed);
    dataset.images.push_back({id, shapes_file_name(seed), kSize, kSize});
    for (const ShapesObject& o : make_shapes_image(seed).objects) {
      CocoAnnotation a;
      a.id = static_cast<std::int64_t>(dataset.annotations.size()) + 1;
      a.image_id = id;
      a.category_id = o.label;
      a.bbox = {double(o.x0), double(o.y0), double(o.x1 - o.x0), double(o.y1 - o.y0)};
      a.area = a.bbox[2] * a.bbox[3];
      dataset.annotations.push_back(a);
    }
  }
  return dataset;
}

}  // namespace tenonnx

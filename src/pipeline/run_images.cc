// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/run_images.h"

#include <cstdlib>
#include <set>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "eval/coco.h"
#include "pipeline/draw.h"
#include "pipeline/image_file.h"
#include "pipeline/image_list.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

constexpr int kSchemaVersion = 1;

// The double that a person would write for this float: 0.93, not 0.9300000071525574.
double shortest(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

class Runner {
 public:
  explicit Runner(const RunOptions& options) : options_(options), pipeline_(config()) {}

  Result<RunResult> run() {
    TENONNX_RETURN_IF_ERROR(check_arguments());
    TENONNX_RETURN_IF_ERROR(pipeline_.init());
    result_.package = options_.package.string();
    result_.verdict = pipeline_.verdict();
    result_.score_threshold = options_.score_threshold;
    result_.classes = pipeline_.contract().classes;
    if (is_stream()) {
      TENONNX_RETURN_IF_ERROR(make_directories());
      result_.image_ids = "1 to N";
      TENONNX_RETURN_IF_ERROR(run_stream());
    } else {
      TENONNX_ASSIGN_OR_RETURN(const ImageList list,
                               number_images(options_.images, result_.classes));
      TENONNX_RETURN_IF_ERROR(make_directories());
      result_.image_ids = list.ids_from;
      categories_ = list.categories;
      TENONNX_RETURN_IF_ERROR(run_files(list));
    }
    TENONNX_RETURN_IF_ERROR(write_results());
    return std::move(result_);
  }

 private:
  PipelineConfig config() const {
    PipelineConfig config;
    config.package = options_.package.string();
    config.score_threshold = options_.score_threshold;
    config.allow_failed_package = options_.allow_failed_package;
    config.check_versions = options_.check_versions;
    config.scheduling = options_.scheduling;
    return config;
  }

  bool is_stream() const { return options_.images.size() == 1 && options_.images[0] == "-"; }

  Status check_arguments() const {
    if (options_.images.empty()) return InvalidArgument("no images were named");
    if (options_.out.empty()) return InvalidArgument("no output directory was named");
    if (!(options_.score_threshold >= 0 && options_.score_threshold < 1))
      return InvalidArgument("the score threshold must be in [0,1), got {}",
                             options_.score_threshold);
    if (!is_stream()) return {};
    if (options_.stream == nullptr) return InvalidArgument("'-' needs a stream of frames");
    if (options_.frame_width < 1 || options_.frame_height < 1)
      return InvalidArgument("raw frames need their size: --size WIDTHxHEIGHT (got {} x {})",
                             options_.frame_width, options_.frame_height);
    // Checks format, size and, for nv12, evenness, on no pixels at all.
    ImageView view;
    const std::uint8_t nothing = 0;
    view.data = &nothing;
    view.width = options_.frame_width;
    view.height = options_.frame_height;
    view.format = options_.frame_format;
    return check_view(view);
  }

  // A file more in a package is a package that nothing runs any longer.
  Status check_outside_package() const {
    std::error_code error;
    const fs::path package = fs::weakly_canonical(fs::absolute(options_.package), error);
    if (error) return {};  // init() has read it
    const fs::path out = fs::weakly_canonical(fs::absolute(options_.out), error);
    if (error) return Io("cannot resolve '{}': {}", options_.out.string(), error.message());
    const fs::path inside = out.lexically_relative(package);
    if (inside.empty() || *inside.begin() == "..") return {};
    return InvalidArgument(
        "the results cannot be written to '{}': that is in the package '{}', which holds nothing "
        "that its manifest does not name; name a folder outside it",
        options_.out.string(), options_.package.string());
  }

  Status make_directories() {
    TENONNX_RETURN_IF_ERROR(check_outside_package());
    result_.detections_file = options_.out / "detections.json";
    result_.coco_file = options_.out / "coco_results.json";
    if (options_.draw) result_.drawn_directory = options_.out / "drawn";
    std::error_code error;
    fs::create_directories(options_.draw ? result_.drawn_directory : options_.out, error);
    if (error) return Io("cannot make the folder '{}': {}", options_.out.string(), error.message());
    return {};
  }

  Status run_files(const ImageList& list) {
    const auto total = static_cast<std::int64_t>(list.images.size());
    for (std::int64_t i = 0; i < total; ++i) {
      const NumberedImage& file = list.images[static_cast<std::size_t>(i)];
      Result<Image> image = read_image(file.path);
      if (image.ok()) {
        TENONNX_RETURN_IF_ERROR(
            detect(file.path.string(), file.id, view_of(*image), file.path.stem().string()));
      } else {
        result_.failures.push_back({file.path.string(), image.status().message()});
      }
      if (options_.progress) options_.progress("detecting", i + 1, total);
    }
    return {};
  }

  Status run_stream() {
    const std::size_t size =
        frame_bytes(options_.frame_format, options_.frame_width, options_.frame_height);
    std::vector<std::uint8_t> pixels(size);
    ImageView view;
    view.data = pixels.data();
    view.width = options_.frame_width;
    view.height = options_.frame_height;
    view.format = options_.frame_format;
    for (std::int64_t frame = 1;; ++frame) {
      options_.stream->read(reinterpret_cast<char*>(pixels.data()),
                            static_cast<std::streamsize>(size));
      const auto got = static_cast<std::size_t>(options_.stream->gcount());
      if (got == 0) break;
      const std::string name = fmt::format("frame {}", frame);
      if (got < size) {
        result_.failures.push_back(
            {name, fmt::format("{}: the stream ends after {} of {} bytes ({} x {} {})", name, got,
                               size, view.width, view.height, to_string(view.format))});
        break;
      }
      TENONNX_RETURN_IF_ERROR(detect(name, frame, view, fmt::format("frame_{:06}", frame)));
      if (options_.progress) options_.progress("detecting", frame, 0);
    }
    if (result_.images.empty() && result_.failures.empty())
      return InvalidArgument("the stream of frames is empty");
    return {};
  }

  Status detect(const std::string& name, std::int64_t id, const ImageView& view,
                const std::string& stem) {
    ImageDetections found;
    found.name = name;
    found.image_id = id;
    found.width = view.width;
    found.height = view.height;
    const auto steps = [&]() -> Status {
      TENONNX_RETURN_IF_ERROR(pipeline_.pre_process(view, inputs_));
      TENONNX_RETURN_IF_ERROR(pipeline_.infer(inputs_, outputs_));
      return pipeline_.post_process(outputs_, found.detections);
    };
    if (const Status status = steps(); !status.ok()) {
      result_.failures.push_back({name, status.at(name).message()});
      return {};
    }
    if (options_.draw) {
      TENONNX_ASSIGN_OR_RETURN(const Image rgb, to_rgb(view));
      TENONNX_ASSIGN_OR_RETURN(const Image drawn,
                               draw_detections(rgb, found.detections, result_.classes));
      const fs::path path = result_.drawn_directory / (unused(stem) + ".png");
      TENONNX_RETURN_IF_ERROR(write_png(path, drawn));
      found.drawn = path.string();
    }
    if (options_.on_image) options_.on_image(found);
    result_.images.push_back(std::move(found));
    return {};
  }

  // Two folders may hold images of one name.
  std::string unused(const std::string& stem) {
    std::string name = stem;
    for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", stem, i);
    return name;
  }

  Status write_results() {
    std::vector<CocoResult> coco;
    for (const ImageDetections& image : result_.images) {
      if (categories_.empty()) {
        // Without class names every label is its own category.
        for (const Detection& d : image.detections)
          coco.push_back({image.image_id,
                          d.label,
                          {d.box.x0, d.box.y0, static_cast<double>(d.box.x1) - d.box.x0,
                           static_cast<double>(d.box.y1) - d.box.y0},
                          d.score});
        continue;
      }
      const auto results = to_coco_results(image.image_id, image.detections, categories_);
      coco.insert(coco.end(), results.begin(), results.end());
    }
    TENONNX_RETURN_IF_ERROR(write_json_file(result_.coco_file, to_json(coco)));
    return write_json_file(result_.detections_file, to_json(result_));
  }

  const RunOptions& options_;
  Pipeline pipeline_;
  Pipeline::Tensors inputs_, outputs_;
  std::vector<std::int64_t> categories_;
  std::set<std::string> names_;
  RunResult result_;
};

}  // namespace

Result<RunResult> run_images(const RunOptions& options) { return Runner(options).run(); }

Json to_json(const RunResult& result) {
  Json images = Json::array();
  for (const ImageDetections& image : result.images) {
    Json detections = Json::array();
    for (const Detection& d : image.detections)
      detections.push_back(
          {{"label", d.label},
           {"class", class_name(result.classes, d.label)},
           {"score", shortest(d.score)},
           {"box",
            {shortest(d.box.x0), shortest(d.box.y0), shortest(d.box.x1), shortest(d.box.y1)}}});
    Json one = {{"name", image.name},
                {"image_id", image.image_id},
                {"width", image.width},
                {"height", image.height},
                {"detections", std::move(detections)}};
    if (!image.drawn.empty()) one["drawn"] = image.drawn;
    images.push_back(std::move(one));
  }
  Json failures = Json::array();
  for (const RunFailure& failure : result.failures)
    failures.push_back({{"name", failure.name}, {"message", failure.message}});
  return {{"schema_version", kSchemaVersion}, {"package", result.package},
          {"verdict", result.verdict},        {"score_threshold", shortest(result.score_threshold)},
          {"classes", result.classes},        {"image_ids", result.image_ids},
          {"images", std::move(images)},      {"failures", std::move(failures)}};
}

}  // namespace tenonnx

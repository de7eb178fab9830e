// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/inputs.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <random>
#include <system_error>

#include "base/files.h"
#include "base/status.h"
#include "base/wording.h"
#include "pipeline/image_file.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

// 53 bits of the engine as a double in [0,1): std::uniform_real_distribution differs between
// standard libraries.
double next_unit(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

template <typename T>
void fill(Tensor& tensor, std::mt19937_64& engine, double low, double high) {
  T* data = tensor.mutable_data<T>();
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    data[i] = static_cast<T>(low + (high - low) * next_unit(engine));
}

// What is larger than the machine ends in an allocation that fails, which tells nobody which shape.
Status check_memory(const std::vector<TensorInfo>& inputs) {
  const double there =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  for (const TensorInfo& info : inputs) {
    double bytes = static_cast<double>(size_of(info.dtype));
    for (const std::int64_t size : info.shape) bytes *= static_cast<double>(size);
    if (bytes > there)
      return InvalidArgument(
          "input '{}' has the shape {}: its values alone take {:.4g} GiB, and this machine has "
          "{:.4g} GiB; make a model of a smaller shape, or run this on a larger machine",
          info.name, to_string(info.shape), bytes / 0x1p30, there / 0x1p30);
  }
  return {};
}

}  // namespace

Result<InputSource> InputSource::from_images(const fs::path& images, Contract contract,
                                             std::size_t limit) {
  InputSource source(std::move(contract));
  TENONNX_ASSIGN_OR_RETURN(source.preprocessor_, Preprocessor::create(source.contract_));
  std::error_code error;
  const fs::file_status status = fs::status(images, error);
  if (!fs::exists(status)) return NotFound("there is no image or folder '{}'", images.string());
  if (fs::is_directory(status)) {
    for (fs::directory_iterator it(images, error), end; !error && it != end; it.increment(error))
      if (is_image_name(it->path()) && it->is_regular_file(error))
        source.files_.push_back(it->path());
    if (error) return Io("cannot read '{}': {}", images.string(), error.message());
    std::sort(source.files_.begin(), source.files_.end());
    if (source.files_.empty())
      return NotFound("folder '{}' has no image (.jpg, .jpeg, .png, .ppm, .pgm)", images.string());
  } else {
    source.files_.push_back(images);
  }
  if (limit > 0 && source.files_.size() > limit) source.files_.resize(limit);
  return source;
}

Result<InputSource> InputSource::random(const std::vector<TensorInfo>& inputs, Contract contract,
                                        std::size_t count, std::uint64_t seed) {
  for (const TensorInfo& info : inputs)
    if (element_count(info.shape) < 0)
      return InvalidArgument(
          "input '{}' has the shape {}: random values need a fixed one; give --input-shape {}=..., "
          "or --images",
          info.name, to_string(info.shape), info.name);
  TENONNX_RETURN_IF_ERROR(check_memory(inputs));
  InputSource source(std::move(contract));
  source.random_ = true;
  source.infos_ = inputs;
  source.count_ = count;
  source.seed_ = seed;
  return source;
}

fs::path InputSource::folder() const {
  return files_.empty() ? fs::path() : files_.front().parent_path();
}

std::string InputSource::description() const {
  if (random_) return fmt::format("{} (seed {})", counted(count_, "random input"), seed_);
  return fmt::format("{} of '{}'", counted(files_.size(), "image"), folder().filename().string());
}

Result<ReferenceInput> InputSource::load(std::size_t index) const {
  if (index >= size()) return InvalidArgument("there is no input {} of {}", index, size());
  if (random_) return load_random(index);
  ReferenceInput input;
  input.name = files_[index].filename().string();
  TENONNX_ASSIGN_OR_RETURN(const Image image, read_image(files_[index]));
  input.width = image.width;
  input.height = image.height;
  const Status status = preprocessor_->run(view_of(image), input.tensors);
  TENONNX_RETURN_IF_ERROR(status.at(files_[index].string()));
  input.sha256 = input_sha256(input.tensors);
  return input;
}

Result<ReferenceInput> InputSource::load_random(std::size_t index) const {
  ReferenceInput input;
  input.name = fmt::format("random {}", index);
  std::mt19937_64 engine(seed_ * 1'000'003 + index);
  const ImageInput& image = contract_.image;
  for (const TensorInfo& info : infos_) {
    Tensor tensor(info.dtype, info.shape);
    const bool is_image = info.name == image.name;
    const double low = is_image ? image.range[0] : 0;
    const double high = is_image ? image.range[1] : 1;
    if (is_image && info.shape.size() == 4) {
      const bool nchw = image.layout == Layout::kNchw;
      input.height = static_cast<int>(info.shape[nchw ? 2 : 1]);
      input.width = static_cast<int>(info.shape[nchw ? 3 : 2]);
    }
    switch (info.dtype) {
      case DType::kFloat32:
        fill<float>(tensor, engine, low, high);
        break;
      case DType::kFloat64:
        fill<double>(tensor, engine, low, high);
        break;
      case DType::kUInt8:
        fill<std::uint8_t>(tensor, engine, low, is_image ? high + 1 : 2);
        break;
      case DType::kInt64:
      case DType::kInt32:
      case DType::kBool:
        break;  // zero; the size is set below
      default:
        return Unsupported("random values for input '{}' of dtype {}: give --images", info.name,
                           to_string(info.dtype));
    }
    input.tensors.emplace(info.name, std::move(tensor));
  }
  if (contract_.size && input.tensors.contains(contract_.size->name)) {
    Tensor& size = input.tensors.at(contract_.size->name);
    const bool wh = contract_.size->order == SizeOrder::kWidthHeight;
    const std::int64_t values[2] = {wh ? input.width : input.height,
                                    wh ? input.height : input.width};
    for (std::int64_t i = 0; i < size.size(); ++i) {
      if (size.dtype() == DType::kInt64)
        size.mutable_data<std::int64_t>()[i] = values[i % 2];
      else if (size.dtype() == DType::kInt32)
        size.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(values[i % 2]);
      else if (size.dtype() == DType::kFloat32)
        size.mutable_data<float>()[i] = static_cast<float>(values[i % 2]);
    }
  }
  input.sha256 = input_sha256(input.tensors);
  return input;
}

std::string input_sha256(const TensorMap& tensors) {
  std::string bytes;
  for (const auto& [name, tensor] : tensors) {
    bytes += fmt::format("{} {} {}\n", name, to_string(tensor.dtype()), to_string(tensor.shape()));
    bytes.append(tensor.data<char>(), tensor.bytes());
  }
  return sha256_hex(bytes);
}

std::string inputs_sha256(const std::vector<std::string>& hashes) {
  std::string text;
  for (const std::string& hash : hashes) text += hash + '\n';
  return sha256_hex(text);
}

}  // namespace tenonnx

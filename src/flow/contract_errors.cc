// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/contract_errors.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "flow/contract_mistakes.h"
#include "flow/inputs.h"
#include "pipeline/decode.h"

namespace tenonnx {
namespace {

// A mistake must bring the sides this much nearer. Noise of the size n leaves a wrong explanation
// no nearer than n, so that any factor clearly above 1 tells them apart; 4 also bears that noise is
// not the same for two inputs.
constexpr double kNearer = 4;
// Nearer than this the sides agree: a thousandth, what a re-export on the cpu may differ
// (TaskGates::cpu_reexport).
constexpr double kAgree = 1e-3;
// And at least this near, or the outputs do not match, whatever they were before: on a device that
// is simply broken some mistake is nearer than the contract by chance. float16 devices that pass
// are within 0.02.
constexpr double kMatch = 0.1;
constexpr int kRounds = 3;            // mistakes of the image on top of each other, at most
constexpr std::size_t kStrong = 10;   // so many of the other side's detections count, at least
constexpr double kConfidence = 0.25;  // MatchOptions::confidence
constexpr float kAllScores = -1.0F;

class Search {
 public:
  Search(const Contract& contract, LoadedGraph& runnable, const ImageView& image,
         const ContractSides& sides)
      : contract_(contract), runnable_(runnable), image_(image), sides_(sides) {}

  Result<ContractExplanation> run(const TensorMap& other_outputs) {
    TENONNX_ASSIGN_OR_RETURN(other_, decode_detections(contract_, other_outputs, image_.width,
                                                       image_.height, kAllScores));
    if (other_.empty())
      return FailedPrecondition("the {} detected nothing: its outputs cannot tell how it was fed",
                                sides_.other);
    // By falling score.
    confidence_ = std::min<double>(kConfidence, other_[std::min(kStrong, other_.size()) - 1].score);
    preparation_ = {contract_, false};
    TENONNX_ASSIGN_OR_RETURN(inputs_[contract_.image.name], prepare_image(preparation_, image_));
    if (contract_.size) {
      TENONNX_ASSIGN_OR_RETURN(const Preprocessor preprocessor, Preprocessor::create(contract_));
      TENONNX_RETURN_IF_ERROR(
          preprocessor.size_tensor(image_.width, image_.height, inputs_[contract_.size->name]));
    }
    tried_.insert(input_sha256(inputs_));
    TENONNX_ASSIGN_OR_RETURN(now_, agree(inputs_));
    out_.as_contract = now_;
    search_image();
    search_size();
    return std::move(out_);
  }

 private:
  struct Trial {
    std::vector<const ImageMistake*> mistakes;
    ImagePreparation preparation;
    TensorMap inputs;
    DetectionAgreement agreement;
  };

  Result<DetectionAgreement> agree(const TensorMap& inputs) {
    ++out_.runs;
    TENONNX_ASSIGN_OR_RETURN(const TensorMap outputs, runnable_.run(inputs));
    TENONNX_ASSIGN_OR_RETURN(const auto mine, decode_detections(contract_, outputs, image_.width,
                                                                image_.height, kAllScores));
    return agreement(other_, mine, confidence_);
  }

  // nullopt where the mistake cannot be made, makes inputs that were tried already, or leads to
  // outputs that cannot be read: none of them explains anything.
  std::optional<Trial> attempt(std::vector<const ImageMistake*> mistakes) {
    Trial trial{std::move(mistakes), preparation_, inputs_, {}};
    for (const ImageMistake* mistake : trial.mistakes) mistake->make(trial.preparation);
    auto image = prepare_image(trial.preparation, image_);
    if (!image.ok()) return std::nullopt;
    trial.inputs[contract_.image.name] = std::move(image).value();
    if (!tried_.insert(input_sha256(trial.inputs)).second) {
      if (out_.findings.empty() && trial.mistakes.size() == 1) not_tried(*trial.mistakes[0]);
      return std::nullopt;
    }
    const auto agreed = agree(trial.inputs);
    if (!agreed.ok()) return std::nullopt;
    trial.agreement = *agreed;
    return trial;
  }

  void not_tried(const ImageMistake& mistake) {
    std::string text =
        fmt::format("whether the {} {}: that changes nothing in this image of {} x {}",
                    sides_.other, mistake.means, image_.width, image_.height);
    if (std::find(out_.not_tried.begin(), out_.not_tried.end(), text) == out_.not_tried.end())
      out_.not_tried.push_back(std::move(text));
  }

  // The best of the trials where it explains the difference; takes it for the new state.
  bool take_best(std::vector<Trial> trials) {
    const auto best =
        std::min_element(trials.begin(), trials.end(), [](const auto& a, const auto& b) {
          return a.agreement.score_distance < b.agreement.score_distance;
        });
    if (best == trials.end() || best->agreement.score_distance > kMatch ||
        !(best->agreement.score_distance * kNearer <= now_.score_distance))
      return false;
    for (const ImageMistake* mistake : best->mistakes)
      report(mistake->kind, mistake->given, mistake->means, best->agreement);
    preparation_ = best->preparation;
    inputs_ = std::move(best->inputs);
    now_ = best->agreement;
    return true;
  }

  // Mistakes with the image show in classes and scores, whatever was done to the boxes.
  void search_image() {
    const std::vector<ImageMistake> mistakes = image_mistakes(contract_);
    std::set<std::string> found;
    for (int round = 0; round < kRounds && now_.score_distance > kAgree; ++round) {
      std::vector<Trial> trials;
      for (const ImageMistake& mistake : mistakes)
        if (!found.contains(mistake.kind))
          if (auto trial = attempt({&mistake})) trials.push_back(std::move(*trial));
      if (!take_best(std::move(trials))) {
        // One of two may not show while the other is there.
        if (round > 0) break;
        trials.clear();
        for (const ImageMistake& a : mistakes)
          for (const ImageMistake& b : mistakes)
            if (a.kind == "color_order" && b.kind == "normalization")
              if (auto trial = attempt({&a, &b})) trials.push_back(std::move(*trial));
        if (!take_best(std::move(trials))) break;
      }
      for (const ContractFinding& finding : out_.findings) found.insert(finding.mistake);
    }
  }

  // Mistakes with the size show in the boxes alone.
  void search_size() {
    if (!contract_.size || contract_.outputs.kind == OutputKind::kRaw) return;
    const Tensor right = inputs_.at(contract_.size->name);
    std::optional<std::pair<const SizeMistake*, DetectionAgreement>> best;
    const std::vector<SizeMistake> mistakes = size_mistakes(contract_);
    for (const SizeMistake& mistake : mistakes) {
      auto size = mistaken_size(right, mistake);
      if (!size.ok()) continue;
      TensorMap inputs = inputs_;
      inputs[contract_.size->name] = std::move(size).value();
      if (!tried_.insert(input_sha256(inputs)).second) {
        if (&mistake == mistakes.data())
          out_.not_tried.push_back(
              fmt::format("the order of '{}': the image is square ({} x {}), "
                          "which never shows it",
                          contract_.size->name, image_.width, image_.height));
        continue;
      }
      if (now_.distance <= kAgree) continue;
      const auto agreed = agree(inputs);
      if (agreed.ok() && (!best || agreed->distance < best->second.distance))
        best = {&mistake, *agreed};
    }
    if (!best || best->second.distance > kMatch || best->second.distance * kNearer > now_.distance)
      return;
    report("size", best->first->given, best->first->means, best->second);
    now_ = best->second;
  }

  void report(const std::string& kind, const std::string& given, const std::string& means,
              const DetectionAgreement& agreed) {
    ContractFinding finding;
    finding.mistake = kind;
    finding.as_contract = now_;
    finding.as_mistaken = agreed;
    finding.sentence = fmt::format(
        "the {0}'s outputs match the {1}'s when {2} ({3} of {4} boxes, scores cosine {5:.4f} and "
        "{6:.2f} % apart, instead of {7} of {4}, {8:.4f} and {9:.2f} %): the {0} {10}, or the "
        "contract "
        "is wrong",
        sides_.other, sides_.runnable, given, agreed.matched, agreed.total, agreed.scores_cosine,
        100 * agreed.score_distance, now_.matched, now_.scores_cosine, 100 * now_.score_distance,
        means);
    out_.findings.push_back(std::move(finding));
  }

  const Contract& contract_;
  LoadedGraph& runnable_;
  const ImageView image_;
  const ContractSides& sides_;
  std::vector<Detection> other_;
  double confidence_ = 0;
  ImagePreparation preparation_;  // with the mistakes found so far
  TensorMap inputs_;
  DetectionAgreement now_;
  std::set<std::string> tried_;  // hashes of inputs
  ContractExplanation out_;
};

}  // namespace

Result<ContractExplanation> explain_contract_errors(const Contract& contract, LoadedGraph& runnable,
                                                    const ImageView& image,
                                                    const TensorMap& other_outputs,
                                                    const ContractSides& sides) {
  return Search(contract, runnable, image, sides).run(other_outputs);
}

}  // namespace tenonnx

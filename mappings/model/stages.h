// How the layers of a language model are divided among the stages of a pipeline. A stage has one chunk of
// layers, or several that take turns (virtual stages):
//
//   8 layers, 2 stages                        stage 0: 0-3           stage 1: 4-7
//   and 2 chunks a stage                      stage 0: 0-1, 4-5      stage 1: 2-3, 6-7
//   and 2 layers on the first of 2 stages     stage 0: 0-1           stage 1: 2-7
//
// What is not in a layer is at the ends: the embedding and a vision tower in the first chunk of all, the
// final norm, MTP and the output layer in the last.
#pragma once

#include <optional>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// One chunk of one stage.
struct StagePart {
  i64 first_layer = 0, end_layer = 0;
  bool first = true, last = true;  // of all chunks of the pipeline
};

// What a run chooses beside the number of stages.
struct PipelineOptions {
  i64 chunks = 1;  // of each stage
  std::optional<i64> first_layers{},
      last_layers{};  // on the first and last stage; none: as many as on the others
};

// The whole division. A value.
class PipelineSplit {
 public:
  // As Megatron divides. Throws kGridMisfit if the layers do not divide, kBadGrid for chunks or layers of the
  // first or last stage without several stages.
  PipelineSplit(i64 layers, i64 stages, const PipelineOptions& options = {});
  // From what each chunk was found to have: chunk by chunk, in each of them stage by stage. pre: not empty,
  // and a multiple of `stages`.
  PipelineSplit(i64 stages, const std::vector<i64>& layers_of_chunks);

  i64 stages() const { return stages_; }
  i64 chunks() const { return (static_cast<i64>(begins_.size()) - 1) / stages_; }
  i64 layers() const { return begins_.back(); }
  StagePart part(i64 stage, i64 chunk) const;

 private:
  void add(i64 layers) { begins_.push_back(begins_.back() + layers); }

  i64 stages_;
  std::vector<i64> begins_{0};  // of the chunks in the order of their layers, and the end
};

}  // namespace mckpt::impl

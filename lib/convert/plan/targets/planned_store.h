// A checkpoint that nobody has written yet, as a store: which rank would save which box of which tensor,
// computed from a model's config and headers. It can be listed, drawn and checked as one on the disk; it has
// no data.
//
//   DeepSeek-V3/config.json, tp 2, ep 32, dp 64   -->   44,930 tensors in chunks of 128 ranks, and the sizes of their files
//
// The plan is the plan of the conversion with the same options.
#pragma once

#include <memory>

#include "core/base/notes.h"

namespace mckpt::impl {

class Store;
struct HfToFsdpOptions;
struct ToMcoreOptions;

struct PlannedCheckpoint {
  std::unique_ptr<Store> store;
  Notes notes{};
};

// The checkpoint that a run of Megatron-FSDP would save (convert/plan/targets/fsdp.h), or a run with
// torch_dist (convert/plan/targets/torch_dist.h), of a Hugging Face folder; its config.json is enough. Both
// throw what planning the conversion throws.
PlannedCheckpoint planned_fsdp(const HfToFsdpOptions& options);
PlannedCheckpoint planned_torch_dist(const ToMcoreOptions& options);

}  // namespace mckpt::impl

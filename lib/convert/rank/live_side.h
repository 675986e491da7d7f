// LiveSide: the rank of a training run whose dump is one side of a comparison.
#pragma once

#include <functional>
#include <optional>

#include "convert/rank/rank_share.h"

namespace mckpt::impl {

struct LiveSide {
  bool fsdp = false;          // the run uses Megatron-FSDP
  std::optional<i64> rank{};  // none: the rank that the dump says
  // The run, by the number of its ranks. Throws kBadGrid for a number that its sizes do not divide.
  std::function<ShareRun(i64 world)> run{};
};

}  // namespace mckpt::impl

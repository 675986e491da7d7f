// The content of the picture of a rank's memory: a row for each way to train, and its parts in bytes.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct MemoryPicture {
  // The parts in the order in which they are drawn. Those from kGathered on are there for a moment, beside
  // the rest.
  enum Part : u8 { kWeights, kMainWeights, kGradients, kMoments, kBuffers, kGathered, kUnreduced, kParts };
  struct Row {
    std::string name{};     // "v1  optim_grads_params"
    std::string refused{};  // the reason if Megatron-FSDP has no such run; "": `bytes` is set
    i64 bytes[kParts] = {};
  };
  std::string title{};  // the model
  std::string about{};  // the run, in a line
  std::vector<Row> rows{};
  std::string warning{};  // below the bars; "" for none
};

}  // namespace mckpt::impl

// Items of torch_checkpointing that are not torch files: JSON documents, and bytes of a meaning of their own.
//
//   train_0.json   {"step": 7, "seen": [1, 2]}     objects train:rank_0:step and train:rank_0:seen
//   blob_0.bin     1,234 bytes                     object blob:rank_0
#pragma once

#include <string_view>

#include "io/torch/file.h"

namespace mckpt::impl {

// The document as a pickle of the same values has it. Throws kBadJson.
TorchFile json_as_torch_file(std::string_view json);

}  // namespace mckpt::impl

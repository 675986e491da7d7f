// The type in which Megatron-FSDP v2 saves a parameter: its main weights are fp32, whatever the model's type
// is.
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class KeyTable;
enum class DType : u8;

// `key` as KeyTable has it, without wrappers; `type`: in the model. Narrower floats become fp32, which loses
// nothing; buffers, and keys that the table does not have, keep their type.
DType main_type(const KeyTable& keys, std::string_view key, DType type);

}  // namespace mckpt::impl

// Reads numbers and data types of a command line. `option` is the name of the option, which messages begin
// with:
//
//   --bins: not a whole number: found 'ten'
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;

// Each throws Error(kUsage) that names the option.
i64 parse_bytes(std::string_view text, std::string_view option);  // "5GB", "64MiB", "1024"
i64 parse_i64(std::string_view text, std::string_view option);
double parse_double(std::string_view text, std::string_view option);
DType parse_dtype(std::string_view text, std::string_view option);  // "bf16", "float32"

}  // namespace mckpt::impl

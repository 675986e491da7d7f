// A safetensors file made by hand: any header, any data.
#pragma once

#include <string>

#include "core/base/int.h"
#include "core/base/text.h"

namespace mckpt::impl {

inline std::string safetensors_file(std::string_view header, std::string_view data) {
  std::string out;
  for (int i = 0; i < 8; i++) out += static_cast<char>(header.size() >> (8 * i));
  out += header;
  return out += data;
}

// One entry of a header: "name": {"dtype": ..., "shape": [...], "data_offsets": [b, e]}
inline std::string safetensors_entry(std::string_view name, std::string_view dtype, std::string_view shape,
                                     i64 begin, i64 end) {
  return cat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":[", shape, "],\"data_offsets\":[", begin,
             ",", end, "]}");
}

}  // namespace mckpt::impl

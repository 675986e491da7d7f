// Two JSON documents, compared by value: in which places they differ. Spaces, the order of keys and the
// spelling of a number do not count as differences.
//
//   {"dtype": "bfloat16", "rope": {"theta": 1e6}}     {"dtype": "float32", "rope": {"theta": 1e7}, "x": [1]}
//
//   .dtype        "bfloat16" | "float32"
//   .rope.theta   1e6 | 1e7
//   .x            "" | [1]
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonValue;

// A place with another value; "" is what one side does not have. The place of the whole document is "".
struct JsonDifference {
  std::string at, a, b;
};

struct JsonDifferences {
  i64 count = 0;
  std::vector<JsonDifference> first{};  // in the order of the places in a, then the places in b
};

// `most`: how many are listed. Values are shown as JSON, cut behind 80 bytes.
JsonDifferences json_differences(const JsonValue& a, const JsonValue& b, i64 most);

}  // namespace mckpt::impl

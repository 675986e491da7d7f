// Values of a pickle as text: one line, or an indented tree. Both are cut at a length, however much is
// shared or cyclic, and everything that comes from the file is escaped, so that it cannot control a
// terminal.
//
//   Namespace, 3 fields
//     lr: 0.0003
//     betas: (0.9, 0.95)
//     params_dtype: torch.bfloat16
#pragma once

#include <functional>
#include <string>

#include "io/pickle/value.h"

namespace mckpt::impl {

// A few words for a list: "int 10", "Namespace, 312 fields", "ndarray uint32 [624]", "list of 3".
std::string pickle_summary(PickleValue v);

// As Python would print it: "{'lr': 0.0003, 'betas': (0.9, 0.95)}"; cut with "..." at about `most_bytes`.
std::string pickle_line(PickleValue v, std::size_t most_bytes = 200);

// Where a tree is cut. Dicts and fields of objects are shown in full, lists and tuples up to `items`.
struct PickleTreeLimits {
  i64 lines = 2000;
  i64 items = 50;  // of one list or tuple; dicts and fields of objects are shown in full
  int depth = 16;
  std::size_t line_bytes = 160;
};

// Calls `line` for each line of the tree, indented by two spaces a level.
void render_pickle(PickleValue v, const PickleTreeLimits& limits,
                   const std::function<void(std::string_view)>& line);

}  // namespace mckpt::impl

// The report of a conversion that was carried out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mckpt/note.h"

namespace mckpt {

// The numbers of a finished run.
struct RunReport {
  std::string output{};  // the folder or file that was made
  std::int64_t bytes = 0, bytes_read = 0, bytes_written = 0;
  std::int64_t rounded_norms = 0;  // items that were rounded because norms are stored less one
  std::int64_t became_infinite = 0, became_zero = 0;  // items, by casts
  std::vector<std::string> overflowed{};              // tensors with items that became infinite
  std::vector<Note> notes{};
};

}  // namespace mckpt

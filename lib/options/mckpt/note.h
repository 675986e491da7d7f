// mckpt::Note: what long work says while it goes on, or in its report.
#pragma once

#include <string>

namespace mckpt {

// A remark of one line. A warning is something that may be wrong; any other note is something to know, such
// as a choice that the library made.
struct Note {
  bool warning = false;
  std::string text{};
};

}  // namespace mckpt

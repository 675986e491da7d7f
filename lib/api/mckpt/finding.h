// mckpt::Finding: a problem or an oddity of a checkpoint, as a value. A fault that makes a checkpoint
// unreadable is an Error; a fault of a part of it is a Finding, and the rest can be used.
#pragma once

#include <cstdint>
#include <string>

namespace mckpt {

struct Finding {
  std::string code{};    // "MC1305", as `mckpt explain` knows it
  bool warning = false;  // true: odd, but nothing is lost
  std::string tensor{};  // "" : about no single tensor
  std::string file{};    // relative to the checkpoint; "" : about no single file
  std::int64_t offset = -1;
  int rank = -1;
  std::string message{};  // what is wrong
  std::string help{};     // what to do
};

}  // namespace mckpt

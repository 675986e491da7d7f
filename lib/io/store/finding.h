// A problem or oddity of a checkpoint, as `verify` and `inspect` report it.
#pragma once

#include <string>

#include "core/base/error_code.h"
#include "core/base/int.h"

namespace mckpt::impl {

class Error;

// Something wrong or odd. Openers collect what leaves the rest readable, and throw what does not.
struct Finding {
  Code code = Code::kInternal;
  std::string tensor{}, file{}, message{}, help{};
  i64 offset = -1;
  i32 rank = -1;
  bool warning = false;  // true: odd, but nothing is lost
};

// The finding for an error about one part of a checkpoint. Expected and found values and notes become part of
// the message.
Finding to_finding(const Error& error);

}  // namespace mckpt::impl

// Lines of the engine's reports as those of the interface.
#pragma once

#include <string>

#include "core/base/text.h"
#include "io/verify/verify.h"
#include "mckpt/verify.h"

namespace mckpt::impl {

inline mckpt::Check to_public(const Check& c) {
  return {c.name, std::string(status_name(c.status)), c.count, c.unit, c.unseen, c.note};
}

inline std::string to_public(const NotRead& n) {
  return n.reason.empty() ? n.path : cat(n.path, " (", n.reason, ")");
}

}  // namespace mckpt::impl

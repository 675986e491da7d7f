// Readers of hints go on where a tensor cannot be read: the comparison itself has told its damage.
#pragma once

#include "core/base/error.h"

namespace mckpt::impl {

// Whether fn() could read what it reads. Throws kInterrupted alone.
template <typename Fn>
bool could_read(Fn&& fn) {
  try {
    fn();
    return true;
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return false;
  }
}

}  // namespace mckpt::impl

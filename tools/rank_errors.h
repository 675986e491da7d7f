// What an error of one rank means for the job that it is part of.
#pragma once

#include <new>

#include "core/base/error.h"
#include "runtime/comm/world.h"
#include "tools/interrupt.h"

namespace mckpt {

// With which the job ends.
inline int status_of(Code code) {
  return code == Code::kInterrupted ? interrupted_status() : static_cast<int>(code_info(code).exit);
}

// Whether it may be what another rank's end looks like from here: signals are sent to all ranks when one of
// them is lost, and calls of MPI then fail.
inline bool may_follow(Code code) { return code == Code::kInterrupted || code == Code::kRanksFailed; }

// Runs fn. An error in it is claimed before it leaves this scope: what stands around the call, a folder that
// all ranks use or the model with its communicators, is given up behind that, so that no other rank tells of
// what is missing then as if it were the cause.
template <typename Fn>
auto claiming_errors(Fn&& fn) {
  try {
    return fn();
  } catch (const Error& e) {
    claim_world(status_of(e.code()), may_follow(e.code()));
    throw;
  } catch (const std::bad_alloc&) {
    claim_world(status_of(Code::kOutOfMemory), false);
    throw;
  } catch (const std::exception&) {
    claim_world(status_of(Code::kInternal), false);
    throw;
  }
}

}  // namespace mckpt

// Errors in a scope that owns what other ranks use: a folder that all ranks write into, a model with its
// communicators. When such a scope is left by an error, the other ranks fail as well, because the folder or
// the communicators are gone. So the error is claimed as the one to report before the scope is left:
//
//   rank 1   reads a damaged file -> claims -> removes the folder -> reports
//   rank 0                                     misses the folder   -> claims: too late, reports nothing
//
// Without a claim the user might see the message of rank 0 and look for the wrong cause.
#pragma once

#include <exception>

#include "core/base/error.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {

// True for an error that may be a consequence of another rank's end: the launcher sends signals to all ranks
// when one of them is lost, and calls of MPI then fail.
inline bool may_follow(Code code) { return code == Code::kInterrupted || code == Code::kRanksFailed; }

// Runs fn and returns its result. An error in fn is claimed before it is thrown on.
template <typename Fn>
auto claiming_errors(Comm& comm, Fn&& fn) {
  try {
    return fn();
  } catch (const Error& e) {
    comm.activity().claim(may_follow(e.code()));
    throw;
  } catch (const std::exception&) {
    comm.activity().claim(false);
    throw;
  }
}

}  // namespace mckpt::impl

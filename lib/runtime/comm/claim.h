// Errors in a scope that holds what other ranks use: a folder that all write into, a model with its
// communicators. When such a scope is left by an error, other ranks fail as well, because of what is gone. So
// the error is claimed before the scope is left:
//
//   rank 1   reads a damaged file -> claims -> gives up the folder -> reports
//   rank 0                                      misses the folder   -> claims: too late, says nothing
#pragma once

#include <exception>

#include "core/base/error.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {

// True for an error that may be what another rank's end looks like from here: the launcher sends signals to
// all ranks when one of them is lost, and calls of MPI then fail.
inline bool may_follow(Code code) { return code == Code::kInterrupted || code == Code::kRanksFailed; }

// Runs fn. An error in it is claimed as the one to report before it is thrown on.
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

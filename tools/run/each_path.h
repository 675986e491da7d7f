// Commands that take several paths: an error about one path is reported, and the next one goes on.
//
//   mckpt verify a gone c        a: sound
//                                error[MC1001]: there is no such file or folder   (stderr)
//                                c: sound                                         exit status 3, the worst
//
// With one path the error is thrown: it is the answer of the command.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/error_code.h"

namespace mckpt::impl {

class JsonWriter;
struct GlobalFlags;

class EachPath {
 public:
  EachPath(const GlobalFlags& flags, bool several) : flags_(flags), several_(several) {}

  // Runs fn. Returns the error that it ends with, after it was printed, if there are several paths and the
  // error is about this one; throws it otherwise, as one about the command line or the end by a signal.
  template <typename Fn>
  std::optional<Error> attempt(const std::string& path, Fn&& fn) {
    try {
      fn();
      return std::nullopt;
    } catch (Error& e) {
      if (!is_of_one_path(e)) throw;
      e.default_file(path);
      report(e);
      return std::move(e);
    }
  }

  // Notes how the answer about one path ended.
  void ended(Exit exit) { worst_ = std::max(worst_, exit); }
  // The worst of all.
  Exit exit() const { return worst_; }

 private:
  bool is_of_one_path(const Error& e) const;
  void report(const Error& e);

  const GlobalFlags& flags_;
  bool several_;
  Exit worst_ = Exit::kOk;
};

// {"error": {"code": "MC1001", ...}}: adds the field to an object that is open.
void write_path_error(JsonWriter& json, const Error& error);

}  // namespace mckpt::impl

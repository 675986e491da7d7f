// The parts of every function of the C interface: an exception becomes an error handle and a value that says
// "failed"; observers of C become observers of C++; texts are handed to the caller.
#pragma once

#include <string>

#include "api/boundary.h"
#include "mckpt/c_base.h"
#include "mckpt/mckpt.h"

struct mckpt_error {
  mckpt::Error error;
};

namespace mckpt::impl {

// Calls fn; an exception becomes an error of C, and `otherwise` is returned.
template <typename Fn, typename Result>
Result c_result(mckpt_error** error, Result otherwise, Fn&& fn) noexcept {
  try {
    return guarded(fn);
  } catch (const mckpt::Error& e) {
    if (error) *error = new mckpt_error{e};
  }
  return otherwise;
}

// Calls fn and returns its status: 0, or the exception's status; the exception becomes an error of C.
template <typename Fn>
int c_status(mckpt_error** error, Fn&& fn) noexcept {
  int status = 0;
  c_result(error, 0, [&] {
    try {
      guarded(fn);
    } catch (const mckpt::Error& e) {
      status = static_cast<int>(e.status());
      throw;
    }
    return 0;
  });
  return status;
}

// A copy that the caller frees with mckpt_text_free().
char* c_text(const std::string& text);

// Calls fn(std::string&), and returns a copy of the text that it wrote; null after an exception.
template <typename Fn>
char* c_written(mckpt_error** error, Fn&& fn) noexcept {
  return c_result(error, static_cast<char*>(nullptr), [&] {
    std::string text;
    fn(text);
    return c_text(text);
  });
}

// Throws kUsage for an argument that is a null pointer; `what` is its name, for the message.
[[noreturn]] void refuse_null(const char* what);

// Returns the argument. Throws as refuse_null().
template <typename T>
T* c_given(T* argument, const char* what) {
  if (!argument) refuse_null(what);
  return argument;
}

class CObserver final : public mckpt::Observer {
 public:
  explicit CObserver(const mckpt_observer* to) : to_(to ? *to : mckpt_observer{}) {}

  void begin(const std::string& phase, std::int64_t bytes) override {
    if (to_.begin) to_.begin(to_.user, phase.c_str(), bytes);
  }
  void done(std::int64_t bytes) override {
    if (to_.done) to_.done(to_.user, bytes);
  }
  bool stop() override { return to_.stop && to_.stop(to_.user) != 0; }

 private:
  mckpt_observer to_;
};

}  // namespace mckpt::impl

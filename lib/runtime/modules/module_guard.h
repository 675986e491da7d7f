// guarded(): the wrapper of every function of a module, so that no exception crosses the C border.
#pragma once

#include <exception>
#include <string>

namespace mckpt::impl {

// Runs fn. Returns null, or the text of the exception that fn threw, which is valid until this thread's next
// call into the module.
template <typename Fn>
const char* guarded(Fn&& fn) noexcept {
  static thread_local std::string text;
  try {
    try {
      fn();
      return nullptr;
    } catch (const std::exception& e) {
      text = e.what();
    } catch (...) {
      text = "an exception of unknown type";
    }
  } catch (...) {
    return "out of memory";
  }
  return text.c_str();
}

}  // namespace mckpt::impl

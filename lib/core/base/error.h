// The one exception type. It carries a stable code (MCnnnn, explained by `mckpt explain`), what went wrong,
// where, both numbers and what to do. The library throws it and prints nothing; tools/main.cc prints it.
//
//   throw Error(Code::kBadShape, "a dimension is negative").tensor("lm_head.weight").found(-3);
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/text.h"

namespace mckpt::impl {

// A list of facts that layers add to while the error travels up: the reader of a tensor knows the offset, its
// caller the tensor, the store the file. A fact is text that is ready for a person; names of files and
// tensors are escaped when they are printed.
class Error : public std::exception {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  // Each function adds one fact and returns the error itself, so that calls can follow the constructor.
  Error& file(std::string_view v) { return set(file_, v); }
  Error& tensor(std::string_view v) { return set(tensor_, v); }
  Error& offset(std::int64_t v) {
    offset_ = v;
    return *this;
  }
  template <typename T>
  Error& expected(const T& v) {
    return set(expected_, cat(v));
  }
  template <typename T>
  Error& found(const T& v) {
    return set(found_, cat(v));
  }
  // Puts text before the message, such as "shape: ", from the layer that knows what was being read.
  Error& prefix(std::string_view v) {
    message_.insert(0, v);
    return *this;
  }
  Error& note(std::string v) {
    notes_.push_back(std::move(v));
    return *this;
  }
  // Adds a note for each line, and one with the number of lines that are left out.
  Error& each_note(std::span<const std::string> lines, std::size_t most = 20);
  Error& help(std::string_view v) { return set(help_, v); }
  // The system could not do at this moment what it was asked for, whatever is in the file: the same step may
  // succeed when it is repeated, such as a read of a disk that was gone.
  Error& of_the_moment(bool v = true) {
    of_the_moment_ = v;
    return *this;
  }

  // Adds context, once, from the layer that knows it: a file or tensor that is already set is kept.
  Error& default_file(std::string_view v) { return file_.empty() ? file(v) : *this; }
  Error& default_tensor(std::string_view v) { return tensor_.empty() ? tensor(v) : *this; }

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& file() const { return file_; }
  const std::string& tensor() const { return tensor_; }
  std::int64_t offset() const { return offset_; }  // -1: none
  bool is_of_the_moment() const { return of_the_moment_; }
  const std::string& expected() const { return expected_; }
  const std::string& found() const { return found_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::string& help() const { return help_; }

  // One line: "file: tensor 'x': message: expected A, found B". Names from files are escaped.
  const char* what() const noexcept override;

 private:
  Error& set(std::string& field, std::string_view v);

  Code code_;
  std::string message_, file_, tensor_, expected_, found_, help_;
  std::vector<std::string> notes_;
  std::int64_t offset_ = -1;
  bool of_the_moment_ = false;
  mutable std::string what_;
};

// Calls fn; an Error that it throws without a file gets this one.
template <typename Fn>
auto with_file(std::string_view file, Fn&& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (Error& e) {
    e.default_file(file);
    throw;
  }
}

}  // namespace mckpt::impl

// mckpt::Error: the exception of every function of the library. It says what went wrong, where, what was
// expected, what was found, and what to do.
//
//   try {
//     mckpt::Checkpoint ckpt = mckpt::open("ckpt");
//   } catch (const mckpt::Error& e) {
//     e.what()      "ckpt/__0_0.distcp: tensor 'w': the data ends early: expected 4096, found 1024"
//     e.code()      "MC1107", which `mckpt explain MC1107` explains
//     e.status()    kInput: the exit status that the program would end with
//   }
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "mckpt/export.h"

namespace mckpt {

// The kinds of failure, with the exit statuses of the program as values.
enum class Status : int {
  kOk = 0,
  kDifferent = 1,      // the answer is negative: different, or problems found
  kUsage = 2,          // an option has a value that it cannot have
  kInput = 3,          // a source is missing, corrupt or of an unknown kind
  kRefused = 4,        // refused before anything was written
  kWrite = 5,          // writing failed
  kInterrupted = 130,  // the observer asked to stop; the work can be resumed
};

// The facts of one failure. A text that is empty, and an offset of -1, are not known.
struct ErrorFacts {
  std::string code{};  // "MC1107": stable, for programs to match
  Status status = Status::kUsage;
  std::string message{};
  std::string file{}, tensor{};
  std::int64_t offset = -1;  // in bytes, in the file
  std::string expected{}, found{};
  std::vector<std::string> notes{};  // further facts, a line each
  std::string help{};                // what to do. A setting is named in backquotes: `source_tp`
};

// Immutable; copies share nothing.
class MCKPT_API Error : public std::exception {
 public:
  explicit Error(ErrorFacts facts);
  Error(const Error&);
  ~Error() override;

  const std::string& code() const { return facts_.code; }
  Status status() const { return facts_.status; }
  const ErrorFacts& facts() const { return facts_; }
  // One line with file, tensor, message and both numbers. Bytes of names that cannot be printed are escaped.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  ErrorFacts facts_;
  std::string what_;
};

}  // namespace mckpt

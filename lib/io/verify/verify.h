// Everything that can be checked of a checkpoint by itself: that its files are there, that its chunks make
// whole tensors, that bytes are what their checksums say, and that values are numbers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class Error;
class Store;

struct Check {
  enum class Status : u8 { kNone, kPass, kWarn, kFail };  // kNone: there was nothing to check
  std::string name;
  Status status = Status::kNone;
  i64 count = 0;     // of what was looked at
  std::string unit;  // what was looked at: "tensors"
  i64 unseen = 0;    // of what could not be looked at, as a finding says
  std::string_view unseen_is = "could not be read";
  std::string note{};  // what was not looked at on purpose, and why
};
std::string_view status_name(Check::Status status);

// Where and how two sides differ, for each tensor or object that a finding names.
struct Difference {
  std::string tensor{}, file{};
  std::string at{};  // inside: "[3, 2]" of a tensor, ".lr" of an object
  std::string expected{}, found{};
  i64 items = -1;                   // how many of a tensor differ; -1 of an object
  std::optional<double> largest{};  // difference of two numbers among these
};

// What is in the folder and was not looked at.
struct NotRead {
  std::string path;
  std::string reason{};  // where the path does not say it
};

struct VerifyReport {
  std::vector<Check> checks;
  std::vector<Finding> findings;
  std::vector<std::size_t> check_of;  // for each finding, its check
  std::vector<Difference> differences;
  std::vector<NotRead> unread;  // files and folders that nothing here was said of

  void add(Check check, std::vector<Finding> of_check);
  bool sound() const;
};

// Runs all checks; reads all data twice where the format keeps checksums, once where it does not.
// Findings are values: only a failure of the system is thrown. `progress` is called with the bytes that were
// read, from any thread; it may throw kInterrupted, which ends the work.
VerifyReport verify_store(const Store& store, int threads, const std::function<void(i64 bytes)>& progress);

// The report of a checkpoint that could not be opened.
VerifyReport unreadable_report(const Error& error);

// Bytes that verify_store() will read.
i64 verify_bytes(const Store& store);

}  // namespace mckpt::impl

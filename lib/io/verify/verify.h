// verify: everything that can be checked of a checkpoint by itself, without knowing its model or its source.
//
//   check     looks at                                            needs
//   files     files that are named exist and can be opened        headers
//   format    headers are well formed (checked by the opener)     headers
//   index     index and files agree (checked by the opener)       headers
//   coverage  chunks tile every tensor                            headers
//   items     chunks have the types and sizes of the table        headers of chunks
//   crc32     bytes fit the sums that the format stores           all records with sums
//   values    no NaN, no infinities, none implausible             all data of tensors
//   experts   no two experts of a layer are equal                 (the same read)
//   parts     what only the format can check                      names, objects
//
// Problems of the checkpoint are findings of the report, all in one run; only failures of the system are
// thrown.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/store/finding.h"
#include "io/verify/not_read.h"
#include "io/values/distance.h"

namespace mckpt::impl {

class Error;
class Store;
struct VerifiedPart;

// A line of the report: one kind of check, how it ended, and how much it looked at.
struct Check {
  // In ascending order: a check has the worst status of its findings.
  enum class Status : u8 { kNone, kPass, kWarn, kFail };  // kNone: there was nothing to check
  std::string name;
  Status status = Status::kNone;
  i64 count = 0;     // how many were looked at
  std::string unit;  // of what: "tensors"
  i64 unseen = 0;    // how many could not be looked at; a finding has the reason
  std::string_view unseen_is = "could not be read";
  std::string note{};  // what was left out on purpose, and why
};
// "none", "pass", "warn" or "fail".
std::string_view status_name(Check::Status status);
// The status of a check that looked at something: kPass without findings, kWarn if all are warnings, else
// kFail.
Check::Status status_of(std::span<const Finding> findings);
// "23 tensors", "7,000 values, 408 could not be read"; of things that are missing, "1 of 2 files".
std::string looked_at(const Check& check);

// Where and how two sides of a comparison differ, for each tensor or object that a finding names.
struct Difference {
  std::string tensor{}, file{};
  std::string at{};  // the place of the first difference: "[3, 2]" in a tensor, ".lr" in an object
  std::string expected{}, found{};
  i64 items = -1;                           // how many items of a tensor differ; -1 for an object
  i64 beyond = -1;                          // of these, items beyond the tolerance
  std::optional<ValueDistance> distance{};  // of two tensors of floats; the tested side is its a

  std::optional<double> largest() const { return distance ? distance->largest : std::nullopt; }
};

// A tensor that is not the same on the two sides of a comparison, "tested" and "source".
struct UnlikeTensor {
  enum class Kind : u8 {
    kOnlyTested,  // the source has no such tensor
    kOnlySource,  // the tested side has none, also where a conversion leaves it out on purpose
    kHeader,      // another type or shape: the values were not compared
    kCast,        // another type, as a conversion makes it: the values were compared after the cast
    kValues,      // some items differ; a Difference may say more
  };
  Kind kind;
  std::string tensor;
  std::string tested{}, source{};  // type and shape, "bfloat16 [2, 3]", or the type alone; "" for kValues
  bool rounds = false;             // kCast: to a type that does not have all values of the source's
};

// The answer, a value that the program shows as text or JSON.
struct VerifyReport {
  std::vector<Check> checks;
  std::vector<Finding> findings;
  std::vector<std::size_t> check_of;  // for each finding, its check
  std::vector<Difference> differences;
  std::vector<UnlikeTensor> unlike;   // of a comparison: every tensor, also those beyond the findings' number
  std::vector<std::string> compared;  // tensors whose values were compared, where a comparison counts all
  std::string compared_as;            // of a comparison: what was compared with what, in a line
  std::vector<NotRead> unread;        // files and folders that no check looked at
  std::vector<VerifiedPart> parts;    // of a folder with several checkpoints: each by itself

  // Adds a line and the findings that belong to it.
  void add(Check check, std::vector<Finding> of_check);
  bool sound() const;  // no finding is a problem
  // How many in `unlike` have other values, types or shapes; how many are of a type that loses values of the
  // source's.
  i64 differing() const, rounded() const;
};

// One of several checkpoints in a folder, whose report has what this one found and did not read, with the
// path in front.
struct VerifiedPart {
  std::string path;  // relative to the folder
  VerifyReport report;
};

// Runs all checks; reads all data twice if the format stores checksums, otherwise once. `progress` is called
// with the number of bytes that were read, from any thread; it may throw kInterrupted, which ends the work.
VerifyReport verify_store(const Store& store, int threads, const std::function<void(i64 bytes)>& progress);

// The report of a checkpoint that could not be opened: the check "format" fails, with the error as its
// finding.
VerifyReport unreadable_report(const Error& error);

// The number of bytes that verify_store() will read, for progress. Throws what Store::each_checksum() throws.
i64 verify_bytes(const Store& store);

}  // namespace mckpt::impl

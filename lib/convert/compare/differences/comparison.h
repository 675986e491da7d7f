// Comparison: whether chunks of a checkpoint contain what converting another checkpoint would write there. It
// carries out the job that converts, with a comparison in place of the writing. Values are cast to the stored
// types, as a conversion casts them; for a list of differences (Counting::all) to one that holds both.
//   1. compare     every task; for a task that fails: which records of either side cannot be read?
//   2. once more   the chunks of such tasks that can be compared without these records
//   3. count       only tensors that differ: how many of their items differ, and by how much
//   4. sums        only records of such tensors, if the format stores checksums: is it damage?
// A record that cannot be read is reported and left out. Two equal sides cost pass 1 only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convert/compare/differences/compared_sides.h"
#include "convert/compare/differences/counting.h"
#include "convert/compare/differences/item_tally.h"
#include "core/base/error.h"
#include "core/base/int.h"
#include "io/choice/tensor_choice.h"
#include "io/copy/lost_values.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

class ChunkJob;
class CompareSink;
class CopyJob;
class CopySink;
class Observer;
class Store;
class StoreChunks;

// The two sides: chunks of the tested checkpoint under keys of tensors, and the job that converts the source.
struct ComparedChunks {
  const Store& tested;        // the store of `chunks`
  const StoreChunks& chunks;  // everything that is compared
  const Store& source;
  i64 tensors;                                         // their number, for the check
  std::function<std::string(i32 key)> name;            // of the tensor, for findings
  std::function<ChunkJob(const ChunkList& some)> job;  // makes the job that writes these chunks
  std::function<std::vector<i64>(i32 key)> made_of;    // tensors of the source, for the chunks of a key
  // Compares a tensor that is not stored row by row with the tensor of the key; false: it cannot. Or empty.
  std::function<bool(i32 tensor, i32 key)> by_values{};
  std::function<std::optional<i64>(i32 key)> rows{};  // that a list of differences compares; or empty: all
};

// One comparison: first leave_out() and set_aside() as often as needed, then run() once, which uses threads.
class Comparison {
 public:
  // The stores as they were opened, whose findings about single records are reported; they outlive this.
  // Throws kUsage for an invalid expression in `choice`, whose tensors alone are compared and named.
  Comparison(const Store& tested, const Store& source, int threads, Counting counting, TensorChoice choice,
             Observer& observer);

  // Reports a tensor that cannot be compared, because it is missing on one side or differs in type or shape.
  void leave_out(Finding finding, UnlikeTensor unlike);
  // Reports a tensor whose values a caller found to differ. `counted`: where and by how much, if it is known.
  void differs(Finding finding, std::optional<Difference> counted = std::nullopt);
  const Counting& counting() const { return counting_; }
  int threads() const { return threads_; }
  bool decided() const;                   // the answer is known, and nothing more is asked
  bool chooses(std::string_view tensor);  // by its name, as findings give it
  void note_compared(std::string tensor) { compared_.push_back(std::move(tensor)); }   // by the caller itself
  void note_types(const std::string& tensor, std::string tested, std::string source);  // if they differ
  // Notes a tensor that the conversion leaves out. It is named, with the reason; the sides stay equal.
  void set_aside(std::string reason, UnlikeTensor tensor);
  // Names a tensor that is not part of the comparison: it is not missing on the other side.
  void leave_beside(const std::string& reason, std::string tensor);
  // Adds the checks "against", "path" and "source" of a side with faults, and "overflow" of lost values.
  // Returns whether all that is chosen was compared and equal. Throws kInterrupted, kNoSuchTensor for none.
  bool run(const ComparedChunks& compared, VerifyReport& report);

 private:
  struct Failure {
    i64 task;
    Error error;
  };
  using Counts = std::map<i32, ItemTally::Count>;

  bool run_chosen(const ComparedChunks& compared, VerifyReport& report);
  bool run_in_types(const ComparedChunks& compared, VerifyReport& report);
  std::vector<Failure> carry_out(const CopyJob& job, CopySink& sink, const char* phase, LostValues* lost);
  std::vector<i32> judge(const ComparedChunks& compared, const Failure& failure, std::span<const i32> chunks);
  bool compared_by_values(const ComparedChunks& compared, const Failure& failure,
                          std::span<const i32> chunks);
  void report_failure(const Failure& failure, const std::string& tensor);
  void leave_out_holes(const ComparedChunks& compared);
  void warn_of_overflow(VerifyReport& report) const;
  std::vector<Finding> described(const ComparedChunks& compared, const CompareSink& sink,
                                 VerifyReport& report);
  Counts counted_items(const ComparedChunks& compared, const std::set<i32>& keys);
  std::vector<ComparedSides::Record> records_of(const ComparedChunks& compared,
                                                const std::set<i32>& keys) const;
  bool add_checks(const ComparedChunks& compared, std::vector<Finding> against, VerifyReport& report);

  ComparedSides sides_;
  int threads_;
  Counting counting_;
  TensorChoice choice_;
  std::function<bool(std::string_view)> is_chosen_;
  std::set<std::string, std::less<>> refused_;  // names that are not of the choice
  Observer& observer_;
  std::set<std::string> unseen_;                              // tensors of which something was not compared
  std::map<std::string, std::vector<std::string>> left_out_;  // by reason
  LostValues lost_;  // by casts of the source's values to the stored types
  std::vector<UnlikeTensor> unlike_;
  std::set<i32> rounded_;              // keys of tensors of types that lack values of the source
  std::vector<UnlikeTensor> types_;    // that the two sides store in two types
  std::vector<std::string> compared_;  // by callers, and by their values
  std::vector<Difference> counted_;    // by callers
  std::vector<Finding> others_;        // what was not compared for another reason than an unreadable record
};

}  // namespace mckpt::impl

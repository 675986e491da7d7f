// What `verify --against` carries out: a copy job with a comparison in place of the writing. A record of
// either side that cannot be read is told and left out, as plain `verify` does; everything else is compared.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "convert/compare/compare_sink.h"
#include "convert/compare/item_tally.h"
#include "convert/jobs/chunk_jobs.h"
#include "io/copy/job.h"
#include "io/copy/lost_values.h"
#include "io/store/findings.h"
#include "io/verify/verify.h"
#include "tools/options/command_line.h"

namespace mckpt {

// What is compared: chunks of PATH, each under the key of a tensor, and what converting SRC puts there.
struct Compared {
  const Store& there;         // PATH, whose chunks these are
  const StoreChunks& chunks;  // all of PATH that is compared
  const Store& source;
  i64 tensors;
  std::function<std::string(i32 key)> name;
  std::function<ChunkJob(const ChunkList& some)> job;  // that writes some of the chunks
  // The tensors of the source that chunks of the key are made of.
  std::function<std::vector<i64>(i32 key)> made_of;
};

class Comparison {
 public:
  // Both outlive this, as they were opened: what their openers found wrong with single records is told.
  Comparison(const Store& there, const Store& source, int threads, const GlobalFlags& flags);

  // Tells of a tensor that the two sides have not alike, so that it is not to be in what is compared.
  void leave_out(Finding finding, bool of_path);
  // The same of one of SRC that every conversion drops: it is told and no difference.
  void set_aside(std::string tensor) { dropped_.push_back(std::move(tensor)); }
  // Adds the check "against", and "path" and "source" where something is wrong on that side. Returns whether
  // all of it was compared and is equal.
  bool run(const Compared& compared, VerifyReport& report);

 private:
  enum Side { kPath, kSource };
  struct Failure {
    i64 task;
    Error error;
  };

  std::vector<Failure> carry_out(const CopyJob& job, CopySink& sink, const char* title, LostValues* lost);
  void warn_of_overflow(VerifyReport& report) const;
  std::vector<i32> judge(const Compared& compared, const Failure& failure, std::span<const i32> chunks);
  bool reads(Side side, const Store& store, i64 tensor, i64 chunk);
  void tell(const Failure& failure, const std::string& tensor);
  std::vector<Finding> described(const Compared& compared, const CompareSink& sink, VerifyReport& report);
  std::map<i32, ItemTally::Count> counted_items(const Compared& compared, const std::set<i32>& keys);
  void check_sums(const Compared& compared, const std::set<i32>& keys);
  bool add_checks(const Compared& compared, std::vector<Finding> against, VerifyReport& report);

  const Store* stores_[2];
  int threads_;
  const GlobalFlags& flags_;
  Findings findings_[2];
  bool wrong_[2] = {};                                 // there are findings that are no oddities
  bool holes_ = false;                                 // openers have told that tensors are not covered
  std::map<std::tuple<Side, i64, i64>, bool> looked_;  // at records, by tensor and chunk: whether they read
  std::set<std::string> unseen_;                       // tensors of which something was not compared
  std::vector<std::string> dropped_;
  LostValues lost_;              // by casts of SRC's values to what PATH has
  std::vector<Finding> others_;  // of what was not compared, where it is not a record that keeps from it
};

}  // namespace mckpt

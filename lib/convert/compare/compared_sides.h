// ComparedSides: what is wrong with the two checkpoints of a comparison, each by itself. It tells damage of a
// record, which is a finding about one side, from a difference, which is a finding about both.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "core/base/int.h"
#include "io/store/findings.h"

namespace mckpt::impl {

class Observer;
class Store;
struct VerifyReport;

class ComparedSides {
 public:
  enum Side { kTested, kSource };
  struct Record {  // the header and the data of a chunk
    Side side;
    const Store* store;  // that side, or a view of it
    i64 tensor, chunk;
  };

  // Begins with what the openers found wrong with single records.
  ComparedSides(const Store& tested, const Store& source);

  // Whether an opener reported that the chunks of a tensor do not cover it.
  bool have_holes() const { return holes_; }
  bool wrong() const { return wrong_[kTested] || wrong_[kSource]; }

  // Whether the header of the record can be read. The first time that it cannot, the finding is added.
  bool reads(const Record& record);
  // Adds a finding about a file, given by its whole path, to the side that the file is of. Returns whether
  // there is such a side.
  bool add_by_file(Finding& finding);
  // Adds the records whose bytes do not have the sum that the format keeps of them. Throws kInterrupted.
  void check_sums(const std::vector<Record>& records, int threads, Observer& observer);
  // Adds the checks "path" and "source", each where something is wrong.
  void add_checks(VerifyReport& report);

 private:
  void add(Side side, Finding finding);

  const Store* stores_[2];
  Findings findings_[2];
  bool wrong_[2] = {};  // there are findings that are not warnings
  bool holes_ = false;
  std::map<std::tuple<Side, i64, i64>, bool> looked_;  // by tensor and chunk: whether the header can be read
};

}  // namespace mckpt::impl

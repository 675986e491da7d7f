// ComparedSides: what is wrong with the two checkpoints of a comparison, each by itself. The class separates
// damage of a record, which is a finding about one side, from a difference, which is a finding about both.
//
//   header of a record cannot be read          check "path" or "source"
//   data do not have their stored checksum     check "path" or "source"
//   both sides are sound, values differ        check "against", in Comparison
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/int.h"
#include "io/store/findings.h"

namespace mckpt::impl {

class Observer;
class Store;
struct VerifyReport;

// Collects the findings of one comparison. Both stores outlive it. Not thread-safe, except that check_sums()
// uses threads itself.
class ComparedSides {
 public:
  enum Side { kTested, kSource };
  struct Record {  // the header and the data of a chunk
    Side side;
    const Store* store;  // that side, or a view of it
    i64 tensor, chunk;
  };

  // Begins with the openers' findings about single records.
  ComparedSides(const Store& tested, const Store& source);

  // Whether an opener reported that the chunks of a tensor do not cover it.
  bool have_holes() const { return holes_; }
  // Whether the chunks of a tensor have every item, as far as an opener reported otherwise. `store`: the
  // side, or a view of it under other names, of which only holes are known.
  bool covers(Side side, const Store& store, i64 tensor) const;
  bool wrong() const { return wrong_[kTested] || wrong_[kSource]; }

  // Whether the header of the record can be read. If it cannot, a finding is added, once for each record.
  bool reads(const Record& record);
  // Adds a finding about a file, given by its whole path, to the side that the file belongs to. Returns false
  // if it belongs to neither.
  bool add_by_file(Finding& finding);
  // Adds a finding for each record whose bytes do not have the checksum that the format stores. Reads the
  // records. Throws kInterrupted.
  void check_sums(const std::vector<Record>& records, int threads, Observer& observer);
  // Adds the checks "path" and "source", each only if something is wrong with that side.
  void add_checks(VerifyReport& report);

 private:
  void add(Side side, Finding finding);

  const Store* stores_[2];
  Findings findings_[2];
  bool wrong_[2] = {};  // there are findings that are not warnings
  bool holes_ = false;
  std::set<std::string, std::less<>> uncovered_[2] = {};  // tensors with holes or overlaps, by name
  std::map<std::tuple<Side, i64, i64>, bool> looked_;  // by tensor and chunk: whether the header can be read
};

}  // namespace mckpt::impl

// FusedPicture: one fused parameter, its parts, and the items that ranks have of it, as pictures show them:
// bounded in the number of ranks, on an axis on which no part is too narrow to be seen.
#pragma once

#include <string>
#include <vector>

#include "core/fsdp/fused_cut.h"

namespace mckpt::impl {

struct FusedPicture {
  std::string title{};  // the parameter
  std::string about{};  // its shape and its run, in a line
  FusedCut cut{};
};

// A stretch of drawn ranks, or of ranks that are left out.
struct FusedRow {
  i64 share = -1;            // of FusedCut::shares; -1: left out
  i64 first = 0, ranks = 0;  // of those that are left out: the first rank, and how many
  bool empty = false;        // those have nothing of the parameter
};
// At most `most` shares: first those that have several parts, then the others from both ends. Ranks without
// items are counted.
std::vector<FusedRow> fused_rows(const FusedCut& cut, std::size_t most);

// From items to places between 0 and 1: in proportion, but no part is narrower than `least`.
class FusedAxis {
 public:
  // pre: the parts are not more than 1 / least.
  FusedAxis(const FusedCut& cut, double least);
  double at(i64 item) const;

 private:
  const FusedCut& cut_;
  std::vector<double> begins_;  // of the parts, and 1
};

// "W" for the part "_w", "query" for ".query".
std::string part_label(const FusedPart& part);
// "W 16, V 4": what the share has of each part; "nothing".
std::string right_text(const FusedCut& cut, const FusedShare& share);
// "8 right, 8 wrong, 0 lost" of a share under the rule of local counts.
std::string loss_text(const FusedCut& cut, const FusedShare& share);
// The sum over all shares: "of 40 items: 8 right, 8 wrong, 24 lost".
std::string total_loss_text(const FusedCut& cut);

// The picture as lines of at most `width` columns.
std::string fused_text(const FusedPicture& picture, i64 width);

}  // namespace mckpt::impl

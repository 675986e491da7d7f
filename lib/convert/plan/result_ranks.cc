// A file for each rank is written by every conversion to a DCP folder, whatever the names of its tensors.
#include "convert/plan/result_ranks.h"

#include <algorithm>
#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// More ranks than this have no job; more than a small number of them must have rows to hold.
constexpr i64 kMostRanks = 1 << 16, kAlwaysRanks = 1024;

i64 most_rows(const Store& store) {
  i64 rows = 0;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (std::span<const i64> dims = store.dims(t); !dims.empty()) rows = std::max(rows, dims[0]);
  return rows;
}

}  // namespace

void refuse_many_ranks(i64 ranks, const Store& source) {
  if (ranks >= 1 && ranks <= kAlwaysRanks) return;
  const i64 rows = most_rows(source), most = std::min(kMostRanks, std::max(kAlwaysRanks, rows));
  if (ranks >= 1 && ranks <= most) return;
  throw Error(Code::kBadGrid,
              ranks < 1 ? "`dp` is not a number of ranks"
                        : "the result has more ranks than a folder is cut for: each of them has a file")
      .expected(cat("1 to ", with_commas(most)))
      .found(with_commas(ranks))
      .note(cat("no tensor has more than ", counted(rows, "row"), " to divide among the ranks"))
      .help("choose another `dp`");
}

}  // namespace mckpt::impl

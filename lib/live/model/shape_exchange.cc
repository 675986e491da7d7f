// Exchanges the sizes of all groups, and a digest of all names, shapes and types, in one collective, and
// compares them with what this rank expects of each other rank.
#include "live/model/shape_exchange.h"

#include <cstring>

#include "core/base/error.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"
#include "core/items/dtype.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "core/items/shape.h"
#include "io/sums/sha256.h"
#include "live/model/group.h"
#include "live/model/model.h"
#include "mappings/fsdp/groups.h"
#include "mappings/model/parameter.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// A rank's model as numbers: two of a digest of the grid and all names, shapes and types, then three for
// every group: items of the bucket, and begin and end of the rank's shard.
std::vector<i64> numbers_of(const LiveModel& model) {
  std::string text = to_string(model.setup().grid);
  for (const ModelParameter& p : model.parameters())
    text += cat("\n", p.name, " ", dtype_name(p.dtype), " ", to_string(p.shape()));
  Sha256 sha;
  sha.update({reinterpret_cast<const u8*>(text.data()), text.size()});
  std::array<u8, 32> digest = sha.digest();
  std::vector<i64> numbers(2);
  std::memcpy(numbers.data(), digest.data(), 2 * sizeof(i64));
  for (LiveGroup* group : model.groups()) {
    ItemRange items = group->stored_items();
    numbers.insert(numbers.end(), {group->buffer().bucket_items, items.begin, items.end});
  }
  return numbers;
}

[[noreturn]] void disagree(i64 rank, std::string_view what) {
  throw Error(Code::kRanksFailed, cat("rank ", rank, " and this rank do not agree about ", what))
      .help("all ranks need the same model, options and version of mckpt");
}

}  // namespace

void exchange_shapes(const LiveModel& model) {
  std::vector<i64> mine = numbers_of(model);
  Gathered all = model.world().all_gather_v(std::as_bytes(std::span(mine)));
  std::vector<LiveGroup*> groups = model.groups();
  const Grid& grid = model.setup().grid;
  for (i64 rank = 0; rank < model.world().size(); rank++) {
    std::span<const std::byte> bytes = all.of(static_cast<int>(rank));
    if (bytes.size() != mine.size() * sizeof(i64)) disagree(rank, "the parameter groups of the model");
    std::vector<i64> theirs(mine.size());
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    if (theirs[0] != mine[0] || theirs[1] != mine[1]) disagree(rank, "the shapes of parameters");
    Cell cell = cell_of(grid, rank);
    for (std::size_t g = 0; g < groups.size(); g++) {
      const FlatBuffer& buffer = groups[g]->buffer();
      i64 shard = place_in({groups[g]->bucket(), buffer}, grid, cell).shard;
      bool whole = groups[g]->how().strategy == Strategy::kNoShard;
      ItemRange want = whole ? ItemRange{0, buffer.bucket_items}
                             : ItemRange{shard * buffer.shard_items, (shard + 1) * buffer.shard_items};
      if (theirs[2 + 3 * g] != buffer.bucket_items || theirs[3 + 3 * g] != want.begin ||
          theirs[4 + 3 * g] != want.end)
        disagree(rank, cat("the shard of parameter group ", g));
    }
  }
}

}  // namespace mckpt::impl

#include "tests/unit/mappings/rules/coverage.h"

#include "core/base/error.h"
#include "core/items/tiling.h"
#include "tests/support/even_copies.h"

namespace mckpt::impl {
namespace {

[[noreturn]] void refuse(const ShardedTensor& tensor, TilingFault fault, std::string_view of) {
  throw Error(Code::kNotTiled, fault.times == 0 ? cat("no shard holds item ", fault.item, " of ", of)
                                                : cat("two shards hold item ", fault.item, " of ", of))
      .tensor(tensor.name)
      .expected("each item in exactly one shard");
}

void check_cells(const ShardedTensor& tensor) {
  std::vector<std::vector<ItemRun>> by_slot(tensor.slot_items.size()), copies(by_slot.size());
  for (const auto& cell : tensor.cells)
    for (const ItemRun& run : cell) {
      if (run.slot == kPaddingSlot) continue;
      i32 of = is_copy(run.slot) ? copied_slot(run.slot) : run.slot;
      if (of < 0 || of >= static_cast<i32>(by_slot.size()))
        throw Error(Code::kBadRun, "a run reads a source tensor that is not there")
            .tensor(tensor.name)
            .found(run.slot);
      std::size_t slot = static_cast<std::size_t>(of);
      check_run(run, tensor.slot_items[slot]);
      (is_copy(run.slot) ? copies : by_slot)[slot].push_back(run);
    }
  for (std::size_t slot = 0; slot < by_slot.size(); slot++) {
    if (auto fault = tiling_fault(by_slot[slot], tensor.slot_items[slot]))
      refuse(tensor, *fault, cat("source tensor ", slot));
    if (!are_even(copies[slot], tensor.slot_items[slot]))
      throw Error(Code::kNotTiled,
                  cat("shards copy items of source tensor ", slot, " more often than others"))
          .tensor(tensor.name);
  }
}

}  // namespace

std::vector<ItemRun> runs_of(const ShardedTensor& tensor, const Shard& shard) {
  return cut(tensor.cells[static_cast<std::size_t>(shard.cell)], shard.range);
}

void check_coverage(const ShardedTensor& tensor) {
  check_cells(tensor);
  std::vector<std::vector<ItemRange>> cuts(tensor.cells.size());
  for (const Shard& shard : tensor.shards) {
    if (shard.cell < 0 || shard.cell >= static_cast<i32>(cuts.size()))
      throw Error(Code::kBadRun, "a shard belongs to a cell that is not there")
          .tensor(tensor.name)
          .found(shard.cell);
    cuts[static_cast<std::size_t>(shard.cell)].push_back(shard.range);
  }
  for (std::size_t cell = 0; cell < cuts.size(); cell++)
    if (auto fault = tiling_fault(cuts[cell], items_of(tensor.cells[cell])))
      refuse(tensor, *fault, cat("cell ", cell));
}

}  // namespace mckpt::impl

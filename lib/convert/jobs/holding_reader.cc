// A parameter is read window by window. Each window cuts the parameter's runs and, for each run, reads the
// whole stretch of the source that the run spans and takes the run's items from it.
#include "convert/jobs/holding_reader.h"

#include <algorithm>

#include "core/items/apply_move.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "mappings/model/parameter.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace {

// Large, because each window of a transposed tensor reads all of its source.
constexpr i64 kWindowItems = i64{4} << 20;

}  // namespace

ItemCast import_cast(const ModelParameter& p, DType stored) {
  return {p.source_dtype, p.typed_by_run ? p.dtype : stored, stored, p.holding->addend, 0};
}

void HoldingReader::read(const ModelParameter& p, ItemRange range, DType to,
                         const std::function<void(std::span<const u8>)>& take) {
  ItemCast cast = import_cast(p, to);
  check_cast(cast);
  i64 from_bytes = dtype_bytes(p.source_dtype, 1), to_bytes = dtype_bytes(to, 1);
  for (i64 begin = range.begin; begin < range.end; begin += kWindowItems) {
    ItemRange window{begin, std::min(range.end, begin + kWindowItems)};
    gather(p, window, from_bytes);
    if (cast.identity()) {
      take(window_);
      continue;
    }
    converted_.resize(static_cast<std::size_t>(window.items() * to_bytes));
    cast_items(cast, window_.data(), converted_.data(), window.items());
    take(converted_);
  }
}

void HoldingReader::gather(const ModelParameter& p, ItemRange window, i64 item_bytes) {
  window_.resize(static_cast<std::size_t>(window.items() * item_bytes));
  i64 at = 0;
  for (const ItemRun& run : cut(p.holding->runs, window)) {
    if (run.slot == kPaddingSlot)
      std::fill_n(window_.begin() + at * item_bytes, run.items() * item_bytes, u8{0});
    else
      gather_run(run, p.sources[is_copy(run.slot) ? copied_slot(run.slot) : run.slot], at, item_bytes);
    at += run.items();
  }
}

// Reads the stretch of the source from the run's first to its last item, and copies the run's items out of it
// to position `at` of the window.
void HoldingReader::gather_run(const ItemRun& run, i32 tensor, i64 at, i64 item_bytes) {
  Move move = move_of(run, at);
  i64 begin = run.begin, end = run.end();
  std::vector<Move> parts;
  reader_.read(tensor, begin, end, [&](std::span<const u8> bytes, i64 offset) {
    i64 first = offset / item_bytes, items = static_cast<i64>(bytes.size()) / item_bytes;
    parts.clear();
    clip_source(move, {first, first + items}, parts);
    for (const Move& part : parts) apply_move(part, item_bytes, {bytes.data(), first}, {window_.data(), 0});
  });
}

}  // namespace mckpt::impl

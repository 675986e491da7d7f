// Keys and tables of the two sides say which tensors of the source a chunk is made of.
#include "convert/compare/pairing.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "convert/compare/checks/types.h"
#include "convert/compare/comparing.h"
#include "convert/compare/differences/read_values.h"
#include "convert/compare/headers.h"
#include "convert/compare/key_types.h"
#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/paired_keys.h"
#include "convert/compare/sides/sides.h"
#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/checkpoint.h"
#include "core/base/text.h"
#include "io/store/store.h"
#include "io/verify/verify.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

// The tensors that are stored fused, rank after rank, on either side: if different numbers of ranks wrote
// them, they are compared over the items of the model's own tensors. And the vocabulary with its states, if
// one side has more padding.
FusedTables fused_tensors(const Store& source, const CheckpointModel& from, const CheckpointModel& to) {
  FusedTables fused{from.keys(), to.keys(), {}};
  for (const PairedKey& key : paired_keys(source, from, to)) {
    const bool by_cell =
        key.from >= 0 && key.from == key.to && (from.keys()[key.from].by_cell || to.keys()[key.to].by_cell);
    fused.key_of.push_back(by_cell ? key.from : -1);
    fused.resized.push_back(key.resized);
  }
  return fused;
}

}  // namespace

void name_padding(const std::string& rows, VerifyReport& report) {
  report.add({.name = "padding",
              .status = Check::Status::kNone,
              .unit = "rows",
              .note = cat("not compared: ", rows)},
             {});
}

Pairing::~Pairing() = default;

Pairing::Pairing(const Sides& sides, const Comparing& c) : sides_(sides) {
  if (!sides.of_items())
    pair_names(c);
  else if (sides.tested.sharded)
    pair_keys(c);
  else
    pair_tensors(c);
}

ComparedChunks Pairing::chunks() const {
  return {sides_.tested_store(),
          *chunks_,
          sides_.source_store(),
          tensors_,
          name_,
          job_,
          made_of_,
          by_values_,
          rows_};
}

// Boxes of the tensors that both sides have under one name.
void Pairing::pair_names(const Comparing& c) {
  const Store &tested = sides_.tested_store(), &source = sides_.source_store();
  if (sides_.checks_types) {
    TypeCheck asked(c.options.types);
    if (sides_.tested.sharded && sides_.source.sharded)
      ask_keys(*sides_.tested.sharded, sides_.source.sharded.get(), asked);
    else
      asked.add_by_name(tested, source, sides_.takes_type);
    as_asked_ = asked.add_to(c.report);
  }
  if (sides_.one_model)
    fused_ = std::make_unique<const FusedTables>(
        fused_tensors(source, *sides_.source.sharded, *sides_.tested.sharded));
  // In a list of differences the padding that one side alone has is not compared, whichever side it is.
  if (fused_ && c.options.counting.all && std::ranges::find(fused_->resized, true) != fused_->resized.end())
    name_padding(cat(counted(std::abs(sides_.tested.sharded->setup().vocab_rows -
                                      sides_.source.sharded->setup().vocab_rows),
                             "row"),
                     " of padding of the vocabulary that one side alone has"),
                 c.report);
  if (fused_ && c.options.counting.all)
    rows_ = [this, &source](i32 key) -> std::optional<i64> {
      if (!fused_->resized[static_cast<std::size_t>(key)]) return std::nullopt;
      return source.dims(key)[0];
    };
  Headers headers(tested, source, fused_.get(), sides_.changes, c.options,
                  c.options.any_type || sides_.any_type);
  std::set<i64> apart = headers.report_unlike(c.comparison);
  apart.insert(sides_.copied.begin(), sides_.copied.end());
  apart.merge(compare_read_values(tested, source, apart, sides_.computed, c.comparison, c.observer));
  if (c.options.counting.all) headers.note_empty(apart, c.comparison);
  casts_ = headers.casts();
  made_ = std::make_unique<NamedChunks>(tested, source, apart);
  chunks_ = made_.get(), tensors_ = tested.tensor_count() - std::ssize(sides_.copied);
  job_ = [this](const ChunkList& some) { return reshard_job(sides_.source_store(), some, fused_.get()); };
  made_of_ = [](i32 tensor) { return std::vector<i64>{tensor}; };
  name_ = [&source](i32 tensor) { return std::string(source.name(tensor)); };
  by_values_ = [this, c](i32 tensor, i32 key) {
    return compare_read_values(sides_.tested_store(), sides_.source_store(), tensor, key, c.comparison,
                               c.observer);
  };
}

}  // namespace mckpt::impl

#include "live/live_check.h"

#include <algorithm>

namespace mckpt {

LiveCheck::LiveCheck(const LiveModel& model, const Store& source)
    : model_(model), files_(source), reader_(source, files_) {
  const LiveSetup& setup = model.setup();
  as_stored_ = model.map().parameters(setup.grid, model.cell(),
                                      {setup.run.vocab_rows, std::nullopt, setup.run.groups});
}

void LiveCheck::compare(i32 parameter, ItemRange items, DType via, DType type, std::span<const u8> bytes,
                        const char* what) {
  ModelParameter p = as_stored_[static_cast<std::size_t>(parameter)];
  p.dtype = via;
  i64 at = 0, first_wrong = -1;
  reader_.read(p, items, type, [&](std::span<const u8> want) {
    std::span<const u8> mine = bytes.subspan(std::min(static_cast<std::size_t>(at), bytes.size()));
    auto [differs, _] = std::mismatch(want.begin(), want.end(), mine.begin(), mine.end());
    if (differs != want.end() && first_wrong < 0) first_wrong = at + (differs - want.begin());
    at += std::ssize(want);
  });
  if (at != std::ssize(bytes) && first_wrong < 0) first_wrong = at;  // there is more than there should be
  parameters_++;
  bytes_ += std::ssize(bytes);
  if (first_wrong >= 0)
    differences_.push_back({p.name, what, items.begin + first_wrong / dtype_bytes(type, 1)});
}

void LiveCheck::check_stored() {
  for (i32 i = 0; i < static_cast<i32>(as_stored_.size()); i++) {
    const ModelParameter& p = as_stored_[static_cast<std::size_t>(i)];
    if (p.buffer()) {
      DType type = model_.parameters()[static_cast<std::size_t>(i)].dtype;
      compare(i, {0, p.shape().items()}, p.source_dtype, type, model_.buffer_bytes(i), "buffer");
    } else if (std::optional<Tensor> shard = model_.stored_shard(i)) {
      const LiveModel::Seat& seat = model_.seat(i);
      compare(i, seat.group->stored_items_of(seat.member), p.source_dtype, seat.group->stored_type(),
              shard->facts().bytes, "stored weights");
    }
  }
}

void LiveCheck::check_live(i32 module) {
  for (const std::unique_ptr<LiveGroup>& group : model_.groups_of(module))
    for (i64 member : group->bucket().members) {
      i32 i = static_cast<i32>(member);
      compare(i, {0, as_stored_[static_cast<std::size_t>(i)].shape().items()}, group->stored_type(),
              group->how().compute, model_.tensor(i).facts().bytes, "live values");
    }
}

}  // namespace mckpt

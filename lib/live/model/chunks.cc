// The boxes of the chunks come from FsdpLayout, the same function that lays out a checkpoint, applied to the
// groups of the model as they are packed in memory; so the keys and boxes are those under which this rank
// saves.
#include "live/model/chunks.h"
#include "core/base/error.h"
#include "core/fsdp/strategy.h"
#include "io/dcp/keys/key.h"
#include "live/model/group.h"
#include "live/model/model.h"
#include "mappings/fsdp/groups.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

// A tensor of which the rank holds nothing is left out. Groups are numbered first, then buffers.
LiveChunks::LiveChunks(const LiveModel& model, const KeyTable& keys) : model_(model), keys_(keys) {
  std::vector<FsdpGroup> groups;
  for (LiveGroup* group : model.groups()) {
    file_of_.emplace(group, static_cast<i32>(files_.size()));
    files_.push_back({group, -1});
    groups.push_back({group->bucket(), group->buffer()});
  }
  const LiveSetup& setup = model.setup();
  FsdpLayout layout(model.parameters(), model.map().model(), setup.grid, std::move(groups),
                    setup.fsdp.strategy != Strategy::kNoShard, setup.fsdp.keys);
  for (const FsdpTensor& t : layout.tensors(model.cell())) {
    if (t.empty()) continue;
    i32 key = keys.find(*model_key(t.key));
    if (key < 0) throw Error(Code::kInternal, "a rank has a key that is not in the table").tensor(t.key);
    add(t, key);
  }
}

// Adds one box of the rank. Its place is counted from the first stored item of its group.
void LiveChunks::add(const FsdpTensor& t, i32 key) {
  const ModelParameter& p = model_.parameters()[t.parameter];
  const LiveModel::Seat& seat = model_.seat(t.parameter);
  Entry e{key, static_cast<i32>(files_.size()), 0, p.dtype, t.offsets, t.sizes};
  if (seat.group) {
    i64 first = seat.group->buffer().parameters[seat.member].offset + t.items.begin;
    e.file = file_of_.at(seat.group);
    e.dtype = seat.group->stored_type();
    e.offset = dtype_bytes(e.dtype, first - seat.group->stored_items().begin);
  } else {
    files_.push_back({nullptr, t.parameter});
  }
  by_box_.emplace(std::pair(key, t.offsets), size());
  chunks_.push_back(std::move(e));
}

i64 LiveChunks::find(i32 key, std::span<const i64> offsets) const {
  auto found = by_box_.find({key, std::vector<i64>(offsets.begin(), offsets.end())});
  return found == by_box_.end() ? -1 : found->second;
}

std::span<u8> LiveChunks::memory(i32 file) const {
  const File& f = files_[file];
  return f.group ? f.group->stored() : model_.buffer_bytes(f.buffer);
}

std::span<u8> LiveChunks::bytes(i64 chunk) const {
  const Entry& e = at(chunk);
  i64 size = dtype_bytes(e.dtype, Shape(e.sizes).items());
  return memory(e.file).subspan(static_cast<std::size_t>(e.offset), static_cast<std::size_t>(size));
}

}  // namespace mckpt::impl

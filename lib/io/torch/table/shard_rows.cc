// Equal boxes, and equal lists of numbers, are stored once.
#include "io/torch/table/shard_rows.h"

#include "core/items/shape.h"
#include "io/pickle/classes.h"

namespace mckpt::impl {
namespace {

using ValueKind = PickleValue::Kind;

// Lists and boxes that are different. A file made to have more of them has them in the pickle, whose memory
// is bounded.
constexpr std::size_t kMost = 1'000'000;

// The field of a state that is a dict, or a tuple of None and a dict (a class with __slots__).
PickleValue field(PickleValue state, std::string_view name) {
  if (const PickleValue* v = state.find(name)) return *v;
  for (PickleValue part : state.tuple())
    if (const PickleValue* v = part.find(name)) return *v;
  return {};
}

}  // namespace

const std::vector<i64>* ShardRows::taken(PickleValue value, Kind kind) const {
  std::optional<u64> row = value.row();
  if (!row || *row >> kKindShift != static_cast<u64>(kind)) return nullptr;
  return by_number_[*row & ((u64{1} << kKindShift) - 1)];
}

const std::vector<i64>* ShardRows::box(PickleValue metadata) const { return taken(metadata, Kind::kBox); }

u64 ShardRows::number_of(std::vector<i64> numbers) {
  auto [it, is_new] = numbers_.try_emplace(std::move(numbers), by_number_.size());
  if (is_new) by_number_.push_back(&it->first);
  return it->second;
}

// Numbers that are not negative, as many as a shape may have at most; nothing for any other value.
std::optional<std::vector<i64>> ShardRows::numbers(PickleValue value) const {
  if (const std::vector<i64>* seen = taken(value, Kind::kNumbers)) return *seen;
  if ((!value.is(ValueKind::kList) && !value.is(ValueKind::kTuple)) || value.size() > Shape::kMaxRank)
    return std::nullopt;
  std::vector<i64> out;
  for (PickleValue item : value.items()) {
    if (!item.is_int() || item.as_int() < 0) return std::nullopt;
    out.push_back(item.as_int());
  }
  return out;
}

std::optional<u64> ShardRows::build(const PickleObject& object, PickleValue state) {
  if (object.type->known == Known::kRemoteDevice) return tagged(Kind::kOther, 0);
  if (object.type->known != Known::kShardMetadata || by_number_.size() >= kMost) return std::nullopt;
  std::optional<std::vector<i64>> box = numbers(field(state, "shard_offsets"));
  std::optional<std::vector<i64>> sizes = numbers(field(state, "shard_sizes"));
  if (!box || !sizes || box->size() != sizes->size()) return std::nullopt;
  box->insert(box->end(), sizes->begin(), sizes->end());
  return tagged(Kind::kBox, number_of(std::move(*box)));
}

// The parts of a record that build() took: its lists, its dict, the torch.device of a placement.
std::optional<u64> ShardRows::part(PickleValue value) {
  if (value.is(ValueKind::kDict)) return tagged(Kind::kOther, 0);
  if (value.is(ValueKind::kObject) && value.as_object().type->module == "torch" &&
      value.as_object().type->name == "device")
    return tagged(Kind::kOther, 0);
  if (by_number_.size() >= kMost) return std::nullopt;
  if (std::optional<std::vector<i64>> list = numbers(value))
    return tagged(Kind::kNumbers, number_of(std::move(*list)));
  return std::nullopt;
}

}  // namespace mckpt::impl

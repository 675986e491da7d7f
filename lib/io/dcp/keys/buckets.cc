// Tells the padding of buckets from their parameters by where chunks begin and end.
#include "io/dcp/keys/buckets.h"

#include <algorithm>

#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kGroup = "optimizer.distributed.dp_group_idx_";
constexpr i64 kAlignment = 64;  // items: where parameters begin

struct Stretch {
  i64 begin, end;
  i32 rank;
};

// Calls `visit(stretch, padding, goes_on)` for the chunks in their order: whether the chunk is padding, and
// whether it goes on with what the chunk of another rank before it was.
//
// A chunk that begins at no multiple of 64 follows a parameter that ended there, unless it is the share of
// the next rank: then it goes on with what the chunk before was.
template <typename Visit>
void each_stretch(const Store& store, i64 bucket, Visit&& visit) {
  const i64 items = store.dims(bucket)[0];
  std::vector<Stretch> chunks;
  for (i64 i = 0; i < store.chunk_count(bucket); i++) {
    const Chunk chunk = store.chunk(bucket, i);
    if (chunk.sizes[0] > 0)
      chunks.push_back({chunk.offsets[0], chunk.offsets[0] + chunk.sizes[0], chunk.rank});
  }
  std::ranges::sort(chunks, {}, &Stretch::begin);
  i32 rank = -1;
  bool padding = false;  // what the chunk before is
  for (const Stretch& c : chunks) {
    const bool at_share = c.rank != rank, whole = c.end % kAlignment == 0 || c.end == items;
    const bool begins = c.begin % kAlignment == 0, is_long = c.end - c.begin >= kAlignment;
    const bool goes_on = at_share && !begins && (padding ? !is_long : is_long || !whole);
    if (begins || is_long)
      padding = false;
    else if (!at_share || whole)
      padding = true;
    visit(c, padding, goes_on);
    rank = c.rank;
  }
}

}  // namespace

bool is_bucket(std::string_view name) {
  const std::size_t group = name.find(kGroup);
  return group != name.npos && name.find(".bucket_idx_", group) != name.npos;
}

bool is_gathered_states(std::string_view object) {
  const std::size_t group = object.find(kGroup);
  return group != object.npos && object.substr(0, object.find('/')).ends_with(".param_state");
}

std::vector<std::pair<i64, i64>> bucket_padding(const Store& store, i64 tensor) {
  std::vector<std::pair<i64, i64>> out;
  if (store.dims(tensor).size() != 1 || !is_bucket(store.name(tensor))) return out;
  each_stretch(store, tensor, [&](const Stretch& c, bool padding, bool) {
    if (padding) out.emplace_back(c.begin, c.end);
  });
  return out;
}

std::vector<std::pair<i64, i64>> bucket_stretches(const Store& store, i64 bucket) {
  std::vector<std::pair<i64, i64>> out;
  each_stretch(store, bucket, [&](const Stretch& c, bool, bool goes_on) {
    if (goes_on && !out.empty() && out.back().second == c.begin)
      out.back().second = c.end;
    else
      out.emplace_back(c.begin, c.end);
  });
  return out;
}

}  // namespace mckpt::impl

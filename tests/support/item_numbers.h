// A checkpoint in memory in which no two items are alike: an item's value is its number among all items of
// the Hugging Face tensors. A TableStore takes the items that a dialect's plan writes; the items that the
// dialect's view reads are compared with the numbers that the key table gives the boxes of the view:
//
//   plan  --box, runs of its table-->  numbers at a place  --view-->  the place  =?  runs of the other table
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convert/keys/key_table.h"
#include "core/base/text.h"
#include "core/items/item_run.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/layout.h"
#include "mappings/model/expand.h"
#include "mappings/rule.h"
#include "tests/support/table_store.h"

namespace mckpt::impl {

class ItemNumbers {
 public:
  explicit ItemNumbers(const ModelMap& map) {
    i64 next = 1;
    for (const Shape& s : map.source_shapes()) begin_.push_back(next), next += s.items();
    all_ = next;
  }

  // The numbers of a box of a key: 0 is padding, a second copy of an item its negative.
  std::vector<i64> of(const KeyTable& keys, i32 key, std::span<const i64> offsets, std::span<const i64> sizes,
                      i64 state = 0) const {
    std::vector<i64> out(static_cast<std::size_t>(Shape(sizes).items()));
    i64* to = out.data();
    for (const ItemRun& run : keys.runs(keys[key], offsets, sizes)) {
      const bool padding = run.slot == kPaddingSlot, copy = is_copy(run.slot);
      const i64 begin = padding ? 0 : begin_[copy ? copied_slot(run.slot) : run.slot] + state * all_;
      const i64 items = run.items(), stretch = std::max<i64>(1, run.length);
      for (i64 i = 0; i < items; i += stretch, to += stretch) {
        if (padding) continue;
        const i64 first = begin + run.at(i);
        for (i64 j = 0; j < stretch; j++) to[j] = copy ? -(first + j) : first + j;
      }
    }
    return out;
  }

  // Puts numbers behind all that were put before.
  TableStore::Piece put(std::vector<i64> numbers, std::vector<i64> offsets, std::vector<i64> sizes,
                        DType dtype) {
    const i64 at = end_;
    end_ += dtype_bytes(dtype, std::ssize(numbers)) + 64;
    written_.emplace(at, std::move(numbers));
    return {std::move(offsets), std::move(sizes), {.file = 0, .offset = at, .dtype = dtype}};
  }

  // The numbers at the place of the store's chunk; nothing if its items are not in one row there.
  std::span<const i64> at(const Store& store, i64 tensor, i64 chunk) const {
    const ChunkData data = store.resolve(tensor, chunk);
    const auto& [begin, numbers] = *std::prev(written_.upper_bound(data.offset));
    const i64 first = (data.offset - begin) / dtype_bytes(data.dtype, 1);
    const i64 count = Shape(store.chunk(tensor, chunk).sizes).items();
    if (!data.strides.empty() || first + count > std::ssize(numbers)) return {};
    return std::span(numbers).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }

 private:
  std::vector<i64> begin_;
  i64 all_ = 0, end_ = 64;
  std::map<i64, std::vector<i64>> written_;
};

// The same for the same numbers in any order, each as often.
inline u64 digest_of(std::span<const i64> numbers) {
  u64 sum = 0;
  for (i64 n : numbers) {
    const u64 mixed = (static_cast<u64>(n) ^ (static_cast<u64>(n) >> 31)) * 0xbf58476d1ce4e5b9u;
    sum += mixed ^ (mixed >> 29);
  }
  return sum;
}

// Expects that the view has every key of the table, and each item of it once. `state`: not the weights but
// the states of that kind, which were numbered with `number`.
inline void expect_items(const Store& view, const KeyTable& keys, const ItemNumbers& numbers,
                         std::string_view state = "", i64 number = 0) {
  std::vector<u64> covered(static_cast<std::size_t>(keys.size()));
  for (i64 t = 0; t < view.tensor_count(); t++) {
    const std::string_view name = view.name(t);
    std::optional<std::string> of = state.empty() ? model_key(name) : std::nullopt;
    if (!state.empty() && name.ends_with(cat(".", state)))
      if (std::optional<StateName> parts = state_name(name)) of = std::move(parts->key);
    if (!of) continue;
    const i32 k = keys.find(*of);
    ASSERT_GE(k, 0) << name << " is no key of the table";
    ASSERT_EQ(dims_to_string(view.dims(t)), dims_to_string(keys[k].shape.dims())) << name;
    for (i64 c = 0; c < view.chunk_count(t); c++) {
      const Chunk box = view.chunk(t, c);
      const std::vector<i64> offsets(box.offsets.begin(), box.offsets.end());
      const std::vector<i64> sizes(box.sizes.begin(), box.sizes.end());
      if (!box.replica) covered[k] += digest_of(numbers.at(view, t, c));
      ASSERT_TRUE(std::ranges::equal(numbers.at(view, t, c), numbers.of(keys, k, offsets, sizes, number)))
          << name << " " << dims_to_string(sizes) << " at " << dims_to_string(offsets);
    }
  }
  for (i32 k = 0; k < keys.size(); k++) {
    const std::span<const i64> shape = keys[k].shape.dims();
    const std::vector<i64> all = numbers.of(keys, k, std::vector<i64>(shape.size()), shape, number);
    EXPECT_EQ(covered[k], digest_of(all))
        << keys[k].name << " " << state << ": items are missing, or twice there";
  }
}

// The names of a view, without the prefixes of the parameters' names.
inline NameSet<std::string> parameter_names(const Store& view) {
  NameSet<std::string> out;
  for (i64 t = 0; t < view.tensor_count(); t++)
    if (std::optional<std::string> key = model_key(view.name(t))) out.insert(std::move(*key));
  return out;
}

// The files of a DCP folder with the numbers of the boxes. `of`: of a chunk of the layout, its numbers.
template <typename Of>
std::unique_ptr<TableStore> store_of(const DcpLayout& layout, ItemNumbers& numbers, Of&& of) {
  auto out = std::make_unique<TableStore>("memory");
  out->add_file("data", 0);
  for (i32 k = 0; k < layout.key_count(); k++) {
    const DcpLayoutKey& key = layout.key(k);
    std::vector<i64> dims(key.shape.dims().begin(), key.shape.dims().end());
    out->tensors.push_back({key.name.text, key.dtype, std::move(dims), {}});
  }
  for (i64 c = 0; c < layout.chunk_count(); c++) {
    const DcpLayout::Chunk chunk = layout.chunk(c);
    out->tensors[static_cast<std::size_t>(chunk.key)].pieces.push_back(
        numbers.put(of(c), {chunk.offsets.begin(), chunk.offsets.end()},
                    {chunk.sizes.begin(), chunk.sizes.end()}, layout.key(chunk.key).dtype));
  }
  return out;
}

}  // namespace mckpt::impl

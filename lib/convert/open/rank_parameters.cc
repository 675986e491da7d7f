// The files are opened as a conversion opens them: as tensors of the whole model.
#include "convert/open/rank_parameters.h"

#include <algorithm>
#include <map>

#include "convert/open/open.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/store/soundness.h"
#include "io/store/state_part.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Calls fn(joined, tensor) for every parameter of the whole model. False: it is not known.
template <typename Fn>
bool each_parameter(const Store& store, Fn&& fn) {
  if (!store.driver().ranks_apart || !is_sound(store) || own_assets(store).empty()) return false;
  OpenAs how{.source = store.root()};
  how.how.copies = CopyUse::kIgnore;
  how.how.model.files = store.opening();
  try {
    const Opened model = open_sharded(open_store(how.source, store.opening()), how);
    const Store& joined = model.store();
    for (i64 t = 0; t < joined.tensor_count(); t++)
      if (part_of(joined.name(t)) == StatePart::kModel) fn(joined, t);
    return true;
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return false;  // verify says what is wrong with them
  }
}

// Places of the tensors in the ranks' files show which of them are pieces of one parameter, and copies.
// take() returns nothing where places cannot show it.
class Originals {
 public:
  explicit Originals(const Store& store)
      : store_(store),
        of_(static_cast<std::size_t>(store.tensor_count()), -1),
        covered_(static_cast<std::size_t>(store.tensor_count()), 0) {
    for (i64 t = 0; t < store.tensor_count(); t++) add_place(t);
  }

  // The pieces of a parameter of the whole model.
  void add(const Store& joined, i64 tensor) {
    std::map<std::vector<i64>, i64>
        first;  // by the place of a piece, the tensor of the rank that has it first
    for (i64 c = 0; known_ && c < joined.chunk_count(tensor); c++) {
      const Chunk chunk = joined.chunk(tensor, c);
      const i64 items = Shape(chunk.sizes).items();
      if (items == 0) continue;
      const i64 t = at(joined.resolve(tensor, c));
      if (t < 0) return lose();
      const std::vector<i64> place(chunk.offsets.begin(), chunk.offsets.end());
      if (!chunk.replica) {
        first.try_emplace(place, t);
        covered_[static_cast<std::size_t>(t)] += items;
      }
      const auto original = first.find(place);
      i64& of = of_[static_cast<std::size_t>(t)];
      if (original == first.end() || (of >= 0 && of != original->second)) return lose();
      of = original->second;
    }
  }

  std::optional<std::vector<i64>> take() {
    for (i64 t = 0; t < store_.tensor_count(); t++)
      if (of_[static_cast<std::size_t>(t)] == t &&
          covered_[static_cast<std::size_t>(t)] != store_.shape(t).items())
        return std::nullopt;
    if (!known_) return std::nullopt;
    return std::move(of_);
  }

 private:
  struct Place {
    i64 end, tensor;
  };

  void lose() { known_ = false; }

  void add_place(i64 t) {
    if (part_of(store_.name(t)) != StatePart::kModel || store_.shape(t).items() == 0) return;
    if (store_.chunk_count(t) != 1) return lose();
    const ChunkData data = store_.resolve(t, 0);
    if (data.unpacked || !data.strides.empty()) return lose();
    const i64 bytes = dtype_bytes(data.dtype, store_.shape(t).items());
    places_[{data.file, data.offset}] = {data.offset + bytes, t};
  }

  // The tensor of a rank in whose bytes these begin; -1: none.
  i64 at(const ChunkData& data) const {
    auto next = places_.upper_bound({data.file, data.offset});
    if (data.unpacked || next == places_.begin()) return -1;
    const auto& [begin, place] = *--next;
    return begin.first == data.file && data.offset < place.end ? place.tensor : -1;
  }

  const Store& store_;
  std::vector<i64> of_, covered_;                // by tensor: its original; its items that are not copies
  std::map<std::pair<i32, i64>, Place> places_;  // by file and first byte
  bool known_ = true;
};

}  // namespace

bool has_rank_copies(const Store& store) { return store.driver().ranks_apart && store.ranks() > 1; }

std::optional<i64> parameters_of_ranks(const Store& store) {
  i64 items = 0;
  const bool known =
      each_parameter(store, [&](const Store& joined, i64 t) { items += joined.shape(t).items(); });
  return known ? std::optional(items) : std::nullopt;
}

std::optional<std::vector<i64>> originals_of_ranks(const Store& store) {
  std::optional<Originals> originals;
  const bool known = each_parameter(store, [&](const Store& joined, i64 t) {
    if (!originals) originals.emplace(store);
    originals->add(joined, t);
  });
  return known && originals ? originals->take() : std::nullopt;
}

}  // namespace mckpt::impl

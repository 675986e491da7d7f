// The tensors of each rank are made as if they were a model, and taken from the store; their boxes are then
// cut by the pieces of the map and moved to their places in the wholes.
#include "io/zero/tensor_parallel.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/item_run.h"
#include "io/file/folder.h"
#include "io/pickle/pickle.h"
#include "io/zero/affine_map.h"
#include "io/zero/assembly.h"
#include "io/zero/files.h"
#include "io/zero/store.h"

namespace mckpt::impl {
namespace {

using Box = ZeroStore::TakenBox;
using Taken = ZeroStore::Taken;

constexpr std::string_view kStates = "optimizer.state.";

// Appends the items of `box` that are in a piece, as boxes of the whole whose items follow each other in the
// part.
void cut(const Box& box, const ZeroPiece& piece, std::vector<Box>& out) {
  const std::size_t rank = box.sizes.size();
  std::vector<i64> at(rank), sizes(rank);  // of what both have, in the shard
  for (std::size_t d = 0; d < rank; d++) {
    at[d] = std::max(box.offsets[d], piece.in_shard[d]);
    sizes[d] = std::min(box.offsets[d] + box.sizes[d], piece.in_shard[d] + piece.sizes[d]) - at[d];
    if (sizes[d] <= 0) return;
  }
  std::size_t loops = rank;  // dimensions before the last that is cut are gone through one by one
  while (loops > 0 && sizes[loops - 1] == box.sizes[loops - 1]) loops--;
  if (loops > 0) loops--;
  std::vector<i64> index(loops, 0);
  for (bool more = true; more;) {
    Box part{.offsets = at, .sizes = sizes, .part = box.part, .replica = box.replica || piece.replica};
    i64 item = 0;
    for (std::size_t d = 0; d < rank; d++) {
      if (d < loops) part.offsets[d] += index[d], part.sizes[d] = 1;
      item = item * box.sizes[d] + part.offsets[d] - box.offsets[d];
      part.offsets[d] += piece.in_whole[d] - piece.in_shard[d];
    }
    part.begin = box.begin + item;
    out.push_back(std::move(part));
    std::size_t d = loops;
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    more = d > 0;
  }
}

class TensorParallel {
 public:
  TensorParallel(std::span<const ZeroSave> saves, const Folder& folder, ZeroStore& store)
      : saves_(saves), folder_(folder), store_(store), map_(read_map()) {
    for (const ZeroSave& s : saves_)
      for (const auto& m : s.models)
        for (const auto& [second, first] : m.states.shared) first_names_.emplace(second, first);
  }

  void run() {
    report_missing();
    i64 copies = 0;
    for (const ZeroSave& save : saves_) {
      if (&save != &saves_[0]) check_other_rank(saves_[0], save, store_);
      const ZeroAssembled made = assemble_zero(save, store_);
      std::vector<Taken> tensors = store_.take_tensors();
      copies += made.copies;
      for (i64 t = 0; t < std::ssize(tensors); t++) {
        if (t >= made.parts) {
          rest_.push_back(std::move(tensors[t]));
          continue;
        }
        auto [it, is_new] = place_of_.emplace(tensors[t].name, std::ssize(parts_));
        if (is_new)
          parts_.emplace_back(tensors[t].name, std::vector<Taken>(saves_.size(), Taken{"", -1, -1}));
        parts_[it->second].second[&save - saves_.data()] = std::move(tensors[t]);
      }
    }
    for (const auto& [name, of_ranks] : parts_) join(name, of_ranks);
    for (const Taken& t : rest_) store_.add_tensor(t.name, t.layout, t.column, t.of_model);
    store_.add_fact("copies",
                    cat(counted(copies, "tensor"), " of 'module', with which training computes, not listed"));
    store_.set_compares_copies();
  }

 private:
  using OfRanks = std::vector<Taken>;  // one for each save; layout -1: the rank has no such tensor

  // The map of the first file, if all say the same.
  ZeroAffineMap read_map() {
    const ZeroSave& first = saves_[0];
    const i64 ranks = std::max<i64>(first.model().model_ranks, saves_.back().model_rank + 1);
    if (first.model().stages > 1)
      throw Error(Code::kUnsupportedTorchFile, "the checkpoint is of a pipeline of tensor-parallel ranks")
          .file(folder_.inside(first.models[0].path))
          .found(cat("pp_degree ", first.model().stages));
    std::optional<ZeroAffineMap> map;
    for (const ZeroSave& save : saves_)
      for (const auto& m : save.models) try {
          ZeroAffineMap read = read_affine_map(store_.table(m.file).pickle()->root(), ranks);
          if (read.splits.empty()) refuse_without_map();
          if (map && !(read == *map))
            throw Error(Code::kBadShards,
                        cat("affine_map, which says how the parameters are split, is another one than in ",
                            first.models[0].path));
          if (!map) map = std::move(read);
        } catch (Error& e) {
          e.default_file(folder_.inside(m.path));
          throw;
        }
    return *std::move(map);
  }

  [[noreturn]] void refuse_without_map() const {
    throw Error(
        Code::kUnsupportedTorchFile,
        "the checkpoint has several model-parallel ranks, and no affine_map says how to join their tensors")
        .file(folder_.path())
        .found(saves_[0].other_rank.empty() ? cat("mp_world_size ", saves_[0].model().model_ranks)
                                            : escaped(saves_[0].other_rank))
        .help(
            "AutoTP of DeepSpeed 0.19 and later stores one; mckpt reads each file by itself. Load it where it was saved, or save a whole model there");
  }

  void report_missing() {
    std::vector<std::string> missing;
    for (i64 r = 0; r < map_.ranks; r++)
      if (std::ranges::find(saves_, r, &ZeroSave::model_rank) == saves_.end())
        missing.push_back(cat("mp_rank_", r < 10 ? "0" : "", r));
    if (missing.empty()) return;
    store_.add_finding({.code = Code::kShardMissing,
                        .message = cat("files of tensor-parallel ranks are missing: ", saves_.size(), " of ",
                                       map_.ranks, " are there; missing: those of ", listed(missing)),
                        .help = "copy them again: they have shards of the parameters"});
  }

  // The parameter that a tensor is, or of which it is a state.
  const ZeroSplit* split_of(std::string_view name) const {
    if (name.starts_with(kStates)) {
      name.remove_prefix(kStates.size());
      name = name.substr(0, name.rfind('.'));
    }
    if (auto first = first_names_.find(name); first != first_names_.end()) name = first->second;
    auto it = map_.splits.find(name);
    return it == map_.splits.end() ? nullptr : &it->second;
  }

  void join(const std::string& name, const OfRanks& of_ranks) {
    const ZeroSplit* split = split_of(name);
    const Taken& any = *std::ranges::find_if(of_ranks, [](const Taken& t) { return t.layout >= 0; });
    // A state of one number, such as the step: every rank has it.
    const bool is_number = store_.layout_dims(any.layout).empty() && name.starts_with(kStates);
    const bool alike = split == nullptr || (is_number && split->whole.rank() > 0);
    if (split == nullptr && !is_number) require_copies(name, of_ranks);
    if (!alike) require_shards(name, of_ranks, *split);
    std::vector<i64> layouts, columns;
    for (const Taken& t : of_ranks) layouts.push_back(t.layout), columns.push_back(t.column);
    const auto& [column, bases] = joined_column(name, std::move(columns));
    auto [at, is_new] = layouts_.emplace(std::pair(alike ? nullptr : split, layouts), 0);
    if (is_new) at->second = alike ? joined_copies(layouts, bases) : joined_layout(*split, layouts, bases);
    store_.add_tensor(name, at->second, column, any.of_model);
  }

  [[noreturn]] void refuse_unsaid(const std::string& name, std::string found) const {
    auto reason = map_.unsupported.find(name);
    throw Error(Code::kUnsupportedTorchFile,
                "affine_map does not say how the tensor is split among the tensor-parallel ranks")
        .file(folder_.path())
        .tensor(name)
        .found(reason == map_.unsupported.end()
                   ? std::move(found)
                   : cat("by DeepSpeed's own account: ", escaped(reason->second)))
        .help("mckpt reads each file by itself; save a whole model in the training run");
  }

  // Buffers are in no map. They are the same on all ranks, or nothing says what they are.
  void require_copies(const std::string& name, const OfRanks& of_ranks) const {
    if (std::ranges::find(saves_[0].model().buffers, name) == saves_[0].model().buffers.end())
      refuse_unsaid(name, "no entry of it");
    const Taken* first = nullptr;
    for (const Taken& t : of_ranks) {
      if (t.layout < 0) continue;
      if (first == nullptr) first = &t;
      const ZeroPlace &a = store_.places_of(first->column)[0], &b = store_.places_of(t.column)[0];
      const auto dims = store_.layout_dims(first->layout);
      const bool no_items = std::ranges::find(dims, 0) != dims.end();
      const bool alike =
          std::ranges::equal(dims, store_.layout_dims(t.layout)) &&
          (no_items || &t == first || (store_.checksum(a) && store_.checksum(a) == store_.checksum(b)));
      if (!alike) refuse_unsaid(name, "a buffer, with other values on each rank");
    }
  }

  void require_shards(const std::string& name, const OfRanks& of_ranks, const ZeroSplit& split) const {
    for (std::size_t s = 0; s < of_ranks.size(); s++) {
      if (of_ranks[s].layout < 0) continue;
      const Shape& expected = split.shards[saves_[s].model_rank];
      const auto found = store_.layout_dims(of_ranks[s].layout);
      if (!std::ranges::equal(found, expected.dims()))
        throw Error(Code::kBadShards, "the rank's shard has another shape than affine_map says")
            .file(folder_.inside(saves_[s].models[0].path))
            .tensor(name)
            .expected(to_string(expected))
            .found(dims_to_string(found));
    }
  }

  // The places of all ranks one after the other, and where the places of each begin.
  struct Column {
    i64 column = -1;
    std::vector<i64> bases{};
  };
  const Column& joined_column(const std::string& name, std::vector<i64> columns) {
    auto [it, is_new] = columns_.emplace(std::move(columns), Column{});
    if (!is_new) return it->second;
    std::vector<ZeroPlace> places;
    std::optional<DType> dtype;
    for (i64 column : it->first) {
      it->second.bases.push_back(std::ssize(places));
      if (column < 0) continue;
      for (ZeroPlace p : store_.places_of(column)) {
        if (p.is_there()) {
          const DType found = store_.table(p.file).dtype(p.row);
          if (dtype && *dtype != found)
            throw Error(Code::kBadShards, "tensor-parallel ranks have the tensor in two data types")
                .file(folder_.inside(store_.files()[p.file].path))
                .tensor(name)
                .expected(dtype_name(*dtype))
                .found(dtype_name(found));
          dtype = found;
        }
        places.push_back(p);
      }
    }
    it->second.column = store_.add_column(std::move(places));
    return it->second;
  }

  i64 joined_layout(const ZeroSplit& split, const std::vector<i64>& layouts, const std::vector<i64>& bases) {
    std::vector<Box> out;
    for (std::size_t s = 0; s < layouts.size(); s++) {
      if (layouts[s] < 0) continue;
      for (Box& box : store_.boxes_of(layouts[s])) {
        box.part += bases[s];
        for (const ZeroPiece& p : split.pieces)
          if (p.rank == saves_[s].model_rank) cut(box, p, out);
      }
    }
    return store_.add_boxes_layout(split.whole, out);
  }

  i64 joined_copies(const std::vector<i64>& layouts, const std::vector<i64>& bases) {
    std::vector<Box> out;
    i64 of = -1;
    for (std::size_t s = 0; s < layouts.size(); s++) {
      if (layouts[s] < 0) continue;
      for (Box& box : store_.boxes_of(layouts[s])) {
        box.part += bases[s], box.replica |= of >= 0;
        out.push_back(std::move(box));
      }
      of = layouts[s];
    }
    return store_.add_boxes_layout(Shape(store_.layout_dims(of)), out);
  }

  std::span<const ZeroSave> saves_;
  const Folder& folder_;
  ZeroStore& store_;
  const ZeroAffineMap map_;
  std::map<std::string, std::string, std::less<>> first_names_;  // of parameters with several
  std::vector<std::pair<std::string, OfRanks>> parts_;
  std::map<std::string, i64> place_of_;  // in parts_
  std::vector<Taken> rest_;              // tensors of no part of the model
  std::map<std::vector<i64>, Column> columns_;
  std::map<std::pair<const ZeroSplit*, std::vector<i64>>, i64> layouts_;
};

}  // namespace

bool is_tensor_parallel(std::span<const ZeroSave> saves) {
  return !saves[0].other_rank.empty() || saves[0].model_rank > 0 || saves[0].model().model_ranks > 1;
}

void assemble_tensor_parallel(std::span<const ZeroSave> saves, const Folder& folder, ZeroStore& store) {
  TensorParallel(saves, folder, store).run();
}

}  // namespace mckpt::impl

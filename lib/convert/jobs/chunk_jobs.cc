// Parameters and tensors are related in both directions: a fused parameter reads three tensors, and a tensor
// that holds all experts feeds many parameters. A *family* is a set of parameters that are connected in this
// way, and the unit in which tasks look for their sources:
//
//   parameters   linear_qkv      experts.0.fc1   experts.1.fc1      proj
//                  / | \               \            /                 |
//   tensors       q  k  v             gate_up_proj (fused)            o            3 families
#include "convert/jobs/chunk_jobs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "convert/jobs/holding_reader.h"
#include "convert/jobs/readable_chunks.h"
#include "convert/jobs/unrounded_sources.h"
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// Union-find over the parameters of a key table. A family has the number of one of its members. Building it
// costs one step for each (parameter, tensor) pair.
class Families {
 public:
  explicit Families(const KeyTable& keys)
      : parent_(keys.parameters().size()),
        reader_(static_cast<std::size_t>(keys.map().sources().size()), -1) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (i32 p = 0; p < static_cast<i32>(parent_.size()); p++)
      for (i32 tensor : keys.parameters()[p].sources)
        if (tensor >= 0) join(p, tensor);
  }
  i64 count() const { return std::ssize(parent_); }
  i32 of_parameter(i32 p) {
    while (parent_[p] != p) p = parent_[p] = parent_[parent_[p]];
    return p;
  }
  // -1: no parameter reads the tensor, or the model does not have it.
  i32 of_tensor(i32 tensor) {
    return tensor >= std::ssize(reader_) || reader_[tensor] < 0 ? -1 : of_parameter(reader_[tensor]);
  }

 private:
  void join(i32 parameter, i32 tensor) {
    i32& first = reader_[tensor];
    if (first < 0)
      first = parameter;
    else
      parent_[of_parameter(parameter)] = of_parameter(first);
  }

  std::vector<i32> parent_, reader_;
};

template <typename GroupOf>
Grouped grouped_chunks(const ChunkList& chunks, i64 groups, GroupOf group_of) {
  std::vector<i32> group(static_cast<std::size_t>(chunks.size()));
  for (i64 c = 0; c < chunks.size(); c++) group[c] = group_of(c);
  return {group, groups};
}

// The cast itself. Throws kBadCast with the name of the chunk if the cast is not possible.
ItemCast checked(const ItemCast& cast, const ChunkList& to, i64 chunk) {
  try {
    check_cast(cast);
  } catch (Error& e) {
    throw e.default_tensor(to.name(chunk));
  }
  return cast;
}

// The chunks in the order of their files and offsets: tensors that follow each other in a file are written
// one after the other.
std::vector<i32> in_order_of_places(const ChunkList& chunks) {
  std::vector<std::tuple<i32, i64, i32>> placed;
  for (i32 c = 0; c < static_cast<i32>(chunks.size()); c++) {
    ChunkList::Place place = chunks.place(c);
    placed.emplace_back(place.file, place.data_offset, c);
  }
  std::ranges::sort(placed);
  std::vector<i32> order;
  for (auto [file, offset, c] : placed) order.push_back(c);
  return order;
}

std::vector<i32> in_order_of_numbers(const ChunkList& chunks) {
  std::vector<i32> order(static_cast<std::size_t>(chunks.size()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The tasks, without their sources. The chunks of a unit are as many tasks as they have casts; a task is
// where its first chunk is in the order, so that tasks that follow each other write next to each other.
//   unit_of(chunk)    i64: chunks of two units are never in one task
//   group_of(chunk)   ChunkTasks::group, one for the whole of a unit
//   cast_of(chunk)    ItemCast
template <typename UnitOf, typename GroupOf, typename CastOf>
ChunkTasks tasks_of(const ChunkList& to, const std::vector<i32>& order, UnitOf unit_of, GroupOf group_of,
                    CastOf cast_of) {
  ChunkTasks out;
  std::vector<i32> task_of(static_cast<std::size_t>(to.size()), -1);
  std::unordered_map<i64, i32> last;  // task, by unit
  std::vector<i32> before;            // by task: the previous task of its unit
  for (i32 c : order) {
    const ItemCast cast = cast_of(c);
    i32& newest = last.try_emplace(unit_of(c), -1).first->second;
    i32 task = newest;
    while (task >= 0 && out.cast[task] != cast) task = before[task];
    if (task < 0) {
      out.group.push_back(group_of(c)), out.cast.push_back(checked(cast, to, c));
      before.push_back(newest);
      newest = task = static_cast<i32>(std::ssize(before) - 1);
    }
    task_of[c] = task;
  }
  out.targets = Grouped(task_of, std::ssize(out.group));
  return out;
}

// The tensors that the tasks read, as chunks; they become the sources of the tasks. group_of(tensor) is the
// group of all chunks of a tensor; -1: none.
template <typename GroupOf>
std::shared_ptr<const ReadableChunks> read_by(ChunkTasks& tasks, const Store& source,
                                              std::vector<bool> unrounded, i64 groups, GroupOf group_of) {
  std::vector<bool> read(static_cast<std::size_t>(groups));
  for (i32 group : tasks.group) read[group] = true;
  std::vector<std::pair<i32, i32>> wanted;  // each tensor under its own number
  for (i32 t = 0; t < source.tensor_count(); t++)
    if (i32 group = group_of(t); group >= 0 && read[group]) wanted.emplace_back(t, t);
  auto from = std::make_shared<const ReadableChunks>(source, wanted, std::move(unrounded));
  tasks.sources = grouped_chunks(*from, groups, [&](i64 c) { return group_of(from->key(c)); });
  return from;
}

i32 own_number(i32 tensor) { return tensor; }

// The cast of the values of one tensor of a model, from the types of the chunks that read it. Throws
// kUnaccounted if there are none, kBadCast if their types differ.
ItemCast export_cast(const ChunkSide& from, std::span<const i32> sources, const ChunkSide& to, i64 chunk) {
  std::optional<ItemCast> cast;
  for (i32 c : sources) {
    const ModelParameter& p = from.parameter(c);
    if (std::ranges::find(p.sources, to.slot(chunk)) == p.sources.end()) continue;
    DType stored = from.chunks.dtype(c);
    ItemCast mine{stored, stored, to.chunks.dtype(chunk), 0, -p.holding->addend};
    if (!cast) cast = mine;
    if (*cast == mine) continue;
    throw Error(Code::kBadCast, "parts of one tensor are stored with different types")
        .tensor(to.chunks.name(chunk))
        .expected(dtype_name(cast->from))
        .found(dtype_name(stored));
  }
  if (!cast)
    throw Error(Code::kUnaccounted, "no chunk of the checkpoint contains this tensor")
        .tensor(to.chunks.name(chunk));
  return *cast;
}

}  // namespace

ChunkJob::Files files_of(const Store& store) {
  return
      [files = std::make_shared<StoreBytes>(store)](i32 file) -> const ByteSource& { return (*files)[file]; };
}

ChunkJob import_job(const Store& source, const KeyTable& keys, const ChunkList& to) {
  Families families(keys);
  auto family_of = [&](i64 c) { return families.of_parameter(keys[to.key(c)].parameter); };
  const std::vector<bool> unrounded =
      unrounded_families(source, keys, to, families.count(),
                         {[&](i32 tensor) { return families.of_tensor(tensor); },
                          [&](i32 parameter) { return families.of_parameter(parameter); }});
  auto cast_of = [&](i64 c) {
    ItemCast cast = import_cast(keys.parameter(keys[to.key(c)]), to.dtype(c));
    if (!unrounded.empty() && unrounded[family_of(c)]) cast.from = DType::kF32;
    return cast;
  };
  ChunkTasks tasks = tasks_of(to, in_order_of_numbers(to), family_of, family_of, cast_of);
  std::vector<bool> unrounded_tensors(unrounded.empty() ? 0
                                                        : static_cast<std::size_t>(source.tensor_count()));
  for (i32 t = 0; t < std::ssize(unrounded_tensors); t++)
    if (i32 family = families.of_tensor(t); family >= 0) unrounded_tensors[t] = unrounded[family];
  auto from = read_by(tasks, source, std::move(unrounded_tensors), families.count(),
                      [&](i32 tensor) { return families.of_tensor(tensor); });
  return ChunkJob({{*from}, {to, &keys}, std::move(tasks), {}, {}, nullptr, from});
}

ChunkJob export_job(const Store* checkpoint, const KeyTable& keys, const ChunkList& from,
                    const ChunkList& to) {
  Families families(keys);
  auto content = std::make_shared<std::vector<i32>>(static_cast<std::size_t>(keys.map().sources().size()));
  std::iota(content->begin(), content->end(), 0);
  for (const UnreadTensor& u : keys.map().unread())
    if (u.of >= 0) (*content)[u.tensor] = u.of;
  ChunkSide source{from, &keys}, target{to, nullptr, *content};
  Grouped sources = grouped_chunks(from, families.count(),
                                   [&](i64 c) { return families.of_parameter(source.key(c).parameter); });
  auto family_of = [&](i64 c) { return families.of_tensor(target.slot(c)); };
  auto cast_of = [&](i64 c) {
    const i32 family = family_of(c);
    return export_cast(source, family < 0 ? std::span<const i32>() : sources[family], target, c);
  };
  ChunkTasks tasks = tasks_of(to, in_order_of_places(to), std::identity(), family_of, cast_of);
  tasks.sources = std::move(sources);
  return ChunkJob({source,
                   target,
                   std::move(tasks),
                   checkpoint ? files_of(*checkpoint) : ChunkJob::Files(),
                   {},
                   content});
}

ChunkJob reshard_job(const Store& source, const ChunkList& to, const FusedTables* fused,
                     std::vector<CarriedRecord> records) {
  std::vector<bool> unrounded = unrounded_tensors(source, to);
  auto tensor_of = [&](i64 c) { return to.key(c); };
  auto cast_of = [&](i64 c) {
    const DType written = to.dtype(c);
    return ItemCast{read_type(source, to.key(c), unrounded), written, written, 0, 0};
  };
  ChunkTasks tasks = tasks_of(to, in_order_of_numbers(to), tensor_of, tensor_of, cast_of);
  if (fused) tasks.resized = fused->resized;
  auto from = read_by(tasks, source, std::move(unrounded), source.tensor_count(), own_number);
  auto side = [&](const ChunkList& chunks, const KeyTable* keys) {
    return fused ? ChunkSide{chunks, keys, fused->key_of} : ChunkSide{chunks};
  };
  return ChunkJob({side(*from, fused ? &fused->from : nullptr),
                   side(to, fused ? &fused->to : nullptr),
                   std::move(tasks),
                   {},
                   std::move(records),
                   nullptr,
                   from});
}

// The tensors of the result that are made of one tensor share its group of sources.
ChunkJob tensor_job(const Store& source, const ChunkList& to, std::vector<CarriedRecord> records) {
  std::vector<bool> unrounded = unrounded_tensors(source, to);
  auto cast_of = [&](i64 c) {
    const DType stored = read_type(source, to.key(c), unrounded);
    if (dtype_info(stored).bits % 8 != 0)
      throw Error(Code::kUnsupportedTensor, "elements smaller than a byte are not copied")
          .tensor(to.name(c))
          .found(dtype_name(stored));
    return ItemCast{stored, stored, to.dtype(c), 0, 0};
  };
  ChunkTasks tasks = tasks_of(
      to, in_order_of_places(to), [&](i64 c) { return to.tensor(c); }, [&](i64 c) { return to.key(c); },
      cast_of);
  auto from = read_by(tasks, source, std::move(unrounded), source.tensor_count(), own_number);
  return ChunkJob({{*from}, {to}, std::move(tasks), {}, std::move(records), nullptr, from});
}

namespace {

// By parameter of `from`, the same parameter of `to`. They have the same numbers, except where other names
// put a model's parameters into another order (mappings/model/respelling.h): then the same sources of the
// model tell, and of parameters without sources the names.
std::vector<i32> same_parameters(const KeyTable& from, const KeyTable& to) {
  const std::vector<ModelParameter>&a = from.parameters(), &b = to.parameters();
  std::vector<i32> out(a.size());
  std::iota(out.begin(), out.end(), 0);
  if (std::ranges::equal(a, b, {}, &ModelParameter::global_name, &ModelParameter::global_name)) return out;
  using Id = std::tuple<std::vector<i32>, const Row*, i64, std::string_view>;
  auto id = [](const ModelParameter& p) {
    return Id(p.sources, p.row, p.expert_number, p.sources[0] < 0 ? std::string_view(p.global_name) : "");
  };
  std::map<Id, i32> numbers;
  for (std::size_t p = 0; p < b.size(); p++)
    if (!numbers.emplace(id(b[p]), static_cast<i32>(p)).second) return out;
  for (std::size_t p = 0; p < a.size(); p++) {
    auto at = numbers.find(id(a[p]));
    if (at == numbers.end()) continue;
    out[p] = at->second;
  }
  return out;
}

// The groups of a gather_job(), by key of each side: one for each key that both sides store alike, which are
// boxes, and behind them one for each parameter, whose other keys meet at the items of the model's tensors.
// Boxes keep what those have not: rows of padding, and parameters that the model has no tensor for.
struct GatherGroups {
  GatherGroups(const KeyTable& from, const KeyTable& to) {
    const std::vector<i32> same = same_parameters(from, to);
    for (i32 k = 0; k < from.size(); k++)
      from_meaning.push_back(k), from_group.push_back(to.size() + same[from[k].parameter]);
    count = to.size() + static_cast<i32>(std::max(from.parameters().size(), to.parameters().size()));
    resized.resize(static_cast<std::size_t>(count));
    for (i32 k = 0; k < to.size(); k++) {
      const i32 alike = from.find_alike(to[k]);
      to_meaning.push_back(alike < 0 ? k : -1);
      to_group.push_back(alike < 0 ? to.size() + to[k].parameter : k);
      if (alike < 0) continue;
      from_meaning[alike] = -1, from_group[alike] = k;
      resized[k] = from[alike].shape != to[k].shape;
    }
  }

  std::vector<i32> from_meaning, to_meaning;  // ChunkSide::meaning
  std::vector<i32> from_group, to_group;
  i32 count = 0;
  std::vector<bool> resized;
};

}  // namespace

// The parts of a parameter may be stored in different types. The values of a chunk have the type of the
// source's chunks of the same key; if the source has no such key, the type of the parameter's first chunk.
ChunkJob gather_job(const Store& checkpoint, const KeyedChunks& from, const KeyedChunks& to) {
  auto groups = std::make_shared<const GatherGroups>(from.keys, to.keys);
  Grouped sources = grouped_chunks(from.chunks, groups->count,
                                   [&](i64 c) { return groups->from_group[from.chunks.key(c)]; });
  auto group_of = [&](i64 c) { return groups->to_group[to.chunks.key(c)]; };
  auto cast_of = [&](i64 c) {
    const DType written = to.chunks.dtype(c);
    std::span<const i32> parts = sources[group_of(c)];
    const i32 same_key = from.keys.find(to.keys[to.chunks.key(c)].name);
    auto part_of_key = std::ranges::find(parts, same_key, [&](i32 part) { return from.chunks.key(part); });
    const DType read =
        parts.empty() ? written : from.chunks.dtype(part_of_key != parts.end() ? *part_of_key : parts[0]);
    return ItemCast{read, read, written, 0, 0};
  };
  ChunkTasks tasks = tasks_of(to.chunks, in_order_of_numbers(to.chunks), std::identity(), group_of, cast_of);
  tasks.sources = std::move(sources);
  tasks.resized = groups->resized;
  return ChunkJob({{from.chunks, &from.keys, groups->from_meaning},
                   {to.chunks, &to.keys, groups->to_meaning},
                   std::move(tasks),
                   files_of(checkpoint),
                   {},
                   groups});
}

ChunkJob keyed_job(const Store& checkpoint, const GroupedSide& from, const GroupedSide& to,
                   std::vector<bool> resized, i64 groups) {
  const ChunkList& chunks = to.side.chunks;
  Grouped sources(from.group, groups);
  auto group_of = [&](i64 c) { return to.group[c]; };
  auto cast_of = [&](i64 c) {
    std::span<const i32> parts = sources[group_of(c)];
    if (parts.empty())
      throw Error(Code::kUnaccounted, "no chunk of the checkpoint contains this tensor")
          .tensor(chunks.name(c));
    const DType stored = from.side.chunks.dtype(parts[0]);
    return ItemCast{stored, stored, chunks.dtype(c), 0, 0};
  };
  ChunkTasks tasks = tasks_of(chunks, in_order_of_numbers(chunks), group_of, group_of, cast_of);
  tasks.sources = std::move(sources);
  tasks.resized = std::move(resized);
  return ChunkJob({from.side, to.side, std::move(tasks), files_of(checkpoint)});
}

ChunkJob pairs_job(const ChunkList& from, ChunkJob::Files files, const ChunkList& to,
                   std::span<const i32> source_of, std::vector<CarriedRecord> records) {
  auto group_of = [&](i64 c) { return source_of[c]; };
  ChunkTasks tasks = tasks_of(to, in_order_of_numbers(to), group_of, group_of,
                              [&](i64 c) { return no_cast(from.dtype(source_of[c])); });
  tasks.sources = grouped_chunks(from, from.size(), [](i64 c) { return static_cast<i32>(c); });
  return ChunkJob({{from}, {to}, std::move(tasks), std::move(files), std::move(records)});
}

PlacedTensors::PlacedTensors(const ModelMap& map, const TensorPlaces& places) : map_(map), places_(places) {
  for (i32 t = 0; t < static_cast<i32>(places.tensors.size()); t++)
    if (places.tensors[t].file >= 0) tensors_.push_back(t);
}

ChunkList::Box PlacedTensors::box(i64 c) const { return {zero_offsets(dims(c).size()), dims(c)}; }
std::string PlacedTensors::name(i64 c) const { return std::string(map_.sources()[key(c)].name); }

}  // namespace mckpt::impl

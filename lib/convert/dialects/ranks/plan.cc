// One file after the other is planned, in the order of its ranks:
//
//   1  held      for each chunk of the stage, the rank's parameters: key, box, type           threads, by file
//   2  columns   every tensor with its box; a box of a key that an earlier file has is a copy
//   3  layout    the pickle with names, types and shapes, and the place of every tensor in the archive
#include "convert/dialects/ranks/plan.h"

#include <algorithm>
#include <set>

#include "convert/dialects/ranks/table.h"
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/fsdp/rank_folders.h"
#include "io/file/parallel.h"
#include "io/output/output_files.h"
#include "io/pickle/write/writer.h"
#include "io/store/tensor_spec.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kFile = "model_optim_rng.pt", kArchive = "model_optim_rng";

}  // namespace

// The part of a parameter that one rank holds.
struct RankPlan::Held {
  i32 key;
  i32 section;
  std::string name;
  std::vector<i64> offsets, sizes;
  DType dtype;
};

// Used once. The run and the plan outlive it.
class RankPlan::Builder {
 public:
  Builder(RankPlan& plan, const RankRun& run, const Adjust& adjust)
      : plan_(plan),
        keys_(plan.keys_),
        run_(run),
        adjust_(adjust),
        table_(keys_.map(), run.run, run.grid,
               pipeline_split(std::ssize(keys_.map().model().text.layers), run.grid.pp, run.pipeline)) {
    for (i64 chunk = 0; chunk < table_.chunks(); chunk++)
      plan_.sections_.push_back(model_section(chunk, table_.chunks()));
  }

  void build(const WriteFront& front) {
    const std::vector<Cell> cells = cells_of_folders(run_.grid);
    std::vector<std::vector<Held>> held(cells.size());
    parallel_for(std::ssize(cells), run_.threads, [&](int, i64 i) { held[i] = held_by(cells[i]); });
    for (std::size_t i = 0; i < cells.size(); i++) {
      add_file(cells[i], held[i], front);
      held[i] = {};
    }
  }

 private:
  std::vector<Held> held_by(const Cell& cell) const {
    std::vector<Held> out;
    for (i64 chunk = 0; chunk < table_.chunks(); chunk++) {
      std::vector<ModelParameter> parameters = table_.parameters(cell, chunk);
      adjust_(parameters);
      for (i32 p = 0; p < static_cast<i32>(parameters.size()); p++)
        out.push_back(held_of(parameters, p, static_cast<i32>(chunk)));
    }
    return out;
  }

  Held held_of(const std::vector<ModelParameter>& parameters, i32 index, i32 chunk) const {
    const ModelParameter& p = parameters[index];
    const i32 key = keys_.at(p.global_name);
    std::string name = name_in_file(p, run_.run.spelling);
    const DType dtype = run_.of(p, name);
    FsdpTensor box = std::move(rank_rows(parameters, index, keys_.map().model())[0].box);
    return {key, chunk, std::move(name), std::move(box.offsets), std::move(box.sizes), dtype};
  }

  void add_file(const Cell& cell, std::vector<Held>& held, const WriteFront& front) {
    std::vector<TensorSpec> specs;
    for (Held& h : held) {
      add_column(h, static_cast<i32>(specs.size()));
      specs.push_back({h.name, h.dtype, h.sizes});
    }
    PickleWriter p;
    p.op(Op::kEmptyDict);
    p.op(Op::kMark);
    front(p, rank_of_folder(run_.grid, cell));
    auto begin = held.begin();
    for (std::size_t s = 0; s < plan_.sections_.size(); s++) {
      auto end = std::ranges::upper_bound(begin, held.end(), static_cast<i32>(s), {}, &Held::section);
      i64 first = begin - held.begin();
      p.text(plan_.sections_[s]);
      write_tensors(p, std::span(specs).subspan(static_cast<std::size_t>(first), end - begin), first, true);
      begin = end;
    }
    p.op(Op::kSetitems);
    plan_.files_.push_back({rank_folder(run_.grid, cell), TorchLayout(kArchive, specs, p.finish())});
  }

  void add_column(const Held& h, i32 at) {
    i64 box = std::ssize(plan_.numbers_);
    for (const std::vector<i64>* part : {&h.offsets, &h.sizes})
      plan_.numbers_.insert(plan_.numbers_.end(), part->begin(), part->end());
    bool copy = !boxes_.emplace(h.key, h.offsets).second;
    auto [name, fresh] = names_.try_emplace(h.name, static_cast<i32>(plan_.parameters_.size()));
    if (fresh) plan_.parameters_.push_back(h.name);
    plan_.chunks_.push_back(
        {h.key, static_cast<i32>(plan_.files_.size()), at, h.section, name->second, box, h.dtype, copy});
  }

  RankPlan& plan_;
  const KeyTable& keys_;
  const RankRun& run_;
  const Adjust& adjust_;
  const RankTable table_;
  std::set<std::pair<i32, std::vector<i64>>> boxes_;  // of all files so far
  NameMap<std::string, i32> names_;
};

RankPlan::RankPlan(const KeyTable& keys, const RankRun& run, const Adjust& adjust, const WriteFront& front)
    : keys_(keys) {
  Builder(*this, run, adjust).build(front);
}

ChunkList::Box RankPlan::box(i64 c) const {
  std::size_t rank = dims(c).size();
  std::span<const i64> numbers =
      std::span(numbers_).subspan(static_cast<std::size_t>(chunks_[c].box), 2 * rank);
  return {numbers.first(rank), numbers.last(rank)};
}

std::span<const i64> RankPlan::dims(i64 c) const { return keys_[chunks_[c].key].shape.dims(); }

ChunkList::Place RankPlan::place(i64 c) const {
  const Column& chunk = chunks_[c];
  return {chunk.file, files_[chunk.file].layout.data_offset(chunk.at), chunk.dtype};
}

std::string RankPlan::name(i64 c) const {
  const Column& chunk = chunks_[c];
  return cat(files_[chunk.file].folder, "/", sections_[chunk.section], ".", parameters_[chunk.name]);
}

std::vector<OutputFile> RankPlan::files() const {
  std::vector<OutputFile> out;
  for (const File& f : files_) out.push_back({cat(f.folder, "/", kFile), f.layout.file_bytes()});
  return out;
}

}  // namespace mckpt::impl

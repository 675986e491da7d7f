// The files are joined in three steps:
//
//   1  grid       from args, or else from the names of the folders; every folder is that of one cell
//   2  layers     counted in the files of every stage and chunk, so that any division of the layers is read
//   3  pieces     for each file and chunk, what the table gives that cell is searched under its name at run time
//
// The boxes are those that Megatron-FSDP saves of such a parameter without sharding it (mappings/fsdp/layout).
#include "convert/views/rank_pieces.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "convert/objects/run_objects.h"
#include "convert/views/piece_store.h"
#include "convert/views/rank_copies.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/fsdp/rank_folders.h"
#include "io/dcp/run/facts.h"
#include "io/pickle/copy.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostNamed = 20;

using Names = NameMap<std::string_view, i64>;  // tensors of the source

// One rank's file: its tensors of the model, chunk by chunk.
struct RankFile {
  std::string folder;
  std::vector<Names> chunks;
  Cell cell{};
};

// The number of "model0", 0 of "model"; nothing for another word.
std::optional<std::size_t> chunk_of(std::string_view section) {
  constexpr std::string_view kModel = "model";
  if (!section.starts_with(kModel)) return std::nullopt;
  section.remove_prefix(kModel.size());
  std::size_t number = 0;
  auto [end, error] = std::from_chars(section.data(), section.data() + section.size(), number);
  bool whole = section.empty() || (error == std::errc() && end == section.data() + section.size());
  return whole && number < 1024 ? std::optional(number) : std::nullopt;
}

// Used once: run() makes the view.
class Joining {
 public:
  Joining(std::unique_ptr<Store> store, const ModelMap& map, RunSetup& setup, const RunFacts& run,
          bool read_copies)
      : out_{std::make_unique<PieceStore>(std::move(store)), {}, {}},
        source_(out_.store->source()),
        map_(map),
        setup_(setup),
        run_(run),
        read_copies_(read_copies),
        used_(static_cast<std::size_t>(source_.tensor_count())) {}

  RankPieces run() {
    sort_names();
    find_grid();
    find_cells();
    find_setup();
    std::vector<i64> layers = count_layers();
    const PipelineSplit split(out_.grid.pp, layers);
    refuse_other_layers(split);
    for (const RankFile& file : files_)
      for (i64 chunk = 0; chunk < split.chunks(); chunk++) add_chunk(file, chunk, split);
    refuse_missing();
    refuse_rest();
    for (std::string& key : order_) {
      Joined& joined = joined_.at(key);
      out_.store->add(key, std::move(joined.dims), std::move(joined.pieces));
    }
    refuse_unlike_copies(source_, copies_, read_copies_);
    make_objects();
    return std::move(out_);
  }

 private:
  // A tensor of the view, so far.
  struct Joined {
    std::vector<i64> dims;
    std::vector<StorePiece> pieces;
    std::map<std::vector<i64>, i64> first;  // by the place of the box, the tensor that has it first
  };

  void sort_names();
  void find_grid();
  void find_cells();
  void find_setup();
  std::vector<i64> count_layers() const;
  void refuse_other_layers(const PipelineSplit& split) const;
  void add_chunk(const RankFile& file, i64 chunk, const PipelineSplit& split);
  void add(i64 tensor, const std::vector<ModelParameter>& parameters, i32 index);
  void refuse_missing() const;
  void refuse_rest() const;
  void make_objects();

  RankPieces out_;
  const Store& source_;
  const ModelMap& map_;
  RunSetup& setup_;
  const RunFacts& run_;
  const bool read_copies_;
  std::vector<RankFile> files_;
  std::vector<bool> used_;                // by tensor of the source
  std::map<i32, std::string> by_source_;  // the parameter of a single rank that has this tensor first
  NameSet<std::string> single_;           // the parameters of a single rank
  NameMap<std::string, Joined> joined_;
  std::vector<std::string> order_;           // their keys
  std::vector<std::pair<i64, i64>> copies_;  // a tensor of the source, and one that has the same
  std::vector<std::string> missing_;
};

// "mp_rank_01/model0.decoder..." is a tensor of chunk 0 of that folder's file.
void Joining::sort_names() {
  std::map<std::string_view, std::size_t> file_of;
  for (i64 t = 0; t < source_.tensor_count(); t++) {
    std::string_view name = source_.name(t), folder = name.substr(0, name.find('/'));
    auto [at, fresh] = file_of.try_emplace(folder, files_.size());
    if (fresh) files_.push_back({std::string(folder), {}});
    std::string_view inside = name.substr(folder.size() + 1);
    std::string_view section = inside.substr(0, inside.find('.'));
    if (section == "optimizer" || inside.find(".pt:") != inside.npos) out_.states.emplace_back(name);
    std::optional<std::size_t> chunk = chunk_of(section);
    if (!chunk || section.size() == inside.size()) continue;
    std::vector<Names>& chunks = files_[at->second].chunks;
    if (chunks.size() <= *chunk) chunks.resize(*chunk + 1);
    chunks[*chunk].emplace(inside.substr(section.size() + 1), t);
  }
  std::erase_if(files_, [](const RankFile& f) { return f.chunks.empty(); });
  if (files_.empty())
    throw Error(Code::kUnaccounted, "the files of the ranks have no tensor of a model").file(source_.root());
}

// Without args the numbers in the folders' names are sizes, if it is known which: a second number is that of a stage or
// of experts.
void Joining::find_grid() {
  Grid& grid = out_.grid;
  if (run_.pipeline_stages && run_.tensor_ranks) {
    grid.tp = *run_.tensor_ranks, grid.pp = *run_.pipeline_stages, grid.ep = run_.expert_ranks.value_or(1);
  } else {
    std::vector<i64> sizes;
    for (const RankFile& f : files_) {
      std::vector<i64> numbers = rank_folder_numbers(f.folder);
      sizes.resize(std::max(sizes.size(), numbers.size()), 1);
      for (std::size_t d = 0; d < numbers.size(); d++) sizes[d] = std::max(sizes[d], numbers[d] + 1);
    }
    const bool experts = map_.model().moe.experts > 0;
    if (sizes.size() == 2 && experts)
      throw Error(
          Code::kUnknownPartition,
          "the files have no args, so the second number of the folders may be a pipeline stage or experts")
          .file(source_.root())
          .found(files_[0].folder);
    grid.tp = run_.tensor_ranks.value_or(sizes[0]);
    if (sizes.size() > 1) grid.pp = sizes[1];
    if (sizes.size() > 2) grid.ep = sizes[2];
  }
  // Without the argument, the experts of a rank are divided as its other parameters are.
  grid.etp = run_.expert_tensor_ranks.value_or(grid.tp);
  for (i64 size : {grid.tp, grid.pp, grid.ep, grid.etp})
    if (size < 1)
      throw Error(Code::kContradiction, "the args give a grid that no run has")
          .file(source_.root())
          .found(to_string(grid));
}

void Joining::find_cells() {
  std::map<std::string, RankFile*, std::less<>> there;
  for (RankFile& f : files_) there.emplace(f.folder, &f);
  std::vector<std::string> missing;
  const std::vector<Cell> cells = with_file(source_.root(), [&] { return cells_of_folders(out_.grid); });
  for (const Cell& cell : cells) {
    auto at = there.find(rank_folder(out_.grid, cell));
    if (at == there.end()) {
      missing.push_back(rank_folder(out_.grid, cell));
      continue;
    }
    at->second->cell = cell;
    there.erase(at);
  }
  if (!missing.empty())
    throw Error(Code::kShardMissing, "files of ranks are missing")
        .file(cat(source_.root(), "/", missing[0]))
        .expected(cat(counted(std::ssize(cells), "folder"), ", for ", to_string(out_.grid)))
        .found(cat(std::ssize(cells) - std::ssize(missing)))
        .note(cat("missing: ", listed(missing)));
  if (!there.empty())
    throw Error(Code::kContradiction, "the folder is that of no rank of the run, by its args")
        .file(cat(source_.root(), "/", there.begin()->first))
        .expected(cat(counted(std::ssize(cells), "folder"), ", for ", to_string(out_.grid)))
        .found(counted(std::ssize(files_), "folder"));
}

// The names of parameters that have several, and the rows of the vocabulary.
void Joining::find_setup() {
  NameSet<std::string> names;
  for (const RankFile& f : files_)
    for (const Names& chunk : f.chunks)
      for (const auto& [name, t] : chunk) names.emplace(name);
  setup_.spelling =
      stored_spelling(map_, setup_, [&](const std::string& name) { return names.contains(name); });
  std::vector<ModelParameter> whole = map_.parameters(Grid{}, Cell{}, setup_);
  for (const ModelParameter& p : whole) {
    single_.emplace(p.global_name);
    if (p.sources[0] >= 0) by_source_.emplace(p.sources[0], p.global_name);
    if (p.row->rule != "vocab" || setup_.vocab_rows > 0) continue;
    for (const RankFile& f : files_)
      for (const Names& chunk : f.chunks)
        if (auto at = chunk.find(p.global_name); at != chunk.end() && !source_.dims(at->second).empty()) {
          i64 rows = checked_mul(source_.dims(at->second)[0], out_.grid.tp, "the rows of the vocabulary");
          if (rows >= map_.model().vocab) setup_.vocab_rows = rows;
        }
  }
}

// Chunk by chunk, in each of them stage by stage. The files of a stage agree, or some of them lack parameters.
std::vector<i64> Joining::count_layers() const {
  std::size_t chunks = 0;
  for (const RankFile& f : files_) chunks = std::max(chunks, f.chunks.size());
  if (std::optional<i64> said = run_.pipeline_chunks; said && *said > 0 && static_cast<i64>(chunks) != *said)
    throw Error(Code::kContradiction, "the files have another number of chunks of layers than their args say")
        .file(source_.root())
        .expected(cat("virtual_pipeline_model_parallel_size ", *said))
        .found(chunks);
  std::vector<std::string_view> fronts;
  for (const Section& s : map_.family().sections)
    if (s.scope == Scope::kLayers && s.tower == Tower::kText)
      fronts.push_back(s.megatron.substr(0, s.megatron.find("{L}")));
  std::vector<i64> layers(chunks * static_cast<std::size_t>(out_.grid.pp));
  for (const RankFile& f : files_)
    for (std::size_t c = 0; c < f.chunks.size(); c++)
      for (const auto& [name, t] : f.chunks[c])
        for (std::string_view front : fronts) {
          i64 layer = 0;
          const char *begin = name.data() + front.size(), *end = name.data() + name.size();
          if (!name.starts_with(front) || std::from_chars(begin, end, layer).ec != std::errc()) continue;
          i64& most =
              layers[c * static_cast<std::size_t>(out_.grid.pp) + static_cast<std::size_t>(f.cell.pp)];
          most = std::max(most, layer + 1);
        }
  return layers;
}

void Joining::refuse_other_layers(const PipelineSplit& split) const {
  const i64 layers = std::ssize(map_.model().text.layers);
  if (split.layers() == layers) return;
  throw Error(Code::kContradiction, "the stages have other layers than the model")
      .file(source_.root())
      .expected(cat(layers, " layers, by config.json"))
      .found(cat(split.layers(), " on ", counted(split.stages(), "stage")))
      .help("`assets` names the folder of the model that the checkpoint is of");
}

void Joining::add_chunk(const RankFile& file, i64 chunk, const PipelineSplit& split) {
  static const Names kNone;
  const Names& names = static_cast<std::size_t>(chunk) < file.chunks.size()
                           ? file.chunks[static_cast<std::size_t>(chunk)]
                           : kNone;
  std::vector<ModelParameter> parameters =
      map_.parameters(out_.grid, file.cell, setup_, split.part(file.cell.pp, chunk));
  for (i32 i = 0; i < static_cast<i32>(parameters.size()); i++) {
    ModelParameter& p = parameters[i];
    auto at = names.find(p.name);
    if (at == names.end()) {
      missing_.push_back(cat(file.folder, ": ", p.name));
      continue;
    }
    const i64 tensor = at->second;
    used_[tensor] = true;
    if (!std::ranges::equal(source_.dims(tensor), p.shape().dims()))
      throw Error(Code::kSourceShape,
                  "a rank's part of a parameter does not have the shape that the grid gives it")
          .file(cat(source_.root(), "/", file.folder))
          .tensor(p.name)
          .expected(cat(to_string(p.shape()), ", for ", to_string(out_.grid)))
          .found(dims_to_string(source_.dims(tensor)));
    // The last of several stages has the embedding of a tied model once more.
    if (!single_.contains(p.global_name))
      if (auto first = by_source_.find(p.sources[0]); first != by_source_.end())
        p.global_name = first->second;
    add(tensor, parameters, i);
  }
}

void Joining::add(i64 tensor, const std::vector<ModelParameter>& parameters, i32 index) {
  const ModelParameter& p = parameters[index];
  const bool whole = p.split == KeySplit::kNone;
  for (const Piece& piece : stored_pieces(p, map_.model())) {
    FsdpTensor box = fsdp_tensor(parameters, index, piece, {0, piece.rows});
    auto [at, fresh] = joined_.try_emplace(box.key);
    if (fresh) order_.push_back(box.key);
    Joined& joined = at->second;
    if (fresh) joined.dims.assign(box.global.dims().begin(), box.global.dims().end());
    auto [first, original] = joined.first.try_emplace(box.offsets, tensor);
    if (!original && (copies_.empty() || copies_.back().second != tensor))
      copies_.emplace_back(first->second, tensor);
    StorePiece part{.tensor = tensor, .to = std::move(box.offsets), .replica = !original};
    if (!whole) part.first_row = piece.first_row, part.rows = piece.rows;
    joined.pieces.push_back(std::move(part));
  }
}

void Joining::refuse_missing() const {
  if (missing_.empty()) return;
  throw Error(Code::kUnaccounted, cat("the files of the ranks lack ",
                                      counted(std::ssize(missing_), "parameter"), " of the model"))
      .file(source_.root())
      .each_note(missing_)
      .note(cat("the grid is ", to_string(out_.grid)));
}

// Tensors of the model that no parameter is. What Transformer Engine keeps for itself has no place in any other format.
void Joining::refuse_rest() const {
  std::vector<std::string> rest;
  for (const RankFile& f : files_)
    for (const Names& chunk : f.chunks)
      for (const auto& [name, t] : chunk)
        if (!used_[t] && !name.ends_with("_extra_state")) rest.push_back(cat(f.folder, ": ", escaped(name)));
  if (rest.empty()) return;
  std::ranges::sort(rest);
  const i64 count = std::ssize(rest);
  rest.resize(std::min(rest.size(), kMostNamed));
  throw Error(Code::kUnaccounted,
              cat("the files of the ranks have ", counted(count, "tensor"), " that the model does not have"))
      .file(source_.root())
      .each_note(rest);
}

// Objects of the first rank for which a checkpoint of another format has a place. One that cannot be copied is left out.
void Joining::make_objects() {
  const std::string front = cat(files_[0].folder, "/");
  for (std::size_t i = 0; i < source_.objects().size(); i++) {
    std::string_view name = source_.objects()[i].name;
    if (!name.starts_with(front)) continue;
    std::shared_ptr<const PickleValue> value = source_.object(static_cast<i64>(i));
    if (!value) continue;
    take_run_object(name.substr(front.size()), *value, [&](std::string made, PickleValue part) {
      try {
        out_.store->make_object(std::move(made), copy_pickle(part));
      } catch (const Error&) {
      }
    });
  }
}

}  // namespace

RankPieces rank_pieces(std::unique_ptr<Store> store, const ModelMap& map, RunSetup& setup,
                       const RunFacts& run, bool read_copies) {
  return Joining(std::move(store), map, setup, run, read_copies).run();
}

}  // namespace mckpt::impl

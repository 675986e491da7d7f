// A second number in a folder's name is that of a stage or of experts, so names alone say the grid only where
// the model has no experts, or both numbers are there.
#include "convert/views/rank_files.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/rank_folders.h"
#include "io/dcp/run/facts.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

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

// "mp_rank_01/model0.decoder..." is a tensor of chunk 0 of that folder's file.
std::vector<RankFile> sorted_names(const Store& store) {
  constexpr std::string_view kOptimizer = "optimizer";
  std::vector<RankFile> files;
  std::map<std::string_view, std::size_t> file_of;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    std::string_view name = store.name(t), folder = name.substr(0, name.find('/'));
    auto [at, fresh] = file_of.try_emplace(folder, files.size());
    if (fresh) files.push_back({std::string(folder)});
    RankFile& file = files[at->second];
    std::string_view inside = name.substr(folder.size() + 1);
    std::string_view section = inside.substr(0, inside.find('.'));
    std::optional<std::size_t> chunk = chunk_of(section);
    if (inside.find(".pt:") != inside.npos) {
      file.apart.push_back(t);
    } else if (section == kOptimizer) {
      file.states.push_back(t);
    } else if (chunk && section.size() < inside.size()) {
      if (file.chunks.size() <= *chunk) file.chunks.resize(*chunk + 1);
      file.chunks[*chunk].emplace(inside.substr(section.size() + 1), t);
    }
  }
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    std::string_view name = store.objects()[o].name, folder = name.substr(0, name.find('/'));
    std::string_view inside = name.substr(std::min(name.size(), folder.size() + 1));
    // A chunk without layers, of a stage between the first and the last, is an empty dictionary: no tensor
    // names it.
    if (std::optional<std::size_t> chunk = chunk_of(inside)) {
      auto [at, fresh] = file_of.try_emplace(folder, files.size());
      if (fresh) files.push_back({std::string(folder)});
      std::vector<RankFile::Names>& chunks = files[at->second].chunks;
      chunks.resize(std::max(chunks.size(), *chunk + 1));
    }
    auto at = file_of.find(folder);
    if (at != file_of.end() && inside.starts_with(kOptimizer)) files[at->second].groups.push_back(o);
  }
  std::erase_if(files, [](const RankFile& f) { return f.chunks.empty(); });
  if (files.empty())
    throw Error(Code::kUnaccounted, "Megatron's rank files have no tensor of a model").file(store.root());
  return files;
}

Grid grid_of(const Store& store, const std::vector<RankFile>& files, const RunFacts& run, bool experts) {
  Grid grid;
  if (run.pipeline_stages && run.tensor_ranks) {
    grid.tp = *run.tensor_ranks, grid.pp = *run.pipeline_stages, grid.ep = run.expert_ranks.value_or(1);
  } else {
    std::vector<i64> sizes;
    for (const RankFile& f : files) {
      std::vector<i64> numbers = rank_folder_numbers(f.folder);
      sizes.resize(std::max(sizes.size(), numbers.size()), 1);
      for (std::size_t d = 0; d < numbers.size(); d++) sizes[d] = std::max(sizes[d], numbers[d] + 1);
    }
    if (sizes.size() == 2 && experts)
      throw Error(
          Code::kUnknownPartition,
          "the files have no args, so the second number of the folders may be a pipeline stage or experts")
          .file(store.root())
          .found(files[0].folder);
    grid.tp = run.tensor_ranks.value_or(sizes[0]);
    if (sizes.size() > 1) grid.pp = sizes[1];
    if (sizes.size() > 2) grid.ep = sizes[2];
  }
  // Without the argument, the experts of a rank are divided as its other parameters are.
  grid.etp = run.expert_tensor_ranks.value_or(grid.tp);
  for (i64 size : {grid.tp, grid.pp, grid.ep, grid.etp})
    if (size < 1)
      throw Error(Code::kContradiction, "the args give a grid that no run has")
          .file(store.root())
          .found(to_string(grid));
  return grid;
}

void find_cells(const Store& store, RankFiles& ranks) {
  std::map<std::string_view, RankFile*> there;
  for (RankFile& f : ranks.files) there.emplace(f.folder, &f);
  std::vector<std::string> missing;
  const std::vector<Cell> cells = with_file(store.root(), [&] { return cells_of_folders(ranks.grid); });
  for (const Cell& cell : cells) {
    std::string folder = rank_folder(ranks.grid, cell);
    auto at = there.find(folder);
    if (at == there.end()) {
      missing.push_back(std::move(folder));
      continue;
    }
    at->second->cell = cell;
    there.erase(at);
  }
  if (!missing.empty())
    throw Error(Code::kShardMissing, "some of Megatron's rank files are missing")
        .file(cat(store.root(), "/", missing[0]))
        .expected(cat(counted(std::ssize(cells), "folder"), ", for ", to_string(ranks.grid)))
        .found(cat(std::ssize(cells) - std::ssize(missing)))
        .note(cat("missing: ", listed(missing)));
  if (!there.empty())
    throw Error(Code::kContradiction, "the folder is that of no rank of the run, by its args")
        .file(cat(store.root(), "/", there.begin()->first))
        .expected(cat(counted(std::ssize(cells), "folder"), ", for ", to_string(ranks.grid)))
        .found(counted(std::ssize(ranks.files), "folder"));
}

// What is in front of the number of a layer of the language model. What belongs to a layer and is registered
// outside of the decoder has the numbers of the whole model in every file.
std::vector<std::string_view> layer_fronts(const ModelMap& map) {
  std::vector<std::string_view> out;
  for (const Section& s : map.family().sections)
    if (s.scope == Scope::kLayers && s.tower == Tower::kText && s.own_layers)
      out.push_back(s.megatron.substr(0, s.megatron.find("{L}")));
  return out;
}

// The number of the layer behind the front, and what follows it.
std::optional<std::pair<i64, std::string_view>> layer_of(std::string_view name, std::string_view front) {
  i64 layer = 0;
  if (!name.starts_with(front)) return std::nullopt;
  const char* end = name.data() + name.size();
  auto [rest, error] = std::from_chars(name.data() + front.size(), end, layer);
  if (error != std::errc()) return std::nullopt;
  return std::pair(layer, std::string_view(rest, static_cast<std::size_t>(end - rest)));
}

}  // namespace

RankFiles rank_files(const Store& store, const ModelMap& map, const RunFacts& run) {
  RankFiles out{sorted_names(store), {}};
  out.grid = grid_of(store, out.files, run, map.model().moe.experts > 0);
  find_cells(store, out);
  return out;
}

std::vector<i64> layers_of_chunks(const Store& store, const RankFiles& ranks, const ModelMap& map,
                                  const RunFacts& run) {
  std::size_t chunks = 0;
  for (const RankFile& f : ranks.files) chunks = std::max(chunks, f.chunks.size());
  if (std::optional<i64> said = run.pipeline_chunks; said && *said > 0 && static_cast<i64>(chunks) != *said)
    throw Error(Code::kContradiction, "the files have another number of chunks of layers than their args say")
        .file(store.root())
        .expected(cat("virtual_pipeline_model_parallel_size ", *said))
        .found(chunks);
  const std::vector<std::string_view> fronts = layer_fronts(map);
  std::vector<i64> layers(chunks * static_cast<std::size_t>(ranks.grid.pp));
  for (const RankFile& f : ranks.files)
    for (std::size_t c = 0; c < f.chunks.size(); c++)
      for (const auto& [name, t] : f.chunks[c])
        for (std::string_view front : fronts)
          if (auto layer = layer_of(name, front)) {
            i64& most =
                layers[c * static_cast<std::size_t>(ranks.grid.pp) + static_cast<std::size_t>(f.cell.pp)];
            most = std::max(most, layer->first + 1);
          }
  return layers;
}

std::string name_in_model(std::string_view name, const ModelMap& map, i64 first_layer) {
  for (std::string_view front : layer_fronts(map))
    if (auto layer = layer_of(name, front)) return cat(front, first_layer + layer->first, layer->second);
  return std::string(name);
}

}  // namespace mckpt::impl

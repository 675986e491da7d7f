// If a folder's name has two numbers, the second number may count pipeline stages or ranks of experts. So
// names alone say the grid only where the model has no experts, or the names have all three numbers.
#include "convert/dialects/ranks/files.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "convert/dialects/ranks/table.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/rank_folders.h"
#include "io/dcp/run/sizes.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {
namespace {

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
    std::optional<std::size_t> chunk = chunk_of_section(section);
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
    if (std::optional<std::size_t> chunk = chunk_of_section(inside)) {
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

Grid grid_of(const Store& store, const std::vector<RankFile>& files, const RunSizes& run, bool experts) {
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

// The texts that names of the language model's parameters have in front of the number of a layer. The list
// leaves out parameters of a layer that are registered outside of the decoder: these have the numbers of the
// whole model in every file.
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

// A part of the model that one chunk has, by the names of its tensors.
struct EndPart {
  std::string_view what;
  bool ChunkContents::*has;
  std::vector<std::string> names{}, fronts{};  // whole names; how names begin

  bool is_of(std::string_view name) const {
    return std::ranges::find(names, name) != names.end() ||
           std::ranges::any_of(fronts, [&](const std::string& front) { return name.starts_with(front); });
  }
};

std::vector<EndPart> end_parts(const ModelMap& map) {
  EndPart norm{"the final norm", &ChunkContents::final_norm}, mtp{"MTP", &ChunkContents::mtp},
      output{"the output layer", &ChunkContents::output};
  for (const Section& s : map.family().sections) {
    if (s.stage == Stage::kMtp) mtp.fronts.emplace_back(s.megatron.substr(0, s.megatron.find('{')));
    if (s.stage != Stage::kFinalNorm && s.stage != Stage::kOutput && s.stage != Stage::kTiedOutput) continue;
    EndPart& part = s.stage == Stage::kFinalNorm ? norm : output;
    for (const Row& row : s.rows) part.names.push_back(cat(s.megatron, row.megatron));
  }
  return {norm, mtp, output};
}

// One number of a folder is not enough: a stage may have several chunks.
std::string chunk_name(std::size_t at, std::size_t stages, bool several) {
  return cat("stage ", at % stages, several ? cat(", model", at / stages) : "");
}

// Which chunk has the part. The last one does if no file has it.
void settle(const Store& store, const EndPart& part, i64 stages, std::vector<ChunkContents>& chunks) {
  std::vector<std::string> having;
  const std::size_t stage_count = static_cast<std::size_t>(stages);
  for (std::size_t at = 0; at < chunks.size(); at++)
    if (chunks[at].*part.has) having.push_back(chunk_name(at, stage_count, chunks.size() > stage_count));
  if (having.size() > 1)
    throw Error(Code::kBadShards, cat("several stages have ", part.what, ", and a run has it on one"))
        .file(store.root())
        .found(listed(having))
        .help("files of several saves may be in the folder; copy it again");
  if (having.empty()) chunks.back().*part.has = true;
}

// Names of modules that no table has, by a part that only they have, and what they are.
struct OtherModules {
  std::string_view part, what;
};
constexpr OtherModules kOtherModules[] = {
    {".mlp.experts.weight1",
     "these experts are those of Megatron's own grouped module (moe_use_legacy_grouped_gemm), which has all experts of a layer in one transposed tensor; load the checkpoint with Megatron and save it as torch_dist"},
    {"language_model.",
     "these names are of Megatron's models before Megatron-Core (use_legacy_models); Megatron's tools/checkpoint/convert.py makes names of Megatron-Core of them"},
    {"_quantizer.", "quantizers of ModelOpt are no parameters of the model; save the model without them"},
    {".adapter.", "adapters are no parameters of the model; merge them before the checkpoint is saved"},
};

}  // namespace

RankFiles rank_files(const Store& store, const ModelMap& map, const RunSizes& run) {
  RankFiles out{sorted_names(store), {}};
  out.grid = grid_of(store, out.files, run, map.model().moe.experts > 0);
  find_cells(store, out);
  return out;
}

std::vector<ChunkContents> contents_of_chunks(const Store& store, const RankFiles& ranks, const ModelMap& map,
                                              const RunSizes& run) {
  std::size_t chunks = 0;
  for (const RankFile& f : ranks.files) chunks = std::max(chunks, f.chunks.size());
  if (std::optional<i64> said = run.pipeline_chunks; said && *said > 0 && static_cast<i64>(chunks) != *said)
    throw Error(Code::kContradiction, "the files have another number of chunks of layers than their args say")
        .file(store.root())
        .expected(cat("virtual_pipeline_model_parallel_size ", *said))
        .found(chunks);
  const std::vector<std::string_view> fronts = layer_fronts(map);
  const std::vector<EndPart> parts = end_parts(map);
  std::vector<ChunkContents> out(chunks * static_cast<std::size_t>(ranks.grid.pp));
  for (const RankFile& f : ranks.files)
    for (std::size_t c = 0; c < f.chunks.size(); c++) {
      ChunkContents& chunk =
          out[c * static_cast<std::size_t>(ranks.grid.pp) + static_cast<std::size_t>(f.cell.pp)];
      for (const auto& [name, t] : f.chunks[c]) {
        for (std::string_view front : fronts)
          if (auto layer = layer_of(name, front)) chunk.layers = std::max(chunk.layers, layer->first + 1);
        for (const EndPart& part : parts) chunk.*part.has |= part.is_of(name);
      }
    }
  for (const EndPart& part : parts) settle(store, part, ranks.grid.pp, out);
  return out;
}

std::string name_in_model(std::string_view name, const ModelMap& map, i64 first_layer) {
  for (std::string_view front : layer_fronts(map))
    if (auto layer = layer_of(name, front)) return cat(front, first_layer + layer->first, layer->second);
  return std::string(name);
}

std::string what_modules_are(const std::vector<std::string>& names) {
  for (const OtherModules& other : kOtherModules)
    for (const std::string& name : names)
      if (name.find(other.part) != name.npos) return std::string(other.what);
  return "";
}

}  // namespace mckpt::impl

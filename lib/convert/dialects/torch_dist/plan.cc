// The plan is made in two steps: each rank that writes anything lists its parameters (several threads), then
// the boxes of all ranks are laid out rank by rank. A rank whose data-parallel place is not the first writes
// nothing, so that of 1,024 ranks only some tens are listed.
//
// `_extra_state`: Megatron's linear layers and norms each save an object of this name, which has the scales
// of FP8 training and is empty otherwise. A run does not load a checkpoint without them, so they are written,
// as None.
#include "convert/dialects/torch_dist/plan.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "convert/dialects/torch_dist/grouped_places.h"
#include "convert/dialects/torch_dist/table.h"
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/dcp/keys/key.h"
#include "io/file/parallel.h"
#include "io/pickle/write/writer.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/needs.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace {

// Whether the rank writes its dense parameters, and its experts: it is the first of those that hold the same.
bool writes_dense(const Cell& cell) { return cell.cp == 0 && cell.dp == 0; }
bool writes_experts(const Cell& cell) { return cell.edp == 0; }

// Modules whose parameters have no extra state: Megatron's own embeddings, router and norm of Mamba, torch's
// convolutions and patches.
bool is_plain_module(std::string_view module) {
  constexpr std::string_view kPlain[] = {"word_embeddings",  ".router",   "conv1d",      "mixer.norm",
                                         "patch_embed.proj", "pos_embed", "output_layer"};
  for (std::string_view end : kPlain)
    if (module.ends_with(end)) return true;
  return false;
}

// Whether the parameter's module saves no extra state though its name does not show it: the family's row says
// so, or it is a module of a tower of Hugging Face, a norm of Megatron's own modules in a layer, or a norm
// that is split over tensor-parallel ranks, as no module of Transformer Engine is.
bool is_plain(const ModelParameter& p, const ModelConfig& model) {
  const bool norm = p.row->megatron.ends_with("norm.weight");
  const bool of_layer = p.section->scope == Scope::kLayers;
  return p.row->stateless || is_copied(p) ||
         (norm && ((model.own_modules && of_layer) || p.row->rule.starts_with("column")));
}

// The module whose extra state is saved beside the parameter; "" if there is none. Only hybrid models without
// groups save an extra state of the output layer.
std::string_view module_with_state(std::string_view name, bool hybrid) {
  std::size_t dot = name.rfind('.');
  std::string_view module = name.substr(0, dot), leaf = name.substr(dot + 1);
  bool module_leaf = leaf == "weight" || leaf == "layer_norm_weight" || leaf == "softmax_offset";
  if (!module_leaf || (is_plain_module(module) && !(hybrid && module.ends_with("output_layer")))) return "";
  return module;
}

// Makes the plan: the names and types under which each key of a rank is stored, and the boxes that the rank
// writes.
class PlanMaker {
 public:
  PlanMaker(const KeyTable& keys, const TorchDistRun& run, const TorchDistStates& states, TorchDistPlan& plan)
      : keys_(keys), run_(run), states_(states), plan_(plan), model_(keys.map().model()) {
    if (run.run.groups) groups_.emplace(*run.run.groups);
  }

  void make();

 private:
  void add_rank(const Cell& cell, const std::vector<ModelParameter>& parameters);
  void add_row(const ModelParameter& p, const TorchDistRow& row, i32 rank);
  void add_extra_state(const ModelParameter& p, const TorchDistPlace& place, i32 rank);
  std::vector<i64> leading_dims(const ModelParameter& p, const TorchDistPlace& place) const;
  bool is_stacked(const ModelParameter& p) const;

  const KeyTable& keys_;
  const TorchDistRun& run_;
  const TorchDistStates& states_;
  TorchDistPlan& plan_;
  const ModelConfig& model_;
  std::optional<GroupedPlaces> groups_;
  std::unordered_map<std::string, i32> layout_key_;
  std::set<std::pair<i32, i64>> written_;           // key of the layout, first item of the box
  std::vector<std::pair<i32, std::string>> extra_;  // rank, name
  std::set<std::string, std::less<>> extra_names_;
};

void PlanMaker::make() {
  const PipelineSplit split =
      pipeline_split(std::ssize(model_.text.layers), run_.grid.pp, run_.pipeline, run_.run.groups);
  std::vector<std::pair<Cell, StagePart>> writers;
  for (i64 rank = 0; rank < run_.grid.world(); rank++)
    if (Cell cell = cell_of(run_.grid, rank); writes_dense(cell) || writes_experts(cell))
      for (i64 chunk = 0; chunk < split.chunks(); chunk++)
        writers.emplace_back(cell, split.part(cell.pp, chunk));
  // The ranks of a batch are in memory at once.
  const i64 batch = std::max<i64>(1, run_.threads);
  for (i64 first = 0; first < std::ssize(writers); first += batch) {
    std::vector<std::vector<ModelParameter>> held(
        static_cast<std::size_t>(std::min(batch, std::ssize(writers) - first)));
    parallel_for(std::ssize(held), run_.threads, [&](int, i64 i) {
      const auto& [cell, part] = writers[first + i];
      held[i] = keys_.map().parameters(run_.grid, cell, run_.run, part);
      if (run_.adjust) run_.adjust(held[i]);
    });
    for (i64 i = 0; i < std::ssize(held); i++) add_rank(writers[first + i].first, held[i]);
  }
  PickleWriter none;
  none.op(Op::kEmptyList), none.op(Op::kNone), none.op(Op::kAppend);
  const std::string pickle = none.finish();
  for (const auto& [rank, name] : extra_) plan_.layout.add_object({name, {}}, rank, pickle);
}

void PlanMaker::add_rank(const Cell& cell, const std::vector<ModelParameter>& parameters) {
  for (const ModelParameter& p : parameters) {
    // The last stage's copy of a tied embedding is the embedding.
    if (p.row->needs == Needs::kTied) continue;
    if (!(p.expert() ? writes_experts(cell) : writes_dense(cell))) continue;
    const SavedForm form = torch_dist_form(p, model_, run_.own_norms, groups_ ? &*groups_ : nullptr);
    for (const TorchDistRow& row : torch_dist_rows(p, form, model_))
      add_row(p, row, static_cast<i32>(cell.rank));
  }
}

bool PlanMaker::is_stacked(const ModelParameter& p) const {
  return p.section->scope == Scope::kLayers && p.section->own_layers &&
         (p.section->tower == Tower::kVision || run_.stacked);
}

std::vector<i64> PlanMaker::leading_dims(const ModelParameter& p, const TorchDistPlace& place) const {
  std::vector<i64> dims;
  if (is_stacked(p)) dims.push_back(layers_of_stack(p, model_));
  if (p.expert()) dims.push_back(model_.moe.experts);
  if (dims.size() != place.at.size())
    throw Error(Code::kInternal, "a parameter is at a place of other dimensions than its tensor has")
        .tensor(p.global_name)
        .found(place.name);
  return dims;
}

void PlanMaker::add_row(const ModelParameter& p, const TorchDistRow& row, i32 rank) {
  const i32 key = keys_.at(row.key);
  const CheckpointKey& k = keys_[key];
  const TorchDistPlace place = torch_dist_place(row.name.text, is_stacked(p), row.name.in_stack);
  std::vector<i64> offsets = place.at, sizes(place.at.size(), 1);
  offsets.insert(offsets.end(), row.offsets.begin(), row.offsets.end());
  sizes.insert(sizes.end(), row.sizes.begin(), row.sizes.end());
  std::vector<i64> dims = leading_dims(p, place);
  const std::size_t leading = dims.size();
  dims.insert(dims.end(), k.shape.dims().begin(), k.shape.dims().end());
  auto add = [&](i32 state, std::string name, DType dtype) {
    auto [at, fresh] = layout_key_.try_emplace(name, static_cast<i32>(plan_.layout.key_count()));
    if (fresh) {
      plan_.layout.add_key({{std::move(name), {}}, dtype, Shape(dims)});
      plan_.leading.push_back(static_cast<i32>(leading));
      plan_.state.push_back(state);
      plan_.first_chunk.push_back(static_cast<i32>(plan_.layout.chunk_count()));
    }
    i64 first = 0;
    for (std::size_t d = 0; d < dims.size(); d++) first = first * dims[d] + offsets[d];
    if (!written_.emplace(at->second, first).second) return;
    plan_.layout.add_chunk(at->second, rank, offsets, sizes);
    plan_.table_key.push_back(key);
  };
  add(-1, place.name, run_.of(p, place.name));
  if (!states_.empty())
    for (i32 s = 0; s < static_cast<i32>(states_[key].size()); s++)
      add(s, torch_dist_state(states_[key][s].kind, place.name), states_[key][s].dtype);
  // Norms of Megatron's own modules have no extra state. In front of a dense MLP they have the fused name in
  // any case.
  if (is_plain(p, model_) || (run_.own_norms && own_norm_of_experts(p))) return;
  add_extra_state(p, place, rank);
}

void PlanMaker::add_extra_state(const ModelParameter& p, const TorchDistPlace& place, i32 rank) {
  const bool hybrid = model_.mamba.heads > 0;
  std::string_view module = module_with_state(place.name, hybrid && !groups_);
  if (module.empty()) return;
  ObjectShard shard{place.at, leading_dims(p, place)};
  if (shard.offset.empty()) shard = {{0}, {1}};
  std::string name = cat(module, "._extra_state", to_string(shard));
  if (extra_names_.insert(name).second) extra_.emplace_back(rank, std::move(name));
}

}  // namespace

bool stacks_layers(const ModelConfig& model, LayerStacks choice) {
  const std::vector<LayerSpec>& layers = model.text.layers;
  // Two kinds of attention are stacked apart, so that only the widths of MLPs must agree there.
  auto ffn_of = [&](const LayerSpec& l) {
    return l.sizes == 0 ? model.text.ffn : model.layer_sizes[static_cast<std::size_t>(l.sizes) - 1].ffn;
  };
  const bool by_kind = !layers.empty() && layers[0].kind != AttentionKind::kOne;
  bool alike = std::ranges::all_of(layers, [&](const LayerSpec& l) {
    if (!by_kind) return l == layers[0];
    return l.mixer == layers[0].mixer && l.ffn == layers[0].ffn && ffn_of(l) == ffn_of(layers[0]);
  });
  if (choice == LayerStacks::kIndexed) return false;
  if (choice == LayerStacks::kStacked) {
    if (alike) return true;
    throw Error(Code::kUsage, "layers that differ cannot be one tensor").help("leave `layers` out");
  }
  auto of_frequency = [&](const LayerSpec& l) {
    bool latent_experts = l.mixer == Mixer::kLatentAttention && l.ffn == Ffn::kMoe;
    return l.mixer == Mixer::kGdn || l.mixer == Mixer::kMamba || l.mixer == Mixer::kNone ||
           l.ffn == Ffn::kNone || latent_experts;
  };
  return alike && !model.layers_apart && std::ranges::none_of(layers, of_frequency);
}

TorchDistPlan::TorchDistPlan(const KeyTable& keys, const TorchDistRun& run, const TorchDistStates& states)
    : layout(run.grid.world()) {
  layout.leave_out_paths();
  PlanMaker(keys, run, states, *this).make();
}

ChunkList::Box TorchDistChunks::box(i64 c) const {
  const Box whole = PlannedChunks::box(c);
  return {whole.offsets.subspan(leading(c)), whole.sizes.subspan(leading(c))};
}

}  // namespace mckpt::impl

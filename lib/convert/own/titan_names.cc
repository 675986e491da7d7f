// Each name is looked up in the tables of its model, and its row says what becomes of the items.
#include "convert/own/titan_names.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "convert/own/titan_pieces.h"
#include "convert/own/titan_tables.h"
#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/config/json.h"
#include "io/store/store.h"
#include "mappings/family.h"

namespace mckpt::impl {
namespace {

using Row = TitanRow;
using Move = TitanMove;

constexpr std::string_view kLayers = "layers.", kMtpLayers = "mtp_layers.",
                           kTowerLayers = "vision_encoder.layers.";
constexpr std::string_view kEmbeddings = "tok_embeddings.";

// "layers.12.moe.w" -> 12 and "moe.w"; nothing for another name.
struct InLayer {
  i64 number = 0;
  std::string_view behind;
};
std::optional<InLayer> in_layer(std::string_view name, std::string_view list) {
  if (!name.starts_with(list)) return std::nullopt;
  InLayer out;
  const char* first = name.data() + list.size();
  auto [end, error] = std::from_chars(first, name.data() + name.size(), out.number);
  if (error != std::errc() || *first == '-') return std::nullopt;
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  if (!name.starts_with('.') || out.number >= i64{1} << 31) return std::nullopt;
  out.behind = name.substr(1);
  return out;
}

std::string filled(std::string_view pattern, std::string_view placeholder, std::string_view by) {
  std::string out(pattern);
  if (std::size_t at = out.find(placeholder); at != out.npos) out.replace(at, placeholder.size(), by);
  return out;
}

bool any_has(std::span<const NamedTensor> names, std::string_view part) {
  return std::ranges::any_of(names, [&](const NamedTensor& n) { return n.name.find(part) != n.name.npos; });
}

// The family by names that only one model has.
std::string_view family_of_names(std::span<const NamedTensor> names) {
  auto any = [&](std::string_view part) { return any_has(names, part); };
  if (any("tok_embeddings.embedding.")) return "muse_glimmer";
  if (any(".attention.wkv_a.")) return any("vision_encoder.projector.") ? "kimi_k25" : "deepseek_v3";
  if (any(".attention.sinks")) return "gpt_oss";
  if (any(".attn.in_proj_q.")) return any(".moe.") ? "qwen3_5_moe" : "qwen3_5";
  if (any("double_blocks.")) return "flux";
  if (!any(".attention.q_norm.")) return "llama";
  return any(".moe.") ? "qwen3_moe" : "qwen3";
}

// The model by its config, or by its names where there is none.
const TitanModel& model_of(const Store& store, std::span<const NamedTensor> names,
                           const TitanConfig& config) {
  std::string_view family = config.config && config.config->family ? config.config->family->name : "";
  if (family.empty()) family = config.model_type;
  if (family.empty()) family = family_of_names(names);
  const TitanModel* model = titan_model(family);
  if (!model && config.config) model = titan_model(config.config->model.model_type);
  if (model) return *model;
  std::string known;
  for (const TitanModel& m : titan_models())
    for (std::string_view f : m.families)
      if (!f.empty()) known += cat(known.empty() ? "" : ", ", f);
  throw Error(Code::kUnknownModel, "torchtitan's names of this model are not known")
      .file(store.root())
      .expected(known)
      .found(escaped(family))
      .help("mckpt convert to-dcp SRC DST keeps the names, and torchtitan loads them");
}

// The numbers of the table where one reads the config.
TowerNumbers numbers_of(const TitanConfig& config) {
  TowerNumbers out = config.numbers;
  if (!config.config) return out;
  const TowerConfig& text = config.config->model.text;
  out.layers = std::ssize(text.layers);
  out.heads = text.heads;
  out.kv_heads = text.kv_groups;
  out.head_dim = text.head_dim;
  return out;
}

// The translation of one store; run() is called once.
class Translation {
 public:
  Translation(const Store& store, std::span<const NamedTensor> names, const TitanConfig& config)
      : store_(store),
        names_(names),
        config_(config),
        model_(model_of(store, names, config)),
        pieces_(store, numbers_of(config), model_.pairs, out_.tensors),
        layers_(numbers_of(config).layers) {
    out_.model = model_.titan;
    if (layers_ > 0) return;
    for (const NamedTensor& n : names)
      if (auto layer = in_layer(n.name, kLayers)) layers_ = std::max(layers_, layer->number + 1);
  }

  TitanTensors run() {
    for (const NamedTensor& n : names_)
      if (!add_named(n)) unknown_.push_back(std::string(store_.name(n.tensor)));
    if (!unknown_.empty())
      throw Error(Code::kUnaccounted, cat("torchtitan's ", model_.titan, " has no ",
                                          unknown_.size() == 1 ? "tensor" : "tensors", " of these names"))
          .file(store_.root())
          .each_note(unknown_)
          .help("docs/formats/own_names.md has the names that are known");
    for (const auto& [name, joined] : joined_) finish(name, joined);
    return std::move(out_);
  }

 private:
  // The tensor to which several tensors of torchtitan are joined, one behind the other along a dimension.
  struct Joined {
    std::size_t at;              // of the result
    std::size_t along = 0;       // the dimension
    std::vector<i64> tensors{};  // by part; -1: none was found yet
  };

  bool add_named(const NamedTensor& n);
  void add(i64 tensor, const FoundRow& found, std::string_view front);
  void add_part(i64 tensor, std::string name, i64 part, i64 parts, std::size_t along);
  void finish(const std::string& name, const Joined& joined);
  void add_experts_of(i64 tensor, const Row& row, const std::string& name);
  void check_experts(i64 tensor, const Row& row) const;

  const Store& store_;
  std::span<const NamedTensor> names_;
  const TitanConfig& config_;
  const TitanModel& model_;
  TitanTensors out_;
  TitanPieces pieces_;
  i64 layers_ = 0;
  std::map<std::string, Joined> joined_;
  std::vector<std::string> unknown_;
};

bool Translation::add_named(const NamedTensor& n) {
  if (auto tower = in_layer(n.name, kTowerLayers)) {
    const FoundRow found = find_row(model_.tower, tower->behind);
    if (found.row) add(n.tensor, found, cat(model_.tower_layers, tower->number, "."));
    return found.row != nullptr;
  }
  std::optional<InLayer> layer = in_layer(n.name, kLayers), mtp;
  if (!layer && model_.mtp) mtp = in_layer(n.name, kMtpLayers);
  FoundRow found;
  if (!layer && !mtp) {
    for (std::span<const Row> rows : model_.once)
      if (!found.row) found = find_row(rows, n.name);
    if (found.row) add(n.tensor, found, "");
    return found.row != nullptr;
  }
  const InLayer& in = layer ? *layer : *mtp;
  if (mtp) found = find_row(titan_mtp_rows(), in.behind);
  for (std::span<const Row> rows : model_.layer)
    if (!found.row) found = find_row(rows, in.behind);
  if (found.row) add(n.tensor, found, cat(model_.text, kLayers, mtp ? layers_ + in.number : in.number, "."));
  return found.row != nullptr;
}

void Translation::add(i64 t, const FoundRow& found, std::string_view front) {
  const Row& row = *found.row;
  std::string name = cat(front, filled(filled(found.disk, "{T}", model_.text), "{H}", model_.head));
  switch (row.move) {
    case Move::kQuery:
      return pieces_.add_queries(t, std::move(name));
    case Move::kKey:
      return pieces_.add_keys(t, std::move(name));
    case Move::kCopy:
      return pieces_.add_copy(t, std::move(name));
    case Move::kTowerHead:
      return pieces_.add_tower_heads(t, std::move(name));
    case Move::kQkv:
      return pieces_.add_qkv(t, [&](std::string_view part) { return filled(name, "{P}", part); });
    case Move::kPart:
      return add_part(t, std::move(name), row.part, row.parts, 0);
    case Move::kExperts:
      return add_experts_of(t, row, name);
    case Move::kSwap:
      check_stack(store_, t, config_.config ? config_.config->model.moe.experts : 0, 0, 0);
      return pieces_.add_swapped(t, std::move(name));
    case Move::kPatches:
      return pieces_.add_patches(t, std::move(name), row.parts);
    case Move::kLeft:
      out_.floats_beside.push_back(t);
      [[fallthrough]];
    case Move::kNone:
      out_.beside.push_back(t);
  }
}

// The place of the result is the place of its first part.
void Translation::add_part(i64 t, std::string name, i64 part, i64 parts, std::size_t along) {
  auto [at, is_new] = joined_.try_emplace(name, Joined{out_.tensors.size(), along, {}});
  Joined& joined = at->second;
  if (is_new) {
    joined.tensors.assign(static_cast<std::size_t>(parts), -1);
    out_.tensors.push_back({std::move(name), {}, {}});
  }
  i64& slot = joined.tensors[static_cast<std::size_t>(part)];
  if (slot >= 0)
    throw Error(Code::kUnaccounted,
                "two tensors of the checkpoint are the same part of one of the model's folder")
        .file(store_.root())
        .tensor(out_.tensors[joined.at].name)
        .note(std::string(store_.name(slot)))
        .note(std::string(store_.name(t)));
  slot = t;
}

void Translation::finish(const std::string& name, const Joined& joined) {
  PiecedTensor& out = out_.tensors[joined.at];
  for (std::size_t p = 0; p < joined.tensors.size(); p++) {
    const i64 t = joined.tensors[p];
    if (t < 0)
      throw Error(Code::kUnaccounted,
                  "a tensor of the model's folder consists of several of torchtitan's, and one is missing")
          .file(store_.root())
          .tensor(name)
          .expected(counted(std::ssize(joined.tensors), "part"))
          .found(cat("no part ", p + 1));
    std::span<const i64> dims = store_.dims(t);
    std::vector<i64> without(dims.begin(), dims.end());
    if (without.size() <= joined.along)
      throw pieces_.wrong_shape(t, "this is not a part of a tensor", "rows");
    const i64 rows = without[joined.along];
    if (p == 0) out.dims = without, out.dims[joined.along] = 0;
    StorePiece piece{t};
    piece.to.assign(dims.size(), 0);
    piece.to[joined.along] = out.dims[joined.along];
    without[joined.along] = out.dims[joined.along];
    if (without != out.dims)
      throw pieces_.wrong_shape(t, "the parts of a tensor do not fit each other",
                                cat("as ", store_.name(joined.tensors[0])));
    out.dims[joined.along] += rows;
    out.pieces.push_back(std::move(piece));
  }
}

void Translation::add_experts_of(i64 t, const Row& row, const std::string& name) {
  check_experts(t, row);
  std::span<const i64> dims = store_.dims(t);
  constexpr std::string_view kOne = ".{E}.";
  if (!config_.stacks)
    return add_experts(out_.tensors, store_, {t, 0, dims[1]},
                       [&](i64 e) { return filled(name, "{E}", cat(e)); });
  std::string stacks = name.substr(0, name.find(kOne));
  if (row.disk.ends_with("down_proj.weight")) return pieces_.add_copy(t, stacks + ".down_proj");
  add_part(t, stacks + ".gate_up_proj", row.disk.ends_with("up_proj.weight") ? 1 : 0, 2, 1);
}

// Experts were once [experts, in, out], under names that do not say so: the columns of the embedding show it,
// unless experts are as wide as the model.
void Translation::check_experts(i64 t, const Row& row) const {
  const MoeConfig moe = config_.config ? config_.config->model.moe : MoeConfig{};
  auto embedding = std::ranges::find(names_, "tok_embeddings.weight", &NamedTensor::name);
  std::span<const i64> of_embedding =
      embedding == names_.end() ? std::span<const i64>() : store_.dims(embedding->tensor);
  i64 hidden = of_embedding.size() == 2 ? of_embedding[1] : 0;
  bool down = row.disk.ends_with("down_proj.weight");
  check_stack(store_, t, moe.experts, down ? hidden : moe.ffn, down ? moe.ffn : hidden);
  std::span<const i64> dims = store_.dims(t);
  if (row.titan.find('_', row.titan.rfind('.')) != row.titan.npos || dims[1] != dims[2]) return;
  throw Error(Code::kAmbiguousLayout, "torchtitan changed the order of these dimensions, and they are equal")
      .file(store_.root())
      .tensor(store_.name(t))
      .expected("a name that says it, such as moe.experts.w1_EFD")
      .found(to_string(store_.shape(t)));
}

}  // namespace

// Every text model of torchtitan has its embedding under this name, and its Flux the blocks.
bool is_of_titan(std::span<const NamedTensor> model) {
  return std::ranges::any_of(model, [](const NamedTensor& n) {
    return n.name.starts_with(kEmbeddings) || n.name.starts_with("double_blocks.0.img_attn.");
  });
}

TitanTensors titan_tensors(const Store& store, std::span<const NamedTensor> model,
                           const TitanConfig& config) {
  return Translation(store, model, config).run();
}

}  // namespace mckpt::impl

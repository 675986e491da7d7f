// The table of models is what save_pretrained() of transformers 5.23 writes
// (test_data/own_names/make_disk_names.py).
#include "convert/views/disk_names.h"

#include <algorithm>

#include "convert/views/own_names.h"
#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/config_json.h"
#include "io/store/store.h"
#include "mappings/family.h"

namespace mckpt::impl {
namespace {

// A stack in memory, by the end of its name, and the tensors of each expert, by what replaces that end: {E}
// is the expert. `second` is set for a stack of two: the first half of its rows is `first`.
struct StackRow {
  std::string_view stack, first, second = {};
};
constexpr StackRow kGated[] = {
    {".mlp.experts.gate_up_proj", ".mlp.experts.{E}.gate_proj.weight", ".mlp.experts.{E}.up_proj.weight"},
    {".mlp.experts.down_proj", ".mlp.experts.{E}.down_proj.weight"},
};
constexpr StackRow kNotGated[] = {
    {".mixer.experts.up_proj", ".mixer.experts.{E}.up_proj.weight"},
    {".mixer.experts.down_proj", ".mixer.experts.{E}.down_proj.weight"},
};
// All stacks that models have in memory. Where no row above splits them, they are stacks on disk.
constexpr std::string_view kStacks[] = {".experts.gate_up_proj", ".experts.up_proj", ".experts.down_proj"};

// A model by its model_type.
struct DiskRow {
  std::string_view model_type;
  std::span<const StackRow> stacks{};       // those that are split; empty: none, stacks are the form on disk
  std::string_view memory = {}, disk = {};  // what begins the names in memory, and what replaces it on disk
};
constexpr DiskRow kModels[] = {
    {"deepseek_v2", kGated},
    {"deepseek_v3", kGated},
    {"glm4_moe", kGated},
    {"gpt_oss"},
    {"nemotron_h", kNotGated, "model.", "backbone."},
    {"olmoe", kGated},
    {"qwen2_moe", kGated},
    {"qwen3_5_moe", kGated},
    {"qwen3_5_moe_text", kGated},
    {"qwen3_moe", kGated},
    {"qwen3_next", kGated},
    {"qwen3_vl_moe"},
};

const DiskRow* row_of(std::string_view model_type) {
  auto row = std::ranges::find(kModels, model_type, &DiskRow::model_type);
  return row == std::end(kModels) ? nullptr : row;
}

bool is_stack(std::string_view name) {
  return std::ranges::any_of(kStacks, [&](std::string_view end) { return name.ends_with(end); });
}

std::string filled(std::string_view before, std::string_view pattern, i64 expert) {
  std::size_t at = pattern.find("{E}");
  return cat(before, pattern.substr(0, at), expert, pattern.substr(at + 3));
}

// Adds the tensors of one stack; false if the row is for other names. `moe`: of the model, zeros if it is not
// known.
bool add_stack(std::vector<PiecedTensor>& out, const Store& store, i64 tensor, std::string_view name,
               const StackRow& row, const MoeConfig& moe) {
  if (!name.ends_with(row.stack)) return false;
  bool down = row.stack.ends_with("down_proj");
  check_stack(store, tensor, moe.experts, down ? 0 : moe.ffn * (row.second.empty() ? 1 : 2),
              down ? moe.ffn : 0);
  std::string_view before = name.substr(0, name.size() - row.stack.size());
  i64 rows = store.dims(tensor)[1];
  bool two = !row.second.empty();
  if (two && rows % 2 != 0)
    throw Error(Code::kSourceShape, "gate and up rows of the experts are not equally many")
        .file(store.root())
        .tensor(store.name(tensor))
        .found(to_string(store.shape(tensor)));
  if (two) rows /= 2;
  add_experts(out, store, {tensor, 0, rows}, [&](i64 e) { return filled(before, row.first, e); });
  if (two)
    add_experts(out, store, {tensor, rows, rows}, [&](i64 e) { return filled(before, row.second, e); });
  return true;
}

// The name with what begins it on disk.
std::string on_disk(std::string_view name, const DiskRow* row) {
  if (row == nullptr || row->memory.empty() || !name.starts_with(row->memory)) return std::string(name);
  return cat(row->disk, name.substr(row->memory.size()));
}

[[noreturn]] void refuse_stack(const Store& store, i64 tensor, std::string_view model_type) {
  if (model_type.empty())
    throw Error(
        Code::kUnknownAssets,
        "the experts of a layer are one tensor, and only the model says whether its folder has them so")
        .file(store.root())
        .tensor(store.name(tensor))
        .help("`assets` names a folder with the model's config.json");
  throw Error(Code::kUnknownModel, "how this model's folder has its experts is not known")
      .file(store.root())
      .tensor(store.name(tensor))
      .expected("a model of the table in docs/formats/own_names.md, or one tensor for each expert")
      .found(cat("model_type ", escaped(model_type)));
}

}  // namespace

bool has_stacks(std::span<const NamedTensor> model) {
  return std::ranges::any_of(model, [](const NamedTensor& n) { return is_stack(n.name); });
}

// A few bytes of a file can declare a stack of any number of experts without items.
void check_room(const Store& store, i64 tensor, i64 tensors) {
  constexpr i64 kMostTensors = 1 << 19;
  if (store.dims(tensor)[0] <= kMostTensors - tensors) return;
  throw Error(Code::kSourceShape, "the experts of all layers would be too many tensors")
      .file(store.root())
      .tensor(store.name(tensor))
      .expected(cat("at most ", with_commas(kMostTensors), " tensors"))
      .found(to_string(store.shape(tensor)));
}

void check_stack(const Store& store, i64 tensor, i64 experts, i64 rows, i64 columns) {
  std::span<const i64> dims = store.dims(tensor);
  const i64 wanted[] = {experts, rows, columns};
  bool fits = dims.size() == 3;
  for (std::size_t d = 0; fits && d < 3; d++) fits = wanted[d] == 0 || dims[d] == wanted[d];
  if (fits) return;
  auto shown = [](i64 size, const char* otherwise) { return size > 0 ? cat(size) : std::string(otherwise); };
  throw Error(Code::kSourceShape, "this is not a stack of the model's experts")
      .file(store.root())
      .tensor(store.name(tensor))
      .expected(cat("[", shown(experts, "experts"), ", ", shown(rows, "rows"), ", ",
                    shown(columns, "columns"), "]"))
      .found(to_string(store.shape(tensor)));
}

std::optional<std::vector<i64>> shape_in_memory(const TensorShapes& folder, std::string_view name,
                                                std::string_view model_type) {
  const DiskRow* row = row_of(model_type);
  const std::string disk = on_disk(name, row);
  if (auto at = folder.find(disk); at != folder.end()) return at->second;
  if (row == nullptr) return std::nullopt;
  for (const StackRow& s : row->stacks) {
    if (!disk.ends_with(s.stack)) continue;
    const std::string_view before = std::string_view(disk).substr(0, disk.size() - s.stack.size());
    auto first = folder.find(filled(before, s.first, 0));
    if (first == folder.end() || first->second.size() != 2) return std::nullopt;
    i64 experts = 1;
    for (auto at = first; at != folder.end(); at = folder.find(filled(before, s.first, ++experts)))
      if (at->second != first->second) return std::nullopt;
    return std::vector<i64>{experts, first->second[0] * (s.second.empty() ? 1 : 2), first->second[1]};
  }
  return std::nullopt;
}

DiskTensors disk_tensors(const Store& store, std::span<const NamedTensor> model,
                         const OwnNamesOptions& options) {
  std::string_view model_type = options.model_type;
  if (options.config) model_type = options.config->model.model_type;
  const DiskRow* row = row_of(model_type);
  const MoeConfig moe = options.config ? options.config->model.moe : MoeConfig{};
  DiskTensors out;
  for (const NamedTensor& n : model) {
    std::string name = on_disk(n.name, row);
    out.renamed |= name != n.name;
    bool split = false;
    if (is_stack(name) && !options.stacks) {
      if (!row) refuse_stack(store, n.tensor, model_type);
      for (const StackRow& s : row->stacks)
        split = split || add_stack(out.tensors, store, n.tensor, name, s, moe);
    }
    out.renamed |= split;
    std::span<const i64> dims = store.dims(n.tensor);
    if (!split) out.tensors.push_back({std::move(name), {dims.begin(), dims.end()}, {{n.tensor}}});
  }
  return out;
}

}  // namespace mckpt::impl

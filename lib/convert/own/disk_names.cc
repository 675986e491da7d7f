// Names first (convert/own/disk_rules.h), then stacks.
#include "convert/own/disk_names.h"

#include <algorithm>

#include "convert/own/disk_rules.h"
#include "convert/own/disk_transforms.h"
#include "convert/own/names.h"
#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/config/json.h"
#include "io/store/store.h"
#include "mappings/family.h"

namespace mckpt::impl {
namespace {

// All stacks that models have in memory. Where no rule splits them, they are stacks on disk.
constexpr std::string_view kStacks[] = {".experts.gate_up_proj", ".experts.up_proj", ".experts.down_proj"};

std::string filled(std::string_view before, std::string_view pattern, i64 expert) {
  std::size_t at = pattern.find("{E}");
  return cat(before, pattern.substr(0, at), expert, pattern.substr(at + 3));
}

// Adds the tensors of one stack; false if the rule is for other names. `moe`: of the model, zeros if it is
// not known.
bool add_stack(std::vector<PiecedTensor>& out, const Store& store, i64 tensor, std::string_view name,
               const StackRule& rule, const MoeConfig& moe) {
  if (!name.ends_with(rule.stack)) return false;
  bool down = rule.stack.ends_with("down_proj");
  check_stack(store, tensor, moe.experts, down ? 0 : moe.ffn * (rule.second.empty() ? 1 : 2),
              down ? moe.ffn : 0);
  std::string_view before = name.substr(0, name.size() - rule.stack.size());
  i64 rows = store.dims(tensor)[1];
  bool two = !rule.second.empty();
  if (two && rows % 2 != 0)
    throw Error(Code::kSourceShape, "gate and up rows of the experts are not equally many")
        .file(store.root())
        .tensor(store.name(tensor))
        .found(to_string(store.shape(tensor)));
  if (two) rows /= 2;
  add_experts(out, store, {tensor, 0, rows}, [&](i64 e) { return filled(before, rule.first, e); });
  if (two)
    add_experts(out, store, {tensor, rows, rows}, [&](i64 e) { return filled(before, rule.second, e); });
  return true;
}

// Whether a folder has the tensor of that name, or the first expert of the stack. `folder` is an
// ExpectedTensors or a TensorShapes.
template <typename Folder>
bool has_on_disk(const Folder& folder, const std::string& disk, const DiskRules* rules) {
  if (folder.contains(disk)) return true;
  return rules != nullptr && std::ranges::any_of(rules->stacks, [&](const StackRule& rule) {
           return disk.ends_with(rule.stack) &&
                  folder.contains(filled(disk.substr(0, disk.size() - rule.stack.size()), rule.first, 0));
         });
}

// A folder may have the names in memory: those that some versions of transformers wrote, and some publish.
template <typename Folder>
std::string name_in_folder(std::string_view name, const DiskRules* rules, const Folder& folder) {
  std::string disk = name_on_disk(name, rules);
  const bool as_in_memory = folder.contains(std::string(name)) && !has_on_disk(folder, disk, rules);
  return as_in_memory ? std::string(name) : disk;
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
      .found(cat("model_type ", escaped(model_type)))
      .help("mckpt convert to-dcp SRC DST keeps names and stacks, and the model's own class loads them");
}

}  // namespace

bool is_stack(std::string_view name) {
  return std::ranges::any_of(kStacks, [&](std::string_view end) { return name.ends_with(end); });
}

bool has_stacks(std::span<const NamedTensor> model) {
  return std::ranges::any_of(model, [](const NamedTensor& n) { return is_stack(n.name); });
}

bool has_stacks(const Store& model) {
  for (i64 t = 0; t < model.tensor_count(); t++)
    if (is_stack(model.name(t))) return true;
  return false;
}

void check_room(const Store& store, i64 tensor, i64 tensors) {
  if (store.dims(tensor)[0] <= kMostModelTensors - tensors) return;
  throw Error(Code::kSourceShape, "the experts of all layers would be too many tensors")
      .file(store.root())
      .tensor(store.name(tensor))
      .expected(cat("at most ", with_commas(kMostModelTensors), " tensors"))
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
  const DiskRules* rules = disk_rules(model_type);
  const std::string disk = name_in_folder(name, rules, folder);
  if (auto at = folder.find(disk); at != folder.end()) return at->second;
  if (rules == nullptr) return std::nullopt;
  for (const StackRule& s : rules->stacks) {
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
  const DiskRules* rules = disk_rules(model_type);
  if (!rules && has_disk_transforms(model_type, options.architecture))
    return transformed_tensors(store, model, model_type, options.architecture, options);
  const MoeConfig moe = options.config ? options.config->model.moe : MoeConfig{};
  DiskTensors out;
  for (const NamedTensor& n : model) {
    std::string name = name_in_folder(n.name, rules, options.expected);
    out.renamed |= name != n.name;
    bool split = false;
    if (is_stack(name) && !options.stacks) {
      if (!rules) refuse_stack(store, n.tensor, model_type);
      for (const StackRule& s : rules->stacks)
        split = split || add_stack(out.tensors, store, n.tensor, name, s, moe);
    }
    out.renamed |= split;
    std::span<const i64> dims = store.dims(n.tensor);
    if (!split) out.tensors.push_back({std::move(name), {dims.begin(), dims.end()}, {{n.tensor}}});
  }
  return out;
}

}  // namespace mckpt::impl

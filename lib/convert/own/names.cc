// Names first, then one view of all tensors. Data are read only to compare tensors that may be copies.
#include "convert/own/names.h"

#include <algorithm>

#include "convert/own/disk_names.h"
#include "convert/own/disk_transforms.h"
#include "convert/own/flat_shapes.h"
#include "convert/own/model_section.h"
#include "convert/own/saved_dicts.h"
#include "convert/own/titan_names.h"
#include "convert/own/titan_tables.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "hf/config/json.h"
#include "hf/folder/name_words.h"

namespace mckpt::impl {
namespace {

struct Translated {
  std::vector<PiecedTensor> tensors;
  std::string convention;
};

// Programs with tables of their own are not guessed at.
void refuse_foreign(const Store& store, std::span<const NamedTensor> names) {
  // Parts of a name that occur together: the vision towers of some models have a linear_fc1 too.
  struct Foreign {
    std::string_view part, also, whose;
  };
  constexpr Foreign kForeign[] = {
      {".sa_norm.scale", "", "torchtune's own"},
      {".self_attention.linear_qkv.", "decoder.layers.", "Megatron's"},
      {".mlp.linear_fc1.", "decoder.layers.", "Megatron's"},
  };
  for (const NamedTensor& n : names)
    for (auto [part, also, whose] : kForeign)
      if (n.name.find(part) != n.name.npos && n.name.find(also) != n.name.npos)
        throw Error(Code::kUnknownFormat,
                    "the tensors do not have the names of a model of transformers or torchtitan")
            .file(store.root())
            .tensor(store.name(n.tensor))
            .expected("names such as model.layers.0.mlp.up_proj.weight")
            .found(cat(whose, " names"));
}

// The tensors as they are, under the names of the model without sections and wrappers.
Translated as_saved(const Store& store, const SectionedNames& names) {
  Translated out{{}, "transformers"};
  for (const NamedTensor& n : names.model) {
    std::span<const i64> dims = store.dims(n.tensor);
    out.tensors.push_back({n.name, {dims.begin(), dims.end()}, {{n.tensor}}});
  }
  return out;
}

// Whether the model's folder has these names and no others.
bool are_of_folder(std::span<const NamedTensor> model, const ExpectedTensors& folder) {
  return std::ssize(model) == std::ssize(folder) &&
         std::ranges::all_of(model, [&](const NamedTensor& n) { return folder.contains(n.name); });
}

// Some folders have names that are torchtitan's for other models.
bool has_folder_of_such_names(const OwnNamesOptions& options) {
  const std::string& type = options.config ? options.config->model.model_type : options.model_type;
  return !titan_model(type) && has_disk_transforms(type, options.architecture);
}

Translated translated(const Store& store, SectionedNames& names, const OwnNamesOptions& options) {
  if (options.as_saved) return as_saved(store, names);
  refuse_foreign(store, names.model);
  if (is_of_titan(names.model) && !has_folder_of_such_names(options)) {
    TitanTensors titan = titan_tensors(store, names.model,
                                       {.config = options.config,
                                        .model_type = options.model_type,
                                        .numbers = options.numbers,
                                        .stacks = options.stacks});
    names.beside.insert(names.beside.end(), titan.beside.begin(), titan.beside.end());
    names.floats_beside.insert(names.floats_beside.end(), titan.floats_beside.begin(),
                               titan.floats_beside.end());
    return {std::move(titan.tensors), cat("torchtitan ", titan.model)};
  }
  if (are_of_folder(names.model, options.expected)) return as_saved(store, names);
  DiskTensors disk = disk_tensors(store, names.model, options);
  return {std::move(disk.tensors), disk.renamed ? "transformers, as in memory" : "transformers"};
}

void refuse_equal_names(const Store& store, std::span<const PiecedTensor> tensors) {
  NameMap<std::string_view, i64> first;
  for (const PiecedTensor& t : tensors) {
    auto [at, is_new] = first.emplace(t.name, t.pieces[0].tensor);
    if (is_new) continue;
    throw Error(Code::kUnaccounted, "two tensors of the checkpoint are one in the model's folder")
        .file(store.root())
        .tensor(t.name)
        .note(
            cat("from ", escaped(store.name(at->second)), " and ", escaped(store.name(t.pieces[0].tensor))));
  }
}

}  // namespace

OwnNames own_names(std::unique_ptr<Store> store, const OwnNamesOptions& options) {
  SectionedNames names = sectioned_names(*store, {.expected = options.expected,
                                                  .keep_all = options.as_saved,
                                                  .model_dict = options.model_dict,
                                                  .dict_if_there = options.dict_if_there,
                                                  .with_adapter = options.with_adapter,
                                                  .in_model = options.in_model});
  if (store->driver().flat)
    store = with_shapes(std::move(store), names.model, options.flat.shapes, options.flat.model_type);
  Translated model = translated(*store, names, options);
  refuse_equal_names(*store, model.tensors);

  OwnNames out;
  out.section = std::move(names.section);
  out.convention = std::move(model.convention);
  out.dict_taken = names.dict_taken;
  std::ranges::sort(names.beside);
  for (i64 t : names.beside) out.beside.emplace_back(store->name(t));
  for (i64 t : names.floats_beside) out.floats_beside.emplace_back(store->name(t));
  auto view = std::make_unique<PieceStore>(std::move(store));
  if (out.dict_taken) view->add_fact(std::string(kModelDictFact), out.section);
  for (PiecedTensor& t : model.tensors) view->add(std::move(t.name), std::move(t.dims), std::move(t.pieces));
  out.store = std::move(view);
  return out;
}

std::vector<bool> takes_type(const Store& store) {
  const SectionedNames names = sectioned_names(store, {.keep_all = true});
  const bool listed = !listed_of_model(store).empty();
  std::vector<bool> out(static_cast<std::size_t>(store.tensor_count()));
  for (const NamedTensor& n : names.model)
    out[static_cast<std::size_t>(n.tensor)] = listed || !is_of_states(store.name(n.tensor));
  return out;
}

CommonNames common_names(const Store& one, const Store& other, const std::string& model_dict) {
  const SectionOptions keep_all{.keep_all = true, .model_dict = model_dict, .dict_if_there = true};
  std::vector<NamedTensor> a = sectioned_names(one, keep_all).model,
                           b = sectioned_names(other, keep_all).model;
  if (is_of_titan(a) != is_of_titan(b) || has_stacks(a) != has_stacks(b)) return CommonNames::kFew;
  NameSet<std::string_view> names;
  for (const NamedTensor& n : a) names.insert(n.name);
  i64 shared = std::ranges::count_if(b, [&](const NamedTensor& n) { return names.contains(n.name); });
  i64 most = std::max(std::ssize(a), std::ssize(b));
  if (shared == most) return CommonNames::kAll;
  return 2 * shared > most ? CommonNames::kMost : CommonNames::kFew;
}

std::set<std::string, std::less<>> counters_of_model(const Store& store) {
  std::set<std::string, std::less<>> out;
  try {
    for (NamedTensor& n : sectioned_names(store, {.keep_all = true}).model)
      if (is_beside_model(n.name)) out.insert(std::move(n.name));
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
  }
  return out;
}

bool are_of_one_model(const Store& one, const Store& other, CommonNames common, bool whole) {
  try {
    for (const Store* side : {&one, &other})
      if (whole && !sectioned_names(*side, {.keep_all = true}).beside.empty()) return false;
    return common_names(one, other) <= common;
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
    return false;
  }
}

bool differ_in_section(const Store& one, const Store& other, CommonNames common) {
  const SectionOptions keep_all{.keep_all = true};
  try {
    return sectioned_names(one, keep_all).section != sectioned_names(other, keep_all).section &&
           common_names(one, other) <= common;
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
    return false;  // then they are compared as they are
  }
}

}  // namespace mckpt::impl

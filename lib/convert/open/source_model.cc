// Finds the model that a checkpoint is of: the user's assets come first, then those beside the checkpoint. A
// model that no table knows is made of the checkpoint's own names.
#include "convert/open/source_model.h"

#include <algorithm>
#include <numeric>

#include "convert/keys/key_table.h"
#include "convert/open/options.h"
#include "core/base/error.h"
#include "core/items/item_cast.h"
#include "hf/folder/assets.h"
#include "hf/model.h"
#include "hf/model_options.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/paths.h"
#include "io/file/folder.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

// True if the names alone distinguish layers, experts and parameters.
bool names_parameters(DcpDialect dialect) {
  return dialect != DcpDialect::kPlain && dialect != DcpDialect::kTorchDist;
}

// The name of the tensor's parameter in a model that no table knows; nothing if the tensor is not a
// parameter. Buffers that count or index, and tensors without rows that could be divided among ranks, are not
// parameters.
std::optional<std::string> plain_parameter(const Store& store, DcpDialect dialect, i64 tensor) {
  DcpKey key = split_key(dialect, store.name(tensor));
  bool shardable = is_castable(store.dtype(tensor)) && !store.dims(tensor).empty() &&
                   store.shape(tensor).items() > 0 && key.parameter.find_first_of("{}") == key.parameter.npos;
  bool model =
      shardable && key.section == DcpKey::Section::kModel && !key.parameter.ends_with("_extra_state");
  return model ? model_key(cat("model.", key.parameter)) : std::nullopt;
}

// All tensors in the order of the state dict that was saved, which is the order of the modules; tensors that
// it does not have come last.
std::vector<i64> as_registered(const Store& store) {
  NameMap<std::string, i64> place;
  for (const DcpName& name : dcp_names(store).value_or(std::vector<DcpName>()))
    place.emplace(name.text, std::ssize(place));
  auto place_of = [&](i64 t) {
    auto at = place.find(std::string(store.name(t)));
    return at == place.end() ? std::ssize(place) : at->second;
  };
  std::vector<i64> order(static_cast<std::size_t>(store.tensor_count()));
  std::iota(order.begin(), order.end(), i64{0});
  std::ranges::stable_sort(order, {}, place_of);
  return order;
}

// Rows of the checkpoint beyond the vocabulary of the config are taken for padding; here the checkpoint's own
// config shows that they are not.
void refuse_fewer_rows(const Store& store, const HfModel& model) {
  std::string own = own_assets(store);
  if (own.empty()) return;
  i64 rows = 0, found = model.map->model().vocab;
  try {
    rows = hf_config_of(own, store.opening(), kept_map(store)).model.vocab;
  } catch (const Error&) {
    return;  // other assets are given because these cannot be used
  }
  if (found >= rows) return;
  throw Error(
      Code::kContradiction,
      "the config of `assets` has a smaller vocabulary than the model that the checkpoint was made of")
      .file(cat(model.path, "/config.json"))
      .expected(cat("vocab_size ", rows, ", as in ", escaped(own, 4096), "/config.json"))
      .found(cat("vocab_size ", found, ": the last ", rows - found, " rows would be lost"))
      .help("give the assets of that model, or leave out `assets`");
}

}  // namespace

std::string own_assets(const Store& store) {
  std::string path = Folder(store.root(), store.opening()).inside(kAssetsFolder);
  return is_folder(path, store.opening()) ? path : "";
}

std::string folder_with_config(const std::string& path, const OpenOptions& opening) {
  if (!is_folder(path, opening) || Folder(path, opening).has_file("config.json")) return path;
  try {
    const std::string own = own_assets(*open_store(path, opening));
    return own.empty() ? path : own;
  } catch (const Error&) {
    return path;  // opening it as a model says what is wrong
  }
}

std::string keys_of_no_format(const Store& store) {
  std::string first;
  i64 more = -1;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    std::string_view name = store.name(t);
    if (name.starts_with("model.") || name.starts_with(kStateSection)) continue;
    if (more++ < 0) first = escaped(name);
  }
  return more < 0 ? "" : cat(first, more > 0 ? cat(" and ", more, " more") : "");
}

std::string kept_map(const Store& store) {
  std::string assets = own_assets(store);
  if (assets.empty()) return "";
  std::string text = tensor_table_text(Folder(assets, store.opening()));
  if (text.empty()) return "";
  return with_file(cat(assets, "/", kTensorTableName), [&] { return parse_tensor_table(text).map_text; });
}

HfModel model_of(const Store& store, const CheckpointOptions& options) {
  DcpDialect dialect = dcp_dialect(store).value_or(DcpDialect::kPlain);
  if (options.any_model && !options.assets) {
    if (!names_parameters(dialect))
      throw Error(Code::kUnknownAssets,
                  "nothing in the checkpoint distinguishes layers, experts and parameters")
          .file(store.root())
          .found(format_text(store.format()))
          .help("`assets` HF_DIR   a folder with the config.json of its model");
    std::vector<i64> order;
    if (makes_whole(options.names)) order = as_registered(store);
    return plain_model(
        store, [&](i64 t) { return plain_parameter(store, dialect, t); }, order);
  }
  std::string assets = options.assets ? *options.assets : own_assets(store);
  if (assets.empty()) {
    Error e(Code::kUnknownAssets, "the checkpoint does not say to which Hugging Face model it belongs");
    bool unknown = dialect == DcpDialect::kPlain && !store.driver().ranks_apart;
    if (std::string keys = unknown ? keys_of_no_format(store) : ""; !keys.empty())
      e.found(cat("tensors that no known format has: ", keys));
    throw e.file(store.root())
        .help(cat("`assets` HF_DIR   the folder of the original model, or one with its config.json",
                  options.names != KeyNames::kOfModel && dialect != DcpDialect::kTorchDist
                      ? "; `any_model` needs no such folder"
                      : ""));
  }
  HfModelOptions how = options.model;
  how.leave_unlike_copies = true;
  if (options.assets) how.kept_map = kept_map(store);
  HfModel model = open_hf_model(assets, how);
  if (options.assets) refuse_fewer_rows(store, model);
  return model;
}

}  // namespace mckpt::impl

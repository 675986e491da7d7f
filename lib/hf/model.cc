// Opens a Hugging Face folder: reads config.json, the headers of the weights and the map file, and pairs
// tensors with parameters.
#include "hf/model.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/fsdp/rank_folders.h"
#include "hf/adapter/adapted_store.h"
#include "hf/adapter/renamed_store.h"
#include "hf/draft_of_model.h"
#include "hf/folder/amended_model.h"
#include "hf/folder/assets.h"
#include "hf/folder/front_of_names.h"
#include "hf/folder/tensors.h"
#include "hf/folder/tied_names.h"
#include "hf/map_file/map_file.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/json/json_file.h"
#include "io/safetensors/index.h"
#include "io/store/names/iteration_names.h"
#include "io/store/open/two_formats.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"
#include "mappings/family.h"
#include "mappings/map_file/rows.h"
#include "mappings/model/expand.h"
#include "mappings/model/plain_family.h"
#include "mappings/model/source_table.h"
#include "mappings/needs.h"
#include "mappings/registry.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMaxConfigBytes = 16 << 20;

bool is_of_a_run(const Folder& folder) {
  if (folder.has_file(".metadata") || folder.has_file(kTrackerName)) return true;
  auto of_a_rank = [](const FolderEntry& e) { return e.folder && !rank_folder_numbers(e.name).empty(); };
  return std::ranges::any_of(folder.entries(), of_a_rank);
}

Error without_config(const std::string& path) {
  return Error(Code::kNotFound, "config.json was not found, and without it the model is not known")
      .file(path)
      .help("name the folder of a Hugging Face model");
}

// Throws kNotFound for a folder without config.json, with a hint if the folder is the checkpoint of a
// training run.
HfConfig read_config(const Folder& folder, const OpenOptions& opening, bool shapes_only, const MapFile* map) {
  if (!folder.has_file("config.json")) {
    if (is_adapter_folder(folder)) throw adapter_alone(folder);
    Error e = without_config(folder.path());
    if (is_of_a_run(folder))
      e.found("the checkpoint of a training run")
          .help(
              "give the folder of the original Hugging Face model; of a checkpoint of a run `mckpt convert reshard` writes one for another grid, and `mckpt export` makes a Hugging Face folder");
    throw e;
  }
  return with_file(cat(folder.path(), "/config.json"), [&] {
    try {
      return read_hf_config(json_text(folder.open_file("config.json"), kMaxConfigBytes), shapes_only, map);
    } catch (Error& e) {
      if (e.code() == Code::kUnknownModel) add_way_on(e, folder.path(), opening);
      throw;
    }
  });
}

// Throws if the store has a problem, such as a missing file or a tensor that is stored twice; the error lists
// up to 20.
void refuse_findings(const Store& store) {
  std::vector<std::string> lines;
  const Finding* first = nullptr;
  for (const Finding& f : store.findings()) {
    if (f.warning) continue;
    if (!first) first = &f;
    if (lines.size() < 20) lines.push_back(finding_line(f));
  }
  if (!first) return;
  Error e(first->code, first->message);
  e.file(first->file.empty() ? store.root() : cat(store.root(), "/", first->file));
  if (!first->tensor.empty()) e.tensor(first->tensor);
  if (lines.size() > 1)
    for (const std::string& line : lines) e.note(line);
  if (!first->help.empty()) e.help(first->help);
  throw e;
}

// For a path that does not exist: opens it as a store, which throws the error that all commands have, with
// similar names or a hint that nothing is downloaded.
void refuse_missing(const std::string& path, const OpenOptions& opening) {
  struct stat st;
  if (is_folder(path, opening) || is_file(path, opening)) return;
  if (::stat(path.c_str(), &st) != 0 && (errno == ENOENT || errno == ENOTDIR))
    static_cast<void>(open_store(path, opening));
}

// The text of the user's map file; "" if no file is given. A file that is not found gets a help about what a
// map file is.
std::string text_of_map(const std::string& path, const OpenOptions& opening) {
  if (path.empty()) return "";
  try {
    return read_map_text(path, opening);
  } catch (Error& e) {
    if (e.code() == Code::kNotFound && e.help().empty())
      e.help(
          "`map_file` names a JSON file with rows that replace or extend the built-in table; `mckpt mappings show FAMILY` prints the rows of a family");
    throw;
  }
}

// The declaration of the folder about quantised weights. A method that is not decoded is refused, unless only
// shapes are wanted.
QuantDeclaration quantization_of(const Folder& folder, bool shapes_only) {
  try {
    return read_quant_declaration(folder);
  } catch (const Error& e) {
    if (e.code() != Code::kQuantized || !shapes_only) throw;
    return {};
  }
}

// The values of the folder's files. `opened`: as open_hf_folder() takes it.
std::unique_ptr<Store> values_of(std::unique_ptr<Store>& opened, const std::string& path,
                                 const QuantDeclaration& quant, const HfModelOptions& options) {
  const bool of_path =
      opened && opened->driver().hf_folder && opened->root() == path && !adapted_view(*opened);
  if (of_path && dequantized_view(*opened)) return std::move(opened);
  return dequantized(of_path ? std::move(opened) : open_safetensors_folder(path, options.files), quant,
                     std::nullopt, options.bad_numbers);
}

// The layout of the experts, as the user chose it, in the terms of the mapping; no choice: the tensors'
// shapes decide.
MapOptions map_options(ExpertLayout layout) {
  switch (layout) {
    case ExpertLayout::kAuto:
      break;
    case ExpertLayout::kApart:
      return {Needs::kExpertsApart};
    case ExpertLayout::kFused:
      return {Needs::kExpertsFused};
    case ExpertLayout::kHub:
      return {Needs::kExpertsHub};
  }
  return {};
}

// The one map that the options, the checkpoint and the folder of the model name; "" if none of them does.
std::string agreed_map(const HfModelOptions& options, const Folder& folder, const TensorTable* table) {
  std::string agreed;
  for (const std::string& text : {text_of_map(options.map_file, options.files), options.kept_map,
                                  table ? table->map_text : "", folder_map_text(folder)}) {
    if (text.empty()) continue;
    if (agreed.empty()) agreed = text;
    if (parse_map_file(text) != parse_map_file(agreed))
      throw Error(Code::kContradiction, "the checkpoint was made with another map")
          .file(options.map_file)
          .help(cat(
              "leave `map_file` out: checkpoints and folders keep the map that they were made with, folders as ",
              kMapName));
  }
  return agreed;
}

// Reads the config as the map that applies says, and makes the family of the map. `list`: mckpt's list of
// tensors; null: there is none.
void read_mapped_config(HfModel& m, const Folder& folder, const HfModelOptions& options,
                        const TensorTable* list) {
  m.map_text = agreed_map(options, folder, list);
  if (m.map_text.empty()) {
    m.config = read_config(folder, options.files, options.shapes_only, nullptr);
    return;
  }
  MapFile map = parse_map_file(m.map_text);
  with_file(options.map_file.empty() ? folder.path() : options.map_file, [&] {
    refuse_draft(map);
    m.config = read_config(folder, options.files, options.shapes_only, &map);
    m.own = m.config.family ? std::make_unique<OwnFamily>(*m.config.family, map)
                            : std::make_unique<OwnFamily>(map);
  });
  m.config.family = &m.own->family();
  follow_rows(map, m.config.model);
  if (!options.map_file.empty()) return;
  for (const Family* own : all_families())
    if (std::ranges::find(own->model_types, m.config.model.model_type) != own->model_types.end())
      m.map_over = own->name;
}

// Pairs the parameters with the tensors of the weights, of mckpt's list, or of the index; without any of
// them, with those that the tables promise.
std::unique_ptr<ModelMap> map_of(const HfModel& m) {
  const Family& family = *m.config.family;
  const MapOptions how = map_options(m.expert_layout);
  auto map = [&](SourceTable tensors) {
    return std::make_unique<ModelMap>(m.config.model, family, std::move(tensors), how);
  };
  if (m.store) return map(table_of(*m.store));
  if (m.table && m.table->complete) return map(table_of(*m.table));
  if (m.index) return map(table_of(*m.index));
  return std::make_unique<ModelMap>(ModelMap::promised(m.config.model, family, how));
}

void refuse_unlike_copies(const HfModel& model, const HfModelOptions& options) {
  if (options.leave_unlike_copies) return;
  const std::vector<std::string> unlike =
      unlike_copies(model, options.threads > 0 ? options.threads : default_threads());
  if (!unlike.empty()) throw unlike_ties(unlike).file(model.path);
}

// map_of(), with the front that transformers puts before names, or takes off, where they do not match
// without. An error is about the names in the files.
void pair_tensors(HfModel& m) {
  try {
    m.map = map_of(m);
    return;
  } catch (const Error& first) {
    const bool of_files = m.store && !adapted_view(*m.store) && !dequantized_view(*m.store);
    if (first.code() != Code::kUnaccounted || !of_files) throw;
    try {
      const ModelMap promised =
          ModelMap::promised(m.config.model, *m.config.family, map_options(m.expert_layout));
      std::vector<std::string_view> names;
      for (i32 t = 0; t < promised.sources().size(); t++) names.push_back(promised.sources()[t].name);
      FrontedStore fronted = with_front_of_class(std::move(m.store), names);
      m.store = std::move(fronted.store);
      if (m.store) m.map = map_of(m), m.fronted = fronted.how;
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted || e.is_of_the_moment()) throw;
    }
    if (m.fronted.empty()) throw first;
  }
}

}  // namespace

HfConfig hf_config_of(const std::string& path, const OpenOptions& opening, const std::string& map_text) {
  if (map_text.empty()) return read_config(Folder(path, opening), opening, false, nullptr);
  MapFile map = parse_map_file(map_text);
  return read_config(Folder(path, opening), opening, false, &map);
}

HfModel::HfModel() = default;
HfModel::HfModel(HfModel&&) noexcept = default;
HfModel& HfModel::operator=(HfModel&&) noexcept = default;
HfModel::~HfModel() = default;

// The order matters: the map file changes the family before tensors are paired, and the table of an earlier
// conversion supplies the layout of the experts.
HfModel open_hf_model(const std::string& path, const HfModelOptions& options) {
  std::unique_ptr<Store> none;
  return open_hf_folder(none, path, options);
}

HfModel open_hf_folder(std::unique_ptr<Store>& opened, const std::string& path,
                       const HfModelOptions& options) {
  refuse_missing(path, options.files);
  if (const std::string& base = model_path(path, options.files); base != path)
    return open_hf_model(base, opened ? std::move(opened) : open_store(path, options.files), options);
  // The weights alone, in a file, are what a folder without a config is.
  if (path.ends_with(".safetensors") && is_file(path, options.files)) throw without_config(path);
  Folder folder(path, options.files);
  HfModel m;
  m.path = path;
  m.opening = options.files;
  m.expert_layout = options.expert_layout;
  refuse_two_formats(folder);
  std::string index, list(kTensorTableName);
  bool weights = has_safetensors(folder, index);
  if (weights && is_adapter_folder(folder)) throw adapter_alone(folder);
  // Nothing is known of the tensors of a method that is not decoded; the shapes are those that the config
  // promises.
  const QuantDeclaration quant = quantization_of(folder, options.shapes_only);
  if (!weights && folder.has_file(list))
    m.table = with_file(cat(path, "/", list), [&] {
      return std::make_unique<TensorTable>(parse_tensor_table(json_text(folder.open_file(list))));
    });
  read_mapped_config(m, folder, options, m.table.get());
  bool config_alone = !m.config.quantized.empty() && !quant.config;
  if (config_alone) m.table = nullptr;
  with_file(path, [&] {
    if (config_alone) {
      // map_of() takes the tensors that the family's tables promise.
    } else if (weights) {
      m.store = values_of(opened, path, quant, options);
      refuse_findings(*m.store);
    } else if (m.table && m.table->complete) {
      // The layout that was given when the model was converted holds unless another one is given.
      if (m.expert_layout == ExpertLayout::kAuto) m.expert_layout = m.table->expert_layout;
    } else if (!index.empty() && !quant.config) {
      m.index = with_file(cat(path, "/", index), [&] {
        return std::make_unique<SafetensorsIndex>(
            parse_safetensors_index(json_text(folder.open_file(index))));
      });
    }
    pair_tensors(m);
  });
  refuse_unlike_copies(m, options);
  return m;
}

HfModel open_hf_model(const std::string& path, std::unique_ptr<Store> weights,
                      const HfModelOptions& options) {
  Folder folder(path, options.files);
  HfModel m;
  m.path = path;
  m.opening = options.files;
  m.expert_layout = options.expert_layout;
  std::optional<TensorTable> list;
  if (std::string text = tensor_table_text(folder); !text.empty())
    list = with_file(cat(path, "/", kTensorTableName), [&] { return parse_tensor_table(text); });
  read_mapped_config(m, folder, options, list ? &*list : nullptr);
  m.store = std::move(weights);
  if (const AdaptedStore* view = adapted_view(*m.store)) amend(m.config, view->amended());
  with_file(std::string(m.store->root()), [&] { pair_tensors(m); });
  refuse_unlike_copies(m, options);
  return m;
}

FrontedStore with_names_of_class(std::unique_ptr<Store>& store, const HfModelOptions& options) {
  if (adapted_view(*store)) return {};  // whose root is the base's
  std::vector<RenamedStore::Tensor> tensors;
  std::string_view how;
  try {
    const HfModel model = open_hf_model(store->root(), options);
    how = model.fronted;
    if (how.empty() || model.store->tensor_count() != store->tensor_count()) return {};
    for (i64 t = 0; t < model.store->tensor_count(); t++)
      tensors.push_back({std::string(model.store->name(t)), t});
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted || e.is_of_the_moment()) throw;
    return {};
  }
  return {std::make_unique<RenamedStore>(std::shared_ptr<const Store>(std::move(store)), std::move(tensors),
                                         true),
          how};
}

// Every named tensor becomes a row of a table of its own; the map pairs each row with itself.
HfModel plain_model(const Store& store, const std::function<std::optional<std::string>(i64 tensor)>& name,
                    std::span<const i64> order) {
  HfModel m;
  std::vector<std::pair<i64, std::string>> named;  // tensors with their names
  for (i64 i = 0; i < store.tensor_count(); i++) {
    i64 t = order.empty() ? i : order[i];
    if (std::optional<std::string> own = name(t); own && !own->empty())
      named.emplace_back(t, *std::move(own));
  }
  std::vector<PlainFamily::Parameter> parameters;
  for (const auto& [t, own] : named) parameters.push_back({own, store.dims(t)});
  SourceTable table;
  m.plain = std::make_unique<PlainFamily>(parameters);
  m.config.family = &m.plain->family();
  std::size_t row = 0;
  for (const auto& [t, own] : named)
    table.add({m.plain->family().sections[0].rows[row++].megatron, store.dims(t), store.dtype(t), true});
  m.map = std::make_unique<ModelMap>(ModelConfig{}, m.plain->family(), std::move(table));
  return m;
}

std::string mapping_identity(const HfModel& model) {
  if (model.plain) return "";  // the checkpoint says all
  std::string config;          // a model that was made in memory has none
  if (!model.path.empty())
    config = json_text(Folder(model.path, model.opening).open_file("config.json"), kMaxConfigBytes);
  return cat(config, "\n", expert_layout_name(model.expert_layout), "\n", model.map_text);
}

std::optional<SafetensorsOriginal> original_files(const HfModel& model) {
  if (model.store) return original_files(*model.store);
  return model.table ? model.table->original : std::nullopt;
}

// Reads the data of both tensors of each pair, with several threads.
std::vector<std::string> unlike_copies(const HfModel& model, int threads) {
  if (!model.has_data()) return {};
  std::vector<std::pair<i64, i64>> pairs;  // a copy, and the tensor that it repeats
  for (const UnreadTensor& u : model.map->unread())
    if (u.of >= 0) pairs.emplace_back(u.tensor, u.of);
  std::vector<bool> same = have_same_bytes(*model.store, pairs, threads);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < pairs.size(); i++)
    if (!same[i])
      out.push_back(unlike_tie(model.store->name(pairs[i].first), model.store->name(pairs[i].second)));
  return out;
}

}  // namespace mckpt::impl

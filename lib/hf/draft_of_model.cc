// Chooses the base of a draft, and the entries under "config" with which the reader of the base takes the
// model's numbers.
//
//   other spellings      n_embd for hidden_size, ...: the entry is taken from there
//   refused flags        attention_bias: true, which llama refuses: false, since rows of the map have the biases
//   tied embeddings      a model without an output layer is tied, whatever its config leaves out
#include "hf/draft_of_model.h"

#include <algorithm>
#include <map>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/folder/assets.h"
#include "hf/config/fields.h"
#include "hf/config/json.h"
#include "hf/config/parts.h"
#include "hf/folder/tensors.h"
#include "hf/config/map_file.h"
#include "hf/config/usual_entries.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/store.h"
#include "mappings/family.h"
#include "mappings/map_file/draft.h"
#include "mappings/map_file/explained.h"
#include "mappings/map_file/map.h"
#include "mappings/map_file/name_kinds.h"
#include "mappings/map_file/recognise.h"
#include "mappings/model/accounting.h"
#include "mappings/registry.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMaxConfigBytes = 16 << 20;

std::string config_text(const std::string& path, const OpenOptions& opening) {
  Folder folder(path, opening);
  if (!folder.has_file("config.json"))
    throw Error(Code::kNotFound, "config.json was not found, and without it the model is not known")
        .file(path);
  return json_text(folder.open_file("config.json"), kMaxConfigBytes);
}

bool present(const JsonValue& config, std::string_view key) {
  const JsonValue* value = config.find(key);
  return value && !value->is(JsonType::kNull);
}

std::vector<MapEntry> usual_spellings(const JsonValue& config) {
  std::vector<MapEntry> entries;
  for (const UsualEntry& s : kUsualEntries) {
    if (present(config, s.key)) continue;
    for (std::string_view other : s.others)
      if (present(config, other)) {
        entries.push_back({std::string(s.key), std::string(other), ""});
        break;
      }
  }
  return entries;
}

bool has_output_layer(const SourceTable& tensors) {
  for (const NameKind& kind : name_kinds(tensors))
    for (std::string_view name :
         {"lm_head.weight", "embed_out.weight", "output.weight", "output_layer.weight"})
      if (kind.name == name || kind.name.ends_with(cat(".", name))) return true;
  return false;
}

// The entries that may have to be changed for the reader of the base, one more each time.
class Attempts {
 public:
  Attempts(const std::string& text, const JsonValue& config, const SourceTable& tensors)
      : text_(text), config_(config) {
    map_.config = usual_spellings(config);
    if (!has_output_layer(tensors) && !present(config, "tie_word_embeddings"))
      map_.config.push_back({"tie_word_embeddings", "", "true"});
  }

  // The numbers under usual names; nothing if the config does not give them.
  std::optional<ModelConfig> numbers() const {
    MapFile map = map_;
    map.base = std::string(kNoBase);
    return read(map);
  }

  // The numbers as the reader of the base takes them; nothing if it takes none of the attempts. `map` gets
  // the base and the entries.
  std::optional<ModelConfig> as(const Family& base, const ModelConfig& numbers, MapFile& map) const {
    map = map_;
    map.base = std::string(base.name);
    if (auto m = read(map)) return m;
    for (std::string_view flag : {"attention_bias", "mlp_bias"})
      if (const JsonValue* value = config_.find(flag);
          value && value->is(JsonType::kBool) && value->boolean(flag)) {
        map.config.push_back({std::string(flag), "", "false"});
        if (auto m = read(map)) return m;
      }
    auto add = [&](std::string_view key, i64 n) {
      if (n <= 0 || present(with_entries(config_, map), key)) return false;
      map.config.push_back({std::string(key), "", cat(n)});
      return true;
    };
    for (auto [key, n] :
         {std::pair("num_key_value_heads", numbers.text.kv_groups),
          std::pair("head_dim", numbers.text.head_dim), std::pair("moe_intermediate_size", numbers.moe.ffn)})
      if (add(key, n))
        if (auto m = read(map)) return m;
    return std::nullopt;
  }

  // How far the config is from those of the family: its own numbers, and how many entries it has not that
  // the family's reader asks for. Nothing if the reader does not take it as it is.
  std::optional<HfConfig> as_it_is(const Family& family) const {
    MapFile map = map_;
    map.base = std::string(family.name);
    return read_config(map);
  }

  const std::vector<MapEntry>& entries() const { return map_.config; }

 private:
  std::optional<ModelConfig> read(const MapFile& map) const {
    std::optional<HfConfig> config = read_config(map);
    return config ? std::optional(std::move(config->model)) : std::nullopt;
  }

  std::optional<HfConfig> read_config(const MapFile& map) const {
    try {
      return read_hf_config(text_, true, &map);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  const std::string& text_;
  const JsonValue& config_;
  MapFile map_;
};

// Words of entries that say how a model computes with its tensors. Shapes and names show nothing of it.
constexpr std::string_view kComputing[] = {"scal",           "multiplier", "softcap",    "rotary",
                                           "alibi",          "clip",       "logit_",     "parallel_",
                                           "sliding_window", "act_fn",     "hidden_act", "activation"};

// "rope_parameters.partial_rotary_factor 0.25"; entries that change nothing are left out: null, false, a
// factor of 1.
void list_computation(const JsonValue& config, const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [key, value] : config.object("config")) {
    if (value.is(JsonType::kObject) && (key.starts_with("rope_") || key == "text_config")) {
      list_computation(value, cat(prefix, key, "."), out);
      continue;
    }
    auto in_name = [&name = key](std::string_view word) { return name.find(word) != name.npos; };
    bool stretches = prefix.find("rope_") != prefix.npos && key != "rope_theta" && key != "rope_type";
    if (!stretches && std::ranges::none_of(kComputing, in_name)) continue;
    bool number = value.is(JsonType::kNumber), text = value.is(JsonType::kString);
    bool on = value.is(JsonType::kBool) && value.boolean(key);
    if (number && value.real(key) == 1) continue;
    if (number || on || text)
      out.push_back(cat(prefix, key, " ",
                        number ? value.number(key)
                        : text ? escaped(value.string(key))
                               : "true"));
  }
}

// The tensors have a gate beside the first layer of their MLPs.
bool has_gate(const SourceTable& tensors, const ModelConfig& numbers) {
  std::vector<NameKind> kinds = name_kinds(tensors);
  KindNames names;
  for (const NameKind& kind : kinds) names.insert(kind.name);
  return std::ranges::any_of(
      kinds, [&](const NameKind& kind) { return recognise(kind, names, numbers).rule.starts_with("gated"); });
}

// "Qwen3MoeForCausalLM" and "qwen3_moe" are "qwen3moe".
std::string plain_type(std::string_view name) {
  std::string out;
  for (char c : name.substr(0, name.find("For")))
    if (c != '_' && c != '-') out += 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// What the config calls its model: the type, and its architectures.
std::vector<std::string> names_of_model(const JsonValue& config) {
  std::vector<std::string> names;
  if (const JsonValue* type = config.find("model_type"); type && type->is(JsonType::kString))
    names.push_back(plain_type(type->string("model_type")));
  if (const JsonValue* list = config.find("architectures"); list && list->is(JsonType::kArray))
    for (const JsonValue& name : list->array("architectures"))
      if (name.is(JsonType::kString)) names.push_back(plain_type(name.string("architectures")));
  return names;
}

// How far a family's name is from that of the model, from 0 on; a name of which more than half is another one
// says nothing: 1.
double name_distance(const Family& family, std::span<const std::string> names) {
  double least = 1;
  for (std::string_view type : family.model_types)
    for (const std::string& name : names) {
      const std::string other = plain_type(type);
      const std::size_t longer = std::max({name.size(), other.size(), std::size_t{1}});
      const double apart = static_cast<double>(edit_distance(name, other)) / static_cast<double>(longer);
      if (apart < 0.5) least = std::min(least, apart);
    }
  return least;
}

// All families, the nearest first, by their tensors. Of several that explain as many, the one whose name is
// nearest comes first, then the one with the nearest config.
std::vector<Explained> nearest_families(const SourceTable& tensors, const JsonValue& config,
                                        const Attempts& attempts, const ModelConfig* usual) {
  std::map<const Family*, std::optional<HfConfig>> read;
  std::vector<Explained> families = explained_by_families(tensors, usual, [&](const Family& family) {
    std::optional<HfConfig>& own = read[&family];
    own = attempts.as_it_is(family);
    return own ? &own->model : nullptr;
  });
  constexpr i64 kNotRead = 1000;
  const std::vector<std::string> names = names_of_model(config);
  auto order = [&](const Explained& e) {
    const std::optional<HfConfig>& own = read[e.family];
    return std::tuple(name_distance(*e.family, names), e.missing, own ? own->absent : kNotRead);
  };
  const auto last = std::ranges::find_if(
      families, [&](const Explained& e) { return e.score() < families[0].score(); });
  std::stable_sort(families.begin(), last,
                   [&](const Explained& a, const Explained& b) { return order(a) < order(b); });
  return families;
}

// The tensors with shapes. Throws kNotFound for a folder that has no headers.
FolderTensors known_tensors(const std::string& path, const OpenOptions& opening) {
  FolderTensors tensors = tensors_of_folder(path, opening);
  if (tensors.table.size() == 0 || tensors.index)
    throw Error(Code::kNotFound,
                "the folder has no headers of weights, and without shapes no map can be drafted")
        .file(path)
        .expected("safetensors files");
  refuse_quantized(tensors.table);
  return tensors;
}

}  // namespace

// The base explains more than half of the kinds of tensors, and its reader takes the config; of two, the
// nearer one.
ModelDraft draft_of_model(const std::string& path, const OpenOptions& opening) {
  FolderTensors tensors = known_tensors(path, opening);
  std::string text = config_text(path, opening);
  return with_file(cat(path, "/config.json"), [&] {
    JsonValue config = parse_config(text);
    Attempts attempts(text, config, tensors.table);
    std::optional<ModelConfig> numbers = attempts.numbers();
    if (!numbers) {
      MapFile none;
      none.base = std::string(kNoBase);
      none.config = attempts.entries();
      static_cast<void>(read_hf_config(text, true, &none));  // throws what is wrong
    }
    std::vector<Explained> families = nearest_families(tensors.table, config, attempts, &*numbers);
    const i64 kinds = std::ssize(name_kinds(tensors.table));
    MapFile map, with_config;
    with_config.config = attempts.entries();
    const Family* base = nullptr;
    ModelConfig model = *numbers;
    const bool gated = has_gate(tensors.table, *numbers);
    for (const Explained& e : families) {
      if (2 * e.kinds <= kinds || base) continue;
      std::optional<ModelConfig> read = attempts.as(*e.family, *numbers, with_config);
      // The activation is the base's, and one for plain MLPs is none for gated ones.
      if (read && (read->text.gated_mlp || !gated)) base = e.family, model = *read;
    }
    if (!base) with_config.config = attempts.entries();
    std::vector<std::string> computation;
    list_computation(config, "", computation);
    if (base && model.zero_centered_norms)
      computation.push_back(cat("weights of norms that are stored less one, as ", base->name, " has them"));
    map = draft_map(tensors.table, std::move(model), base);
    map.config = std::move(with_config.config);
    ModelDraft draft{map_file_text(map),
                     *map.base,
                     std::string(families[0].family->name),
                     tensors.table.size(),
                     0,
                     std::ssize(map.rows),
                     std::ssize(open_questions(map)),
                     std::ssize(map.remove),
                     std::move(computation)};
    for (const Explained& e : families)
      if (e.family == (base ? base : families[0].family)) {
        draft.explained = e.tensors;
        draft.nearest = e.family->name;
      }
    return draft;
  });
}

std::optional<Nearest> nearest_family(const std::string& path, const OpenOptions& opening) {
  try {
    FolderTensors tensors = tensors_of_folder(path, opening);
    Nearest out;
    out.tensors = tensors.table.size(), out.has_shapes = !tensors.index;
    if (out.tensors == 0) return out;
    std::string text = config_text(path, opening);
    JsonValue config = parse_config(text);
    const Attempts attempts(text, config, tensors.table);
    std::optional<ModelConfig> numbers = attempts.numbers();
    const std::vector<Explained> families =
        nearest_families(tensors.table, config, attempts, numbers ? &*numbers : nullptr);
    const Explained& near = families[0];
    if (near.tensors > 0) out.family = near.family->name, out.explained = near.tensors;
    return out;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string nearest_text(const Nearest& n) {
  if (n.tensors == 0) return "the folder lists no tensors, so that no family can be called the nearest";
  if (n.family.empty()) return "no family explains any of its tensors";
  return cat("by its tensors the nearest family is ", n.family, ", which explains ", with_commas(n.explained),
             " of ", counted(n.tensors, "tensor"));
}

std::string draft_command(const std::string& path) {
  return cat("mckpt mappings draft ", as_argument(path),
             " map.json   writes a first map file, for `map_file`");
}

void add_family_fact(Store& store) {
  if (!store.driver().hf_folder) return;
  auto type =
      std::ranges::find_if(store.facts(), [](const auto& fact) { return fact.first == "model_type"; });
  if (type == store.facts().end()) return;
  for (const Family* family : all_families())
    if (std::ranges::find(family->model_types, type->second) != family->model_types.end()) return;
  if (Folder(store.root(), store.opening()).has_file(std::string(kMapName)))
    return store.add_fact(std::string(kFamilyFact), cat("that of ", kMapName));
  std::optional<Nearest> near = nearest_family(store.root(), store.opening());
  store.add_fact(std::string(kFamilyFact), cat(kUnknownFamily, near ? cat("; ", nearest_text(*near)) : ""));
}

// Where the tensors cannot be read, the error that is reported is the one about the model type.
void add_way_on(Error& error, const std::string& path, const OpenOptions& opening) {
  std::optional<Nearest> near = nearest_family(path, opening);
  if (!near) return;
  error.note(nearest_text(*near));
  if (near->tensors > 0 && near->has_shapes) error.help(draft_command(path));
}

}  // namespace mckpt::impl

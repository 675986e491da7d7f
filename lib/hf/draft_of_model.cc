// Chooses the base of a draft, and the entries under "config" with which the reader of the base takes the
// model's numbers.
//
//   other spellings      n_embd for hidden_size, ...: the entry is taken from there
//   tied embeddings      a model without an output layer is tied, if its config does not say so
#include "hf/draft_of_model.h"

#include <algorithm>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/json.h"
#include "hf/config/parts.h"
#include "hf/config/usual_entries.h"
#include "hf/folder/assets.h"
#include "hf/folder/tensors.h"
#include "hf/map_file/map_file.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/store.h"
#include "mappings/family.h"
#include "mappings/map_file/draft.h"
#include "mappings/map_file/map.h"
#include "mappings/map_file/name_kinds.h"
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

// The words of families for the experts that all tokens pass and for the others: DeepSeek's, and Qwen's or
// Sarvam's.
constexpr std::string_view kExpertWords[][2] = {{"n_shared_experts", "n_routed_experts"},
                                                {"num_shared_experts", "num_experts"}};

// The entries that give a reader of some of these words what the config has under the other ones.
std::vector<MapEntry> expert_words(const JsonValue& config, const std::string_view (&wanted)[2],
                                   const std::string_view (&others)[2]) {
  std::vector<MapEntry> entries;
  for (int i = 0; i < 2; i++)
    if (!present(config, wanted[i]) && present(config, others[i]))
      entries.push_back({std::string(wanted[i]), std::string(others[i]), ""});
  return entries;
}

// A config without the entry describes an untied model, and one without an output layer is tied.
bool has_output_layer(std::span<const NameKind> kinds) {
  for (const NameKind& kind : kinds)
    for (std::string_view name :
         {"lm_head.weight", "embed_out.weight", "output.weight", "output_layer.weight"})
      if (kind.name == name || kind.name.ends_with(cat(".", name))) return true;
  return false;
}

// The numbers of a model as readers of families take them, and the entries under "config" that they need for
// it.
class ReadNumbers {
 public:
  ReadNumbers(const std::string& text, const JsonValue& config, std::span<const NameKind> kinds)
      : text_(text), config_(config), entries_(usual_spellings(config)) {
    if (!has_output_layer(kinds) && !present(config, "tie_word_embeddings"))
      entries_.push_back({"tie_word_embeddings", "", "true"});
    usual_ = read(std::string(kNoBase), entries_);
  }

  // Under the names that most families use; nothing if the config does not give them.
  const std::optional<ModelConfig>& usual() const { return usual_; }

  // As the family's reader takes them, with one more entry each time; nothing if it takes none of these.
  // `entries` gets those it takes, or the first ones.
  std::optional<ModelConfig> as(const Family& family, std::vector<MapEntry>& entries) const {
    const std::string base(family.name);
    entries = entries_;
    if (auto m = read(base, entries)) return m;
    for (int i = 0; i < 2; i++) {
      std::vector<MapEntry> words = expert_words(config_, kExpertWords[i], kExpertWords[1 - i]);
      if (words.empty()) continue;
      entries = entries_;
      entries.insert(entries.end(), words.begin(), words.end());
      if (auto m = read(base, entries)) return m;
    }
    entries = entries_;
    std::vector<MapEntry> more;
    for (std::string_view flag : {"attention_bias", "mlp_bias"})  // rows of the map have the biases
      if (present(config_, flag)) more.push_back({std::string(flag), "", "false"});
    if (usual_)
      for (auto [key, n] : {std::pair("num_key_value_heads", usual_->text.kv_groups),
                            std::pair("head_dim", usual_->text.head_dim),
                            std::pair("moe_intermediate_size", usual_->moe.ffn)})
        if (n > 0 && !present(config_, key)) more.push_back({key, "", cat(n)});
    for (MapEntry& entry : more) {
      entries.push_back(std::move(entry));
      if (auto m = read(base, entries)) return m;
    }
    entries = entries_;
    return std::nullopt;
  }

  // Why the reader refuses the config with the first entries. pre: as() returned nothing.
  std::string refusal(const Family& family) const {
    std::string why;
    read(std::string(family.name), entries_, &why);
    return why;
  }

 private:
  std::optional<ModelConfig> read(const std::string& base, const std::vector<MapEntry>& entries,
                                  std::string* why = nullptr) const {
    MapFile map;
    map.base = base, map.config = entries;
    try {
      return read_hf_config(text_, true, &map).model;
    } catch (const Error& e) {
      if (why) *why = e.message();
      return std::nullopt;
    }
  }

  const std::string& text_;
  const JsonValue& config_;
  std::vector<MapEntry> entries_;
  std::optional<ModelConfig> usual_;
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

// "Qwen3MoeForCausalLM" and "qwen3_moe" are "qwen3moe".
std::string plain_type(std::string_view name) {
  std::string out;
  for (char c : name.substr(0, name.find("For")))
    if (c != '_' && c != '-') out += 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// The names that the config gives its model: the type, and its architectures.
std::vector<std::string> names_of_model(const JsonValue& config) {
  std::vector<std::string> names;
  if (const JsonValue* type = config.find("model_type"); type && type->is(JsonType::kString))
    names.push_back(plain_type(type->string("model_type")));
  if (const JsonValue* list = config.find("architectures"); list && list->is(JsonType::kArray))
    for (const JsonValue& name : list->array("architectures"))
      if (name.is(JsonType::kString)) names.push_back(plain_type(name.string("architectures")));
  return names;
}

// The distance of a family's name from the model's name, from 0 on; a name of which more than half differs
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

struct Candidate {
  Explained explained;
  std::optional<ModelConfig> numbers;  // nothing if the family's reader does not take the config
  std::vector<MapEntry> entries;
};

// Among the families that have experts or not, as the model has: the one that explains most tensors. If there
// are several, the one with the fewest rows that do not fit, then one whose reader takes the config, the one
// that needs the fewest entries for it first, then the one with the nearest name.
Candidate nearest_of_all(std::span<const NameKind> kinds, const JsonValue& config,
                         const ReadNumbers& numbers) {
  const std::vector<std::string> names = names_of_model(config);
  auto order = [&](const Candidate& c) {
    const Family& family = *c.explained.family;
    return std::tuple(numbers.usual() && !may_hold(family, *numbers.usual()), -c.explained.tensors,
                      c.explained.unfit.size(), !c.numbers, c.entries.size(), name_distance(family, names));
  };
  std::optional<Candidate> best;
  for (const Family* family : all_families()) {
    Candidate c;
    c.numbers = numbers.as(*family, c.entries);
    c.explained = explained_by(*family, kinds, c.numbers ? &*c.numbers : nullptr,
                               numbers.usual() ? &*numbers.usual() : nullptr);
    if (!best || order(c) < order(*best)) best = std::move(c);
  }
  return std::move(*best);
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

ModelDraft draft_of_model(const std::string& path, const OpenOptions& opening) {
  FolderTensors tensors = known_tensors(path, opening);
  std::string text = config_text(path, opening);
  return with_file(cat(path, "/config.json"), [&] {
    JsonValue config = parse_config(text);
    const std::vector<NameKind> kinds = name_kinds(tensors.table);
    const ReadNumbers numbers(text, config, kinds);
    Candidate near = nearest_of_all(kinds, config, numbers);
    if (near.explained.tensors == 0)
      throw Error(Code::kUnknownModel, "no family explains any of the tensors, so that a draft has no base")
          .help("write a map file with \"base\": \"none\" and all rows (docs/adding_a_model.md)");
    ModelDraft draft;
    draft.base = std::string(near.explained.family->name);
    draft.tensors = tensors.table.size();
    draft.explained = near.explained.tensors;
    list_computation(config, "", draft.computation);
    if (near.numbers && near.numbers->zero_centered_norms)
      draft.computation.push_back(
          cat("weights of norms that are stored less one, as ", draft.base, " has them"));
    if (!near.numbers) draft.not_read = numbers.refusal(*near.explained.family);
    MapFile map = draft_map(near.explained, kinds);
    draft.to_decide = std::ssize(map.rows);
    map.config = std::move(near.entries);
    draft.text = map_file_text(map);
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
    const std::vector<NameKind> kinds = name_kinds(tensors.table);
    const Explained near = nearest_of_all(kinds, config, ReadNumbers(text, config, kinds)).explained;
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
  const bool has_map = Folder(store.root(), store.opening()).has_file(std::string(kMapName));
  for (const Family* family : all_families()) {
    if (std::ranges::find(family->model_types, type->second) == family->model_types.end()) continue;
    if (!has_map) return;
    return store.add_fact(
        std::string(kFamilyFact),
        cat("that of ", kMapName, ", which replaces rows of mckpt's own table of ", family->name));
  }
  if (has_map) return store.add_fact(std::string(kFamilyFact), cat("that of ", kMapName));
  std::optional<Nearest> near = nearest_family(store.root(), store.opening());
  store.add_fact(std::string(kFamilyFact), cat(kUnknownFamily, near ? cat("; ", nearest_text(*near)) : ""));
}

// Where the tensors cannot be read, the error that is reported is the one about the model type.
void add_way_on(Error& error, const std::string& path, const OpenOptions& opening) {
  std::optional<Nearest> near = nearest_family(path, opening);
  if (!near) return;
  error.note(nearest_text(*near));
  error.note(
      "checkpoints under the model's own names (FSDP2, torch.save) need no table: `mckpt export`, "
      "`mckpt convert to-safetensors` and `mckpt verify` take them");
  if (near->tensors > 0 && near->has_shapes) error.help(draft_command(path));
}

}  // namespace mckpt::impl

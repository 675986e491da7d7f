// Names are taken apart once: what is in front of PEFT's own prefix, whether the tensor is of the adapter,
// and its name in a folder.
#include "hf/adapter/wrapped_model.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "hf/adapter/lora/lora_config.h"
#include "hf/adapter/renamed_store.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/json/json_text.h"
#include "io/store/open/adapter_base.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostConfigBytes = 16 << 20;
constexpr std::string_view kPrefix = "base_model.model.", kBaseLayer = ".base_layer",
                           kOriginal = ".original_module", kOfTokens = ".token_adapter",
                           kRows = "trainable_tokens_delta";
// Parts of a name after which the adapter is named. Tensors of modules that are trained as a whole are of the
// adapter, too.
constexpr std::string_view kFactors[] = {
    "lora_A", "lora_B",         "lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector",
    kRows,    "modules_to_save"};

// A tensor of a wrapped model.
struct WrappedName {
  std::string_view front;    // before PEFT's prefix
  std::string name;          // in the folder of the base, or of the adapter
  std::string_view adapter;  // what the adapter is called; empty: a tensor of the base
  bool wrapped = false;      // a tensor of the base that the adapter may change
};

void erase_all(std::string& name, std::string_view part) {
  for (std::size_t at = name.find(part); at != name.npos; at = name.find(part, at))
    if (at + part.size() == name.size() || name[at + part.size()] == '.')
      name.erase(at, part.size());
    else
      at += part.size();
}

// The place of a part of a name, with the dots around it: "a.lora_A.b" -> 1. npos: there is none.
std::size_t place_of_part(std::string_view name, std::string_view part) {
  for (std::size_t at = name.find(part); at != name.npos; at = name.find(part, at + 1))
    if (at > 0 && name[at - 1] == '.' && at + part.size() < name.size() && name[at + part.size()] == '.')
      return at - 1;
  return name.npos;
}

// Nothing for a name without PEFT's prefix.
std::optional<WrappedName> taken_apart(std::string_view name) {
  const std::size_t at = name.find(kPrefix);
  if (at == name.npos || (at > 0 && name[at - 1] != '.' && name[at - 1] != ':')) return std::nullopt;
  WrappedName out{name.substr(0, at), std::string(name.substr(at + kPrefix.size())), {}};
  const std::string_view inside = name.substr(at + kPrefix.size());
  for (std::string_view factor : kFactors) {
    const std::size_t part = place_of_part(inside, factor);
    if (part == inside.npos) continue;
    std::string_view rest = inside.substr(part + factor.size() + 2);
    out.adapter = rest.substr(0, rest.find('.'));
    const std::string_view end = rest.substr(out.adapter.size());  // ".weight", or nothing
    const bool whole = factor == "modules_to_save";
    std::string module(inside.substr(0, part));
    // A folder of PEFT has rows of tokens without the wrappers around their module.
    if (factor == kRows) erase_all(module, kBaseLayer);
    out.name = cat(kPrefix, module, whole ? "" : ".", whole ? "" : factor, end);
    return out;
  }
  const std::size_t size = out.name.size();
  erase_all(out.name, cat(kOfTokens, kBaseLayer));
  erase_all(out.name, kBaseLayer);
  erase_all(out.name, kOriginal);
  out.wrapped = out.name.size() < size;
  return out;
}

// A store, divided.
struct Wrapped {
  std::vector<RenamedStore::Tensor> base, adapter;
  std::set<std::string_view> adapters;
  bool with_base = false;
};

// The front of the model: the one that factors have which are matrices of the model, and not states of an
// optimizer.
std::optional<std::string_view> front_of(const Store& store) {
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (std::optional<WrappedName> n = taken_apart(store.name(t)); n && !n->adapter.empty())
      if (std::ranges::any_of(std::array<std::string_view, 4>{".weight", "_A", "_B", kRows},
                              [&](std::string_view end) { return n->name.ends_with(end); }))
        return n->front;
  return std::nullopt;
}

Wrapped divided(const Store& store) {
  Wrapped out;
  const std::optional<std::string_view> front = front_of(store);
  for (i64 t = 0; t < store.tensor_count(); t++) {
    std::optional<WrappedName> n = taken_apart(store.name(t));
    if (!n || n->front != front) {
      out.base.push_back({std::string(store.name(t)), t});
    } else if (n->adapter.empty()) {
      out.with_base = true;
      out.base.push_back({std::move(n->name), t, n->wrapped});
    } else {
      out.adapters.insert(n->adapter);
      out.adapter.push_back({std::move(n->name), t, true});
    }
  }
  return out;
}

Error no_base(const Store& store, i64 tensors) {
  return Error(Code::kNotFound, "the checkpoint has an adapter, and not the model that it changes")
      .file(store.root())
      .expected("all weights of a model, or `base`, the model of the adapter")
      .found(cat(counted(tensors, "tensor"), " of an adapter"))
      .help("`base` names the folder of the model that was trained");
}

std::string folder_of(const Store& store) {
  return is_folder(store.root(), store.opening())
             ? store.root()
             : store.root().substr(0, std::min(store.root().size(), store.root().rfind('/')));
}

// verl's lora_train_meta.json: {"r": 8, "lora_alpha": 16, "task_type": "CAUSAL_LM"}. Whatever else is in it
// counts as in the config of an adapter.
LoraConfig of_train_meta(const std::string& text) {
  const JsonValue meta = parse_config(text);
  const bool names_kind = !meta.is(JsonType::kObject) || meta.find("peft_type");
  LoraConfig out = parse_lora_config(names_kind ? text : with_member(text, 0, "peft_type", "\"LORA\""));
  if (!(out.alpha > 0))
    throw Error(Code::kBadConfig, "'lora_alpha' of the adapter is not a possible number")
        .expected("a positive number")
        .found(out.alpha)
        .help("write the number of the run into the file");
  return out;
}

}  // namespace

bool is_wrapped_model(const Store& store) { return front_of(store).has_value(); }

bool is_adapter_alone(const Store& store) { return is_wrapped_model(store) && !divided(store).with_base; }

LoraConfig config_beside(const Folder& folder) {
  std::optional<LoraConfig> found;
  std::string from;
  for (const char* path : kConfigsBeside) {
    if (!folder.has_file(path)) continue;
    LoraConfig config = with_file(cat(folder.path(), "/", path), [&] {
      const std::string text = json_text(folder.open_file(path), kMostConfigBytes);
      return std::string_view(path) == kTrainMeta ? of_train_meta(text) : parse_lora_config(text);
    });
    if (!found) {
      found = std::move(config), from = path;
    } else if (found->rank != config.rank || found->alpha != config.alpha) {
      throw Error(Code::kBadConfig, "two files beside the checkpoint have other numbers of its adapter")
          .file(folder.path())
          .expected(cat("r ", found->rank, ", lora_alpha ", found->alpha, ", as in ", from))
          .found(cat("r ", config.rank, ", lora_alpha ", config.alpha, " in ", path))
          .help("remove the file that is not of this run");
    } else {
      // Entries that verl does not write, it does not deny.
      const bool whole = std::string_view(path) != kTrainMeta;
      if (const std::string key = unlike_entry(found->text, config.text, whole); !key.empty())
        throw Error(Code::kBadConfig,
                    cat("two files beside the checkpoint say of its adapter another '", key, "'"))
            .file(folder.path())
            .expected(cat("what ", from, " says"))
            .found(cat("something else in ", path))
            .help("remove the file that is not of this run");
    }
  }
  if (found) return *std::move(found);
  throw Error(Code::kBadConfig, "the alpha of the adapter in the checkpoint is not known")
      .file(folder.path())
      .expected(
          "adapter_config.json, lora_adapter/adapter_config.json or lora_train_meta.json beside the files")
      .found("none of them")
      .help(
          "write lora_train_meta.json there, {\"r\": RANK, \"lora_alpha\": ALPHA}, with the numbers of the run");
}

std::unique_ptr<Store> unwrapped_model(std::unique_ptr<Store> store, const BaseFacts& facts) {
  if (!is_wrapped_model(*store)) return store;
  std::shared_ptr<const Store> source = std::move(store);
  Wrapped parts = divided(*source);
  if (parts.adapters.size() > 1)
    throw Error(Code::kUnsupportedTensor, "the checkpoint has several adapters of one model")
        .file(source->root())
        .expected("one")
        .found(listed(std::vector<std::string>(parts.adapters.begin(), parts.adapters.end())))
        .help("merge the one that is wanted where it was trained (merge_and_unload), and save the model");
  if (!parts.with_base) throw no_base(*source, std::ssize(parts.adapter));
  const std::string folder = folder_of(*source);
  const LoraConfig config = config_beside(Folder(folder, source->opening()));
  return std::make_unique<AdaptedStore>(
      std::make_unique<RenamedStore>(source, std::move(parts.base), true),
      std::make_unique<RenamedStore>(source, std::move(parts.adapter), false), config, folder, facts);
}

std::unique_ptr<Store> unwrapped_adapter(std::unique_ptr<Store> store) {
  std::shared_ptr<const Store> source = std::move(store);
  return std::make_unique<RenamedStore>(source, divided(*source).adapter, false);
}

}  // namespace mckpt::impl

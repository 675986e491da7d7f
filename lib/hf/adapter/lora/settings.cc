// Names of modules are compared by their last parts, as PEFT does. Names of bases are names of the hub, or of
// folders that may have been moved since.
#include "hf/adapter/lora/settings.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/lora/base_facts.h"
#include "hf/adapter/lora/lora_config.h"
#include "hf/adapter/lora/parameters.h"
#include "hf/config/unlike_settings.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kWeight = ".weight";

bool saves(const std::string& name, std::string_view tensor) {
  TargetRules one;
  one.saved = {name};
  const std::size_t dot = tensor.rfind('.');
  return dot != tensor.npos && one.saved_whole(tensor.substr(0, dot));
}

// The last part of a path or of a name of the hub, also of a folder of the hub's cache:
// hub/models--Qwen--Qwen3-0.6B/snapshots/c1899de is Qwen3-0.6B.
std::string own_name(std::string path) {
  constexpr std::string_view kCache = "models--";
  if (std::size_t at = path.find(kCache); at != path.npos) {
    path = path.substr(at + kCache.size());
    path = path.substr(0, path.find('/'));
    if (std::size_t dashes = path.rfind("--"); dashes != path.npos) path = path.substr(dashes + 2);
  }
  while (path.ends_with('/')) path.pop_back();
  path = path.substr(path.rfind('/') + 1);
  std::ranges::transform(path, path.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return path;
}

// The first class that a config names; "" for none.
std::string architecture_of(const std::string& text) {
  const JsonValue config = parse_config(text);
  const JsonValue* names = config.find("architectures");
  if (!names || !names->is(JsonType::kArray) || names->array("architectures").empty()) return "";
  const JsonValue& first = names->array("architectures")[0];
  return first.is(JsonType::kString) ? escaped(first.string("architectures")) : "";
}

// "hidden_size 16 there, 32 here": what the configs of two folders say otherwise; "" where one has none.
std::string unlike_configs(const std::string& named, const std::string& path, const OpenOptions& opening) {
  auto config_of = [&](const std::string& folder) {
    return json_text(Folder(folder, opening).open_file("config.json"));
  };
  std::vector<std::string> lines;
  auto add = [&](std::string_view key, std::string_view there, std::string_view here) {
    lines.push_back(cat(key, " ", there, " there, ", here, " here"));
  };
  try {
    const std::string theirs = config_of(named), ours = config_of(path);
    const std::string a = architecture_of(theirs), b = architecture_of(ours);
    if (!a.empty() && !b.empty() && a != b) add("architectures", a, b);
    for (const UnlikeSetting& s : unlike_sizes(theirs, ours)) add(s.key, s.one, s.other);
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return "";
  }
  return lines.empty() ? "" : listed(lines, 4);
}

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code failed;
  return std::filesystem::equivalent(a, b, failed) && !failed;
}

}  // namespace

std::string check_settings(const LoraConfig& config, const BaseTensors& base, const AdaptedParts& parts) {
  for (const std::string& name : config.rules.saved) {
    auto saved = [&](std::string_view tensor) { return saves(name, tensor); };
    if (std::ranges::any_of(parts.replaced, saved)) continue;
    const std::vector<std::string_view> all = base.names();
    auto of_base = std::ranges::find_if(all, saved);
    if (of_base == all.end()) continue;
    throw Error(Code::kUnaccounted,
                "the config says that a module is saved whole, and the adapter has no tensor of it")
        .tensor(*of_base)
        .expected(cat("tensors of ", escaped(name), ", as modules_to_save says"))
        .found("none")
        .help(
            "adapter_config.json and adapter_model.safetensors belong to two adapters, or the config was edited: take both from one save");
  }
  std::vector<std::string_view> untouched;
  bool unknown = false;
  for (i64 t = 0; t < base.store().tensor_count(); t++) {
    std::string_view name = base.store().name(t);
    // Experts that are tensors of their own on disk are stacks in memory, and no modules.
    if (!name.ends_with(kWeight) || base.store().dims(t).size() != 2 || parts.factors[t] ||
        name.find(".experts.") != name.npos)
      continue;
    name.remove_suffix(kWeight.size());
    const std::optional<bool> chosen = config.rules.targeted(name);
    if (chosen == true) untouched.push_back(name);
    unknown |= !chosen;
  }
  if (untouched.empty() && !unknown && std::ranges::find(parts.factors, true) == parts.factors.end())
    throw Error(Code::kUnaccounted,
                "the config chooses no module of the base, and PEFT loads no such adapter")
        .expected("modules or parameters of the base in target_modules or target_parameters")
        .found("none")
        .help("adapter_config.json belongs to another base, or it was edited: take it from the save");
  return untouched.empty()
             ? ""
             : cat("the config chooses ", counted(std::ssize(untouched), "module"),
                   " that the adapter has no factors of, so the weights stay those of the base: ",
                   listed(untouched, 3));
}

OtherBase other_base(const LoraConfig& config, const BaseFacts& facts, const std::string& path,
                     const OpenOptions& opening) {
  OtherBase out;
  if (!config.base_class.empty() && !facts.architecture.empty() && config.base_class != facts.architecture)
    out.warning = cat("the adapter was trained on a ", escaped(config.base_class), ", and the base is a ",
                      escaped(facts.architecture));
  if (config.base.empty() || own_name(config.base) == own_name(path) || is_same_folder(config.base, path))
    return out;
  const std::string names = cat("the adapter's config names ", escaped(config.base, 4096),
                                " as its base, and the base is ", escaped(path, 4096));
  const std::string unlike = is_folder(config.base, opening) && is_folder(path, opening)
                                 ? unlike_configs(config.base, path, opening)
                                 : "";
  if (unlike.empty())
    out.note = names;
  else
    out.warning = cat(names, ": ", unlike);
  return out;
}

}  // namespace mckpt::impl

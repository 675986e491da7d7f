// Reads the list of contents, and opens what it names.
#include "io/store/open/verl_layout.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/names/dcp_names.h"
#include "io/store/names/iteration_names.h"
#include "io/store/open/adapter_base.h"
#include "io/store/open/dcp_parts.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostBytes = i64{1} << 20, kMostTrackerBytes = 64;
constexpr i64 kVersion = 2;
constexpr std::string_view kShards = "megatron_dist_checkpoint", kHuggingFace = "huggingface";
constexpr std::string_view kMark = "metadata.json";  // which Megatron writes into a folder of torch_dist
// The folders of shards, also of saves without a list.
constexpr std::string_view kPartFolders[] = {"model/dist_ckpt", "optimizer/dist_ckpt", "extra/dist_ckpt"};

// A logical part of the save, and where it is.
struct Entry {
  std::string path, format;
};

class Contents {
 public:
  Contents(const Folder& folder, const JsonValue& list) : folder_(folder), list_(list) {
    const JsonValue* framework = list.find("framework");
    const JsonValue* version = list.find("schema_version");
    if (!framework || !framework->is(JsonType::kString) || framework->string("framework") != "megatron")
      refuse("framework \"megatron\"", framework);
    if (!version || !version->is_integer() || version->integer("schema_version") != kVersion)
      refuse(cat("schema_version ", kVersion), version);
    contents_ = list.find("contents");
    if (!contents_ || !contents_->is(JsonType::kObject)) refuse("an object named contents", contents_);
  }

  std::optional<Entry> entry(std::string_view name) const {
    const JsonValue* e = contents_->find(name);
    if (e == nullptr) return std::nullopt;
    const JsonValue *path = e->find("path"), *format = e->find("format");
    if (!path || !path->is(JsonType::kString)) refuse(cat("a path of contents.", name), path);
    Entry out{path->string("path"), format && format->is(JsonType::kString) ? format->string("format") : ""};
    check_inside_name(out.path);
    return out;
  }
  // Refuses a part in a format that is not read: without it the checkpoint would be the other parts alone.
  void check_format(std::string_view part, const Entry& e) const {
    if (e.format == kShards || (part == "model" && e.format == kHuggingFace)) return;
    const JsonValue* entry = contents_->find(part);
    refuse(cat("a format of contents.", part, " that is ", kShards,
               part == "model" ? cat(" or ", kHuggingFace) : ""),
           entry ? entry->find("format") : nullptr);
  }
  // "actor, step 7".
  std::string of() const {
    const JsonValue *role = list_.find("role"), *step = list_.find("global_step");
    std::string out = role && role->is(JsonType::kString) ? role->string("role") : "";
    if (step && step->is_integer())
      out += cat(out.empty() ? "" : ", ", "step ", step->integer("global_step"));
    return out;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected, const JsonValue* found) const {
    throw Error(Code::kUnknownFormat, "the list of contents is not one that mckpt knows")
        .file(cat(folder_.path(), "/", kVerlContents))
        .expected(expected)
        .found(found ? found->summary() : "nothing")
        .help("name the folder of the weights itself, such as model/dist_ckpt or model/huggingface");
  }

  const Folder& folder_;
  const JsonValue& list_;
  const JsonValue* contents_;
};

JsonValue contents_of(const Folder& folder) {
  return with_file(cat(folder.path(), "/", kVerlContents), [&] {
    return parse_json(json_text(folder.open_file(kVerlContents), kMostBytes), JsonNumbers::kPython);
  });
}

// Where the weights are; nothing for a save of states alone.
std::optional<Entry> weights_of(const Contents& contents) {
  std::optional<Entry> model = contents.entry("model");
  return model ? model : contents.entry("hf_model");
}

bool has_shards(const Folder& folder, const std::string& path) {
  try {
    return std::ranges::any_of(folder.entries(path),
                               [](const FolderEntry& e) { return !e.folder && is_dcp_name(e.name); });
  } catch (const Error& e) {
    if (e.code() != Code::kNotFound) throw;
    return false;
  }
}

[[noreturn]] void throw_missing(const Folder& folder, std::string_view part, const std::string& path) {
  throw Error(Code::kIncomplete, cat(kVerlContents, " lists the ", part, ", but its folder has no shards"))
      .file(folder.inside(path))
      .help("copy the folder again");
}

// The folders of shards, the model's first, each once. A run of Megatron-FSDP saves everything in the folder
// of the model, without the mark of torch_dist, and lists its optimizer elsewhere all the same.
DcpParts shards_of(const Folder& folder, const Contents& contents) {
  DcpParts parts;
  bool all_in_one = false;
  for (std::string_view part : {"model", "optimizer", "lr_scheduler", "rng_state"}) {
    std::optional<Entry> e = contents.entry(part);
    if (e) contents.check_format(part, *e);
    if (!e || e->format != kShards || std::ranges::find(parts.folders, e->path) != parts.folders.end())
      continue;
    if (!has_shards(folder, e->path)) {
      if (!all_in_one) throw_missing(folder, part, e->path);
      continue;
    }
    if (part == "model") all_in_one = !folder.has_file(cat(e->path, "/", kMark));
    if (part == "optimizer") parts.common = parts.folders.size();
    parts.folders.push_back(e->path);
  }
  return parts;
}

// Whether the Hugging Face folder has weights: of the model, or of an adapter.
bool has_weights(const Folder& folder, const std::string& path) {
  if (folder.has_file(cat(path, "/adapter/", kAdapterConfig))) return true;
  try {
    return std::ranges::any_of(folder.entries(path), [](const FolderEntry& e) {
      return !e.folder && (e.name.ends_with(".safetensors") || e.name.ends_with(".bin"));
    });
  } catch (const Error& e) {
    if (e.code() != Code::kNotFound) throw;
    return false;
  }
}

// pre: the folder has the list.
std::string listed_adapter(const Folder& folder) {
  const JsonValue list = contents_of(folder);
  const std::optional<Entry> model = weights_of(Contents(folder, list));
  if (!model || model->format != kHuggingFace) return "";
  const std::string adapter = cat(model->path, "/adapter");
  if (!folder.has_file(cat(adapter, "/", kAdapterConfig))) return "";
  for (const FolderEntry& e : folder.entries(model->path))
    if (e.name.ends_with(".safetensors") || e.name.ends_with(".index.json")) return "";
  return adapter;
}

// The folder of the actor below the folder of a run or of a step, as opening follows them; "" if there is
// none.
std::string actor_below(const Folder& folder) {
  std::string step;
  if (folder.has_file(std::string(kTrackerName))) {
    const std::string text = json_text(folder.open_file(std::string(kTrackerName)), kMostTrackerBytes);
    const std::string digits = text.substr(0, text.find_first_not_of("0123456789"));
    step = cat("global_step_", digits, "/");
  }
  const std::string actor = cat(step, "actor");
  return folder.has_file(cat(actor, "/", kVerlContents)) ? actor : "";
}

}  // namespace

std::unique_ptr<Store> open_verl(const Folder& folder) {
  const std::string path = cat(folder.path(), "/", kVerlContents);
  const JsonValue list = contents_of(folder);
  const Contents contents(folder, list);
  const std::optional<Entry> model = weights_of(contents);
  std::unique_ptr<Store> store;
  if (model && model->format == kHuggingFace) {
    const std::string adapter = verl_adapter(folder), chosen = adapter.empty() ? model->path : adapter;
    store = open_store(folder.inside(chosen), folder.opening());
    store->add_fact("chosen", cat(chosen, " (", kVerlContents, ")"));
  } else {
    DcpParts parts = shards_of(folder, contents);
    if (parts.folders.empty())
      throw Error(Code::kUnknownFormat, "the list of contents names no weights and no states")
          .file(path)
          .expected("contents.model, contents.hf_model or contents.optimizer");
    const bool one = parts.folders.size() == 1;
    store = one ? open_dcp(folder.inside(parts.folders[0]), folder.opening())
                : open_dcp_parts(folder.path(), parts, folder.opening());
    if (one)
      store->add_fact("chosen", cat(parts.folders[0], " (", kVerlContents, ")"));
    else
      store->add_fact("parts", listed(parts.folders));
  }
  store->add_fact("verl", escaped(contents.of()));
  store->traits.of_verl = true;
  return store;
}

std::vector<Finding> lost_beside_verl(const Folder& folder) {
  const JsonValue list = contents_of(folder);
  const Contents contents(folder, list);
  std::vector<Finding> out;
  auto lost = [&](std::string path, std::string_view what, bool warning) {
    out.push_back({.code = Code::kIncomplete,
                   .file = std::move(path),
                   .message = cat(kVerlContents, " lists ", what),
                   .help = "copy the folder again",
                   .warning = warning});
  };
  // Opening did not ask for these entries: one that cannot be read does not end the check of the others.
  auto look = [&](std::string_view name, bool warning, auto&& at) {
    try {
      if (const std::optional<Entry> entry = contents.entry(name)) at(entry->path);
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted || e.is_of_the_moment()) throw;
      Finding finding = to_finding(e);
      if (finding.file.empty()) finding.file = kVerlContents;
      finding.warning = warning;
      out.push_back(std::move(finding));
    }
  };
  look("hf_model", false, [&](const std::string& path) {
    if (!has_weights(folder, path))
      lost(path, "the model as Hugging Face has it, but its folder has no weights", false);
  });
  look("hf_config", true, [&](const std::string& path) {
    const std::string config = cat(path, "/config.json");
    if (!folder.has_file(config)) lost(config, "the config of the model, but the file is missing", true);
  });
  look("transformer_config", true, [&](const std::string& path) {
    if (!folder.has_file(path)) lost(path, "the settings of the run, but the file is missing", true);
  });
  return out;
}

std::string verl_adapter(const Folder& folder) {
  try {
    if (folder.has_file(std::string(kVerlContents))) return listed_adapter(folder);
    const std::string actor = actor_below(folder);
    if (actor.empty()) return "";
    const std::string adapter = listed_adapter(Folder(folder.inside(actor), folder.opening()));
    return adapter.empty() ? "" : cat(actor, "/", adapter);
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return "";
  }
}

void refuse_unfinished_verl(const Folder& folder) {
  for (std::string_view part : kPartFolders)
    if (has_shards(folder, std::string(part)))
      throw Error(Code::kIncomplete, cat("the folder has no ", kVerlContents,
                                         ", which verl writes last: the save was interrupted"))
          .file(folder.path())
          .help(cat("take an older save; to look at what is there, name ", part, " itself"));
}

}  // namespace mckpt::impl

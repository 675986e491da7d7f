// The file is looked for where verl puts it: in the checkpoint's folder, and around folders of the names of
// its parts.
#include "io/dcp/run/transformer_config.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostConfigBytes = i64{1} << 20;

// The folder of the checkpoint, and the actor's around it.
std::vector<std::string> places_of(const std::string& root) {
  std::vector<std::string> out{root};
  std::filesystem::path part(root);
  if (!part.has_filename()) part = part.parent_path();  // "dist_ckpt/"
  if (part.filename() != "dist_ckpt") return out;
  std::filesystem::path around = part.parent_path();
  if (around.filename() == "model") around = around.parent_path();
  out.push_back(around.empty() ? "." : around.string());
  return out;
}

bool is_of_model(const JsonValue& config) {
  for (const char* size : {"num_layers", "hidden_size", "num_attention_heads"})
    if (const JsonValue* value = config.find(size); !value || !value->is_integer()) return false;
  return true;
}

}  // namespace

std::optional<JsonValue> transformer_config_of(const Store& store) {
  const std::string name(kTransformerConfigName);
  try {
    for (const std::string& place : places_of(store.root())) {
      if (!is_folder(place, store.opening())) continue;
      const Folder folder(place, store.opening());
      if (!folder.has_file(name)) continue;
      JsonValue config = parse_config(json_text(folder.open_file(name), kMostConfigBytes));
      return is_of_model(config) ? std::optional(std::move(config)) : std::nullopt;
    }
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted || e.is_of_the_moment()) throw;
  }
  return std::nullopt;
}

}  // namespace mckpt::impl

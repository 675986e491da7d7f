// Joins the entries of all files. Those that torch writes about shards begin with DCP_.
#include "io/safetensors/metadata.h"

#include <set>

#include "core/base/text.h"
#include "io/safetensors/safetensors.h"

namespace mckpt::impl {

std::map<std::string, std::string> safetensors_metadata(const Store& store) {
  const auto* files = dynamic_cast<const SafetensorsStore*>(&store);
  std::map<std::string, std::set<std::string>> values;
  for (i32 f = 0; files && f < std::ssize(files->files()); f++)
    for (const auto& [key, value] : files->table(f).metadata())
      if (!key.starts_with("DCP_")) values[key].insert(value);
  std::map<std::string, std::string> out;
  for (const auto& [key, all] : values)
    for (const std::string& value : all) out[key] += cat(out[key].empty() ? "" : " and ", value);
  return out;
}

}  // namespace mckpt::impl

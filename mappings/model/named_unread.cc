#include "mappings/model/named_unread.h"

#include <iterator>

#include "core/base/text.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/source_table.h"
#include "mappings/name_pattern.h"

namespace mckpt::impl {

std::vector<i32> named_by(const Unread& entry, const ModelConfig& model, const SourceTable& sources) {
  const auto has = [&](std::string_view number) { return entry.name.find(number) != entry.name.npos; };
  const i64 text = std::ssize(model.text.layers);
  const i64 times = has("{L}") ? text : has("{N}") || has("{M}") ? model.mtp.depths : 1;
  std::vector<i32> out;
  for (i64 n = 0; n < times; n++) {
    Numbers numbers;
    numbers['L'] = n;
    numbers['N'] = text + n;
    numbers['M'] = n;
    std::string name;
    append_name(name, entry.name, numbers);
    if (const i32 at = sources.find(name); at >= 0) out.push_back(at);
  }
  return out;
}

std::string UnreadReaders::note(const std::vector<i32>& tensors, const SourceTable& sources) const {
  std::vector<i32> read;
  for (i32 t : tensors)
    if (const auto watched = readers_.find(t); watched != readers_.end() && !watched->second.empty())
      read.push_back(t);
  if (read.empty()) return "";
  const i64 more = std::ssize(read) - 1;
  const std::string others = more > 0 ? cat(" and ", with_commas(more), " more") : "";
  const char* verb = more > 0 ? "are" : "is";
  return cat(escaped(sources[read[0]].name), others, " ", verb, " named under \"unread\" in the map, and ",
             verb, " read by ", readers_.at(read[0]), others, " in this model");
}

}  // namespace mckpt::impl

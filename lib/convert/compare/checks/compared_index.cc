// The lists of names and files are parsed and not kept.
#include "convert/compare/checks/compared_index.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "convert/compare/checks/asset_folder.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/store/finding.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char *kMetadata = "metadata", *kTotal = "total_size", *kCount = "total_parameters";

JsonValue without_list(const std::string& name, const IndexSide& side) {
  return parse_json_list(asset_text(side.folder, name), "weight_map", [](const JsonListed&) {});
}

bool has_entry(const JsonValue& index, const char* key) {
  const JsonValue* metadata = index.find(kMetadata);
  return metadata && metadata->find(key);
}

using EntryNames = NameSet<std::string>;

// The names of the entries of the metadata; nothing if it is another kind of value.
std::optional<std::vector<std::string>> metadata_entries(const JsonValue& index) {
  std::vector<std::string> out;
  const JsonValue* metadata = index.find(kMetadata);
  if (metadata && !metadata->is(JsonType::kObject)) return std::nullopt;
  if (metadata)
    for (const JsonMember& entry : metadata->object(kMetadata)) out.push_back(entry.name);
  return out;
}

// The entries of `one` that `other` and `left_out` lack.
std::vector<std::string> entries_of_one(const std::vector<std::string>& one,
                                        const std::vector<std::string>& other, const EntryNames& left_out) {
  const EntryNames theirs(other.begin(), other.end());
  std::vector<std::string> out;
  for (const std::string& entry : one)
    if (!theirs.contains(entry) && !left_out.contains(entry)) out.push_back(entry);
  return out;
}

// The index without these entries of its metadata. One without metadata has empty ones.
JsonValue without_entries(const JsonValue& index, const EntryNames& entries) {
  JsonValue::Object out, metadata;
  for (const JsonMember& m : index.object("the index")) {
    if (m.name != kMetadata) {
      out.push_back(m);
      continue;
    }
    if (!m.value.is(JsonType::kObject)) return index;
    std::ranges::copy_if(m.value.object(kMetadata), std::back_inserter(metadata),
                         [&](const JsonMember& entry) { return !entries.contains(entry.name); });
  }
  out.push_back({kMetadata, JsonValue(std::move(metadata))});
  return JsonValue(std::move(out));
}

// Whether total_size is the sum of the tensors: opening the store checks its own index.
bool has_true_total(const std::string& name, const Store& store) {
  const bool own = std::ranges::any_of(
      store.facts(), [&](const auto& fact) { return fact.first == "index" && fact.second == name; });
  return own &&
         std::ranges::find(store.findings(), Code::kBadTotalSize, &Finding::code) == store.findings().end();
}

}  // namespace

std::optional<IndexDifferences> differences_of_indexes(const std::string& name, const IndexSide& a,
                                                       const IndexSide& b, i64 most, bool of_both) {
  try {
    const JsonValue of_a = without_list(name, a), of_b = without_list(name, b);
    EntryNames left_out;
    if (has_true_total(name, a.store) && has_true_total(name, b.store)) left_out.emplace(kTotal);
    // transformers writes it from version 5 on.
    if (has_entry(of_a, kCount) != has_entry(of_b, kCount)) left_out.emplace(kCount);
    IndexDifferences out;
    const auto mine = metadata_entries(of_a), theirs = metadata_entries(of_b);
    if (of_both && mine && theirs) {
      out.only_a = entries_of_one(*mine, *theirs, left_out),
      out.only_b = entries_of_one(*theirs, *mine, left_out);
      left_out.insert(out.only_a.begin(), out.only_a.end());
      left_out.insert(out.only_b.begin(), out.only_b.end());
    }
    out.values = json_differences(without_entries(of_a, left_out), without_entries(of_b, left_out), most);
    return out;
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
    return std::nullopt;
  }
}

}  // namespace mckpt::impl

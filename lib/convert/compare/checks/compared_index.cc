// The lists of names and files are parsed and not kept.
#include "convert/compare/checks/compared_index.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "convert/compare/checks/asset_folder.h"
#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/store/finding.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char* kMetadata = "metadata";

JsonValue without_list(const std::string& name, const IndexSide& side) {
  return parse_json_list(asset_text(side.folder, name), "weight_map", [](const JsonListed&) {});
}

bool has_entry(const JsonValue& index, const char* key) {
  const JsonValue* metadata = index.find(kMetadata);
  return metadata && metadata->find(key);
}

// The index without these entries of its metadata. One without metadata has empty ones.
JsonValue without_entries(const JsonValue& index, const std::vector<std::string_view>& entries) {
  JsonValue::Object out, metadata;
  for (const JsonMember& m : index.object("the index")) {
    if (m.name != kMetadata) {
      out.push_back(m);
      continue;
    }
    if (!m.value.is(JsonType::kObject)) return index;
    std::ranges::copy_if(
        m.value.object(kMetadata), std::back_inserter(metadata),
        [&](const JsonMember& entry) { return std::ranges::find(entries, entry.name) == entries.end(); });
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

std::optional<JsonDifferences> differences_of_indexes(const std::string& name, const IndexSide& a,
                                                      const IndexSide& b, i64 most) {
  try {
    const JsonValue of_a = without_list(name, a), of_b = without_list(name, b);
    std::vector<std::string_view> left_out;
    if (has_true_total(name, a.store) && has_true_total(name, b.store)) left_out.push_back("total_size");
    // transformers writes it from version 5 on.
    if (constexpr const char* kCount = "total_parameters"; has_entry(of_a, kCount) != has_entry(of_b, kCount))
      left_out.push_back(kCount);
    return json_differences(without_entries(of_a, left_out), without_entries(of_b, left_out), most);
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
    return std::nullopt;
  }
}

}  // namespace mckpt::impl

// Looks behind the views, and compares both sides by key.
#include "convert/compare/checks/metadata.h"

#include <set>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "hf/quantized/dequantized_store.h"
#include "io/safetensors/metadata.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr const char* kName = "__metadata__";

const Store& files_behind(const Store& store) {
  if (const AdaptedStore* merged = adapted_view(store)) return files_behind(merged->base());
  const DequantizedStore* view = dequantized_view(store);
  return view ? files_behind(view->source()) : store;
}

// Programs of torch write the mark "pt", and others nothing, about the same tensors.
bool is_mark(const std::string& key, const std::string& value) { return key == "format" && value == "pt"; }

}  // namespace

bool compare_metadata(const Store& tested, const Store& source, bool problem, VerifyReport& report) {
  for (const Store* side : {&tested, &source})
    if (format_family(side->format()) != FormatFamily::kSafetensors) return true;
  const auto here = safetensors_metadata(files_behind(tested)),
             there = safetensors_metadata(files_behind(source));
  std::set<std::string> keys;
  for (const auto* side : {&here, &there})
    for (const auto& [key, value] : *side) keys.insert(key);
  std::vector<Finding> found;
  bool mark = false;
  for (const std::string& key : keys) {
    auto a = here.find(key), b = there.find(key);
    const bool both = a != here.end() && b != there.end();
    if (both && a->second == b->second) continue;
    if (!both && is_mark(key, a == here.end() ? b->second : a->second)) {
      mark = true;
      continue;
    }
    const std::string of_a = a == here.end() ? "" : a->second, of_b = b == there.end() ? "" : b->second;
    auto shown = [](bool has, const std::string& value) {
      return has ? cat("'", escaped(value), "'") : std::string("nothing");
    };
    found.push_back({.code = Code::kUnequal,
                     .message = cat("the entry '", escaped(key), "' of ", kName, " differs: expected ",
                                    shown(b != there.end(), of_b), ", found ", shown(a != here.end(), of_a)),
                     .warning = !problem});
    if (problem)
      report.differences.push_back({.tensor = kName, .at = cat(".", key), .expected = of_b, .found = of_a});
  }
  const bool equal = found.empty();
  if (equal && !(mark && problem)) return true;
  report.add({.name = "metadata",
              .status = equal     ? Check::Status::kPass
                        : problem ? Check::Status::kFail
                                  : Check::Status::kWarn,
              .count = std::ssize(keys),
              .unit = "keys",
              .note = mark ? "not compared: format of __metadata__, which only one side has" : ""},
             std::move(found));
  return equal || !problem;
}

}  // namespace mckpt::impl

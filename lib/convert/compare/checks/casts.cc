// Groups the tensors by pairs of types, and compares the range and the precision of two types.
#include "convert/compare/checks/casts.h"

#include <map>
#include <vector>

#include "convert/compare/differences/common_type.h"
#include "core/base/error_code.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

// The names of the tensors, by their types in the source and where they were compared.
std::map<std::pair<DType, DType>, std::vector<std::string>> by_types(std::span<const ComparedTypes> tensors) {
  std::map<std::pair<DType, DType>, std::vector<std::string>> out;
  for (const ComparedTypes& t : tensors) out[{t.source, t.tested}].push_back(t.tensor);
  return out;
}

}  // namespace

void warn_of_casts(std::span<const ComparedTypes> tensors, VerifyReport& report) {
  std::vector<Finding> found;
  i64 count = 0, widened = 0;
  std::string wider;
  for (const ComparedTypes& t : tensors)
    if (t.source != t.tested)
      report.unlike.push_back({UnlikeTensor::Kind::kCast, t.tensor, std::string(dtype_name(t.tested)),
                               std::string(dtype_name(t.source)), !holds_values_of(t.tested, t.source)});
  for (const auto& [types, names] : by_types(tensors)) {
    const auto& [from, to] = types;
    if (from != to && holds_values_of(to, from)) {
      widened += std::ssize(names);
      wider += cat(wider.empty() ? "" : ", ", dtype_name(to), " here, ", dtype_name(from), " in the source");
    }
    if (holds_values_of(to, from)) continue;
    count += std::ssize(names);
    bool one = names.size() == 1;
    found.push_back(
        {.code = Code::kUnequal,
         .tensor = one ? names[0] : "",
         .message = cat(one ? "the tensor is" : cat(counted(std::ssize(names), "tensor"), " are"),
                        " compared after a cast from ", dtype_name(from), " to ", dtype_name(to),
                        ", which cannot represent all values", one ? "" : cat(": ", listed(names, 3))),
         .warning = true});
  }
  if (count > 0)
    report.add({"casts", Check::Status::kWarn, count, "tensors"}, std::move(found));
  else if (widened > 0)
    report.add({.name = "casts",
                .status = Check::Status::kPass,
                .count = widened,
                .unit = "tensors",
                .note = std::move(wider)},
               {});
}

void note_casts(std::span<const ComparedTypes> tensors, Observer& observer) {
  for (const auto& [types, names] : by_types(tensors))
    observer.note({Note::Kind::kNote,
                   cat("types   ", counted(std::ssize(names), "tensor"), " of ", dtype_name(types.first),
                       names.size() == 1 ? " is" : " are", " compared as ", dtype_name(types.second),
                       ", the type that the tested side has for ", names.size() == 1 ? "it" : "them")});
}

}  // namespace mckpt::impl

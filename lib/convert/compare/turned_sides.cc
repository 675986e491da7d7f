#include "convert/compare/turned_sides.h"

#include <span>
#include <utility>

#include "convert/compare/sides/sides.h"
#include "convert/open/megatron_names.h"
#include "core/base/text.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

bool has_turned_sides(const Store& a, const Store& b) {
  return is_sharded(b) && is_model_without_config(a) && !has_megatron_names(a) && has_megatron_names(b);
}

void turn_sides(VerifyReport& report, const VerifyReport& before, const std::string& root, bool values) {
  i64 more = 0;  // tensors that the source alone has, beyond those that the tested side alone has
  for (UnlikeTensor& u : std::span(report.unlike).subspan(before.unlike.size())) {
    using Kind = UnlikeTensor::Kind;
    more += (u.kind == Kind::kOnlySource) - (u.kind == Kind::kOnlyTested);
    if (u.kind == Kind::kOnlyTested || u.kind == Kind::kOnlySource)
      u.kind = u.kind == Kind::kOnlyTested ? Kind::kOnlySource : Kind::kOnlyTested;
    std::swap(u.tested, u.source);
  }
  for (Finding& f : std::span(report.findings).subspan(before.findings.size()))
    if (!f.file.empty() && !f.file.starts_with("/")) f.file = cat(root, "/", f.file);
  for (Difference& d : std::span(report.differences).subspan(before.differences.size())) {
    if (values) std::swap(d.expected, d.found);
    if (d.distance) std::swap(d.distance->squares_a, d.distance->squares_b);
  }
  for (Check& c : std::span(report.checks).subspan(before.checks.size()))
    // Tensors that the tested side alone has are among those that were not seen.
    if (c.name == "against")
      c.unseen += more;
    else if (c.name == "path" || c.name == "source")
      c.name = c.name == "path" ? "source" : "path";
}

}  // namespace mckpt::impl

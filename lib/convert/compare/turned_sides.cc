#include "convert/compare/turned_sides.h"

#include <span>
#include <utility>

#include "convert/compare/sides/sides.h"
#include "convert/open/megatron_names.h"
#include "core/base/text.h"
#include "io/store/driver.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

namespace {

bool is_megatron(const Store& store) { return is_sharded(store) && has_megatron_names(store); }

}  // namespace

bool has_turned_sides(const Store& a, const Store& b, bool listed) {
  if (is_megatron(b)) return is_model_without_config(a) && !has_megatron_names(a);
  return listed && is_megatron(a) && b.driver().hf_folder;
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
  const auto tell_side = [&](std::string& file) {
    if (!file.empty() && !file.starts_with("/")) file = cat(root, "/", file);
  };
  for (Finding& f : std::span(report.findings).subspan(before.findings.size())) tell_side(f.file);
  for (Difference& d : std::span(report.differences).subspan(before.differences.size())) {
    tell_side(d.file);
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

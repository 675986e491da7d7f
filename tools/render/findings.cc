// Prints findings, as lines for a person and as JSON.
//
//   problem[MC1103]: model-00002-of-00002.safetensors: ...     problems first, at most five lines without -v
//   warning[MC1108]: ...                                       oddities after them; not printed with -q
//   found in ckpt (3 more: -v); mckpt verify checks all of it
//
// In a job of ranks only rank 0 prints, because all ranks find the same.
#include "tools/render/findings.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/quantized/dequantized_store.h"
#include "io/json/json_writer.h"
#include "io/store/store.h"
#include "runtime/job/job.h"
#include "tools/process/job.h"
#include "tools/render/output.h"
#include "tools/render/setting_names.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostShown = 5;

// "problem[MC1103]: file: rank 3: tensor 'x': message (byte 12)", the kind in red or yellow.
std::string painted_line(bool color, const Finding& f) {
  return cat(paint(color, f.warning ? Style::kYellow : Style::kRed, finding_kind(f)), ": ",
             with_flags(finding_text(f)));
}

}  // namespace

void write_findings(JsonWriter& json, std::span<const Finding> findings) {
  auto text = [&](std::string_view name, const std::string& value) {
    value.empty() ? json.null_field(name) : json.field(name, value);
  };
  json.begin_array();
  for (const Finding& f : findings) {
    json.begin_object().field("code", code_name(f.code));
    text("tensor", f.tensor);
    f.rank < 0 ? json.null_field("rank") : json.field("rank", static_cast<i64>(f.rank));
    text("file", f.file);
    f.offset < 0 ? json.null_field("offset") : json.field("offset", f.offset);
    json.field("message", with_flags(f.message));
    text("help", with_flags(f.help));
    json.field("warning", f.warning).end_object();
  }
  json.end_array();
}

void tell_findings(const GlobalFlags& flags, std::span<const Finding> findings, const std::string& root) {
  if (this_job().rank() != 0) return;  // all ranks find the same
  bool color = stderr_color(flags);
  std::vector<const Finding*> order;
  for (bool warning : {false, true})
    for (const Finding& f : findings)
      if (f.warning == warning && !(warning && flags.quiet)) order.push_back(&f);
  std::size_t shown = flags.verbose > 0 ? order.size() : std::min(order.size(), kMostShown);
  for (std::size_t i = 0; i < shown; i++) complain(painted_line(color, *order[i]));
  if (order.empty()) return;
  std::string more = shown < order.size() ? cat(" (", order.size() - shown, " more: -v)") : "";
  complain(cat("found in ", escaped(root, 4096), more, "; mckpt verify checks everything"));
}

Exit report_findings(const GlobalFlags& flags, const Store& store) {
  tell_findings(flags, store.findings(), store.root());
  return is_sound(store) ? Exit::kOk : Exit::kNo;
}

void warn_of_codes(const GlobalFlags& flags, const Store& store, const std::string& path) {
  const std::optional<Error> codes = undecoded_codes(store);
  if (!codes) return;
  const std::string tensor = codes->tensor().empty() ? "" : cat(" (", escaped(codes->tensor()), ")");
  warn(flags, cat(escaped(path, 4096), ": ", codes->message(), tensor,
                  "; the numbers of such tensors are codes and scales, not values"));
}

}  // namespace mckpt::impl

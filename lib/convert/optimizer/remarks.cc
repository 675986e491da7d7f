// Names and shapes tell the kind of a parameter; a remark names the first few of its parameters.
#include "convert/optimizer/remarks.h"

#include <algorithm>
#include <charconv>

#include "core/base/names.h"
#include "core/base/text.h"

namespace mckpt::impl {

bool has_part(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                                   : std::nullopt;
}

bool is_vector(const Trained& p) {
  return p.dims.size() <= 1 || p.name.ends_with(".bias") || p.name.ends_with("_bias");
}
bool is_expert(const Trained& p) {
  return has_part(p.name, ".experts.") || has_part(p.name, ".local_experts.");
}
// Megatron may give these a learning rate of their own, and other programs do.
bool is_end(const Trained& p) {
  constexpr std::string_view kEnds[] = {"embedding", "embed_tokens",  "output_layer",
                                        "lm_head",   "output.weight", "wte"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return has_part(p.name, end); });
}
// --apply-wd-to-qk-layernorm lets these decay, all together.
bool is_query_or_key_norm(const Trained& p) {
  return has_part(p.name, "q_layernorm") || has_part(p.name, "k_layernorm") || has_part(p.name, "q_norm") ||
         has_part(p.name, "k_norm");
}

// The name without numbers: parameters of one class differ only in layer and expert.
std::string class_of(const Trained& p) {
  std::string out;
  for (std::size_t i = 0; i < p.name.size(); i++) {
    const bool digit = p.name[i] >= '0' && p.name[i] <= '9';
    if (!digit)
      out += p.name[i];
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  // Numbers without names are alike where their shapes are.
  if (is_numbered(p))
    for (i64 d : p.dims) out += cat(" ", d);
  return out;
}

bool is_numbered(const Trained& p) { return has_part(p.name, "number "); }

std::string_view of_count(std::size_t count, std::string_view one, std::string_view several) {
  return count == 1 ? one : several;
}

TrainedParameters Remarks::where(const std::function<bool(const Trained&)>& wanted) const {
  TrainedParameters out;
  for (const Trained& p : content.parameters)
    if (wanted(p)) out.push_back(&p);
  std::ranges::sort(out, [](const Trained* a, const Trained* b) { return natural_less(a->name, b->name); });
  return out;
}

void Remarks::add(Code code, const TrainedParameters& of, std::string_view message, const char* help) {
  if (of.empty()) return;
  std::vector<std::string> names;
  for (const Trained* p : of) names.push_back(p->name);
  found.push_back({.code = code,
                   .tensor = names[0],
                   .message = cat(message, names.size() > 1 ? cat(": ", listed(names, kMostNamed)) : ""),
                   .help = help,
                   .warning = true});
}

void Remarks::add(std::string message, const char* help) {
  found.push_back({.code = Code::kImplausible, .message = std::move(message), .help = help, .warning = true});
}

}  // namespace mckpt::impl

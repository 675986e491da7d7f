// Reads and replaces the layer pattern in args, under its new and its old names. A field is changed where the
// run had it, because an old Megatron reads the old field only.
#include "convert/facts/pattern_args.h"

#include "core/base/error.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pattern_fault.h"
#include "io/dcp/run/args.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char *kPattern = "hybrid_layer_pattern", *kOldPattern = "hybrid_override_pattern",
                     *kOldMtp = "mtp_hybrid_override_pattern";

// The text of a field; nothing if the field is missing or not a text.
std::optional<std::string> text_field(const PickleValue& args, std::string_view name) {
  const PickleValue* value = arg_of(args, name);
  if (!value || !value->is(PickleValue::Kind::kText)) return std::nullopt;
  return std::string(value->text());
}

bool equals(const PickleValue& value, const ArgValue& wanted) {
  using Kind = PickleValue::Kind;
  if (const auto* text = std::get_if<std::string>(&wanted))
    return value.is(Kind::kText) && value.text() == *text;
  if (const i64* number = std::get_if<i64>(&wanted)) return value.is_int() && value.as_int() == *number;
  if (std::holds_alternative<DType>(wanted)) return false;
  if (const bool* flag = std::get_if<bool>(&wanted)) return value.is(Kind::kBool) && value.as_bool() == *flag;
  return value.is_none();
}

}  // namespace

bool is_pattern_arg(std::string_view name) {
  return name == kPattern || name == kOldPattern || name == kOldMtp;
}

std::optional<std::string> pattern_of_args(const PickleValue& args) {
  std::optional<std::string> pattern = text_field(args, kPattern), old = text_field(args, kOldPattern);
  // Megatron adds the MTP parts of an old run to the newer field alone.
  const bool one_main = old && old->find('/') == old->npos && pattern && pattern->find('/') == old->size() &&
                        pattern->starts_with(*old);
  if (pattern && old && *pattern != *old && !one_main)
    throw Error(Code::kBadPattern, "the args of the checkpoint contradict each other")
        .expected(cat(kPattern, " ", escaped(*pattern)))
        .found(cat(kOldPattern, " ", escaped(*old)))
        .help("give the right pattern with `pattern`");
  if (!pattern) pattern = old;
  std::optional<std::string> mtp = text_field(args, kOldMtp);
  const PickleValue* depths = arg_of(args, "mtp_num_layers");
  if (!pattern || !mtp || mtp->empty() || pattern->find('/') != pattern->npos || !depths || !depths->is_int())
    return pattern;
  constexpr i64 kMostDepths = 1000;
  for (i64 d = 0; d < std::min(depths->as_int(), kMostDepths); d++) *pattern += cat("/", *mtp);
  return pattern;
}

std::optional<LayerPattern> pattern_of_run(const Store& store) {
  try {
    std::shared_ptr<const PickleValue> args = args_of(store);
    std::optional<std::string> text = args ? pattern_of_args(*args) : std::nullopt;
    return text ? std::optional(parse_pattern(*text, Dialect::kGrouped)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<ArgChange> args_for_layers(const PickleValue& args, const LayerPattern& pattern, bool gpt,
                                       i64 layers) {
  ArgValue text = pattern.text, main = std::string(pattern.main_part()), none;
  std::vector<ArgChange> changes;
  auto want = [&](const char* name, const ArgValue& value) {
    const PickleValue* now = arg_of(args, name);
    if (now && !equals(*now, value)) changes.push_back({name, value});
  };
  auto has_text = [&](const char* name) {
    const PickleValue* now = arg_of(args, name);
    return now && !now->is_none();
  };
  // A model keeps its pattern in the field in which it was; a new hybrid model gets it in the newer field, if
  // the args have that field.
  bool old_field = has_text(kOldPattern) || !arg_of(args, kPattern);
  // A run with the MTP parts elsewhere has the main part alone in the older field.
  const std::optional<std::string> old = text_field(args, kOldPattern);
  const bool main_alone = old && old->find('/') == old->npos && (has_text(kOldMtp) || has_text(kPattern));
  for (const char* name : {kPattern, kOldPattern}) {
    bool here = has_text(name) || (old_field == (name == kOldPattern) && !has_text(kPattern));
    if (gpt || here) want(name, gpt ? none : main_alone && name == kOldPattern ? main : text);
  }
  if (!gpt && !arg_of(args, kPattern) && !arg_of(args, kOldPattern)) changes.push_back({kPattern, text});
  want("num_layers", layers);
  want("is_hybrid_model", !gpt);
  // The newer field contains the patterns of the MTP parts as well.
  const bool mtp_apart = !gpt && main_alone && !has_text(kPattern) && pattern.mtp_depths > 0;
  want(kOldMtp, mtp_apart ? ArgValue(std::string(pattern.mtp_part())) : none);
  return changes;
}

}  // namespace mckpt::impl

// One case for each kind of step; what several families have in common is in parts.h.
#include "hf/config/steps.h"

#include "core/base/error.h"
#include "hf/config/fields.h"
#include "hf/config/named_parts.h"
#include "hf/config/parts.h"
#include "mappings/config_steps.h"

namespace mckpt::impl {
namespace {

using Kind = ConfigStep::Kind;

std::vector<std::string_view> keys_of(const ConfigStep& step) {
  std::vector<std::string_view> keys;
  for (std::string_view key : step.keys)
    if (!key.empty()) keys.push_back(key);
  return keys;
}

// The flag at the top, or where the top has none the language model's. `either`: the language model's counts
// also where the top says false, as in classes of transformers whose older configs had the flag there alone.
bool read_tied(const ConfigFields& top, bool either) {
  constexpr std::string_view kTied = "tie_word_embeddings", kText = "text_config";
  const bool above = top.flag_or(kTied, false);
  if (above || (top.has(kTied) && !either) || !top.has(kText)) return above;
  return top.object(kText).flag_or(kTied, false);
}

void read_inside(const ConfigFields& c, const ConfigStep& step, ModelConfig& m) {
  const ConfigFields inner = c.object(step.keys[0]);
  read_steps(step.words.empty() ? inner : inner.with_defaults(step.words), step.steps, m);
}

// How many shared experts there are: under one of the keys, which must agree.
i64 shared_experts(const ConfigFields& c, const ConfigStep& step) {
  const std::string_view key = step.keys[0], also = step.keys[1];
  if (also.empty() || !c.has(also)) return c.count_unless_null(key, step.otherwise);
  const i64 other = c.count_or(also, step.otherwise), n = c.count_or(key, other);
  if (other != n) throw c.error(also, cat("contradicts '", c.key(key), "'")).expected(n).found(other);
  return n;
}

// Steps that fill one number or flag.
void read_entry(const ConfigFields& c, const ConfigStep& step, ModelConfig& m) {
  const std::string_view key = step.keys[0];
  switch (step.kind) {
    case Kind::kSize:
      step.number(m) = c.size_of(keys_of(step));
      return;
    case Kind::kSizeOr:
      step.number(m) = c.size_or(key, step.otherwise);
      return;
    case Kind::kCountOr:
      step.number(m) = c.count_or(key, step.otherwise);
      return;
    case Kind::kCountUnlessNull:
      step.number(m) = c.count_unless_null(key, step.otherwise);
      return;
    case Kind::kFlag:
      step.flag(m) = c.flag_or(key, step.otherwise != 0);
      return;
    case Kind::kFixed:
      step.number(m) = step.otherwise;
      return;
    case Kind::kSame:
      step.number(m) = step.other(m);
      return;
    case Kind::kSet:
      step.flag(m) = step.otherwise != 0;
      return;
    case Kind::kTied:
    case Kind::kTiedByEither:
      m.tied = read_tied(c, step.kind == Kind::kTiedByEither);
      return;
    default:
      throw Error(Code::kInternal, "a step of a config is of no known kind");
  }
}

void read_step(const ConfigFields& c, const ConfigStep& step, ModelConfig& m) {
  switch (step.kind) {
    case Kind::kRefused:
      return refuse_flag(c, step.keys[0]);
    case Kind::kNeeded:
      if (!c.flag_or(step.keys[0], true)) throw c.unsupported(step.keys[0], step.words);
      return;
    case Kind::kDivides:
      return must_divide(c, step.keys[0], step.number(m), step.keys[1], step.other(m));
    case Kind::kText:
      return read_text(c, m, step.heads);
    case Kind::kActivation:
      m.text.swiglu = is_silu(c);
      return;
    case Kind::kLayers:
      return set_layers(m, layer_count(c, "num_hidden_layers"), step.layer);
    case Kind::kExperts:
      m.moe.experts = read_experts(c, keys_of(step));
      return;
    case Kind::kSharedExperts:
      m.moe.shared_ffn = checked_mul(shared_experts(c, step), m.moe.ffn, "the width of the shared experts");
      return;
    case Kind::kDenseLayers:
      return choose_dense_layers(c, m, step.otherwise);
    case Kind::kLayerExperts:
      return check_layer_experts(c, m);
    case Kind::kMtp:
      return read_mtp(c, m, step.otherwise, step.layer);
    case Kind::kNoMtp:
      m.mtp = {};
      return;
    case Kind::kPart:
      return named_part(step.words)(c, m, step.otherwise);
    case Kind::kInside:
      return read_inside(c, step, m);
    case Kind::kInsideOrHere:
      return c.has(step.keys[0]) ? read_inside(c, step, m) : read_steps(c, step.steps, m);
    case Kind::kWhere:
      if (c.text_or(step.keys[0], "") == step.words) read_steps(c, step.steps, m);
      return;
    case Kind::kSteps:
      return read_steps(c, step.steps, m);
    default:
      return read_entry(c, step, m);
  }
}

}  // namespace

void read_steps(const ConfigFields& c, std::span<const ConfigStep> steps, ModelConfig& m) {
  for (const ConfigStep& step : steps) read_step(c, step, m);
}

}  // namespace mckpt::impl

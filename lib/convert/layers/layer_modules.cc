// The two names of norms are in core/hybrid/spellings.h;
#include "convert/layers/layer_modules.h"

#include "convert/layers/layer_migration.h"
#include "core/base/text.h"
#include "core/hybrid/kind.h"
#include "core/hybrid/spellings.h"
#include "io/pickle/value.h"

namespace mckpt::impl {
namespace {

// A state with deeper nested lists is taken for one that is not empty.
constexpr int kMostNested = 4;

bool is_empty(const PickleValue& v, int depth) {
  using Kind = PickleValue::Kind;
  if (v.is_none()) return true;
  if (depth > kMostNested) return false;
  if (v.is(Kind::kBytes) || v.is(Kind::kText)) return v.size() == 0;
  if (v.is(Kind::kList) || v.is(Kind::kTuple)) {
    for (PickleValue item : v.items())
      if (!is_empty(item, depth + 1)) return false;
    return true;
  }
  if (!v.is(Kind::kObject)) return false;
  // A tensor is made of storage, offset, size and strides; a BytesIO of its bytes.
  const PickleObject& object = v.as_object();
  std::span<const PickleValue> args = object.args.tuple();
  if (args.size() > 2 && args[0].is(Kind::kStorage)) {
    for (PickleValue dim : args[2].items())
      if (dim.is_int() && dim.as_int() == 0) return true;
    return false;
  }
  PickleValue bytes = args.empty() ? object.state.at(0) : args[0];
  return bytes.is(Kind::kBytes) && bytes.size() == 0;
}

}  // namespace

std::string moved_norm(std::string_view rest, LayerKind kind, NormPlace to) {
  if (to == NormPlace::kFused)
    return usual_rest(SpellingKind::kUnfusedNorm, kind, rest).value_or(std::string(rest));
  std::optional<Respelt> other = to == NormPlace::kApart ? other_name(rest) : std::nullopt;
  bool norm = other && other_names()[other->row].why == SpellingKind::kUnfusedNorm;
  return norm ? std::move(other->name) : std::string(rest);
}

bool is_state_of_norm(std::string_view rest, LayerKind kind) {
  constexpr std::string_view kState = "_extra_state";
  if (!rest.ends_with(kState)) return false;
  std::string weight = cat(rest.substr(0, rest.size() - kState.size()), "weight");
  return usual_rest(SpellingKind::kUnfusedNorm, kind, weight).has_value();
}

bool is_empty_state(const PickleValue& value) { return is_empty(value, 0); }

}  // namespace mckpt::impl

// Follows a tensor through the calls that wrap it, and collects what each of them carries.
#include "io/torch/table/attached.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "core/base/text.h"
#include "io/pickle/classes.h"
#include "io/pickle/keys.h"
#include "io/torch/table/calls.h"
#include "io/torch/table/sharded_tensor.h"
#include "io/torch/table/tensor.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kAttributes = "(attributes)", kQuantizer = "(quantizer)";
constexpr std::array<std::string_view, 4> kByChannel = {"scheme", "scales", "zero_points", "axis"};

// The marks that torch itself puts on a parameter of a subclass and on an nn.Buffer: flags that no program
// gave.
constexpr std::string_view kIsParameter = "_is_param", kIsBuffer = "_is_buffer", kPersistent = "persistent";

bool is_flag(const PickleEntry& e, std::string_view name) {
  return e.key.is(PickleValue::Kind::kText) && e.key.text() == name && e.value.is(PickleValue::Kind::kBool);
}

class Collector {
 public:
  void call(const TorchCall& r) {
    if (r.function == Known::kRebuildQTensor) quantizer(r.args.at(4));
    if (r.has_state) state(r, r.args.at(3));
    if (r.outer_args >= 0) state(r, r.state);
  }
  std::vector<AttachedValue> take() { return std::move(out_); }

 private:
  // By channel the scales are tensors; by tensor there are numbers alone, and one object is enough.
  void quantizer(PickleValue params) {
    if (params.size() != std::ssize(kByChannel)) return out_.push_back({std::string(kQuantizer), params});
    for (std::size_t i = 0; i < kByChannel.size(); i++)
      out_.push_back({cat(kQuantizer, ".", kByChannel[i]), params.at(static_cast<i64>(i))});
  }

  // A dict, or two of them where the class has slots. Classes may give themselves any other state.
  void state(const TorchCall& r, PickleValue v) {
    // Python takes whatever is empty for no fields.
    auto is_none = [](PickleValue part) {
      return part.is_none() || ((part.is(Kind::kTuple) || part.is(Kind::kList)) && part.size() == 0);
    };
    auto is_fields = [&](PickleValue part) { return is_none(part) || part.is(Kind::kDict); };
    const bool pair = v.is(Kind::kTuple) && v.size() == 2 && is_fields(v.at(0)) && is_fields(v.at(1));
    if (!pair) return fields(r, v);
    for (PickleValue part : v.tuple())
      if (!is_none(part)) fields(r, part);
  }

  // Each attribute stands for itself, whatever else the tensor carries: equal ones have equal names on both
  // sides of a comparison. A state without entries, as a class may give itself, is one object.
  void fields(const TorchCall& r, PickleValue v) {
    if (v.is_none() || (v.is(Kind::kDict) && v.size() == 0)) return;
    const std::span<const std::string_view> placing = placing_fields(r);
    bool of_buffer = false;
    for (PickleEntry e : v.entries()) of_buffer = of_buffer || is_flag(e, kIsBuffer);
    auto was_read = [&](PickleEntry e) {
      if (!e.key.is(Kind::kText)) return false;
      return is_flag(e, kIsParameter) || is_flag(e, kIsBuffer) || (of_buffer && is_flag(e, kPersistent)) ||
             std::ranges::find(placing, e.key.text()) != placing.end();
    };
    if (!v.is(Kind::kDict)) return out_.push_back({std::string(kAttributes), v});
    for (PickleEntry e : v.entries())
      if (!was_read(e)) out_.push_back({cat(kAttributes, ".", key_name(e.key)), e.value});
  }

  std::vector<AttachedValue> out_;
};

}  // namespace

std::vector<AttachedValue> attached_values(PickleValue v) {
  Collector all;
  for (int depth = 0; depth < kMostWrappings; depth++) {
    const TorchCall r = torch_call(v);
    if (r.function == Known::kNothing || is_sharded_tensor(r)) break;
    all.call(r);
    v = wrapped_tensor(r);
    if (v.is_none()) break;
  }
  return all.take();
}

}  // namespace mckpt::impl

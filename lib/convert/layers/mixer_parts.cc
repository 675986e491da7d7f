// Sizes are solved from three shapes of the layer. out_proj has `wide` columns, conv1d has `conv` rows, A_log
// has `heads` items; B and C (or query and key) share the rows of conv1d that are left:
//
//   Mamba   conv = wide + 2 * states               in_proj = 2 * wide + 2 * states + heads
//   GDN     conv = 2 * keys + wide                 in_proj = 2 * keys + 2 * wide + 2 * heads
#include "convert/layers/mixer_parts.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/hybrid/names.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// As torch_dist has the names.
struct FusedName {
  LayerKind kind;
  std::string_view stored;
};
constexpr FusedName kFused[] = {
    {LayerKind::kMamba, "mixer.in_proj.weight"},       {LayerKind::kMamba, "mixer.conv1d.weight"},
    {LayerKind::kMamba, "mixer.conv1d.bias"},          {LayerKind::kGdn, "self_attention.in_proj.weight"},
    {LayerKind::kGdn, "self_attention.conv1d.weight"}, {LayerKind::kGdn, "self_attention.conv1d.bias"},
};

// Collects parts one behind the other.
class Parts {
 public:
  void add(std::string_view name, i64 rows) {
    out_.push_back({name, at_, rows});
    at_ += rows;
    bad_ |= rows < 1;
  }
  // Whether all parts have rows and together make up `rows`.
  bool fill(i64 rows) const { return !bad_ && at_ == rows; }
  std::vector<NativePart> take() { return std::move(out_); }

 private:
  std::vector<NativePart> out_;
  i64 at_ = 0;
  bool bad_ = false;
};

// The size of dimension d, or -1 if there is no such dimension.
i64 size(std::span<const i64> dims, std::size_t d) { return d < dims.size() ? dims[d] : -1; }

Parts mamba_parts(std::string_view fused, i64 inner, i64 heads, i64 conv) {
  Parts parts;
  i64 states = (conv - inner) / 2;
  if (fused == "mixer.in_proj.weight") parts.add("z", inner);
  parts.add("x", inner), parts.add("B", states), parts.add("C", conv - inner - states);
  if (fused == "mixer.in_proj.weight") parts.add("dt", heads);
  return parts;
}

Parts gdn_parts(std::string_view fused, i64 values, i64 heads, i64 conv, bool second) {
  Parts parts;
  i64 keys = (conv - values) / 2;
  parts.add("query", keys), parts.add("key", conv - values - keys), parts.add("value", values);
  if (fused != "self_attention.in_proj.weight") return parts;
  parts.add("z", values);
  if (second)
    parts.add("f", keys), parts.add("b", keys), parts.add("w", values);
  else
    parts.add("beta", heads), parts.add("alpha", heads);
  return parts;
}

}  // namespace

std::optional<std::string_view> fused_name(LayerKind kind, std::string_view rest) {
  const std::string usual = with_usual_conv(rest);
  for (const FusedName& f : kFused)
    if (f.kind == kind && with_usual_conv(f.stored) == usual) return f.stored;
  return std::nullopt;
}

std::vector<NativePart> native_parts(std::string_view fused, const LayerDims& dims,
                                     std::optional<NameFault>& fault) {
  bool mamba = fused.starts_with("mixer.");
  std::string module(mamba ? "mixer." : "self_attention.");
  auto dim = [&](std::string_view name, std::size_t d) { return size(dims(cat(module, name)), d); };
  auto rows_of = [&](std::string_view name) { return size(dims(name), 0); };
  const std::string stored_conv = cat(module, "conv1d.weight");
  i64 conv = std::max(rows_of(stored_conv), rows_of(with_usual_conv(stored_conv)));
  i64 wide = dim("out_proj.weight", 1), heads = dim("A_log", 0);
  i64 rows = fused.ends_with("in_proj.weight") ? dim("in_proj.weight", 0) : conv;
  bool even = conv > wide && (conv - wide) % 2 == 0;
  Parts parts = mamba ? mamba_parts(fused, wide, heads, conv)
                      : gdn_parts(fused, wide, heads, conv, dim("dt_bias", 0) != heads);
  if (wide > 0 && heads > 0 && even && parts.fill(rows)) return parts.take();
  fault = {Code::kBadSplit, cat("the parts of ", rows, " rows cannot be computed from conv1d (", conv,
                                " rows), out_proj (", wide, " columns) and A_log (", heads, ")")};
  return {};
}

MixerShapes::MixerShapes(const Store& store, const LayerNames& names) : store_(store) {
  layer_.resize(static_cast<std::size_t>(names.pattern().physical_layers()));
  for (i32 t = 0; t < static_cast<i32>(store.tensor_count()); t++) {
    KeySection section = key_section(DcpDialect::kTorchDist, store.name(t));
    std::optional<NameFault> ignored;
    if (!section.model()) continue;
    LayerName name = names.find(section.name, ignored);
    if (name.kind == LayerName::Kind::kLayer && name.depth < 0 && name.layer >= 0)
      layer_[name.layer].emplace(name.rest, t);
  }
}

std::vector<NativePart> MixerShapes::parts(i32 tensor, i64 layer, std::string_view fused,
                                           std::optional<NameFault>& fault) const {
  std::span<const i64> dims = store_.dims(tensor);
  const auto& names = layer_[layer];
  auto dims_of = [&](std::string_view rest) {
    auto at = names.find(rest);
    return at == names.end() ? std::span<const i64>() : store_.dims(at->second);
  };
  std::vector<NativePart> parts = native_parts(fused, dims_of, fault);
  if (fault) return {};
  if (dims.empty()) {
    fault = {Code::kBadSplit, "the tensor has no rows, so it has no parts"};
    return {};
  }
  for (i64 c = 0; c < store_.chunk_count(tensor); c++)
    if (store_.chunk(tensor, c).sizes[0] != dims[0]) {
      fault = {
          Code::kBadSplit,
          "the tensor is stored whole, but in several chunks: which rank has which rows of a part is not known"};
      return {};
    }
  if (dims[0] != parts.back().first_row + parts.back().rows)
    fault = {Code::kBadSplit,
             cat("the state has ", dims[0], " rows, which is not the number of its parameter")};
  return parts;
}

}  // namespace mckpt::impl

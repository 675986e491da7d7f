// The args say the sizes of the grid and whether MLPs are gated; the folder says the rank's places.
#include "convert/open/megatron_shard.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "convert/keys/cut_by_name.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/sizes.h"
#include "io/pickle/value.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kTower = "vision_model.";

// The numbers in "mp_rank_01_003", the folder of the file.
std::vector<i64> folder_numbers(const std::string& path) {
  constexpr std::string_view kFront = "mp_rank_";
  std::vector<i64> out;
  const std::size_t at = path.rfind(kFront);
  if (at == path.npos) return out;
  const char* p = path.data() + at + kFront.size();
  const char* end = path.data() + path.size();
  for (i64 n; p < end; p++) {
    auto [next, error] = std::from_chars(p, end, n);
    if (error != std::errc()) break;
    out.push_back(n);
    p = next;
    if (p == end || *p != '_') break;
  }
  return out;
}

// None in the args is 0 here, and means the default.
i64 size_of(const std::optional<i64>& said, i64 otherwise) {
  return said.value_or(0) > 0 ? *said : otherwise;
}

// Megatron names the folder by the tensor-parallel rank, then the stage and the expert-parallel rank where
// there is more than one. A place that the grid does not have is unknown, and remarked.
void add_axes(ShardFacts& out, const std::string& path, const RunSizes& sizes) {
  const std::vector<i64> numbers = folder_numbers(path);
  auto add = [&](const char* name, i64 size, bool always) {
    if (size <= 1 && !always) return;
    ShardAxis axis{name, size};
    if (out.mesh.size() < numbers.size()) axis.at = numbers[out.mesh.size()];
    if (axis.at >= size) {
      out.remarks.push_back(cat("the folder is named by ", name, " ", axis.at, ", which the args with ", name,
                                "=", size, " do not have"));
      axis.at = -1;
    }
    out.mesh.push_back(std::move(axis));
  };
  add("tp", size_of(sizes.tensor_ranks, 1), true);
  add("pp", size_of(sizes.pipeline_stages, 1), false);
  add("ep", size_of(sizes.expert_ranks, 1), false);
}

// Whether the args say that MLPs of the language model are gated. Nothing: they do not tell. Runs with a
// gated GELU say "swiglu: False" as those with a plain one do; squared ReLU has no gate.
std::optional<bool> gated_by(const PickleValue& args) {
  auto says = [&](std::string_view name) {
    const PickleValue* flag = arg_of(args, name);
    return flag && flag->is(PickleValue::Kind::kBool) && flag->as_bool();
  };
  if (says("swiglu") || says("quick_geglu") || says("gated_linear_unit")) return true;
  return says("squared_relu") ? std::optional(false) : std::nullopt;
}

// The name of the module's parameter: behind "model.", "model0." and wrappers.
std::string_view parameter_of(std::string_view name) {
  std::size_t dot = name.find('.');
  if (!name.starts_with("model") || dot == name.npos) return {};
  name.remove_prefix(dot + 1);
  constexpr std::string_view kWrapper = "module.";
  while (name.starts_with(kWrapper)) name.remove_prefix(kWrapper.size());
  return name;
}

i64 number(const PickleValue& args, std::string_view name) {
  const PickleValue* value = arg_of(args, name);
  return value && value->is_int() ? value->as_int() : -1;
}

// -1 where one is unknown, or both are too big.
i64 sum(i64 a, i64 b) {
  i64 out = 0;
  return a < 0 || b < 0 || __builtin_add_overflow(a, b, &out) ? -1 : out;
}

// The whole of which `parts` ranks have as much along the dimension; nothing where no tensor is that big.
std::optional<std::vector<i64>> whole_of(std::vector<i64> dims, int cut, i64 parts) {
  try {
    dims[cut] = checked_mul(dims[cut], parts, "the size of a whole tensor");
    checked_items(dims);
    return dims;
  } catch (const Error&) {
    return std::nullopt;
  }
}

class MegatronShard {
 public:
  MegatronShard(const TorchStore& store, const PickleValue& args)
      : store_(store),
        sizes_(run_sizes(args)),
        gated_(gated_by(args)),
        heads_(number(args, "num_attention_heads")),
        head_size_(number(args, "kv_channels")) {
    const PickleValue* latent = arg_of(args, "multi_latent_attention");
    query_rows_ = number(args, "q_lora_rank");
    key_rows_ = sum(number(args, "kv_lora_rank"), number(args, "qk_pos_emb_head_dim"));
    latent_ = latent && latent->is(PickleValue::Kind::kBool) && latent->as_bool();
  }

  std::optional<ShardFacts> facts() {
    add_axes(out_, store_.root(), sizes_);
    if (tp() == 1 && out_.mesh.size() == 1) return std::nullopt;
    for (i64 t = 0; t < store_.tensor_count(); t++) add(t);
    return std::move(out_);
  }

 private:
  i64 tp() const { return size_of(sizes_.tensor_ranks, 1); }

  // Rows of several sections have no single place: nothing. A tower may be gated where the model is not.
  struct Rows {
    bool together, sections;  // neither: unknown
  };
  Rows rows_of(std::string_view name) const {
    const CutRows rows = cut_rows(name);
    if (rows != CutRows::kGated) return {rows == CutRows::kTogether, rows == CutRows::kSections};
    if (name.starts_with(kTower) || !gated_) return {false, false};
    return {!*gated_, *gated_};
  }

  // A few models norm the queries, or keys, of all heads at once, and cut these norms as the heads; all
  // others have norms of one head, whole on every rank. The size tells it where a rank has several heads.
  bool may_be_cut_norm(i64 t) const {
    std::string name(store_.name(t));
    std::size_t at = name.rfind("_layernorm.");
    if (latent_ || at == name.npos || at == 0 || (name[at - 1] != 'q' && name[at - 1] != 'k')) return false;
    name[at - 1] = 'q';
    const i64 queries = find_tensor(store_, name);
    return parameter_of(name).starts_with(kTower) || queries < 0 || heads_ <= tp() ||
           !std::ranges::equal(store_.dims(queries), std::array{head_size_});
  }

  // Older releases cut the down projections of latent attention, newer ones have them whole: then as many
  // rows as the args say.
  bool may_be_cut_projection(i64 t) const {
    const std::string_view name = store_.name(t);
    auto has = [&](std::string_view module) { return name.find(module) != name.npos; };
    const bool both = has("linear_qkv_down_proj."), queries = has("linear_q_down_proj.");
    if (!both && !queries && !has("linear_kv_down_proj.")) return false;
    if (has("norm")) return false;
    const i64 rows = queries ? query_rows_ : both ? sum(query_rows_, key_rows_) : key_rows_;
    return rows < 0 || store_.dims(t).empty() || store_.dims(t)[0] != rows;
  }

  void add(i64 t) {
    ShardTensor& tensor = out_.tensors.emplace_back(
        ShardTensor{.tensor = t, .local = {store_.dims(t).begin(), store_.dims(t).end()}});
    const std::string_view name = parameter_of(store_.name(t));
    const std::optional<int> cut = is_own_module(name) && !may_be_cut_norm(t) && !may_be_cut_projection(t)
                                       ? cut_by_name(name)
                                       : std::nullopt;
    if (!cut || *cut >= std::ssize(tensor.local)) return;
    const bool expert = name.find(".experts.") != name.npos;
    const i64 parts = expert ? size_of(sizes_.expert_tensor_ranks, tp()) : tp();
    if (*cut < 0 || parts == 1) {
      tensor.placements = kWholeHere;
      tensor.whole = tensor.local;
      tensor.offsets.emplace(tensor.local.size());
      return;
    }
    const Rows rows = rows_of(name);
    tensor.placements = cat("Shard(", *cut, ")", rows.sections ? " of each section" : "");
    tensor.whole = whole_of(tensor.local, *cut, parts);
    const i64 at = out_.mesh[0].at;
    if (!tensor.whole || !rows.together || at < 0 || (expert && parts != tp())) return;
    tensor.offsets.emplace(tensor.local.size());
    (*tensor.offsets)[*cut] = at * tensor.local[*cut];
  }

  const TorchStore& store_;
  const RunSizes sizes_;
  const std::optional<bool> gated_;
  const i64 heads_, head_size_;          // -1: unknown
  i64 query_rows_ = -1, key_rows_ = -1;  // of down projections; -1: unknown
  bool latent_ = false;
  ShardFacts out_{};
};

}  // namespace

std::optional<ShardFacts> shard_of_megatron(const TorchStore& store) {
  std::shared_ptr<const PickleValue> args;
  try {
    args = args_of(store);
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
  }
  return args ? MegatronShard(store, *args).facts() : std::nullopt;
}

}  // namespace mckpt::impl

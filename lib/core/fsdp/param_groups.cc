// Sorts parameters into groups and cuts groups into buckets. Groups are numbered by their first parameter; a
// group outside all units is cut after each parameter that reaches the bucket size, so all its buckets but
// the last are at least that large (an embedding that is shared over pipeline stages has a bucket of its
// own).
#include "core/fsdp/param_groups.h"
#include "core/base/error.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace mckpt::impl {
namespace {

// All 8-bit floats count as one type.
DType group_dtype(DType dtype) {
  switch (dtype) {
    case DType::kF8E5M2:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0:
      return DType::kF8E4M3;
    default:
      return dtype;
  }
}

// Groups in the order of their first parameters.
std::vector<Bucket> groups_of(std::span<const Parameter> parameters, bool units) {
  std::vector<Bucket> groups;
  std::map<std::tuple<DType, bool, bool, i64>, std::size_t> number;
  for (std::size_t i = 0; i < parameters.size(); i++) {
    const Parameter& p = parameters[i];
    i64 unit = units ? p.unit : kNoUnit;
    auto [at, first] = number.try_emplace({group_dtype(p.dtype), p.expert, p.trainable, unit}, groups.size());
    if (first) groups.push_back({{}, p.expert, unit});
    groups[at->second].members.push_back(static_cast<i64>(i));
  }
  return groups;
}

// Appends the buckets of one group.
void cut_group(const Bucket& group, std::span<const Parameter> parameters, const Grouping& how,
               std::vector<Bucket>& out) {
  bool by_size = group.unit == kNoUnit && how.bucket_items > 0;
  Bucket open{{}, group.expert, group.unit};
  i64 items = 0;
  auto close = [&] {
    if (!open.members.empty()) out.push_back(open);
    open.members.clear();
    items = 0;
  };
  for (i64 id : group.members) {
    const Parameter& p = parameters[id];
    bool alone = p.shared_embedding && how.strategy != Strategy::kNoShard;
    if (alone) close();
    open.members.push_back(id);
    items = checked_add(items, p.shape.items(), "the items of a bucket");
    // The parameter that reaches the size is the last of its bucket.
    if (alone || (by_size && items >= how.bucket_items)) close();
  }
  close();
}

}  // namespace

// Under v1 units exist with optim_grads_params, and in later versions of megatron-core with every strategy
// that shards.
bool has_units(const Grouping& how) {
  if (how.engine == Engine::kV2 || how.strategy == Strategy::kOptimGradsParams) return true;
  return how.units == UnitScope::kAllSharded && how.strategy != Strategy::kNoShard;
}

i64 default_bucket_items(Engine engine, i64 dp_cp) {
  if (engine == Engine::kV2) return 0;
  constexpr i64 kLeast = 40'000'000, kPerRank = 1'000'000;
  return std::max(kLeast, checked_mul(kPerRank, dp_cp, "the bucket size"));
}

std::vector<Bucket> buckets_of(std::span<const Parameter> parameters, const Grouping& how) {
  if (how.bucket_items < 0)
    throw Error(Code::kBadLayout, "the bucket size is negative")
        .expected("0 or more")
        .found(how.bucket_items);
  std::vector<Bucket> out;
  for (const Bucket& group : groups_of(parameters, has_units(how))) cut_group(group, parameters, how, out);
  return out;
}

}  // namespace mckpt::impl

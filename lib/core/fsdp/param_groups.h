// Which parameters of a model share a bucket under Megatron-FSDP. Parameters that agree in data type, expert
// or dense, trained or frozen, and FSDP unit form a group, numbered by its first parameter. Groups outside
// all units are cut into buckets of about one size:
//
//   embedding  layer 0 ...  layer 1 ...  final norm  output layer        parameters, as registered
//   [- bucket 0 -]                       [------ bucket 1 ------]        no unit: embedding reached the size
//              [bucket 2]   [bucket 3]                                   units are never cut
//
// Each bucket is then packed on its own (flat_buffer.h), dense and expert ones over their own ranks.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"
#include "core/fsdp/strategy.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"

namespace mckpt::impl {

inline constexpr i64 kNoUnit = -1;

// The facts of a parameter that grouping needs.
struct Parameter {
  Shape shape;                 // TP-local
  DType dtype = DType::kBF16;  // during training, after the cast of the whole model
  bool expert = false;         // its name contains ".experts."
  bool trainable = true;
  bool shared_embedding = false;  // tied over pipeline stages
  i64 unit = kNoUnit;             // the FSDP unit (a layer) that owns it
};

// How a training run groups its parameters.
struct Grouping {
  Strategy strategy = Strategy::kOptimGradsParams;
  UnitScope units = UnitScope::kFullShardOnly;
  i64 bucket_items = 0;  // the size at which groups outside units are cut; 0: not at all. v2 never cuts.
  Engine engine = Engine::kV1;
};
// v2 has units under every strategy: a group is what one call of fully_shard() owns.
bool has_units(const Grouping& how);

// The bucket size if none is configured; 0: buckets are not cut. pre: dp_cp > 0, the ranks of a dense group.
i64 default_bucket_items(Engine engine, i64 dp_cp);

// Parameters that share one flat buffer.
struct Bucket {
  std::vector<i64> members;  // in order of registration, which is the order that pack() takes
  bool expert = false;
  i64 unit = kNoUnit;
};

// Buckets in the order of Megatron-FSDP's numbers. pre: parameters are in order of registration. Throws
// kBadLayout for a negative bucket size, kSizeOverflow.
std::vector<Bucket> buckets_of(std::span<const Parameter> parameters, const Grouping& grouping);

}  // namespace mckpt::impl

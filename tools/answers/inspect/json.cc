// Writes the fields of docs/json.md.
#include "tools/answers/inspect/json.h"

#include <optional>

#include "convert/dialects/fsdp/packed_by.h"
#include "convert/open/about_json.h"
#include "convert/open/rank_parameters.h"
#include "convert/open/shard_facts.h"
#include "core/items/dtype.h"
#include "hf/adapter/adapted_store.h"
#include "io/json/json_writer.h"
#include "io/store/format.h"
#include "io/store/lone_shard.h"
#include "io/store/open/beside.h"
#include "io/store/store.h"
#include "tools/answers/inspect/objects.h"
#include "tools/answers/inspect/optimizer_groups.h"
#include "tools/render/findings.h"

namespace mckpt::impl {
namespace {

// Tensors, items and bytes; the items of a model are its parameters.
void write_amount(JsonWriter& json, const Amount& a) {
  json.begin_object()
      .field("tensors", a.tensors)
      .field("parameters", a.items)
      .field("bytes", a.bytes)
      .end_object();
}

}  // namespace

void write_checkpoint_json(JsonWriter& json, const Store& store, const PackedParameters& packed,
                           const std::string& path, bool values, bool groups) {
  StoreSummary s = summarize(*local_view(store), packed);
  const bool copies = has_rank_copies(store);
  const std::optional<i64> once = copies ? parameters_of_ranks(store) : std::nullopt;
  json.field("root", store.root()).field("format", format_text(store.format()));
  json.field("tensors", s.all.tensors)
      .field("parameters", once.value_or(s.part(StatePart::kModel).items))
      .field("with_copies", copies && !once)
      .field("bytes", s.all.bytes);
  json.key("dtypes").begin_object();
  for (const StoreSummary::OfType& d : s.dtypes) {
    json.key(dtype_name(d.dtype));
    write_amount(json, d.amount);
  }
  json.end_object().key("parts").begin_object();
  for (StatePart p : {StatePart::kModel, StatePart::kOptimizer, StatePart::kOther}) {
    json.key(part_name(p));
    write_amount(json, s.part(p));
  }
  json.end_object()
      .field("ranks", store.ranks())
      .field("file_bytes", s.file_bytes)
      .key("files")
      .begin_array();
  for (std::size_t f = 0; f < store.files().size(); f++) {
    json.begin_object().field("path", file_label(store, static_cast<i32>(f)));
    json.field("bytes", store.files()[f].bytes).end_object();
  }
  json.end_array().key("beside").begin_array();
  for (const std::string& name : checkpoints_beside(model_path(path, store.opening()), store))
    json.value(name);
  json.end_array().key("facts").begin_object();
  for (const auto& [name, value] : store.facts()) json.field(name, value);
  json.end_object().key("objects");
  write_objects_json(json, store, values);
  if (groups) write_optimizer_groups(json.key("optimizer_groups"), store);
  const std::optional<ShardFacts> shard = shard_facts(store);
  write_shard(json.key("shard"), store, shard ? &*shard : nullptr);
  const std::optional<PackedBy> packing = packed_by(store);
  write_packing(json.key("packing"), store, packing ? &*packing : nullptr);
  json.key("problems");
  write_findings(json, store.findings());
}

}  // namespace mckpt::impl

// A layer pattern, a segment or a stage of one, and a refusal, each as one JSON object. A refusal has "ok":
// false and the class, the byte, the sentence and the help; it is an answer of `mckpt pattern` and not an
// error.
#include "tools/answers/pattern/json.h"

#include "core/base/text.h"
#include "core/hybrid/keys.h"
#include "core/hybrid/kind.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pattern_fault.h"
#include "core/hybrid/pattern_warnings.h"
#include "core/hybrid/segment.h"
#include "io/json/json_writer.h"
#include "tools/render/answer_json.h"
#include "tools/render/setting_names.h"

namespace mckpt::impl {
namespace {

// Items of the pattern with their symbols and kinds, as in the structures of core/hybrid/pattern.h.
void write_items(JsonWriter& json, std::string_view text, std::span<const PatternItem> items) {
  json.begin_array();
  for (const PatternItem& item : items) {
    std::string_view symbols = text.substr(item.byte, item.physical_count);
    json.begin_object();
    json.field("logical_index", item.logical_index).field("physical_first", item.physical_first);
    json.field("physical_count", item.physical_count).field("symbols", symbols);
    json.key("kinds").begin_array();
    for (char symbol : symbols) json.value(find_layer_kind(symbol)->name);
    json.end_array().field("is_group", item.is_group).end_object();
  }
  json.end_array();
}

void write_segments(JsonWriter& json, const LayerPattern& pattern) {
  json.key("segments").begin_array();
  for (i64 s = 0; s < std::ssize(pattern.segments); s++) {
    const PatternSegment& segment = pattern.segments[s];
    json.begin_object().field("segment", s).field("text", pattern.segment_text(segment));
    json.field("physical_offset", segment.physical_offset).field("logical_offset", segment.logical_offset);
    json.key("items");
    write_items(json, pattern.text, std::span(pattern.items).subspan(segment.first_item, segment.item_count));
    json.end_object();
  }
  json.end_array();
}

// The number of layers of each kind, MTP included, and the index of each layer of the main part within its
// kind.
void write_kinds(JsonWriter& json, const LayerPattern& pattern) {
  std::array<i64, kLayerKinds> counts = layer_counts(pattern);
  json.key("counts").begin_object();
  for (const LayerKindInfo& kind : all_layer_kinds())
    json.field({&kind.symbol, 1}, counts[static_cast<int>(kind.kind)]);
  json.end_object();
  json.key("kind_index_maps").begin_object();
  for (const LayerKindInfo& kind : all_layer_kinds()) {
    std::vector<i64> layers = layers_of_kind(pattern, kind.kind);
    if (layers.empty()) continue;
    json.key({&kind.symbol, 1}).begin_object();
    for (i64 i = 0; i < std::ssize(layers); i++) json.field(cat(layers[i]), i);
    json.end_object();
  }
  json.end_object();
}

// Each physical layer with its two names: in memory, and as stored.
void write_layers(JsonWriter& json, std::span<const LayerPlace> places) {
  json.key("layers").begin_array();
  for (const LayerPlace& p : places) {
    json.begin_object().field("physical_index", p.physical_index).field("logical_index", p.logical_index);
    json.field("layer_number", p.layer_number()).field("kind", p.kind->name);
    json.field("local_prefix", local_layer_prefix(p))
        .field("stored_prefix", stored_layer_prefix(p.logical_index));
    json.end_object();
  }
  json.end_array();
}

void write_warnings(JsonWriter& json, std::span<const PatternWarning> warnings) {
  json.key("warnings").begin_array();
  for (const PatternWarning& w : warnings)
    json.begin_object().field("class", w.name).field("message", w.message).end_object();
  json.end_array();
}

}  // namespace

void write_pattern_json(Output& out, const LayerPattern& pattern, std::span<const PatternWarning> warnings) {
  AnswerJson json(out);
  std::optional<std::string_view> main, mtp;
  if (pattern.has_main) main = pattern.main_part();
  if (pattern.mtp_depths > 0) mtp = pattern.mtp_part();
  json.begin_answer("pattern", true).field("dialect", dialect_name(pattern.dialect));
  json.field("main_pattern", main).field("mtp_pattern", mtp).field("mtp_num_depths", pattern.mtp_depths);
  json.field("total_physical_layers", pattern.physical_layers());
  json.field("total_logical_layers", pattern.logical_layers());
  json.field("pipeline_segments", static_cast<i64>(std::ssize(pattern.segments)));
  json.field("transformer_sharded_keys", pattern.has_groups());
  json.field("final_norm", final_norm_prefix(pattern.has_groups()));
  json.field("physical_kinds", physical_symbols(pattern));
  write_kinds(json, pattern);
  write_segments(json, pattern);
  if (pattern.mtp_depths > 0) {
    json.key("mtp_items");
    write_items(json, pattern.text, pattern.mtp_items);
  }
  write_layers(json, layer_places(pattern));
  write_warnings(json, warnings);
  json.end_answer();
}

void write_segment_json(Output& out, std::string_view text, Dialect dialect,
                        std::span<const PatternItem> items) {
  AnswerJson json(out);
  json.begin_answer("pattern", true).field("dialect", dialect_name(dialect)).key("items");
  write_items(json, text, items);
  json.end_answer();
}

void write_stage_json(Output& out, std::string_view main, Dialect dialect, const StageLayers& stage,
                      std::span<const PatternWarning> warnings) {
  AnswerJson json(out);
  json.begin_answer("pattern", true).field("dialect", dialect_name(dialect));
  json.field("physical_offset", stage.physical_offset).field("logical_offset", stage.logical_offset);
  json.key("items");
  write_items(json, main, stage.items);
  write_layers(json, stage_places(main, stage.items, 0));
  write_warnings(json, warnings);
  json.end_answer();
}

void write_failure_json(Output& out, std::string_view pattern, const PatternFailure& failure) {
  AnswerJson json(out);
  json.begin_answer("pattern", false).field("error", fault_name(failure.fault));
  json.field("byte", failure.byte < 0 ? std::nullopt : std::optional(failure.byte));
  json.field("message", fault_sentence(failure, pattern))
      .field("help", with_flags(fault_help(failure.fault)));
  json.end_answer();
}

}  // namespace mckpt::impl

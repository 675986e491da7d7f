// mckpt pattern: a HybridStack layer pattern explained. One of five questions is asked at a time: what a
// pattern says, whether a segment is valid, which layers a pipeline stage runs, which pattern the old ratios
// mean, and which rows a context-parallel rank computes with.
#include "tools/commands/commands.h"
#include "tools/render/answer_json.h"
#include "tools/render/cp_slice_answer.h"
#include "tools/render/pattern_text.h"
#include "tools/render/setting_names.h"

namespace mckpt {
namespace {

struct Options {
  std::optional<std::string> pattern, ratios, slice;
  std::string dialect = "grouped";
  bool segment = false;
  std::optional<i64> pp_size, pp_rank;
  StageRequest stage;

  Dialect chosen_dialect() const { return dialect == "flat" ? Dialect::kFlat : Dialect::kGrouped; }
  bool wants_stage() const {
    return pp_size || pp_rank || stage.vp_stage || stage.first_stage_layers || stage.last_stage_layers;
  }
};

void declare(CommandLine& line, Options& o) {
  line.description(
      "A pattern has one symbol for each layer: M Mamba, G gated delta net, * attention, D sparse and + "
      "latent attention, - dense MLP, E mixture of experts. A | separates pipeline segments, a / separates "
      "MTP parts, and in the grouped dialect [ ] enclose layers that share one index in checkpoint keys.");
  line.on_unknown_option("a pattern that begins with - follows --, as in: mckpt pattern -- '-*-*'");
  line.positional("PATTERN", o.pattern, "the pattern; a pattern that begins with - must follow --");
  line.option("--dialect NAME", o.dialect, "grouped (default) or flat, which has no brackets")
      .choices({"flat", "grouped"});
  line.flag("--segment", o.segment, "take PATTERN as one pipeline segment, without | and /");
  line.heading("One pipeline stage");
  line.option("--pp-size|--pipeline-model-parallel-size", o.pp_size, "pipeline size; default 1");
  line.option("--pp-rank", o.pp_rank, "pipeline rank; default 0");
  line.option("--vp-stage", o.stage.vp_stage, "virtual pipeline stage of the rank");
  line.option("--first-stage-layers|--decoder-first-pipeline-num-layers", o.stage.first_stage_layers,
              "layers of the first stage; only without |");
  line.option("--last-stage-layers|--decoder-last-pipeline-num-layers", o.stage.last_stage_layers,
              "layers of the last stage; only without |");
  line.heading("Instead of PATTERN");
  line.option("--from-ratios N,A,M", o.ratios, "the pattern of N layers, ratio A attention, ratio M MLP");
  line.option("--cp-slice KIND:SIZE=N,...", o.slice, "rows of a context-parallel rank; see above");
  describe_cp_slice(line);
  line.example("mckpt pattern '[*-]M|[*E]-/*M'");
  line.example("mckpt pattern 'M-M-|M-M*-' --pp-size 2 --pp-rank 1");
  line.example("mckpt pattern --dialect flat -- '-*-*'");
  line.example("mckpt pattern --from-ratios 56,0.08,0.5");
  line.example("mckpt pattern --cp-slice mamba:d_inner=16,nheads=4,ngroups=2,d_state=3,cp=4,rank=1");
}

void check_usage(const Options& o) {
  int questions = o.pattern.has_value() + o.ratios.has_value() + o.slice.has_value();
  if (questions == 0) throw Error(Code::kUsage, "a PATTERN is missing, or --from-ratios or --cp-slice");
  if (questions > 1) throw Error(Code::kUsage, "PATTERN, --from-ratios and --cp-slice exclude each other");
  if (o.segment && o.wants_stage())
    throw Error(Code::kUsage,
                "--segment is about one segment, and the stage options are about the whole pattern");
  if (!o.pattern && (o.segment || o.wants_stage()))
    throw Error(Code::kUsage, "--segment and the stage options need a PATTERN");
}

std::vector<PatternWarning> warnings_of(const LayerPattern& pattern) {
  std::vector<PatternWarning> out;
  for (const GroupHazard& h : group_hazards(pattern)) {
    std::string_view symbols = pattern.symbols(pattern.items[h.logical_index]);
    std::string who = cat("decoder.layers.", h.logical_index, ": '", symbols[h.first_member], "' and '",
                          symbols[h.second_member], "' of the group [", escaped(symbols, 16), "] ");
    if (h.same_keys)
      out.push_back({"duplicate_keys", who + "write the same keys: such a checkpoint cannot be saved right"});
    else
      out.push_back(
          {"shared_family", who + "share a name family: a key does not tell which of them it belongs to"});
  }
  return out;
}

std::vector<PatternWarning> stage_warnings(std::string_view main, Dialect dialect,
                                           const StageRequest& request) {
  Checked<LayerPattern> whole = check_pattern(main, dialect);
  if (const auto* failure = std::get_if<PatternFailure>(&whole))
    return {{"invalid_elsewhere",
             cat("this stage is valid, and the pattern as a whole is not: ", fault_sentence(*failure, main),
                 ", byte ", failure->byte, ", ", fault_name(failure->fault))}};
  const LayerPattern& pattern = std::get<LayerPattern>(whole);
  std::vector<PatternWarning> out = warnings_of(pattern);
  if (auto gap = uneven_gap(pattern, request)) {
    std::string layers = range_words(gap->layers);
    if (gap->twice)
      out.push_back(
          {"layers_twice", cat("both stages get ", layers, ": the stage sizes add up to too much")});
    else
      out.push_back({"layers_lost", cat("no stage gets ", layers, ": the stage sizes add up to too little")});
  }
  if (request.pp_size > 1 && std::ssize(pattern.segments) == 1)
    out.push_back(
        {"uncut_pipeline", "a pipeline over a pattern without '|' is an old form; cut it with '|'"});
  return out;
}

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

void write_pattern_json(AnswerJson& json, const LayerPattern& pattern) {
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
}

Exit answer_failure(Output& out, std::string_view pattern, const PatternFailure& failure) {
  if (!out.json()) {
    write_failure_text(out, pattern, failure);
  } else {
    AnswerJson json(out);
    json.begin_answer("pattern", false).field("error", fault_name(failure.fault));
    json.field("byte", failure.byte < 0 ? std::nullopt : std::optional(failure.byte));
    json.field("message", fault_sentence(failure, pattern))
        .field("help", with_flags(fault_help(failure.fault)));
    json.end_answer();
  }
  return Exit::kNo;
}

Exit answer_pattern(Output& out, const Options& o, bool verbose) {
  Checked<LayerPattern> checked = check_pattern(*o.pattern, o.chosen_dialect());
  if (const auto* failure = std::get_if<PatternFailure>(&checked))
    return answer_failure(out, *o.pattern, *failure);
  const LayerPattern& pattern = std::get<LayerPattern>(checked);
  std::vector<PatternWarning> warnings = warnings_of(pattern);
  if (!out.json()) {
    write_pattern_text(out, pattern, verbose);
    write_warnings_text(out, warnings);
  } else {
    AnswerJson json(out);
    write_pattern_json(json, pattern);
    write_warnings(json, warnings);
    json.end_answer();
  }
  return Exit::kOk;
}

Exit answer_segment(Output& out, const Options& o, bool verbose) {
  Checked<std::vector<PatternItem>> checked = check_segment(*o.pattern, o.chosen_dialect());
  if (const auto* failure = std::get_if<PatternFailure>(&checked))
    return answer_failure(out, *o.pattern, *failure);
  const auto& items = std::get<std::vector<PatternItem>>(checked);
  if (!out.json()) {
    write_segment_text(out, *o.pattern, items, verbose);
  } else {
    AnswerJson json(out);
    json.begin_answer("pattern", true).field("dialect", o.dialect).key("items");
    write_items(json, *o.pattern, items);
    json.end_answer();
  }
  return Exit::kOk;
}

Exit answer_stage(Output& out, const Options& o, bool verbose) {
  StageRequest request = o.stage;
  request.pp_size = o.pp_size.value_or(1);
  request.pp_rank = o.pp_rank.value_or(0);
  std::string_view main = std::string_view(*o.pattern).substr(0, o.pattern->find('/'));
  Checked<StageLayers> checked = select_stage(main, o.chosen_dialect(), request);
  if (const auto* failure = std::get_if<PatternFailure>(&checked)) return answer_failure(out, main, *failure);
  const StageLayers& stage = std::get<StageLayers>(checked);
  std::vector<PatternWarning> warnings = stage_warnings(main, o.chosen_dialect(), request);
  if (!out.json()) {
    write_stage_text(out, main, stage, request, verbose);
    write_warnings_text(out, warnings);
  } else {
    AnswerJson json(out);
    json.begin_answer("pattern", true).field("dialect", o.dialect);
    json.field("physical_offset", stage.physical_offset).field("logical_offset", stage.logical_offset);
    json.key("items");
    write_items(json, main, stage.items);
    write_layers(json, stage_places(main, stage.items, 0));
    write_warnings(json, warnings);
    json.end_answer();
  }
  return Exit::kOk;
}

Exit answer_ratios(Output& out, const Options& o) {
  std::string_view text = *o.ratios;
  std::size_t first = text.find(','), second = text.find(',', first == text.npos ? first : first + 1);
  if (second == text.npos)
    throw Error(Code::kUsage, "--from-ratios takes a number of layers and two ratios")
        .expected("N,A,M as in 56,0.08,0.5")
        .found(cat("'", escaped(text), "'"));
  i64 layers = parse_i64(text.substr(0, first), "--from-ratios");
  if (layers > kMaxRatioLayers)
    throw Error(Code::kUsage, "--from-ratios: too many layers")
        .expected(cat("at most ", kMaxRatioLayers))
        .found(layers);
  auto ratio = [&](std::size_t begin, std::size_t end) {
    return parse_double(text.substr(begin, end - begin), "--from-ratios");
  };
  Checked<std::string> checked =
      pattern_from_ratios(layers, ratio(first + 1, second), ratio(second + 1, text.size()));
  if (const auto* failure = std::get_if<PatternFailure>(&checked)) return answer_failure(out, "", *failure);
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("pattern", true).field("pattern", std::get<std::string>(checked));
    json.end_answer();
  } else {
    out.line(std::get<std::string>(checked));
  }
  return Exit::kOk;
}

}  // namespace

Exit pattern_command(CommandLine& line) {
  Options o;
  declare(line, o);
  line.parse();
  check_usage(o);
  Output out(line.flags());
  bool verbose = line.flags().verbose > 0;
  Exit exit = o.slice           ? answer_cp_slice(out, *o.slice)
              : o.ratios        ? answer_ratios(out, o)
              : o.segment       ? answer_segment(out, o, verbose)
              : o.wants_stage() ? answer_stage(out, o, verbose)
                                : answer_pattern(out, o, verbose);
  out.flush();
  return exit;
}

}  // namespace mckpt

// Rows that the engine does not have are named below the table, with the reason.
#include "tools/answers/layout/memory.h"

#include "core/base/text.h"
#include "io/json/json_writer.h"
#include "tools/answers/layout/model.h"
#include "tools/render/output.h"
#include "tools/render/setting_names.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

std::string type_text(const std::optional<DType>& type, std::string_view none) {
  return type ? std::string(dtype_name(*type)) : std::string(none);
}

}  // namespace

void write_memory(Output& out, const ModelLayout& l, const MemoryTable& table) {
  using enum Align;
  out.line(cat("memory of the rank that takes most; main weights ", type_text(table.types.main, "none"),
               ", gradients ", type_text(table.types.gradients, "as the weights"), ", moments ",
               dtype_name(table.types.moments)));
  out.write("\n");
  TextTable text({{"", kLeft},
                  {"engine", kLeft},
                  {"strategy", kLeft},
                  {"weights", kRight},
                  {"main", kRight},
                  {"gradients", kRight},
                  {"moments", kRight},
                  {"total", kRight},
                  {"holes", kRight},
                  {"padding", kRight},
                  {"gathered", kRight},
                  {"unreduced", kRight},
                  {"largest unit", kLeft}});
  std::vector<std::string> refused;
  for (const MemoryRow& row : table.rows) {
    if (!row.refused.empty()) {
      refused.push_back(cat(engine_name(row.engine), " ", strategy_name(row.strategy), ": ", row.refused));
      continue;
    }
    const RankMemory& m = row.memory;
    const bool own = row.engine == l.fsdp.engine && row.strategy == l.fsdp.strategy;
    text.row({own ? ">" : "", std::string(engine_name(row.engine)), std::string(strategy_name(row.strategy)),
              human_bytes(m.weights), human_bytes(m.main_weights), human_bytes(m.gradients),
              human_bytes(m.moments), human_bytes(m.total()), human_bytes(m.holes), human_bytes(m.padding),
              m.gathered > 0 ? human_bytes(m.gathered) : "-", m.gathered > 0 ? human_bytes(m.unreduced) : "-",
              escaped(largest_unit(m))});
  }
  text.write(out);
  for (const std::string& line : refused) out.line(with_flags(line));
}

void write_memory_json(JsonWriter& json, const MemoryTable& table) {
  json.begin_object();
  auto type = [&](std::string_view field, const std::optional<DType>& of) {
    of ? json.field(field, dtype_name(*of)) : json.null_field(field);
  };
  type("main_dtype", table.types.main);
  type("gradients_dtype", table.types.gradients);
  json.field("moments_dtype", dtype_name(table.types.moments)).key("rows").begin_array();
  for (const MemoryRow& row : table.rows) {
    const RankMemory& m = row.memory;
    json.begin_object()
        .field("engine", engine_name(row.engine))
        .field("strategy", strategy_name(row.strategy));
    row.refused.empty() ? json.null_field("refused") : json.field("refused", row.refused);
    if (!row.refused.empty()) {
      json.end_object();
      continue;
    }
    json.field("rank", m.rank).field("weights", m.weights).field("main_weights", m.main_weights);
    json.field("gradients", m.gradients).field("moments", m.moments).field("buffers", m.buffers);
    json.field("total", m.total()).field("holes", m.holes).field("padding", m.padding);
    json.field("gathered", m.gathered).field("unreduced", m.unreduced);
    m.gathered > 0 ? json.field("largest_unit", largest_unit(m)) : json.null_field("largest_unit");
    json.end_object();
  }
  json.end_array().end_object();
}

void write_outside_units_json(JsonWriter& json, const ModelLayout& l) {
  const OutsideUnits outside = outside_units(l.parameters, l.packing);
  json.key("outside_units").begin_object();
  json.field("parameters", outside.parameters).field("of_parameters", outside.of_parameters);
  json.field("items", outside.items).field("of_items", outside.of_items).end_object();
}

std::string outside_units_text(const ModelLayout& l) {
  if (l.fsdp.strategy != Strategy::kOptimGradsParams) return "";
  const OutsideUnits outside = outside_units(l.parameters, l.packing);
  if (!outside.much()) return "";
  const bool all = outside.parameters == outside.of_parameters;
  return cat(
      all ? "all " : cat(with_commas(outside.parameters), " of "),
      counted(outside.of_parameters, "parameter"), " of layers, ", percent(outside.items, outside.of_items),
      " of their items, are outside FSDP units, so their weights are gathered together and not layer by layer: ",
      escaped(outside.first), all ? "" : " and others");
}

}  // namespace mckpt::impl

// The groups themselves are found by io/dcp/keys/param_groups.h. The notes name what looks wrong and is right
// (experts that are not marked as such), and what is wrong (steps that differ).
#include "tools/answers/inspect/optimizer_groups.h"

#include <algorithm>

#include "core/base/int.h"
#include "core/base/text.h"
#include "io/dcp/keys/param_groups.h"
#include "io/json/json_writer.h"
#include "io/store/store.h"
#include "tools/render/folded_name.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

std::string fields_text(const std::map<std::string, std::string>& fields) {
  std::string out;
  for (const auto& [name, value] : fields)
    out += cat("  ", escaped(name), " ", value.empty() ? "(not readable)" : value);
  return out;
}

// Notes about these groups for a person; in JSON `notes`.
std::vector<std::string> notes_of(const OptimizerGroups& g) {
  std::vector<std::string> notes;
  if (!g.without.empty())
    notes.push_back(cat(counted(std::ssize(g.without), "tensor"),
                        " of the model in no group: frozen, buffers, or other names of a tied weight"));
  if (g.experts_not_marked > 0)
    notes.push_back(cat("is_expert_parallel is False for ", counted(g.experts_not_marked, "expert parameter"),
                        ": Megatron-FSDP writes it so, the names tell experts"));
  for (const OptimizerGroup& group : g.groups)
    if (group.fields.contains("step")) {
      notes.emplace_back(
          "step differs between groups: parameters were added later, or parts of two saves are mixed");
      break;
    }
  if (!g.unknown.empty())
    notes.push_back(
        cat(counted(std::ssize(g.unknown), "parameter"), " of groups that the model does not have"));
  return notes;
}

void write_names(JsonWriter& json, std::string_view field, std::span<const std::string> names) {
  json.key(field).begin_array();
  for (const std::string& name : names) json.value(name);
  json.end_array();
}

void write_fields(JsonWriter& json, std::string_view field,
                  const std::map<std::string, std::string>& fields) {
  json.key(field).begin_object();
  for (const auto& [name, value] : fields) json.field(name, value);
  json.end_object();
}

}  // namespace

void write_optimizer_groups(Output& out, const Store& store) {
  OptimizerGroups g = optimizer_groups(store);
  out.line("");
  if (g.section.empty()) return out.line("no parameter groups of an optimizer that name their parameters");
  auto names = [&](std::span<const std::string> list) {
    for (const std::string& line : folded_names(list)) out.line(cat("          ", line));
  };
  out.line(cat(out.styled(Style::kBold, g.section), ": ", counted(g.parameters, "parameter"), " in ",
               counted(std::ssize(g.groups), "group")));
  if (!g.common.empty()) out.line(cat("in all  ", fields_text(g.common)));
  for (i64 i = 0; i < std::ssize(g.groups); i++) {
    out.line(cat("group ", i, i < 10 ? "   " : "  ", counted(std::ssize(g.groups[i].parameters), "parameter"),
                 fields_text(g.groups[i].fields)));
    names(g.groups[i].parameters);
  }
  if (!g.without.empty()) {
    out.line(cat("no group  ", counted(std::ssize(g.without), "tensor")));
    names(g.without);
  }
  if (!g.unknown.empty()) {
    out.line(cat("unknown   ", counted(std::ssize(g.unknown), "parameter"), " that the model does not have"));
    names(g.unknown);
  }
  for (const std::string& note : notes_of(g)) out.line(cat("note      ", note));
  constexpr i64 kMostShown = 5;
  for (i64 i = 0; i < std::min<i64>(kMostShown, std::ssize(g.unreadable)); i++)
    out.line(cat("note      ", escaped(g.unreadable[i], 4096)));
  if (i64 more = std::ssize(g.unreadable) - kMostShown; more > 0)
    out.line(cat("note      ", counted(more, "more object"), " that cannot be read"));
}

void write_optimizer_groups(JsonWriter& json, const Store& store) {
  OptimizerGroups g = optimizer_groups(store);
  if (g.section.empty()) {
    json.null();
    return;
  }
  json.begin_object().field("section", g.section).field("parameters", g.parameters);
  write_fields(json, "common", g.common);
  json.key("groups").begin_array();
  for (const OptimizerGroup& group : g.groups) {
    json.begin_object();
    write_fields(json, "fields", group.fields);
    write_names(json, "parameters", group.parameters);
    json.end_object();
  }
  json.end_array();
  write_names(json, "without_group", g.without);
  write_names(json, "unknown", g.unknown);
  write_names(json, "unreadable", g.unreadable);
  write_names(json, "notes", notes_of(g));
  json.end_object();
}

}  // namespace mckpt::impl

// A program in which plans are wrong on purpose: linked in front of the libraries, these take the place of
// the rule "row", of the moves between boxes, of the list of renamed tensors and of the list of all tensors.
// $MCKPT_BROKEN says what is wrong:
//
//   short      the last items of a row are left out
//   doubled    a column is taken twice, and its neighbour not at all
//   lost       a renamed tensor, or the last of all tensors, is forgotten
//   unnamed    the table of the family qwen3_moe has no row for the output of an attention
#include <cstdlib>
#include <string_view>

#define row_rules sound_row_rules
#include "mappings/rules/row.cc"
#undef row_rules
#define append_box_moves sound_append_box_moves
#include "convert/jobs/box_moves.cc"
#undef append_box_moves
#define migrate_layers sound_migrate_layers
#include "convert/layers/layer_migration.cc"
#undef migrate_layers
#define natural_order sound_natural_order
#include "io/store/store.cc"
#undef natural_order
#define qwen3_moe_families sound_qwen3_moe_families
#include "mappings/models/qwen3_moe.cc"
#undef qwen3_moe_families

namespace mckpt::impl {
namespace {

bool broken(std::string_view how) {
  const char* wanted = std::getenv("MCKPT_BROKEN");
  return wanted && wanted == how;
}

// The strip row by row; in every row the first column is the second one.
std::vector<ItemRun> with_doubled_column(const ItemRun& strip) {
  std::vector<ItemRun> runs;
  for (i64 row = 0; row < strip.items() / strip.length; row++) {
    i64 begin = strip.at(row * strip.length);
    runs.push_back({strip.slot, begin + 1, 1, {}, {}});
    runs.push_back({strip.slot, begin + 1, strip.length - 1, {}, {}});
  }
  return runs;
}

Holding hold_row_broken(const RuleInput& in) {
  Holding h = sound_row_rules()[0].hold(in);
  if (in.part.count == 1) return h;  // experts have no part in it
  if (broken("short")) h.runs[0].length--;
  if (broken("doubled") && in.part.index == 0) h.runs = with_doubled_column(h.runs[0]);
  return h;
}

constexpr std::string_view kBrokenRoles[] = {"weight"};
constexpr Rule kBrokenRules[] = {
    {"row", kBrokenRoles, "the columns of a matrix in equal parts", hold_row_broken},
};

// The family with a table of its own, whose layers have no row of that name.
struct FamilyWithoutRow {
  std::vector<Row> attention;
  LayerRows layer;
  std::vector<Section> sections;
  Family family;

  FamilyWithoutRow(const Family& sound, std::string_view megatron) : family(sound) {
    sections.assign(sound.sections.begin(), sound.sections.end());
    for (Section& section : sections) {
      if (section.scope != Scope::kLayers) continue;
      layer = *section.layer;
      for (const Row& row : layer.attention)
        if (row.megatron != megatron) attention.push_back(row);
      layer.attention = attention;
      section.layer = &layer;
    }
    family.sections = sections;
  }
};

}  // namespace

std::span<const Family> qwen3_moe_families() {
  static const FamilyWithoutRow without(sound_qwen3_moe_families()[0], "self_attention.linear_proj.weight");
  if (broken("unnamed")) return {&without.family, 1};
  return sound_qwen3_moe_families();
}

std::span<const Rule> row_rules();
std::span<const Rule> row_rules() { return kBrokenRules; }

void append_box_moves(const BoxView& from, const BoxView& to, i32 slot, std::vector<Move>& out);
void append_box_moves(const BoxView& from, const BoxView& to, i32 slot, std::vector<Move>& out) {
  std::size_t first = out.size();
  sound_append_box_moves(from, to, slot, out);
  for (std::size_t m = first; m < out.size(); m++) {
    if (out[m].length < 2) continue;
    if (broken("short")) out[m].length--;
    if (broken("doubled")) {
      Move column = out[m];
      column.length = 1, column.from++;
      out[m].length--, out[m].from++, out[m].to++;
      out.push_back(column);
      return;
    }
  }
}

LayerMigration migrate_layers(const Store& store, DcpDialect dialect, const LayerNames& from,
                              const LayerNames& to, const MigrationOptions& options);
LayerMigration migrate_layers(const Store& store, DcpDialect dialect, const LayerNames& from,
                              const LayerNames& to, const MigrationOptions& options) {
  LayerMigration m = sound_migrate_layers(store, dialect, from, to, options);
  if (broken("lost")) m.tensors.pop_back();
  return m;
}

std::vector<i64> natural_order(const Store& store);
std::vector<i64> natural_order(const Store& store) {
  std::vector<i64> order = sound_natural_order(store);
  if (broken("lost")) order.pop_back();
  return order;
}

}  // namespace mckpt::impl

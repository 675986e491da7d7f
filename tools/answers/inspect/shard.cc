// Nothing is said of other ranks: their files were not opened.
#include "tools/answers/inspect/shard.h"

#include <algorithm>
#include <optional>

#include "convert/open/shard_facts.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/lone_shard.h"
#include "io/store/store.h"
#include "tools/render/output.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostColumns = 64;
constexpr std::string_view kUnknown = "??";

std::string dims_or_unknown(const std::optional<std::vector<i64>>& dims) {
  return dims ? dims_to_string(*dims) : "?";
}

// The columns of the ranks: none where their number, or the rank of the file, is not known.
i64 columns_of(const ShardFacts& facts) {
  return facts.rank >= 0 && facts.ranks > facts.rank && facts.ranks <= kMostColumns ? facts.ranks : 0;
}

std::string titles(i64 columns) {
  std::string out;
  for (i64 r = 0; r < columns; r++) {
    const std::string name = cat("r", r);
    const bool room = name.size() <= 2 || r % 4 == 0;
    if (!room) continue;
    out.resize(std::max(out.size(), static_cast<std::size_t>(r * 3)), ' ');
    out += name;
  }
  return out;
}

// The rank's own square; all others are unknown.
std::string squares(const ShardTensor& t, const ShardFacts& facts, i64 columns, bool unicode) {
  std::string out;
  const bool none = Shape(t.local).items() == 0;
  const char* own = none ? (unicode ? "··" : "..") : unicode ? "██" : "##";
  for (i64 r = 0; r < columns; r++) out += cat(r ? " " : "", r == facts.rank ? own : kUnknown);
  return out;
}

std::optional<i64> sum(std::optional<i64> a, i64 b) {
  i64 out = 0;
  return a && !__builtin_add_overflow(*a, b, &out) ? std::optional(out) : std::nullopt;
}

}  // namespace

void write_shard_card(Output& out, const Store& store, const ShardFacts& facts) {
  std::optional<i64> here = 0, all = 0;  // nothing: more than a number has room for
  i64 parts = 0, unknown = 0;
  for (const ShardTensor& t : facts.tensors) {
    const i64 items = Shape(t.local).items();
    here = sum(here, items);
    if (!t.whole) {
      unknown++;
      continue;
    }
    all = sum(all, Shape(*t.whole).items());
    parts += items < Shape(*t.whole).items();
  }
  out.line(to_string(facts));
  std::string text = cat(here ? with_commas(*here) : "?",
                         unknown == 0 && all ? cat(" of ", with_commas(*all)) : "", " items are here; of ",
                         with_commas(parts), " of ", counted(store.tensor_count(), "tensor"), " a part");
  if (unknown > 0) text += cat("; of ", with_commas(unknown), " the file does not tell the whole shape");
  out.line(text);
  for (const std::string& remark : facts.remarks) out.line(cat("warning: ", escaped(remark)));
}

std::string whole_text(const ShardTensor& t) {
  return cat("of ", dims_or_unknown(t.whole), " at ", dims_or_unknown(t.offsets),
             t.placements.empty() ? "" : "  ", escaped(t.placements));
}

void write_shard_map(Output& out, const Store& store, std::span<const i64> tensors, const ShardFacts& facts) {
  using enum Align;
  const i64 columns = columns_of(facts);
  std::vector<TextTable::Column> list = {
      {"tensor", kLeft}, {"here", kLeft}, {"whole", kLeft}, {"at", kLeft}, {"placements", kLeft}};
  if (columns > 0) list.push_back({titles(columns), kLeft});
  TextTable table(std::move(list));
  for (i64 t : tensors) {
    const ShardTensor& at = facts.tensors[t];
    std::vector<std::string> cells = {escaped(store.name(t)), dims_to_string(at.local),
                                      dims_or_unknown(at.whole), dims_or_unknown(at.offsets),
                                      escaped(at.placements)};
    if (columns > 0) cells.push_back(squares(at, facts, columns, out.unicode()));
    table.row(std::move(cells));
  }
  out.line("");
  table.write(out);
  out.line("");
  out.line(cat(columns > 0 ? cat(kUnknown, " unknown: ") : "",
               "the files of the other ranks were not opened; ", kNameAllRanks, " to see them"));
}

}  // namespace mckpt::impl

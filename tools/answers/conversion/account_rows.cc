// Makes the rows from the account and the names that the proof has, and writes them as JSON.
#include "tools/answers/conversion/account_rows.h"

#include <algorithm>

#include "convert/plan/conversion.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "io/json/json_writer.h"

namespace mckpt::impl {
namespace {

// Sorts rows by a name that is expensive to make.
template <typename Row, typename Name>
void sort_by_name(std::vector<Row>& rows, Name&& name) {
  std::vector<std::pair<std::string, i64>> names;
  for (i64 i = 0; i < std::ssize(rows); i++) names.emplace_back(name(rows[i]), i);
  std::ranges::stable_sort(names,
                           [](const auto& a, const auto& b) { return natural_less(a.first, b.first); });
  std::vector<Row> sorted;
  for (const auto& [text, i] : names) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

AccountRow row_of(const Conversion& c, i64 target, std::span<const TensorUse> uses) {
  AccountRow row{.target = target, .made = c.tensors->made[target], .rule = {}, .from = uses};
  for (const TensorUse& use : uses) {
    if (use.source < 0)
      row.zeros += use.items;
    else if (!use.cast.identity())
      row.changed += use.items;
  }
  auto first = std::ranges::find_if(uses, [](const TensorUse& u) { return u.source >= 0; });
  if (c.proof.rule) row.rule = c.proof.rule(target, first == uses.end() ? -1 : first->source);
  return row;
}

void write_use(JsonWriter& json, const Conversion& c, const TensorUse& use) {
  json.begin_object().field("name", c.proof.source.name(use.source)).field("items", use.items);
  std::string cast = cast_text(use.cast);
  json.key("cast");
  cast.empty() ? json.null() : json.value(cast);
  json.field("added", static_cast<double>(added(use.cast))).end_object();
}

void write_row(JsonWriter& json, const Conversion& c, const AccountRow& row) {
  json.begin_object().field("name", c.proof.target.name(row.target)).field("made", made_name(row.made));
  json.key("rule");
  row.rule.empty() ? json.null() : json.value(row.rule);
  json.field("items", c.proof.target.items(row.target)).key("from").begin_array();
  for (const TensorUse& use : row.from)
    if (use.source >= 0) write_use(json, c, use);
  json.end_array().field("zeros", row.zeros).field("changed_items", row.changed).end_object();
}

}  // namespace

std::vector<AccountRow> account_rows(const Conversion& c) {
  std::vector<AccountRow> rows;
  std::span<const TensorUse> rest = c.tensors->uses;
  for (i64 t = 0; t < std::ssize(c.tensors->made); t++) {
    std::size_t count = 0;
    while (count < rest.size() && rest[count].target == t) count++;
    if (c.tensors->made[t] != Made::kAbsent) rows.push_back(row_of(c, t, rest.first(count)));
    rest = rest.subspan(count);
  }
  sort_by_name(rows, [&](const AccountRow& r) { return c.proof.target.name(r.target); });
  return rows;
}

std::vector<UnreadRow> unread_rows(const Conversion& c) {
  enum : u8 { kPadding, kDropped, kCopy };
  std::vector<u8> why(c.tensors->unread.size(), kPadding);
  for (i64 t : c.proof.dropped) why[t] = kDropped;
  for (i64 t : c.proof.copies) why[t] = kCopy;
  constexpr const char* kReasons[] = {"padding, which the result does not have", "left out by the options",
                                      "a copy of another tensor"};
  std::vector<UnreadRow> rows;
  for (i64 t = 0; t < std::ssize(why); t++) {
    if (c.proof.source.items(t) < 0 || (why[t] == kPadding && c.tensors->unread[t] == 0)) continue;
    UnreadRow row{t, c.tensors->unread[t], kReasons[why[t]]};
    if (c.proof.left_out && why[t] != kPadding) {
      ProofInput::LeftOut left = c.proof.left_out(t);
      if (!left.reason.empty()) row.reason = left.reason;
      row.copy_of = left.copy_of;
    }
    rows.push_back(std::move(row));
  }
  sort_by_name(rows, [&](const UnreadRow& r) { return c.proof.source.name(r.source); });
  return rows;
}

std::string_view made_name(Made made) {
  constexpr std::string_view kNames[] = {"absent",      "copied",    "fused", "split",
                                         "dequantized", "quantized", "tied",  "invented"};
  return kNames[static_cast<int>(made)];
}

std::string cast_text(const ItemCast& cast) {
  if (cast.from == cast.via && cast.via == cast.to) return "";
  std::string through =
      cast.via != cast.from && cast.via != cast.to ? cat(" through ", dtype_name(cast.via)) : "";
  return cat(dtype_name(cast.from), through, " to ", dtype_name(cast.to));
}

void write_account_rows(JsonWriter& json, const Conversion& c) {
  json.key("tensors").begin_array();
  for (const AccountRow& row : account_rows(c)) write_row(json, c, row);
  json.end_array().key("left_out").begin_array();
  for (const UnreadRow& row : unread_rows(c)) {
    json.begin_object().field("name", c.proof.source.name(row.source)).field("items", row.items);
    json.field("reason", row.reason).key("copy_of");
    row.copy_of < 0 ? json.null() : json.value(c.proof.source.name(row.copy_of));
    json.end_object();
  }
  json.end_array();
}

}  // namespace mckpt::impl

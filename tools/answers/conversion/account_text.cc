// The account for a person, on stderr. Tensors whose names differ in numbers alone, and that are made alike
// of tensors whose names differ likewise, are one line:
//
//   fused     decoder.layers.{0-1}.self_attention.linear_qkv.weight  (2)  qkv of
//             model.layers.{0-1}.self_attn.q_proj.weight + model.layers.{0-1}.self_attn.k_proj.weight + ...
#include <algorithm>
#include <map>

#include "convert/plan/conversion.h"
#include "core/base/text.h"
#include "tools/answers/conversion/account_rows.h"
#include "tools/render/folded_name.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// The first word of a line, with spaces up to the names; only "dequantized" is longer.
std::string first_word(std::string_view word) {
  return cat(word, std::string(word.size() < 10 ? 10 - word.size() : 1, ' '));
}

// Rows that are one line.
struct Fold {
  AccountRow first;
  i64 count = 0;
  FoldedName target;
  std::vector<FoldedName> sources;
};

// The change of values: "float32 to bfloat16, less 1".
std::string change_text(const TensorUse& use) {
  std::string text = cast_text(use.cast);
  if (float a = added(use.cast); a != 0)
    text += cat(text.empty() ? "" : ", ", a < 0 ? "less " : "plus ", static_cast<double>(a < 0 ? -a : a));
  return text;
}

// Equal for rows that can be one line.
std::string form_of(const Conversion& c, const AccountRow& row) {
  std::string form = cat(made_name(row.made), " ", row.rule, " ", row.zeros > 0, "\n",
                         FoldedName::form(c.proof.target.name(row.target)));
  for (const TensorUse& use : row.from)
    if (use.source >= 0)
      form += cat("\n", FoldedName::form(c.proof.source.name(use.source)), " ", change_text(use));
  return form;
}

std::string line_of(const Fold& fold) {
  const AccountRow& row = fold.first;
  std::string text = cat(first_word(made_name(row.made)), fold.target.text());
  if (fold.count > 1) text += cat("  (", with_commas(fold.count), ")");
  std::string sources;
  std::vector<std::string> changes;
  for (const FoldedName& s : fold.sources) sources += cat(sources.empty() ? "of " : " + ", s.text());
  for (const TensorUse& use : row.from) {
    std::string change = use.source < 0 ? "" : change_text(use);
    if (!change.empty() && std::ranges::find(changes, change) == changes.end())
      changes.push_back(std::move(change));
  }
  bool same_name = fold.sources.size() == 1 && fold.sources[0].text() == fold.target.text();
  if (!same_name) text += cat("  ", row.rule, row.rule.empty() ? "" : " ", sources);
  for (const std::string& change : changes) text += cat(&change == &changes[0] ? "; " : " and ", change);
  if (row.zeros > 0)
    text += cat("; padded with ", counted(row.zeros, "zero"), fold.count > 1 ? " and so on" : "");
  return text;
}

// `apart`: every tensor has a line of its own.
std::vector<Fold> folded(const Conversion& c, bool apart) {
  std::vector<Fold> folds;
  std::map<std::string, std::size_t> by_form;
  for (const AccountRow& row : account_rows(c)) {
    auto [at, is_new] = by_form.try_emplace(apart ? cat(row.target) : form_of(c, row), folds.size());
    if (is_new) folds.push_back({row, 0, {}, {}});
    Fold& fold = folds[at->second];
    fold.count++;
    fold.target.add(c.proof.target.name(row.target));
    std::size_t s = 0;
    for (const TensorUse& use : row.from) {
      if (use.source < 0) continue;
      if (s == fold.sources.size()) fold.sources.emplace_back();
      fold.sources[s++].add(c.proof.source.name(use.source));
    }
  }
  return folds;
}

}  // namespace

void note_tensors(const GlobalFlags& flags, const Conversion& c) {
  for (const Fold& fold : folded(c, flags.verbose > 1)) note(flags, line_of(fold));
  std::map<std::string, std::pair<FoldedName, i64>> left;
  for (const UnreadRow& row : unread_rows(c)) {
    std::string name = c.proof.source.name(row.source);
    std::string what =
        row.copy_of < 0 ? row.reason : cat("a copy of ", escaped(c.proof.source.name(row.copy_of)));
    auto& [fold, items] = left[cat(FoldedName::form(name), "\n", what)];
    fold.add(name);
    items += row.items;
  }
  for (const auto& [form, entry] : left)
    note(flags, cat(first_word("left"), entry.first.text(), "  ", counted(entry.second, "item"), ": ",
                    std::string_view(form).substr(form.find('\n') + 1)));
}

}  // namespace mckpt::impl

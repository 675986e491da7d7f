// Chooses the ranks that are shown, and the places of items.
#include "page/data/fused_picture.h"

#include <algorithm>
#include <set>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

bool crosses(const FusedCut& cut, const FusedShare& share) {
  return std::ranges::count_if(cut.parts,
                               [&](const FusedPart& p) { return !part_of_share(p, share).empty(); }) > 1;
}

// The shares that are drawn.
std::set<i64> chosen_shares(const FusedCut& cut, std::size_t most) {
  std::vector<i64> full;
  for (i64 s = 0; s < std::ssize(cut.shares); s++)
    if (!cut.shares[s].items.empty()) full.push_back(s);
  std::set<i64> chosen;
  for (i64 s : full)
    if (chosen.size() < most && crosses(cut, cut.shares[s])) chosen.insert(s);
  for (std::size_t i = 0, j = full.size(); i < j && chosen.size() < most;) {
    chosen.insert(full[i++]);
    if (chosen.size() < most && i < j) chosen.insert(full[--j]);
  }
  return chosen;
}

std::string counts_text(const LocalCountLoss& loss) {
  return cat(with_commas(loss.right), " right, ", with_commas(loss.wrong), " wrong, ", with_commas(loss.lost),
             " lost");
}

}  // namespace

std::vector<FusedRow> fused_rows(const FusedCut& cut, std::size_t most) {
  const std::set<i64> chosen = chosen_shares(cut, most);
  std::vector<FusedRow> rows;
  for (i64 s = 0; s < std::ssize(cut.shares); s++) {
    if (chosen.contains(s)) {
      rows.push_back({.share = s});
      continue;
    }
    const bool empty = cut.shares[s].items.empty();
    if (rows.empty() || rows.back().share >= 0 || rows.back().empty != empty)
      rows.push_back({.first = cut.shares[s].rank, .empty = empty});
    rows.back().ranks++;
  }
  return rows;
}

FusedAxis::FusedAxis(const FusedCut& cut, double least) : cut_(cut) {
  // Parts that are too narrow get the least width; the others share the rest, until none is too narrow.
  std::vector<double> widths(cut.parts.size(), -1);
  for (bool again = true; again;) {
    again = false;
    double room = 1, items = 0;
    for (std::size_t p = 0; p < widths.size(); p++)
      widths[p] < 0 ? items += static_cast<double>(cut.parts[p].items.items()) : room -= widths[p];
    for (std::size_t p = 0; p < widths.size(); p++)
      if (widths[p] < 0 && static_cast<double>(cut.parts[p].items.items()) * room < least * items)
        widths[p] = least, again = true;
    if (again) continue;
    for (std::size_t p = 0; p < widths.size(); p++)
      if (widths[p] < 0) widths[p] = static_cast<double>(cut.parts[p].items.items()) * room / items;
  }
  begins_.push_back(0);
  for (double width : widths) begins_.push_back(begins_.back() + width);
}

double FusedAxis::at(i64 item) const {
  for (std::size_t p = 0; p < cut_.parts.size(); p++) {
    const ItemRange items = cut_.parts[p].items;
    if (item < items.end)
      return begins_[p] + (begins_[p + 1] - begins_[p]) * static_cast<double>(item - items.begin) /
                              static_cast<double>(items.items());
  }
  return begins_.back();
}

std::string part_label(const FusedPart& part) {
  std::string_view name = part.name;
  if (name == "_w" || name == "_v") return name == "_w" ? "W" : "V";
  return std::string(name.substr(name.starts_with('.') ? 1 : 0));
}

std::string right_text(const FusedCut& cut, const FusedShare& share) {
  std::string out;
  for (const FusedPart& p : cut.parts)
    if (const ItemRange r = part_of_share(p, share); !r.empty())
      out += cat(out.empty() ? "" : ", ", part_label(p), " ", with_commas(r.items()));
  return out.empty() ? "nothing" : out;
}

std::string loss_text(const FusedCut& cut, const FusedShare& share) {
  return counts_text(loss_by_local_count(cut, share));
}

std::string total_loss_text(const FusedCut& cut) {
  LocalCountLoss sum;
  for (const FusedShare& share : cut.shares) {
    const LocalCountLoss loss = loss_by_local_count(cut, share);
    sum.right += loss.right, sum.wrong += loss.wrong, sum.lost += loss.lost;
  }
  return cat("of ", counted(cut.items(), "item"), ": ", counts_text(sum));
}

}  // namespace mckpt::impl

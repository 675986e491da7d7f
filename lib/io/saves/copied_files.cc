// Groups are divided piece by piece until each has one file or no piece is left. Files of ranks that trained
// differ in their first matrix, so few sums are asked for.
#include "io/saves/copied_files.h"

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "io/file/parallel.h"

namespace mckpt::impl {
namespace {

using Group = std::vector<i64>;

// Leaves out files that are alone.
template <typename Key>
void add_groups(std::map<Key, Group>&& by_key, std::vector<Group>& out) {
  for (auto& [key, files] : by_key)
    if (files.size() > 1) out.push_back(std::move(files));
}

}  // namespace

std::vector<std::vector<i64>> files_with_equal_sums(
    const std::vector<i64>& pieces, const std::function<std::optional<PieceSum>(i64 file, i64 piece)>& sum) {
  std::vector<Group> done, open;
  std::map<i64, Group> by_count;
  for (i64 f = 0; f < std::ssize(pieces); f++)
    if (pieces[f] > 0) by_count[pieces[f]].push_back(f);
  add_groups(std::move(by_count), open);
  for (i64 piece = 0; !open.empty(); piece++) {
    std::vector<Group> next;
    for (Group& group : open) {
      if (piece == pieces[group[0]]) {
        done.push_back(std::move(group));
        continue;
      }
      std::vector<std::optional<PieceSum>> sums(group.size());
      parallel_for(std::ssize(group), default_threads(), [&](int, i64 i) { sums[i] = sum(group[i], piece); });
      std::map<PieceSum, Group> by_sum;
      for (std::size_t i = 0; i < group.size(); i++)
        if (sums[i]) by_sum[*sums[i]].push_back(group[i]);
      add_groups(std::move(by_sum), next);
    }
    open = std::move(next);
  }
  std::ranges::sort(done);
  return done;
}

std::string copied_file_message(const std::string& other) {
  return cat("the file has the same weights as ", other,
             ", and each rank has others: one of the two is a copy under another rank's name");
}

}  // namespace mckpt::impl

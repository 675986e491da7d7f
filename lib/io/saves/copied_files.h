// Files of ranks that may be one file under two names: the sizes of a copy fit, and so do all its sums, only
// its data belong to another rank.
//
//   rank   sums of its pieces
//    0     7a 3f 00 51
//    1     7a 90 ..            not asked for: the file differs from all others
//    2     7a 3f 00 51         {0, 2} are alike
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// The facts of a piece of a file that need no read.
struct PieceSum {
  i64 bytes = 0;
  u32 crc32 = 0;
  auto operator<=>(const PieceSum&) const = default;
};

// The groups of two and more files with the same sums of all pieces; numbers of files, ascending. `pieces`:
// how many each file has. sum(file, piece) may be called from all threads, piece by piece, and only for files
// that are alike so far; nothing: the file is not alike with any.
std::vector<std::vector<i64>> files_with_equal_sums(
    const std::vector<i64>& pieces, const std::function<std::optional<PieceSum>(i64 file, i64 piece)>& sum);

// The words of a finding about a file with the weights of another one, whose pieces are others.
std::string copied_file_message(const std::string& other);

}  // namespace mckpt::impl

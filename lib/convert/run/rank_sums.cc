// Sums are plain structs and are sent as their bytes: all ranks run the same program on the same kind of
// machine. The losses of a rank are sent as a text: the number of its zeros, then for each tensor the number
// of its infinite values, the length of its name, and the name.
#include "convert/run/rank_sums.h"
#include "core/base/error.h"
#include "io/copy/lost_values.h"
#include "io/copy/part_sums.h"
#include "io/copy/written_sums.h"
#include "runtime/comm/comm.h"

#include <cstring>

namespace mckpt::impl {
namespace {

template <typename T>
// Rank 0 replaces its list by the lists of all ranks, one after the other. Collective. pre: T is trivially
// copyable.
void gather(std::vector<T>& mine, Comm& ranks) {
  Gathered all = ranks.all_gather_v(std::as_bytes(std::span(mine)));
  if (ranks.rank() != 0) return;
  mine.resize(all.bytes.size() / sizeof(T));
  std::memcpy(mine.data(), all.bytes.data(), all.bytes.size());
}

void append(std::string& text, i64 number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

i64 take(std::string_view& text) {
  i64 number = 0;
  std::memcpy(&number, text.data(), sizeof number);
  text.remove_prefix(sizeof number);
  return number;
}

}  // namespace

void gather_sums(WrittenSums& sums, Comm& ranks) {
  if (ranks.size() == 1) return;
  gather(sums.data(), ranks);
  gather(sums.stretches(), ranks);
}

void gather_sums(PartSums& sums, Comm& ranks) {
  if (ranks.size() > 1) gather(sums.parts(), ranks);
}

void gather_losses(LostValues& lost, Comm& ranks) {
  if (ranks.size() == 1) return;
  std::string mine;
  append(mine, lost.total().zero);
  for (const LostValues::Tensor& t : lost.tensors())
    append(mine, t.infinite), append(mine, std::ssize(t.name)), mine += t.name;
  Gathered all = ranks.all_gather_v(std::as_bytes(std::span(mine)));
  for (int r = 0; r < ranks.size(); r++) {
    if (r == ranks.rank()) continue;
    std::span<const std::byte> bytes = all.of(r);
    std::string_view theirs(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    lost.add("", {0, take(theirs)});
    while (!theirs.empty()) {
      i64 infinite = take(theirs);
      std::size_t length = static_cast<std::size_t>(take(theirs));
      lost.add(std::string(theirs.substr(0, length)), {infinite, 0});
      theirs.remove_prefix(length);
    }
  }
}

Error overflow_error(const LostValues& lost, const std::string& result) {
  std::vector<LostValues::Tensor> tensors = lost.tensors();
  std::vector<std::string> lines;
  for (const LostValues::Tensor& t : tensors)
    lines.push_back(cat(escaped(t.name), ": ", counted(t.infinite, "value")));
  Error e(Code::kCastOverflow, "finite values would become infinite, so nothing is published");
  e.file(result).found(
      cat(counted(lost.total().infinite, "such value"), " in ", counted(std::ssize(tensors), "tensor")));
  e.each_note(lines);
  return e.help(
      "`dtype` bf16 or fp32 can represent values that fp16 cannot; `allow_overflow` publishes the result anyway");
}

}  // namespace mckpt::impl

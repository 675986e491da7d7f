#include "tools/render/cast_losses_text.h"

#include <algorithm>
#include <cstring>

#include "tools/render/output.h"

namespace mckpt {
namespace {

constexpr std::size_t kMostNames = 5;

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

void gather_losses(LostValues& lost, Comm& comm) {
  if (comm.size() == 1) return;
  // Zeros, then for each tensor its count, the length of its name, and the name.
  std::string mine;
  append(mine, lost.total().zero);
  for (const LostValues::Tensor& t : lost.tensors())
    append(mine, t.infinite), append(mine, std::ssize(t.name)), mine += t.name;
  Gathered all = comm.all_gather_v(std::as_bytes(std::span(mine)));
  for (int r = 0; r < comm.size(); r++) {
    if (r == comm.rank()) continue;
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

std::string overflow_text(i64 infinite, std::span<const LostValues::Tensor> tensors) {
  std::string names;
  for (const LostValues::Tensor& t : tensors.first(std::min(kMostNames, tensors.size())))
    names += cat(names.empty() ? "" : ", ", escaped(t.name), " (", with_commas(t.infinite), ")");
  if (tensors.size() > kMostNames) names += cat(" and ", tensors.size() - kMostNames, " more");
  return cat(counted(infinite, "finite value"), " became infinite in ",
             counted(std::ssize(tensors), "tensor"), ": ", names);
}

Error overflow_error(const LostValues& lost, const std::string& output) {
  std::vector<LostValues::Tensor> tensors = lost.tensors();
  std::vector<std::string> lines;
  for (const LostValues::Tensor& t : tensors)
    lines.push_back(cat(escaped(t.name), ": ", counted(t.infinite, "value")));
  Error e(Code::kCastOverflow, "finite values would become infinite, so nothing is published");
  e.file(output).found(
      cat(counted(lost.total().infinite, "such value"), " in ", counted(std::ssize(tensors), "tensor")));
  e.each_note(lines);
  e.help("--dtype bf16 and fp32 hold what fp16 does not; --allow-overflow publishes it all the same");
  return e;
}

}  // namespace mckpt

// Compares by names first, then types and shapes, then bytes: most left-over models differ in the first
// tensor that is read.
#include "io/safetensors/two_models.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/safetensors/safetensors.h"
#include "io/store/finding.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPiece = i64{1} << 20;

// A tensor of both models: its number in the store, and its row in the table of the single file.
struct Pair {
  i64 tensor, row;
};

std::string quoted(std::string_view name) { return cat("'", escaped(name, 200), "'"); }

// The first difference of the headers; else fills in the pairs, in the order of the store.
std::string unlike_headers(const SafetensorsStore& shards, const SafetensorsTable& single,
                           std::vector<Pair>& pairs) {
  NameMap<std::string_view, i64> rows;
  for (i64 row = 0; row < single.size(); row++) rows.emplace(single.name(row), row);
  for (i64 t = 0; t < shards.tensor_count(); t++) {
    auto at = rows.find(shards.name(t));
    if (at == rows.end()) return cat(quoted(shards.name(t)), " is in the shards alone");
    const i64 row = at->second;
    if (shards.dtype(t) != single.dtype(row) || !std::ranges::equal(shards.dims(t), single.dims(row)))
      return cat(quoted(shards.name(t)), " has another type or shape in ", kSingleFile);
    pairs.push_back({t, row});
    rows.erase(at);
  }
  for (i64 row = 0; row < single.size(); row++)
    if (rows.contains(single.name(row)))
      return cat(quoted(single.name(row)), " is in ", kSingleFile, " alone");
  return "";
}

// The first byte that differs between two stretches of equal length; -1 if none does.
i64 first_unlike(const InputFile& a, i64 at_a, const InputFile& b, i64 at_b, i64 bytes) {
  std::vector<u8> one(static_cast<std::size_t>(std::min(bytes, kPiece))), other(one.size());
  for (i64 done = 0; done < bytes; done += kPiece) {
    const std::size_t n = static_cast<std::size_t>(std::min(kPiece, bytes - done));
    a.read(at_a + done, std::span(one).first(n));
    b.read(at_b + done, std::span(other).first(n));
    if (std::memcmp(one.data(), other.data(), n) != 0)
      return done +
             (std::mismatch(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(n), other.begin()).first -
              one.begin());
  }
  return -1;
}

std::string unlike_data(const SafetensorsStore& shards, const SafetensorsTable& single, const Folder& folder,
                        const std::vector<Pair>& pairs) {
  const InputFile file = folder.open_file(kSingleFile);
  std::atomic<i64> first = std::ssize(pairs);
  parallel_for(std::ssize(pairs), default_threads(), [&](int, i64 i) {
    if (i > first) return;
    const Pair& pair = pairs[i];
    const Chunk chunk = shards.chunk(pair.tensor, 0);
    const ChunkData data = shards.resolve(pair.tensor, 0);
    const InputFile shard = folder.open_file(shards.files()[chunk.file].path);
    if (first_unlike(shard, data.offset, file, single.offset(pair.row), single.bytes(pair.row)) < 0) return;
    for (i64 known = first; i < known && !first.compare_exchange_weak(known, i);) continue;
  });
  if (first == std::ssize(pairs)) return "";
  return cat(quoted(shards.name(pairs[first].tensor)), " has other values in ", kSingleFile);
}

// What differs first between the two, in words; "" if all tensors are equal. A file that cannot be read
// differs.
std::string first_difference(const SafetensorsStore& shards, const Folder& folder, bool reads_data) {
  try {
    const SafetensorsTable single = read_safetensors_table(folder.open_file(kSingleFile));
    std::vector<Pair> pairs;
    std::string unlike = unlike_headers(shards, single, pairs);
    return unlike.empty() && reads_data ? unlike_data(shards, single, folder, pairs) : unlike;
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return cat(kSingleFile, " cannot be read: ", e.message());
  }
}

}  // namespace

Finding judge_two_models(const SafetensorsStore& shards, const Folder& folder,
                         const std::string& index_name) {
  const OpenOptions& opening = folder.opening();
  Finding finding{.code = Code::kTwoModels, .file = std::string(kSingleFile), .warning = true};
  if (opening.model_files == ModelFiles::kShards) {
    finding.message = "of the other model in the folder, which was not chosen";
    return finding;
  }
  const std::string two = cat("the folder holds two models, ", kSingleFile, " and the shards that ",
                              escaped(index_name), " names");
  const std::string loads = cat("transformers loads ", kSingleFile, "; vLLM and SGLang load the shards");
  const bool reads = opening.two_models != TwoModels::kFindingUnread;
  const std::string unlike = first_difference(shards, folder, reads);
  if (unlike.empty()) {
    finding.message = reads ? cat(two, ", with equal tensors: the shards are read")
                            : cat(two, "; their headers are alike, their data were not compared");
    return finding;
  }
  const char* help = "remove the one that is not meant, or choose one by `model_files`: single or shards";
  if (opening.two_models == TwoModels::kRefused)
    throw Error(Code::kTwoModels, cat(two, ", which are not equal: ", unlike))
        .file(folder.path())
        .note(loads)
        .help(help);
  finding.message = cat(two, ", which are not equal: ", unlike, "; ", loads);
  finding.help = help, finding.warning = false;
  return finding;
}

}  // namespace mckpt::impl

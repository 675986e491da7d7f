// Puts together what the other files of this folder compute.
#include "page/data/checkpoint_picture.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/observer.h"
#include "io/store/format.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/values/tensor_stats.h"

namespace mckpt::impl {
namespace {

constexpr int kBins = 32;

}  // namespace

CheckpointPicture checkpoint_picture(const Store& store, std::span<const i64> tensors, std::string title) {
  CheckpointPicture p{.title = std::move(title), .format = std::string(format_text(store.format()))};
  p.facts = store.facts();
  p.summary = summarize(store);
  p.files = std::ssize(store.files()), p.ranks = store.ranks();
  p.all_tensors = store.tensor_count();
  p.findings = store.findings();
  p.map = shard_map(store, tensors);
  p.sizes = size_tree(store, tensors);
  return p;
}

void add_values(CheckpointPicture& picture, const Store& values, std::span<const i64> tensors, int threads,
                Observer& observer) {
  // The checkpoint was opened once more for its values: what could not be read this time would be left out
  // without a word.
  auto unread = [](const Finding& f) { return f.code == Code::kReadFailed && !f.warning; };
  if (std::ranges::none_of(picture.findings, unread) && std::ranges::any_of(values.findings(), unread))
    require_sound(values.findings(), values.root());
  observer.begin("stats", stats_bytes(values, tensors, kBins));
  std::vector<TensorStats> stats = tensor_stats(values, tensors, kBins, threads, [&](i64 bytes) {
    observer.done(bytes);
    if (observer.stop()) throw Error(Code::kInterrupted, "stopped while values were read");
  });
  observer.end();
  picture.values = layer_values(values, tensors, stats);
}

}  // namespace mckpt::impl

// A worker of the copy engine writes a window of a task to a sink that is the reader's memory. Workers are
// kept between reads with the plan of their last task, because the next read usually goes on where the last
// one ended.
#include "convert/plan/quantized/exported_values.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "convert/keys/stored_chunks.h"
#include "convert/open/checkpoint.h"
#include "core/base/error.h"
#include "io/copy/job.h"
#include "io/copy/slices.h"
#include "io/copy/worker.h"
#include "io/file/file.h"
#include "io/file/parallel.h"
#include "io/output/copy_sink.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

constexpr i64 kLargeRead = i64{4} << 20;  // a matrix, and not a few rows

// The memory of one read: bytes of the result's file from `begin` on.
class MemorySink final : public CopySink {
 public:
  void aim(i64 begin, std::span<u8> to) { begin_ = begin, to_ = to; }
  void write(i32, i64 offset, std::span<const u8> bytes) override {
    std::memcpy(to_.data() + (offset - begin_), bytes.data(), bytes.size());
  }

 private:
  i64 begin_ = 0;
  std::span<u8> to_;
};

}  // namespace

struct ExportedValues::Hand {
  explicit Hand(const CopyJob& job) : worker(job, sink, {nullptr, nullptr, nullptr}) {}

  MemorySink sink;
  CopyWorker worker;
  i64 number = -1;
  std::optional<CopyTask> task{};
};

class ExportedValues::Bytes final : public ByteSource {
 public:
  Bytes(const ExportedValues& owner, i64 task, i64 bytes, i64 item_bytes)
      : ByteSource(bytes), owner_(owner), task_(task), item_bytes_(item_bytes) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    i64 first = offset / item_bytes_, last = ceil_div(offset + std::ssize(to), item_bytes_);
    const bool large = std::ssize(to) > kLargeRead;
    std::unique_ptr<Hand> hand = owner_.take(task_, large);
    const Region& region = hand->task->plan.destination(0);
    std::vector<u8> whole;
    std::span<u8> items = to;
    if (offset % item_bytes_ != 0 || std::ssize(to) % item_bytes_ != 0) {
      whole.resize(static_cast<std::size_t>((last - first) * item_bytes_));
      items = whole;
    }
    hand->sink.aim(region.offset + first * item_bytes_, items);
    hand->worker.run_window(*hand->task, {0, {first, last}});
    owner_.give(std::move(hand), large);
    if (!whole.empty()) std::memcpy(to.data(), whole.data() + (offset - first * item_bytes_), to.size());
  }

  const ExportedValues& owner_;
  i64 task_, item_bytes_;
};

ExportedValues::ExportedValues(Opened model, const std::vector<DType>& types)
    : opened_(std::move(model)),
      model_(*opened_.sharded),
      hf_(model_.map(), types, INT64_MAX),
      tensors_(model_.map(), hf_.places),
      job_(export_job(&model_.store(), model_.keys(), model_.chunks(), tensors_)),
      task_of_(static_cast<std::size_t>(tensors_.size()), -1) {
  root_ = model_.store().root();
  format_ = model_.store().format();
  opening_ = model_.store().opening();
  files_ = model_.store().files();
  for (i64 task = 0; task < job_.task_count(); task++)
    for (i32 chunk : job_.targets_of(task)) task_of_[chunk] = task;
}

ExportedValues::~ExportedValues() = default;

std::string_view ExportedValues::name(i64 t) const { return model_.map().sources()[tensors_.key(t)].name; }

Chunk ExportedValues::chunk(i64 t, i64) const {
  return {.offsets = zero_offsets(dims(t).size()), .sizes = dims(t), .file = 0};
}

ChunkData ExportedValues::resolve(i64 t, i64) const {
  i64 item_bytes = dtype_bytes(dtype(t), 1);
  ChunkData out{.file = 0, .dtype = dtype(t)};
  out.unpacked = std::make_shared<Bytes>(*this, task_of_[t], shape(t).items() * item_bytes, item_bytes);
  out.beneath = job_.task(task_of_[t]).sums;
  for (Checksum& sum : out.beneath) sum.tensor = t;
  return out;
}

std::unique_ptr<ExportedValues::Hand> ExportedValues::take(i64 task, bool large) const {
  std::unique_ptr<Hand> hand;
  auto& idle = large ? large_ : idle_;
  {
    std::lock_guard lock(mutex_);
    auto at = std::ranges::find(idle, task, [](const auto& h) { return h->number; });
    // Memory counts more than a plan where a read is large.
    if (at == idle.end() && std::ssize(idle) >= (large ? 1 : default_threads())) at = idle.begin();
    if (at != idle.end()) {
      hand = std::move(*at);
      idle.erase(at);
    }
  }
  if (!hand) hand = std::make_unique<Hand>(job_);
  if (hand->number != task) hand->task = job_.task(task), hand->number = task;
  return hand;
}

void ExportedValues::give(std::unique_ptr<Hand> hand, bool large) const {
  std::lock_guard lock(mutex_);
  (large ? large_ : idle_).push_back(std::move(hand));
}

}  // namespace mckpt::impl

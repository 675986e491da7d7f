// A queue under a mutex. Each thread takes the oldest stretch and writes it without the lock.
#include "live/save/write_queue.h"

#include <system_error>

#include "io/output/copy_sink.h"

namespace mckpt::impl {

WriteQueue::WriteQueue(CopySink& out, int threads) : out_(out) {
  try {
    for (int t = 0; t < threads; t++) threads_.emplace_back([this] { write(); });
  } catch (const std::system_error&) {  // fewer do the work
    if (threads_.empty()) throw;
  }
}

WriteQueue::~WriteQueue() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  added_.notify_all();
}

void WriteQueue::add(std::size_t window, std::span<const Stretch> stretches) {
  std::lock_guard lock(mutex_);
  if (failure_) return;
  for (const Stretch& s : stretches) items_.push_back({window, s});
  left_[window] += std::ssize(stretches);
  added_.notify_all();
}

void WriteQueue::wait(std::size_t window) {
  std::unique_lock lock(mutex_);
  written_.wait(lock, [&] { return failure_ || left_[window] == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

// The work of one thread. A failure is kept for wait(), and clears the queue.
void WriteQueue::write() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [&] { return ended_ || !items_.empty(); });
    if (ended_) return;
    Item item = items_.front();
    items_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      out_.write(item.stretch.file, item.stretch.offset, item.stretch.bytes);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure, items_.clear();
    left_[item.window]--;
    if (failure || left_[item.window] == 0) written_.notify_all();
  }
}

}  // namespace mckpt::impl

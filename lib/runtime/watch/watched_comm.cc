#include "runtime/watch/watched_comm.h"

#include "runtime/watch/activity.h"

namespace mckpt {
namespace {

class WatchedComm : public Comm {
 public:
  explicit WatchedComm(std::unique_ptr<Comm> comm) : comm_(std::move(comm)) {}

  int rank() const override { return comm_->rank(); }
  int size() const override { return comm_->size(); }
  void barrier() override {
    Waiting waiting("barrier");
    comm_->barrier();
  }
  void broadcast(std::span<std::byte> data, int root) override {
    Waiting waiting("broadcast");
    comm_->broadcast(data, root);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    Waiting waiting("all_gather");
    comm_->all_gather(mine, all);
  }
  Gathered all_gather_v(std::span<const std::byte> mine) override {
    Waiting waiting("all_gather_v");
    return comm_->all_gather_v(mine);
  }
  void exchange(std::span<const std::byte> send, std::span<const i64> send_bytes,
                std::span<std::byte> receive, std::span<const i64> receive_bytes) override {
    Waiting waiting("exchange");
    comm_->exchange(send, send_bytes, receive, receive_bytes);
  }
  void all_reduce(std::span<i64> numbers, Reduce op) override {
    Waiting waiting("all_reduce");
    comm_->all_reduce(numbers, op);
  }
  std::unique_ptr<Comm> split(int color, int key) override {
    Waiting waiting("split");
    std::unique_ptr<Comm> part = comm_->split(color, key);
    return part ? watched_comm(std::move(part)) : nullptr;
  }
  void abort(int status) override { comm_->abort(status); }

 private:
  std::unique_ptr<Comm> comm_;
};

}  // namespace

std::unique_ptr<Comm> watched_comm(std::unique_ptr<Comm> comm) {
  return std::make_unique<WatchedComm>(std::move(comm));
}

}  // namespace mckpt

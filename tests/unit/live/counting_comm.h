// A Comm that counts the messages by which ranks learn of each other.
#pragma once

#include "runtime/comm/comm.h"

namespace mckpt::impl {

class CountingComm final : public Comm {
 public:
  explicit CountingComm(Comm& of) : of_(of) {}

  int gathers = 0;

  int rank() const override { return of_.rank(); }
  int size() const override { return of_.size(); }
  void barrier() override { of_.barrier(); }
  void broadcast(std::span<std::byte> data, int root) override { gathers++, of_.broadcast(data, root); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    gathers++, of_.all_gather(mine, all);
  }
  Gathered all_gather_v(std::span<const std::byte> mine) override {
    gathers++;
    return of_.all_gather_v(mine);
  }
  void exchange(std::span<const std::byte> send, std::span<const i64> send_bytes,
                std::span<std::byte> receive, std::span<const i64> receive_bytes) override {
    of_.exchange(send, send_bytes, receive, receive_bytes);
  }
  void all_reduce(std::span<i64> numbers, Reduce op) override { of_.all_reduce(numbers, op); }
  std::unique_ptr<Comm> split(int color, int key) override { return of_.split(color, key); }
  void abort(int status) override { of_.abort(status); }

 private:
  Comm& of_;
};

}  // namespace mckpt::impl

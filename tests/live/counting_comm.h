// A Comm that counts what is called.
#pragma once

#include "runtime/comm.h"

namespace mckpt {

class CountingComm final : public Comm {
 public:
  explicit CountingComm(Comm& of) : of_(of) {}

  int collectives = 0;  // but splits

  int rank() const override { return of_.rank(); }
  int size() const override { return of_.size(); }
  void barrier() override { collectives++, of_.barrier(); }
  void broadcast(std::span<std::byte> data, int root) override { collectives++, of_.broadcast(data, root); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    collectives++, of_.all_gather(mine, all);
  }
  Gathered all_gather_v(std::span<const std::byte> mine) override {
    collectives++;
    return of_.all_gather_v(mine);
  }
  void exchange(std::span<const std::byte> send, std::span<const i64> send_bytes,
                std::span<std::byte> receive, std::span<const i64> receive_bytes) override {
    collectives++, of_.exchange(send, send_bytes, receive, receive_bytes);
  }
  void all_reduce(std::span<i64> numbers, Reduce op) override { collectives++, of_.all_reduce(numbers, op); }
  std::unique_ptr<Comm> split(int color, int key) override { return of_.split(color, key); }
  void abort(int status) override { of_.abort(status); }

 private:
  Comm& of_;
};

}  // namespace mckpt

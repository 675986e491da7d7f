// A Memory that comes from a pool: what one pass over the modules of a model needs is planned, and repeated
// passes allocate nothing. One thread at a time.
#pragma once

#include "live/device/memory.h"
#include "live/device/pool.h"

namespace mckpt {

class PooledMemory final : public Memory {
 public:
  explicit PooledMemory(Memory& from);  // outlives this
  u8* allocate(i64 bytes) override;
  void check_room(i64 bytes) const override { from_.check_room(bytes); }
  void release(u8* data) override;

  Pool& pool() { return pool_; }

 private:
  Memory& from_;
  Pool pool_;
};

}  // namespace mckpt

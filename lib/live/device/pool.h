// Pool: memory for the buffers of a pass that is repeated, such as gathering and releasing every module of a
// model once. The first pass is traced: each buffer is allocated by itself, and what is asked for is noted. A
// plan is made of it (live/device/pool_plan.h), and from the next pass on the same requests get their planned places
// in one slab, without an allocation and without holes that grow.
//
//   pool.begin_pass();
//   std::byte* w = pool.allocate(bytes);    ...    pool.free(w);
//   pool.end_pass();
//
// A pass that does not go as the trace does falls back to single allocations from there on, and is the new
// trace. A buffer may outlive its pass: a place that it still holds is not given away, the one who wants it
// gets a single allocation.
//
// The pool knows addresses only and never touches what they point to, so host memory and a device's are alike
// to it. A place that is freed may be given away at once: that everything which writes or reads it has ended,
// or is ordered before the next use (as work of one CUDA stream is), is for the caller to see to. One thread
// at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "core/base/int.h"
#include "live/device/pool_plan.h"

namespace mckpt {

// Where the memory comes from. `allocate` throws when there is none, as with out_of_memory()
// (runtime/system/memory_room.h).
struct PoolMemory {
  std::function<std::byte*(i64 bytes)> allocate;
  std::function<void(std::byte* memory, i64 bytes)> release;
};

struct PoolFacts {
  i64 held_bytes = 0, most_held_bytes = 0;  // taken from PoolMemory: the slab and single allocations
  i64 live_bytes = 0, most_live_bytes = 0;  // asked for, and not freed
  i64 slab_bytes = 0;                       // of the plan in use
  i64 planned_live_bytes = 0;               // the least that a slab could have for the trace in use
  i64 traced_passes = 0, replayed_passes = 0;
};

class Pool {
 public:
  // pre: the alignment is a power of two, and `memory` aligns what it gives by it.
  Pool(PoolMemory memory, i64 alignment);
  ~Pool();  // pre: every buffer is freed
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Passes do not nest. Outside of one, allocations are single ones.
  void begin_pass();
  void end_pass();

  // Null for 0 bytes. Throws what PoolMemory throws, and Error(kInternal) should live buffers overlap.
  std::byte* allocate(i64 bytes);
  // Throws Error(kInternal) for what is not a live buffer of this pool. Null is none.
  void free(std::byte* buffer);

  const PoolFacts& facts() const { return facts_; }

 private:
  // A request: for that many bytes, or (0) to free that buffer of the pass; -1: one from before it.
  struct Event {
    i64 bytes = 0, buffer = 0;
    friend bool operator==(const Event&, const Event&) = default;
  };
  struct Buffer {
    i64 bytes = 0;
    i64 pass = 0, index = 0;  // the how manieth buffer of which pass; pass 0: of none
    bool in_slab = false;
  };

  void note(Event event);
  std::byte* planned_place(i64 bytes);
  bool reserve(i64 offset, i64 bytes);
  bool make_slab();
  void drop_slab();
  std::byte* take(i64 bytes);
  void give_back(std::byte* memory, i64 bytes);
  void make_plan();

  PoolMemory memory_;
  i64 alignment_;
  PoolFacts facts_;

  std::vector<Event> trace_;  // that the plan is of
  PoolPlan plan_;
  std::byte* slab_ = nullptr;
  i64 slab_bytes_ = 0;
  std::map<i64, i64> slab_live_;  // begin -> end, of the live buffers in the slab

  i64 pass_ = 0;  // counts them
  bool in_pass_ = false;
  bool as_traced_ = false;  // so far
  i64 next_buffer_ = 0;     // of this pass
  std::vector<Event> events_;
  std::unordered_map<std::byte*, Buffer> live_;
};

}  // namespace mckpt

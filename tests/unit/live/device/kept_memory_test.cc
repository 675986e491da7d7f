#include "live/device/kept_memory.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/base/error.h"

namespace mckpt::impl::kept_memory_test {
namespace {

// The host's memory, which counts what is asked of it and has an end.
class Counted final : public Memory {
 public:
  u8* allocate(i64 bytes) override {
    if (held_.held_bytes() + bytes > room) throw Error(Code::kOutOfMemory, "full");
    allocations++;
    return held_.allocate(bytes);
  }
  void check_room(i64) const override {}
  void release(u8* data) override { held_.release(data); }
  i64 held_bytes() const { return held_.held_bytes(); }

  i64 room = i64{1} << 40;
  int allocations = 0;

 private:
  HostMemory held_;
};

TEST(KeptMemory, TheSmallestBlockThatIsLargeEnoughIsUsedAgain) {
  Counted from;
  KeptMemory memory(from);
  u8 *small = memory.allocate(3000), *large = memory.allocate(5000);
  memory.release(large), memory.release(small);
  EXPECT_EQ(memory.allocate(2000), small);
  EXPECT_EQ(memory.allocate(2000), large);
  EXPECT_EQ(from.allocations, 2);
  memory.release(large), memory.release(small);
}

TEST(KeptMemory, ABlockThatIsTooSmallGivesWay) {
  Counted from;
  {
    KeptMemory memory(from);
    u8 *a = memory.allocate(3000), *b = memory.allocate(5000);
    memory.release(a), memory.release(b);
    u8* c = memory.allocate(7000);
    EXPECT_EQ(from.held_bytes(), 12000);
    EXPECT_EQ(memory.allocate(4000), b);
    memory.release(b), memory.release(c);
    EXPECT_EQ(memory.most_held_bytes(), 12000);
  }
  EXPECT_EQ(from.held_bytes(), 0);
}

// The modules of a model in turn, each while the one before it is still there: an embedding, layers of two
// buffers each and a head. The second pass and all that follow allocate nothing.
TEST(KeptMemory, APassThatIsRepeatedAllocatesNothing) {
  const std::vector<std::vector<i64>> modules = {{64000},     {500, 9000}, {500, 9000}, {700, 8000},
                                                 {500, 9000}, {700, 8000}, {300},       {64000}};
  Counted from;
  KeptMemory memory(from);
  for (int pass = 0; pass < 4; pass++) {
    std::vector<u8*> before;
    for (const std::vector<i64>& module : modules) {
      std::vector<u8*> own;
      for (i64 bytes : module) own.push_back(memory.allocate(bytes));
      for (u8* data : before) memory.release(data);
      before = own;
    }
    for (u8* data : before) memory.release(data);
    if (pass == 1) from.room = 0;
  }
  EXPECT_LE(memory.most_held_bytes(), 2 * 64000 + 2 * 9000);
}

TEST(KeptMemory, BlocksInUseNeverShareMemory) {
  std::mt19937 random(1);
  Counted from;
  KeptMemory memory(from);
  struct Use {
    u8* data;
    i64 bytes;
    u8 mark;
  };
  std::vector<Use> live;
  std::size_t most_blocks = 0;
  auto free_one = [&](std::size_t i) {
    for (i64 b = 0; b < live[i].bytes; b++) ASSERT_EQ(live[i].data[b], live[i].mark);
    memory.release(live[i].data);
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (int step = 0; step < 5000; step++) {
    if (!live.empty() && random() % 2 == 0) {
      free_one(random() % live.size());
      continue;
    }
    i64 bytes = 1 + random() % 5000;
    u8 mark = static_cast<u8>(step);
    live.push_back({memory.allocate(bytes), bytes, mark});
    std::fill_n(live.back().data, bytes, mark);
    most_blocks = std::max(most_blocks, live.size());
  }
  EXPECT_LE(memory.most_held_bytes(), static_cast<i64>(most_blocks) * 5000);
  while (!live.empty()) free_one(0);
}

TEST(KeptMemory, MemoryThatRunsOutLeavesItAsItWas) {
  Counted from;
  from.room = 6000;
  KeptMemory memory(from);
  u8* a = memory.allocate(4000);
  EXPECT_THROW(memory.allocate(4000), Error);
  memory.release(a);
  EXPECT_EQ(memory.allocate(4000), a);
  memory.release(a);
}

}  // namespace
}  // namespace mckpt::impl::kept_memory_test

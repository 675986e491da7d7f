#include "live/device/pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

namespace mckpt {
namespace {

constexpr i64 kAlignment = 64;

// Memory of the host that counts what is taken from it.
struct CountedMemory {
  std::map<std::byte*, i64> taken;
  int calls = 0;

  PoolMemory source() {
    return {[this](i64 bytes) {
              auto* memory = static_cast<std::byte*>(std::aligned_alloc(
                  kAlignment, static_cast<std::size_t>((bytes + kAlignment - 1) / kAlignment * kAlignment)));
              taken[memory] = bytes;
              calls++;
              return memory;
            },
            [this](std::byte* memory, i64 bytes) {
              ASSERT_TRUE(taken.contains(memory));
              ASSERT_EQ(taken[memory], bytes);
              taken.erase(memory);
              std::free(memory);
            }};
  }
  i64 bytes() const {
    i64 sum = 0;
    for (const auto& [memory, bytes] : taken) sum += bytes;
    return sum;
  }
};

// A pass as numbers: a positive one asks for so many bytes, -k frees the k-th buffer of the pass.
using Script = std::vector<i64>;

// Fills every buffer with a byte of its own and looks whether it is still there when it is freed.
class Runner {
 public:
  explicit Runner(Pool& pool) : pool_(pool) {}

  void pass(const Script& script) {
    pool_.begin_pass();
    std::vector<Held> buffers;
    for (i64 step : script) {
      if (step > 0)
        buffers.push_back(take(step));
      else
        give_back(buffers[static_cast<std::size_t>(-step - 1)]);
    }
    pool_.end_pass();
    for (Held& held : buffers)
      if (held.memory) older_.push_back(held);
  }
  // What outlived its pass.
  void free_older() {
    for (Held& held : older_) give_back(held);
    older_.clear();
  }

 private:
  struct Held {
    std::byte* memory;
    i64 bytes;
    std::byte mark;
  };

  Held take(i64 bytes) {
    Held held{pool_.allocate(bytes), bytes, static_cast<std::byte>(++marks_)};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(held.memory) % kAlignment, 0u);
    std::memset(held.memory, static_cast<int>(held.mark), static_cast<std::size_t>(bytes));
    return held;
  }
  void give_back(Held& held) {
    for (i64 i = 0; i < held.bytes; i++) ASSERT_EQ(held.memory[i], held.mark);
    pool_.free(held.memory);
    held.memory = nullptr;
  }

  Pool& pool_;
  std::vector<Held> older_;
  u8 marks_ = 0;
};

Script random_script(std::mt19937& random, int steps, bool free_all) {
  Script script;
  std::vector<i64> live;
  i64 buffers = 0;
  auto free_one = [&] {
    std::size_t which = random() % live.size();
    script.push_back(-live[which]);
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
  };
  for (int i = 0; i < steps; i++) {
    if (!live.empty() && random() % 2) {
      free_one();
    } else {
      script.push_back(1 + static_cast<i64>(random() % 1000));
      live.push_back(++buffers);
    }
  }
  while (free_all && !live.empty()) free_one();
  return script;
}

TEST(Pool, ASecondPassAllocatesTheSlabAndNothingElse) {
  CountedMemory memory;
  Pool pool(memory.source(), kAlignment);
  Runner run(pool);
  const Script modules = {1000, -1, 2000, 500, -2, -3, 1000, -4};
  run.pass(modules);
  EXPECT_EQ(memory.calls, 4);
  EXPECT_EQ(memory.bytes(), 0);
  for (int i = 0; i < 5; i++) run.pass(modules);
  EXPECT_EQ(memory.calls, 5);
  EXPECT_EQ(memory.bytes(), 2048 + 512);
  EXPECT_EQ(pool.facts().slab_bytes, pool.facts().planned_live_bytes);
  EXPECT_EQ(pool.facts().traced_passes, 1);
  EXPECT_EQ(pool.facts().replayed_passes, 5);
  EXPECT_EQ(pool.facts().most_live_bytes, 2500);
}

TEST(Pool, APassThatDiffersGoesOnAndIsTheNewTrace) {
  const Script first = {1000, 300, -1, -2, 500, -3};
  const Script others[] = {
      {1000, 301, -1, -2, 500, -3},                    // another size
      {1000, 300, -2, -1, 500, -3},                    // another order
      {1000, 300, -1, -2},                             // shorter
      {},                                              // nothing
      {1000, 300, -1, -2, 500, -3, 800, -4, 100, -5},  // longer
      {1000, 300, 500, -3, -2, -1},                    // freed later than traced
  };
  for (const Script& other : others) {
    CountedMemory memory;
    {
      Pool pool(memory.source(), kAlignment);
      Runner run(pool);
      run.pass(first), run.pass(first);
      EXPECT_EQ(pool.facts().replayed_passes, 1);
      run.pass(other);
      EXPECT_EQ(pool.facts().traced_passes, 2);
      if (other.empty()) continue;  // and nothing to replay
      int before = memory.calls;
      run.pass(other), run.pass(other);
      EXPECT_EQ(pool.facts().replayed_passes, 3);
      EXPECT_EQ(memory.calls, before + 1);
    }
    EXPECT_EQ(memory.bytes(), 0);
  }
}

TEST(Pool, ABufferThatOutlivesItsPassKeepsItsPlace) {
  CountedMemory memory;
  {
    Pool pool(memory.source(), kAlignment);
    Runner run(pool);
    const Script leaves_one = {1000, 300, -1, 700, -3};
    for (int i = 0; i < 4; i++) run.pass(leaves_one);
    EXPECT_EQ(pool.facts().replayed_passes, 3);
    run.free_older();
    run.pass({50, -1});
    run.free_older();
  }
  EXPECT_EQ(memory.bytes(), 0);
}

TEST(Pool, LiveBuffersNeverOverlapWhateverThePassesDo) {
  std::mt19937 random(11);
  i64 replayed = 0, traced = 0;
  for (int round = 0; round < 100; round++) {
    CountedMemory memory;
    {
      Pool pool(memory.source(), kAlignment);
      Runner run(pool);
      Script script;
      for (int pass = 0; pass < 12; pass++) {
        if (pass == 0 || random() % 3 == 0)
          script = random_script(random, static_cast<int>(random() % 40), random() % 2 == 0);
        else if (random() % 3 == 0 && !script.empty() && script.back() > 0)
          script.back()++;
        run.pass(script);
        if (random() % 2) run.free_older();
        ASSERT_EQ(memory.bytes(), pool.facts().held_bytes);
      }
      run.free_older();
      ASSERT_EQ(pool.facts().live_bytes, 0);
      replayed += pool.facts().replayed_passes, traced += pool.facts().traced_passes;
    }
    ASSERT_EQ(memory.bytes(), 0);
  }
  EXPECT_GT(replayed, 300);
  EXPECT_GT(traced, 300);
}

TEST(Pool, OutsideOfAPassItAllocatesSingly) {
  CountedMemory memory;
  Pool pool(memory.source(), kAlignment);
  std::byte* buffer = pool.allocate(100);
  EXPECT_EQ(memory.bytes(), 100);
  EXPECT_EQ(pool.allocate(0), nullptr);
  pool.free(nullptr);
  pool.free(buffer);
  EXPECT_EQ(memory.bytes(), 0);
}

TEST(Pool, FreeingWhatIsNotLiveIsRefused) {
  CountedMemory memory;
  Pool pool(memory.source(), kAlignment);
  std::byte* buffer = pool.allocate(100);
  pool.free(buffer);
  EXPECT_THROW(pool.free(buffer), Error);
}

TEST(Pool, MemoryThatRunsOutLeavesThePoolAsItWas) {
  CountedMemory memory;
  PoolMemory source = memory.source();
  bool full = false;
  auto allocate = source.allocate;
  source.allocate = [&](i64 bytes) {
    if (full) throw Error(Code::kOutOfMemory, "full");
    return allocate(bytes);
  };
  Pool pool(source, kAlignment);
  Runner run(pool);
  run.pass({1000, -1});
  full = true;
  EXPECT_THROW(pool.begin_pass(), Error);
  EXPECT_THROW(pool.allocate(10), Error);
  EXPECT_EQ(pool.facts().held_bytes, 0);
  EXPECT_EQ(pool.facts().live_bytes, 0);
  full = false;
  run.pass({1000, -1});
  EXPECT_EQ(pool.facts().replayed_passes, 1);
}

}  // namespace
}  // namespace mckpt

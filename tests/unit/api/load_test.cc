// Loading through the interfaces of C++ and C. The host's memory takes the place of a GPU's.
#include <gtest/gtest.h>

#include <cstring>

#include "mckpt/c.h"
#include "mckpt/mckpt.h"

namespace mckpt {
namespace {

const std::string kModel = MCKPT_TEST_DATA "/models/tiny_qwen3_moe";

LoadedTensor named(const Loaded& loaded, const std::string& name) {
  for (const LoadedTensor& t : loaded.tensors())
    if (t.name == name) return t;
  throw std::runtime_error("no tensor " + name);
}

TEST(Load, MemoryHasTheBytesThatOpenReads) {
  Checkpoint ckpt = open(kModel);
  Loaded all = load(kModel, {.how = {.device = "cpu"}});
  EXPECT_EQ(all.device(), "cpu");
  ASSERT_EQ(std::ssize(all.tensors()), ckpt.tensor_count());
  std::int64_t bytes = 0;
  for (const LoadedTensor& t : all.tensors()) {
    std::vector<std::byte> expected = ckpt.read(t.name);
    ASSERT_EQ(t.bytes, std::ssize(expected));
    EXPECT_EQ(std::memcmp(t.data, expected.data(), expected.size()), 0) << t.name;
    bytes += t.bytes;
  }
  EXPECT_EQ(all.bytes(), bytes);
}

TEST(Load, KeptMemoryOutlivesTheRest) {
  std::shared_ptr<void> kept;
  std::vector<std::byte> expected = open(kModel).read("model.norm.weight");
  {
    Loaded some = load(kModel, {.how = {.device = "cpu", .threads = 1}, .names = "model.norm*"});
    ASSERT_EQ(some.tensors().size(), 1u);
    kept = some.keep(0);
    EXPECT_EQ(kept.get(), some.tensors()[0].data);
    EXPECT_THROW(some.keep(1), std::out_of_range);
  }
  EXPECT_EQ(std::memcmp(kept.get(), expected.data(), expected.size()), 0);
}

TEST(Load, ARankHasItsPart) {
  Checkpoint ckpt = open(kModel);
  std::vector<std::byte> whole = ckpt.read("model.embed_tokens.weight");
  for (std::int64_t rank : {0, 1}) {
    Loaded part = load_rank(kModel, {.how = {.device = "cpu"}, .grid = {.tp = 2}, .rank = rank});
    LoadedTensor t = named(part, "embedding.word_embeddings.weight");
    EXPECT_EQ(t.shape, (std::vector<std::int64_t>{16, 16}));
    EXPECT_EQ(std::memcmp(t.data, whole.data() + rank * t.bytes, static_cast<std::size_t>(t.bytes)), 0);
  }
  EXPECT_THROW(load_rank(kModel, {.how = {.device = "cpu"}, .grid = {.tp = 2}, .rank = 2}), Error);
  try {
    load_rank(kModel, {.how = {.device = "cpu"}, .hybrid_pattern = "*-|*-"});
    FAIL() << "a run of one stage has no pipes";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "MC2007");
  }
}

TEST(Load, WhatAnObserverStopsIsNotLoaded) {
  struct Stopped final : Observer {
    bool stop() override { return true; }
  } stopped;
  try {
    load(kModel, {.how = {.device = "cpu"}}, &stopped);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), Status::kInterrupted);
  }
}

// The fields of a DLManagedTensor up to those that a test reads.
struct Managed {
  void* data;
  std::int32_t device_type, device_number, rank;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
  void* context;
  void (*deleter)(Managed*);
};

TEST(Load, ATensorIsPassedOnByDlpack) {
  const char* settings[] = {"device=cpu", "names=model.embed_tokens.weight", nullptr};
  mckpt_error* error = nullptr;
  mckpt_loaded* loaded = mckpt_load(kModel.c_str(), settings, nullptr, &error);
  ASSERT_TRUE(loaded) << mckpt_error_text(error);
  EXPECT_FALSE(mckpt_loaded_dlpack(loaded, 0, 2, 32, &error));  // items of 16 bits
  ASSERT_TRUE(error);
  mckpt_error_free(error), error = nullptr;
  for (std::int64_t number : {-1, 1}) {
    EXPECT_FALSE(mckpt_loaded_dlpack(loaded, number, 4, 16, &error));
    ASSERT_TRUE(error);
    EXPECT_EQ(mckpt_error_status(error), 2) << mckpt_error_text(error);
    mckpt_error_free(error), error = nullptr;
  }
  auto* bytes = static_cast<Managed*>(mckpt_loaded_dlpack(loaded, 0, 1, 8, &error));
  auto* given = static_cast<Managed*>(mckpt_loaded_dlpack(loaded, 0, 4, 16, &error));
  ASSERT_TRUE(given && bytes);
  EXPECT_EQ(given->data, mckpt_loaded_data(loaded, 0));
  mckpt_loaded_free(loaded);
  EXPECT_EQ((std::vector<std::int64_t>(given->shape, given->shape + given->rank)),
            (std::vector<std::int64_t>{32, 16}));
  EXPECT_EQ((std::vector<std::int64_t>(given->strides, given->strides + 2)),
            (std::vector<std::int64_t>{16, 1}));
  EXPECT_EQ((std::pair(given->device_type, given->device_number)), (std::pair(1, 0)));
  EXPECT_EQ((std::pair(given->code, given->bits)), (std::pair(std::uint8_t{4}, std::uint8_t{16})));
  EXPECT_EQ((std::pair(bytes->rank, bytes->shape[0])), (std::pair(1, std::int64_t{1024})));
  bytes->deleter(bytes);
  std::vector<std::byte> expected = open(kModel).read("model.embed_tokens.weight");
  EXPECT_EQ(std::memcmp(given->data, expected.data(), expected.size()), 0);
  given->deleter(given);
}

}  // namespace
}  // namespace mckpt

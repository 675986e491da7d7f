// Collectives, with any number of ranks. Every expectation is what each rank can compute for itself.
#include "runtime/comm/comm.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/comm/same_host.h"
#include "tests/support/job.h"

namespace mckpt::impl {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// The words that rank r contributes: none from rank 0, more from each one after it.
std::string words_of(int r) {
  return std::string(static_cast<std::size_t>(r) * 7, static_cast<char>('a' + r));
}

// The job's own communicator, and one with messages cut into tiny pieces.
enum class Form { kWhole, kCut };

class CommTest : public testing::TestWithParam<Form> {
 protected:
  CommTest() : whole_(world()) {
    bool alone = whole_.size() == 1;
    if (GetParam() == Form::kCut && !alone) other_ = mpi_comm(9);
  }
  Comm& comm() { return other_ ? *other_ : whole_; }

 private:
  Comm& whole_;
  std::unique_ptr<Comm> other_;
};

TEST_P(CommTest, RanksOfOneHostFindEachOther) {
  std::unique_ptr<Comm> host = ranks_of_host(comm());
  EXPECT_EQ(host->size(), comm().size());
  EXPECT_EQ(host->rank(), comm().rank());
}

TEST_P(CommTest, IsAsLargeAsTheJob) {
  EXPECT_EQ(comm().size(), test_job().size());
  EXPECT_EQ(comm().rank(), test_job().rank());
}

TEST_P(CommTest, BroadcastsFromEveryRoot) {
  for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1000}})
    for (int root = 0; root < comm().size(); root++) {
      std::string text(n, comm().rank() == root ? static_cast<char>('A' + root) : '?');
      comm().broadcast(std::as_writable_bytes(std::span(text)), root);
      EXPECT_EQ(text, std::string(n, static_cast<char>('A' + root)));
    }
}

TEST_P(CommTest, GathersEqualParts) {
  i64 mine[3] = {comm().rank(), -comm().rank(), 1};
  std::vector<i64> all(static_cast<std::size_t>(3 * comm().size()));
  comm().all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  for (int r = 0; r < comm().size(); r++) {
    std::vector<i64> part(all.begin() + 3 * r, all.begin() + 3 * r + 3);
    EXPECT_EQ(part, (std::vector<i64>{r, -r, 1}));
  }
}

TEST_P(CommTest, GathersIntoThePlaceWhereTheOwnPartLies) {
  std::vector<i64> all(static_cast<std::size_t>(2 * comm().size()), -1);
  std::span<i64> own = std::span(all).subspan(static_cast<std::size_t>(2 * comm().rank()), 2);
  own[0] = comm().rank(), own[1] = 100 + comm().rank();
  comm().all_gather(std::as_bytes(own), std::as_writable_bytes(std::span(all)));
  for (int r = 0; r < comm().size(); r++) {
    EXPECT_EQ(all[static_cast<std::size_t>(2 * r)], r);
    EXPECT_EQ(all[static_cast<std::size_t>(2 * r + 1)], 100 + r);
  }
}

TEST_P(CommTest, GathersUnequalPartsEmptyOnesToo) {
  Gathered all = comm().all_gather_v(bytes_of(words_of(comm().rank())));
  ASSERT_EQ(all.begins.size(), static_cast<std::size_t>(comm().size()) + 1);
  for (int r = 0; r < comm().size(); r++) EXPECT_EQ(text_of(all.of(r)), words_of(r));
  EXPECT_EQ(all.begins.back(), static_cast<i64>(all.bytes.size()));
}

TEST_P(CommTest, GathersNothingFromAll) { EXPECT_TRUE(comm().all_gather_v({}).bytes.empty()); }

// Rank a sends a + 2 * b letters to rank b.
TEST_P(CommTest, ExchangesUnequalParts) {
  int me = comm().rank(), size = comm().size();
  auto part = [](int from, int to) {
    return std::string(static_cast<std::size_t>(from + 2 * to), static_cast<char>('a' + from * 5 + to));
  };
  std::string send, want;
  std::vector<i64> sent, received;
  for (int r = 0; r < size; r++) {
    send += part(me, r), sent.push_back(std::ssize(part(me, r)));
    want += part(r, me), received.push_back(std::ssize(part(r, me)));
  }
  std::string got(want.size(), '?');
  comm().exchange(bytes_of(send), sent, std::as_writable_bytes(std::span(got)), received);
  EXPECT_EQ(got, want);
}

TEST_P(CommTest, AddsAndTakesTheLargest) {
  std::vector<i64> numbers(50), largest(50);
  std::iota(numbers.begin(), numbers.end(), i64{1} << 40);
  std::vector<i64> sums = numbers;
  for (i64& n : largest) n = comm().rank() - 3;
  comm().all_reduce(sums, Reduce::kSum);
  comm().all_reduce(largest, Reduce::kMax);
  for (std::size_t i = 0; i < sums.size(); i++) EXPECT_EQ(sums[i], numbers[i] * comm().size());
  EXPECT_EQ(largest, std::vector<i64>(50, comm().size() - 4));
}

TEST_P(CommTest, SplitsByColorAndOrdersByKey) {
  int size = comm().size(), color = comm().rank() % 2;
  std::unique_ptr<Comm> half = comm().split(color, -comm().rank());
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(half->size(), (size + 1 - color) / 2);
  EXPECT_EQ(half->rank(), half->size() - 1 - comm().rank() / 2);
  i64 sum = comm().rank(), expected = 0;
  half->all_reduce({&sum, 1}, Reduce::kSum);
  for (int r = color; r < size; r += 2) expected += r;
  EXPECT_EQ(sum, expected);
}

TEST_P(CommTest, LeavesOutNegativeColors) {
  std::unique_ptr<Comm> some = comm().split(comm().rank() == 0 ? -1 : 0, 0);
  EXPECT_EQ(some == nullptr, comm().rank() == 0);
  EXPECT_TRUE(!some || some->size() == comm().size() - 1);
}

// Messages of 9 bytes at most are several calls; a message to oneself brings nothing.
TEST_P(CommTest, CountsCallsAndTheBytesThatTheyBring) {
  const i64 size = comm().size(), me = comm().rank(), cut = GetParam() == Form::kCut && size > 1;
  const CallCounts before = comm().activity().collectives().counts();
  auto since = [&](CommCall call) {
    return comm().activity().collectives().counts().since(before).of[static_cast<std::size_t>(call)];
  };
  std::vector<std::byte> twenty(20), all(static_cast<std::size_t>(20 * size));
  comm().broadcast(twenty, 0);
  CallCount count = since(CommCall::kBroadcast);
  EXPECT_EQ(count.calls, size == 1 ? 0 : cut ? 3 : 1);
  EXPECT_EQ(count.received, me == 0 ? 0 : 20);
  comm().all_gather(twenty, all);
  if (!cut) {  // of pieces it is a broadcast of each rank
    count = since(CommCall::kAllGather);
    EXPECT_EQ(count.calls, size == 1 ? 0 : 1);
    EXPECT_EQ(count.received, 20 * (size - 1));
  }
  std::string send(static_cast<std::size_t>(size), 'x'), got = send;
  const std::vector<i64> ones(static_cast<std::size_t>(size), 1);
  comm().exchange(bytes_of(send), ones, std::as_writable_bytes(std::span(got)), ones);
  count = since(CommCall::kExchange);
  EXPECT_EQ(count.calls, size == 1 ? 0 : 1);
  EXPECT_EQ(count.received, size - 1);
  i64 numbers[2] = {1, 2};
  comm().all_reduce(numbers, Reduce::kSum);
  EXPECT_EQ(since(CommCall::kAllReduce).received, size == 1 ? 0 : 16);
  EXPECT_EQ(since(CommCall::kSplit).calls, 0);
  const CallCount total = comm().activity().collectives().counts().since(before).total();
  EXPECT_EQ(total.calls == 0, size == 1);
}

TEST_P(CommTest, WaitsForAll) {
  i64 before = comm().activity().now().calls;
  for (int i = 0; i < 20; i++) comm().barrier();
  EXPECT_EQ(comm().activity().now().calls - before, comm().size() > 1 ? 20 : 0);
  EXPECT_EQ(comm().activity().now().waiting, "");
}

TEST_P(CommTest, SharesItsActivityWithItsParts) {
  EXPECT_EQ(&comm().split(0, 0)->activity() == &comm().activity(), comm().size() > 1);
}

INSTANTIATE_TEST_SUITE_P(Forms, CommTest, testing::Values(Form::kWhole, Form::kCut),
                         [](const auto& test) { return test.param == Form::kWhole ? "Whole" : "Cut"; });

}  // namespace
}  // namespace mckpt::impl

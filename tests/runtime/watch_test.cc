// The two parts of the watch against each other, and against strangers, in one process.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "runtime/watch_hub.h"
#include "runtime/watch_member.h"

namespace mckpt {
namespace {

constexpr WatchLimits kPatient{.silence_s = 60, .phase_s = 0};

Team team_of(int ranks, int rank) {
  Team team;
  team.rank = rank;
  for (int r = 0; r < ranks; r++) team.ranks.push_back({"h", r});
  return team;
}

// A part that is carried out round by round until it orders something.
template <typename Part>
class Running {
 public:
  explicit Running(std::unique_ptr<Part> part) : part_(std::move(part)), thread_([this] { run(); }) {}
  ~Running() { stop(); }
  // Waits for the order.
  WatchOrder order() {
    thread_.join();
    return std::move(order_);
  }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    part_.reset();
  }
  void leave() { leaves_ = true; }

 private:
  void run() {
    while (!stop_ && order_.what == WatchOrder::kGoOn) {
      if (leaves_.exchange(false)) part_->leave();
      order_ = part_->round(-1);
    }
  }

  std::unique_ptr<Part> part_;
  std::atomic<bool> stop_ = false, leaves_ = false;
  WatchOrder order_;
  std::thread thread_;
};

struct Job {
  explicit Job(int size, WatchLimits of = kPatient) : ranks(size), limits(of) {
    Listener listener = listen_for_ranks(true);
    invitation = {listener.port, listener.addresses, {1, 2, 3}, {4, 5, 6}};
    hub.emplace(std::make_unique<WatchHub>(team_of(ranks, 0), limits, invitation, std::move(listener)));
  }
  std::unique_ptr<WatchMember> member(int rank) {
    return std::make_unique<WatchMember>(team_of(ranks, rank), limits, invitation);
  }
  // A connection that says this first.
  Wire wire(const WatchFrame& first) {
    std::string why;
    Wire made(connect_to("127.0.0.1", invitation.port, 60, why));
    made.send(first);
    return made;
  }
  WatchFrame hello(int rank) const { return {.say = Say::kHello, .number = rank, .token = invitation.hello}; }

  int ranks;
  WatchLimits limits;
  Invitation invitation;
  std::optional<Running<WatchHub>> hub;
};

void wait_until_closed(const Wire& wire) {
  char byte;
  ssize_t n;
  do n = recv(wire.fd(), &byte, 1, MSG_DONTWAIT);
  while (n > 0 || (n < 0 && errno == EAGAIN && usleep(1000) == 0));
}

i64 descriptors() {
  i64 n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) n++;
  return n;
}

TEST(Watch, StrangersAreClosedAndChangeNothing) {
  Job job(2);
  Running<WatchMember> one(job.member(1));
  WatchFrame wrong = job.hello(1);
  wrong.token[0]++;
  std::vector<Wire> strangers;
  for (const WatchFrame& first : {wrong, job.hello(0), job.hello(-1), job.hello(2), job.hello(1),
                                  WatchFrame{.say = Say::kEnd, .number = 9},
                                  WatchFrame{.say = static_cast<Say>(99), .token = job.invitation.hello}})
    strangers.push_back(job.wire(first));
  for (Wire& stranger : strangers) wait_until_closed(stranger);
  for (int i = 0; i < 200; i++) strangers.push_back(job.wire({}));
  one.stop();
  WatchOrder order = job.hub->order();
  ASSERT_EQ(order.what, WatchOrder::kReport);
  EXPECT_EQ(order.cause->message(),
            "rank 1 (host h, process 1) died: it closed its connection without a word");
}

TEST(Watch, ARankThatConnectsAndSaysNothingMoreIsNamed) {
  Job job(2, {.silence_s = 1, .phase_s = 0});
  Wire wire = job.wire(job.hello(1));
  WatchOrder order = job.hub->order();
  ASSERT_EQ(order.what, WatchOrder::kReport);
  EXPECT_NE(order.cause->message().find("rank 1 (host h, process 1) does not answer"), std::string::npos);
}

TEST(Watch, ARankThatLosesRank0IsNamedUnlessTheDeputyHasToldIt) {
  for (int rank : {1, 2}) {
    Job job(3);
    Wire wire = job.wire(job.hello(rank));
    wire.send({.say = Say::kEnd, .number = 3});
    WatchOrder order = job.hub->order();
    EXPECT_EQ(order.what, rank == 1 ? WatchOrder::kEnd : WatchOrder::kReport);
    EXPECT_EQ(order.status, rank == 1 ? 3 : 0);
    EXPECT_EQ(order.cause ? order.cause->message() : "",
              rank == 1 ? "" : "rank 2 (host h, process 2) hears nothing of rank 0 (host h, process 0)");
  }
}

TEST(Watch, RanksLeaveTogetherAndLeaveNothingBehind) {
  i64 before = descriptors();
  {
    Job job(3);
    Running<WatchMember> one(job.member(1)), two(job.member(2));
    one.leave(), two.leave(), job.hub->leave();
    EXPECT_EQ(one.order().what, WatchOrder::kLeave);
    EXPECT_EQ(two.order().what, WatchOrder::kLeave);
    one.stop(), two.stop();
    EXPECT_EQ(job.hub->order().what, WatchOrder::kLeave);
  }
  EXPECT_EQ(descriptors(), before);
}

TEST(Watch, AThousandRanksAreOneStar) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 2200)
    GTEST_SKIP() << "both ends of a thousand connections are more than may be open here";
  Job job(1000);
  allow_connections(1000);  // their ends are here as well
  std::vector<Wire> wires;
  for (int r = 1; r < 1000; r++) wires.push_back(job.wire(job.hello(r)));
  for (Wire& wire : wires) wire.send({.say = Say::kBye});
  job.hub->leave();
  for (Wire& wire : wires) {
    std::vector<Say> heard;
    while (wire.open() && (heard.empty() || heard.back() != Say::kBye))
      for (const WatchFrame& frame : wire.receive())
        if (frame.say != Say::kBeat) heard.push_back(frame.say);
    ASSERT_EQ(heard, (std::vector<Say>{Say::kWelcome, Say::kBye}));
    wire.close();
  }
  EXPECT_EQ(job.hub->order().what, WatchOrder::kLeave);
}

TEST(Watch, TheDeputyTellsThatRank0IsGoneAndTheOthersEndQuietly) {
  Job job(4);
  Running<WatchMember> one(job.member(1)), two(job.member(2)), three(job.member(3));
  job.hub->stop();
  WatchOrder order = one.order();
  ASSERT_EQ(order.what, WatchOrder::kReport);
  EXPECT_EQ(order.cause->message(),
            "rank 0 (host h, process 0) died: it closed its connection without a word");
  for (Running<WatchMember>* other : {&two, &three}) {
    order = other->order();
    EXPECT_EQ(order.what, WatchOrder::kEnd);
    EXPECT_EQ(order.status, 3);
  }
}

TEST(Watch, AMemberPassesByAddressesWhereSomebodyElseAnswers) {
  Job job(2);
  sockaddr_in other{};
  other.sin_family = AF_INET;
  other.sin_port = htons(static_cast<u16>(job.invitation.port));
  inet_pton(AF_INET, "127.0.0.2", &other.sin_addr);
  Socket stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(stranger.fd(), reinterpret_cast<sockaddr*>(&other), sizeof other), 0);
  ASSERT_EQ(listen(stranger.fd(), 1), 0);
  std::thread answers([&] {
    Socket made(accept(stranger.fd(), nullptr, nullptr));
    WatchFrame frame{.say = Say::kWelcome};
    ASSERT_EQ(send(made.fd(), &frame, sizeof frame, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof frame));
    char byte;
    while (recv(made.fd(), &byte, 1, 0) > 0) continue;
  });
  job.invitation.addresses = {"127.0.0.3", "127.0.0.2", "127.0.0.1"};  // nobody, a stranger, the hub
  job.member(1);
  answers.join();
}

TEST(Watch, AHubThatCannotBeReachedIsAnErrorThatNamesEveryTry) {
  Invitation nowhere{1, {"127.0.0.3", "127.0.0.4"}, {}, {}};
  try {
    WatchMember(team_of(2, 1), kPatient, nowhere);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "rank 1 (host h, process 1) cannot reach rank 0 (host h, process 0)");
    EXPECT_EQ(e.found(), "127.0.0.3 port 1: Connection refused; 127.0.0.4 port 1: Connection refused");
  }
}

TEST(WatchSockets, OnOneHostTheLoopbackAloneIsListenedOn) {
  Listener listener = listen_for_ranks(true);
  EXPECT_EQ(listener.addresses, std::vector<std::string>{"127.0.0.1"});
  std::string why;
  for (const std::string& address : listen_for_ranks(false).addresses)
    EXPECT_FALSE(connect_to(address, listener.port, 60, why)) << address;
}

TEST(WatchSockets, ForSeveralHostsEveryAddressAnswers) {
  Listener listener = listen_for_ranks(false);
  std::string why;
  EXPECT_TRUE(connect_to("127.0.0.1", listener.port, 60, why)) << why;
  for (const std::string& address : listener.addresses)
    EXPECT_TRUE(connect_to(address, listener.port, 60, why)) << address << ": " << why;
}

TEST(WatchWire, FramesComeWholeHoweverTheyAreCut) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  Wire wire{Socket(ends[0])};
  Socket other(ends[1]);
  WatchFrame frame = beat_of({"a phase with a name that is longer than its field", "barrier", 7, 9});
  EXPECT_EQ(text_of(frame.phase), "a phase with a name that is lon");
  const char* bytes = reinterpret_cast<const char*>(&frame);
  for (std::size_t i = 0; i < sizeof frame; i++) {
    EXPECT_TRUE(wire.receive().empty()) << i;
    ASSERT_EQ(write(other.fd(), bytes + i, 1), 1);
  }
  EXPECT_EQ(wire.receive(), std::vector<WatchFrame>{frame});
  ASSERT_EQ(write(other.fd(), bytes, 5), 5);
  other = Socket();
  EXPECT_TRUE(wire.receive().empty());
  EXPECT_FALSE(wire.open());
  wire.send(frame);  // into nothing
}

TEST(WatchWire, WhatTheOtherSideDoesNotTakeWaitsButBeatsDoNot) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  Wire wire{Socket(ends[0])}, other{Socket(ends[1])};
  while (!wire.sending()) wire.send(beat_of({}));
  for (int i = 0; i < 3; i++) wire.send({.say = Say::kEnd, .number = i}), wire.send(beat_of({}));
  std::vector<i32> ends_heard;
  while (ends_heard.size() < 3) {
    for (const WatchFrame& frame : other.receive())
      if (frame.say == Say::kEnd) ends_heard.push_back(frame.number);
    wire.flush();
  }
  EXPECT_EQ(ends_heard, (std::vector<i32>{0, 1, 2}));
  other.close();
  wire.send({.say = Say::kEnd});  // and no SIGPIPE
  EXPECT_TRUE(other.receive().empty());
}

}  // namespace
}  // namespace mckpt

// The two parts of the watch against each other, and against strangers, in one process.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "runtime/watch/hub.h"
#include "runtime/watch/member.h"
#include "tests/unit/runtime/connect.h"
#include "tests/unit/runtime/hosts.h"

namespace mckpt {
namespace {

constexpr WatchLimits kPatient{.silence_s = 60, .phase_s = 0};

Team team_of(int ranks, int rank) {
  Team team;
  team.rank = rank;
  for (int r = 0; r < ranks; r++) team.ranks.push_back({host_named("h"), r});
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
    invitation = {{{listener.addresses[0], listener.port}}, {1, 2, 3}, {4, 5, 6}};
    hub.emplace(std::make_unique<WatchHub>(team_of(ranks, 0), limits, invitation, std::move(listener)));
  }
  std::unique_ptr<WatchMember> member(int rank) {
    return std::make_unique<WatchMember>(team_of(ranks, rank), limits, invitation);
  }
  // A connection that says this first.
  Wire wire(const WatchFrame& first) {
    Wire made(connected(invitation.endpoints[0]));
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

TEST(Watch, ATellerThatDiesIsNamedWhoeverElseDied) {
  for (int other : {1, 3}) {
    Job job(4);
    Wire teller = job.wire(job.hello(2)), lost = job.wire(job.hello(other));
    teller.send({.say = Say::kClaim, .number = 7});
    for (bool may_tell = false; !may_tell; usleep(1000))
      for (const WatchFrame& frame : teller.receive()) may_tell |= frame.say == Say::kTell;
    lost.close();
    usleep(300'000);  // it is missed, and for once nobody says so
    teller.close();
    WatchOrder order = job.hub->order();
    ASSERT_EQ(order.what, WatchOrder::kReport);
    EXPECT_EQ(order.cause->message(),
              "rank 2 (host h, process 2) died: it closed its connection without a word");
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

// Somewhere on the loopback where a member may call: nobody listens, nobody answers, or somebody else does.
class Elsewhere {
 public:
  Elsewhere() : listener_(listen_for_ranks(true)) {}
  ~Elsewhere() { hang_up(); }
  Endpoint nobody() {
    Endpoint at = here();
    listener_.socket = Socket();
    return at;
  }
  // Takes the call and never says a word.
  Endpoint silence() const { return here(); }
  // Welcomes everybody, but does not know the secret.
  Endpoint stranger() {
    thread_ = std::thread([this] {
      while (!stop_) {
        Socket made = accept_one(listener_);
        if (made) calls_.emplace_back(std::move(made)).send({.say = Say::kWelcome});
        usleep(1000);
      }
    });
    return here();
  }

 private:
  Endpoint here() const { return {listener_.addresses[0], listener_.port}; }
  void hang_up() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  Listener listener_;
  std::vector<Wire> calls_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(Watch, AMemberPassesByAddressesWhereNobodyOrSomebodyElseAnswers) {
  Job job(2);
  Elsewhere a, b, c;
  Endpoint hub = job.invitation.endpoints[0];
  job.invitation.endpoints = {a.nobody(), b.stranger(), c.silence(), hub};
  job.member(1);
}

TEST(Watch, AddressesWhereNobodyAnswersTakeLittleOfTheTime) {
  Job job(2, {.silence_s = 4, .phase_s = 0});
  std::vector<Elsewhere> silent(12);
  Endpoint hub = job.invitation.endpoints[0];
  job.invitation.endpoints.clear();
  for (const Elsewhere& e : silent) job.invitation.endpoints.push_back(e.silence());
  job.invitation.endpoints.push_back(hub);
  job.member(1);
}

TEST(Watch, AHubThatCannotBeReachedIsAnErrorThatNamesEveryTry) {
  Elsewhere a, b, c;
  Endpoint nobody = a.nobody(), stranger = b.stranger(), silence = c.silence();
  Invitation nowhere{{nobody, stranger, silence}, {}, {1}};
  try {
    WatchMember(team_of(2, 1), {.silence_s = 1, .phase_s = 0}, nowhere);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "rank 1 (host h, process 1) cannot reach rank 0 (host h, process 0)");
    auto at = [](const Endpoint& to) { return cat(to.address, " port ", to.port, ": "); };
    EXPECT_EQ(e.found(),
              cat(at(nobody), "Connection refused; ", at(stranger), "nobody there who knows this job; ",
                  at(silence), "nobody there who knows this job"));
  }
}

// A rank 0 that welcomes whoever calls first, and says more in the same breath.
class Talkative {
 public:
  explicit Talkative(std::vector<WatchFrame> more, bool closes = false)
      : answers_([this, frames = std::move(more), closes]() mutable {
          while (!(hub_ = accept_one(listener_))) usleep(1000);
          frames.insert(frames.begin(), {.say = Say::kWelcome, .token = invitation.welcome});
          ssize_t bytes = std::ssize(frames) * static_cast<ssize_t>(sizeof(WatchFrame));
          EXPECT_EQ(send(hub_.fd(), frames.data(), static_cast<std::size_t>(bytes), MSG_NOSIGNAL), bytes);
          if (closes) shutdown(hub_.fd(), SHUT_WR);
        }) {}
  ~Talkative() { wait(); }
  void wait() {  // until all is said
    if (answers_.joinable()) answers_.join();
  }

 private:
  Listener listener_ = listen_for_ranks(true);

 public:
  const Invitation invitation{{{listener_.addresses[0], listener_.port}}, {1, 2, 3}, {4, 5, 6}};

 private:
  Socket hub_;
  std::thread answers_;
};

// Rank 0 may end the job, or leave, right after it has welcomed the last rank.
TEST(Watch, WhatComesTogetherWithTheWelcomeIsHeard) {
  for (Say say : {Say::kEnd, Say::kBye})
    for (bool closes : {false, true}) {
      Talkative hub({{.say = say, .number = 7}}, closes);
      WatchLimits limits{.silence_s = 2, .phase_s = 0};
      std::optional<Running<WatchMember>> member;
      try {
        member.emplace(std::make_unique<WatchMember>(team_of(2, 1), limits, hub.invitation));
      } catch (const Error& e) {
        ADD_FAILURE() << e.what();
      }
      hub.wait();
      if (!member) continue;
      WatchOrder order = member->order();
      EXPECT_EQ(order.what, say == Say::kEnd ? WatchOrder::kEnd : WatchOrder::kLeave) << closes;
      EXPECT_EQ(order.status, say == Say::kEnd ? 7 : 0) << closes;
    }
}

// The second order comes with the first, before that is carried out.
TEST(Watch, OrdersThatComeTogetherAreCarriedOutOneByOne) {
  Talkative hub({{.say = Say::kTell}, {.say = Say::kBeat}, {.say = Say::kEnd, .number = 7}});
  WatchMember member(team_of(2, 1), kPatient, hub.invitation);
  hub.wait();
  EXPECT_EQ(member.round(-1).what, WatchOrder::kTell);
  EXPECT_EQ(member.round(-1).what, WatchOrder::kGoOn);  // what it may tell comes first
  member.told();
  WatchOrder second = member.round(-1);
  EXPECT_EQ(second.what, WatchOrder::kEnd);
  EXPECT_EQ(second.status, 7);
}

TEST(Watch, OfNoAddressNoneIsReached) { EXPECT_THROW(WatchMember(team_of(2, 1), kPatient, {}), Error); }

}  // namespace
}  // namespace mckpt

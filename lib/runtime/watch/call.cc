#include "runtime/watch/call.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/watch/role.h"

namespace mckpt {
namespace {

// So long an address is alone with its chance; less where there are many, so that all have had theirs by half
// of the time.
constexpr double kTurnSeconds = 1;
constexpr double kStepSeconds = 0.05;

class Attempt {
 public:
  Attempt(const Endpoint& to, const Invitation& invitation, int rank)
      : to_(to), invitation_(invitation), rank_(rank) {
    int error = 0;
    socket_ = begin_connecting(to, error);
    if (!socket_) fail(std::strerror(error));
  }

  bool failed() const { return failed_; }
  pollfd wanted() const {
    if (socket_) return {socket_.fd(), POLLOUT, 0};
    return {wire_.fd(), static_cast<short>(wire_.sending() ? POLLIN | POLLOUT : POLLIN), 0};
  }
  // Goes on after poll(). True: it is rank 0, and wire() is the connection.
  bool advance(short events) {
    if (failed_ || events == 0) return false;
    if (socket_) {
      if (int error = connect_error(socket_)) return fail(std::strerror(error));
      wire_ = Wire(std::exchange(socket_, Socket()));
      wire_.send({.say = Say::kHello, .number = rank_, .token = invitation_.hello});
    }
    wire_.flush();
    // What came with the welcome is for whoever gets the wire.
    for (const WatchFrame& frame : wire_.receive(1))
      return (frame.say == Say::kWelcome && frame.token == invitation_.welcome) || fail(kStranger);
    return wire_.open() ? false : fail(kStranger);
  }
  Wire wire() { return std::exchange(wire_, Wire(Socket())); }
  std::string outcome() const {
    return cat(escaped(to_.address), " port ", to_.port, ": ",
               failed_   ? why_
               : socket_ ? std::strerror(ETIMEDOUT)
                         : kStranger);
  }

 private:
  static constexpr const char* kStranger = "nobody there who knows this job";
  bool fail(const char* why) {
    failed_ = true;
    why_ = why;
    socket_ = Socket();
    wire_.close();
    return false;
  }

  const Endpoint& to_;
  const Invitation& invitation_;
  int rank_;
  Socket socket_;        // while it connects
  Wire wire_{Socket()};  // then
  bool failed_ = false;
  std::string why_;
};

}  // namespace

std::optional<Wire> call_hub(const Invitation& invitation, int rank, double limit_s, std::string& tried) {
  const std::vector<Endpoint>& hubs = invitation.endpoints;
  double turn_s =
      std::min(kTurnSeconds, limit_s / 2 / static_cast<double>(std::max<std::size_t>(hubs.size(), 1)));
  std::vector<Attempt> attempts;
  attempts.reserve(hubs.size());
  auto all_failed = [&] {
    return std::all_of(attempts.begin(), attempts.end(), [](const Attempt& a) { return a.failed(); });
  };
  WatchClock clock(kStepSeconds);
  for (double waited_s = 0, next_s = 0; waited_s < limit_s; waited_s += clock.tick()) {
    while (attempts.size() < hubs.size() && (waited_s >= next_s || all_failed())) {
      attempts.emplace_back(hubs[attempts.size()], invitation, rank);
      next_s = waited_s + turn_s;
    }
    if (all_failed()) break;
    std::vector<pollfd> fds;
    for (const Attempt& a : attempts) fds.push_back(a.wanted());
    poll(fds.data(), fds.size(), static_cast<int>(kStepSeconds * 1000));
    for (std::size_t i = 0; i < attempts.size(); i++)
      if (attempts[i].advance(fds[i].revents)) return attempts[i].wire();
  }
  for (const Attempt& a : attempts) tried += cat(tried.empty() ? "" : "; ", a.outcome());
  return std::nullopt;
}

}  // namespace mckpt

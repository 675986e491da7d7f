#include "runtime/watch/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace mckpt {
namespace {

constexpr int kNewSocket = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

union AnyAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

socklen_t size_of(const AnyAddress& a) { return a.any.sa_family == AF_INET6 ? sizeof a.v6 : sizeof a.v4; }

AnyAddress address_of(const std::string& text, int port) {
  AnyAddress a{};
  if (inet_pton(AF_INET, text.c_str(), &a.v4.sin_addr) == 1) {
    a.v4.sin_family = AF_INET;
    a.v4.sin_port = htons(static_cast<u16>(port));
  } else if (inet_pton(AF_INET6, text.c_str(), &a.v6.sin6_addr) == 1) {
    a.v6.sin6_family = AF_INET6;
    a.v6.sin6_port = htons(static_cast<u16>(port));
  }
  return a;
}

// Frames are small and wanted at once.
void send_at_once(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::optional<Listener> listen_on(const char* address) {
  AnyAddress at = address_of(address, 0);
  Listener listener{Socket(socket(at.any.sa_family, kNewSocket, 0)), 0, {}};
  int fd = listener.socket.fd(), off = 0;
  if (fd < 0) return {};
  if (at.any.sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  socklen_t size = size_of(at);
  if (bind(fd, &at.any, size) != 0 || listen(fd, SOMAXCONN) != 0 || getsockname(fd, &at.any, &size) != 0)
    return {};
  listener.port = ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
  return listener;
}

// Of the interfaces that are up, without the loopback and those that are valid on one link only.
std::vector<std::string> interface_addresses() {
  std::vector<std::string> texts;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return texts;
  for (const ifaddrs* i = all; i; i = i->ifa_next) {
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK)) continue;
    char text[INET6_ADDRSTRLEN] = "";
    if (i->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof text);
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&v6)) inet_ntop(AF_INET6, &v6, text, sizeof text);
    }
    if (*text) texts.emplace_back(text);
  }
  freeifaddrs(all);
  return texts;
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Listener listen_for_ranks(bool this_host_only) {
  for (const char* address : {this_host_only ? "127.0.0.1" : "::", this_host_only ? "::1" : "0.0.0.0"}) {
    std::optional<Listener> listener = listen_on(address);
    if (!listener) continue;
    if (this_host_only)
      listener->addresses = {address};
    else
      listener->addresses = interface_addresses();
    return std::move(*listener);
  }
  throw Error(Code::kRanksFailed,
              cat("the watch over the ranks cannot listen for them: ", std::strerror(errno)))
      .help("--rank-timeout 0 does without it");
}

void allow_connections(int more) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = std::min(limit.rlim_max, limit.rlim_cur + static_cast<rlim_t>(more));
  setrlimit(RLIMIT_NOFILE, &limit);
}

Socket accept_one(const Listener& listener) {
  Socket made(accept4(listener.socket.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (made) send_at_once(made.fd());
  return made;
}

Socket begin_connecting(const Endpoint& to, int& error) {
  AnyAddress at = address_of(to.address, to.port);
  Socket made(socket(at.any.sa_family, kNewSocket, 0));
  if (made && (connect(made.fd(), &at.any, size_of(at)) == 0 || errno == EINPROGRESS)) {
    send_at_once(made.fd());
    return made;
  }
  error = errno;
  return Socket();
}

int connect_error(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace mckpt

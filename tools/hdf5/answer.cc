// Collects the records of the answer and writes them out in large pieces. Numbers are 8 bytes, lowest byte
// first; a text is its length as a number, then its bytes:
//
//   kGroup  4 0 0 0 0 0 0 0  "conv"  ...         the kind is one byte
//
// The reader, lib/io/hdf5, treats the answer as untrusted.
#include "hdf5/answer.h"

#include <unistd.h>

#include <cerrno>

namespace mckpt::impl {
namespace {

constexpr int kOutput = 1;
constexpr std::size_t kEnough = std::size_t{64} << 10;

}  // namespace

Answer::Answer(std::string_view magic) : done_(magic) {}

Answer& Answer::begin(char kind) {
  record_.assign(1, kind);
  return *this;
}

Answer& Answer::byte(int v) {
  record_ += static_cast<char>(v);
  return *this;
}

Answer& Answer::number(std::uint64_t v) {
  for (int i = 0; i < 8; i++) record_ += static_cast<char>(v >> 8 * i & 0xff);
  return *this;
}

Answer& Answer::text(std::string_view v) {
  number(v.size());
  record_ += v;
  return *this;
}

void Answer::end() {
  done_ += record_;
  record_.clear();
  records_++;
  if (done_.size() >= kEnough) write_out();
}

void Answer::fault(std::string_view name, hdf5_wire::Blame blame, std::string_view words) {
  begin(hdf5_wire::Record::kFault).text(name).byte(static_cast<int>(blame)).text(words).end();
}

void Answer::finish() {
  std::uint64_t records = records_;
  begin(hdf5_wire::Record::kEnd).number(records).end();
  write_out();
}

// If the reader is gone, the process ends: no one can use the rest of the answer.
void Answer::write_out() {
  for (std::string_view rest = done_; !rest.empty();) {
    ssize_t n = ::write(kOutput, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ::_exit(1);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  done_.clear();
}

}  // namespace mckpt::impl

// A pickle of protocol 2 is two bytes of header, opcodes that leave its value on the stack, and a stop: what
// is between the two can stand wherever a value is expected.
#include "io/pickle/write/compose.h"

#include "io/pickle/write/writer.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kHeader = "\x80\x02";

// The opcodes of a value.
std::string_view body(const std::string& pickle) {
  return std::string_view(pickle).substr(kHeader.size(), pickle.size() - kHeader.size() - 1);
}

// One opcode or number after the other, without header and stop.
template <typename Write>
std::string opcodes(Write&& write) {
  PickleWriter w;
  write(w);
  return std::string(body(w.finish()));
}

std::string whole(std::string opcodes) {
  opcodes.insert(0, kHeader);
  return opcodes += static_cast<char>(Op::kStop);
}

}  // namespace

std::string pickle_dict(std::span<const std::pair<std::string, std::string>> entries) {
  std::string out = opcodes([](PickleWriter& w) { w.op(Op::kEmptyDict), w.op(Op::kMark); });
  for (const auto& entry : entries) {
    out += opcodes([&](PickleWriter& w) { w.text(entry.first); });
    out += body(entry.second);
  }
  return whole(out + static_cast<char>(Op::kSetitems));
}

std::string pickle_list(std::span<const std::string> values) {
  std::string out = opcodes([](PickleWriter& w) { w.op(Op::kEmptyList), w.op(Op::kMark); });
  for (const std::string& value : values) out += body(value);
  return whole(out + static_cast<char>(Op::kAppends));
}

std::string pickle_numbered(std::span<const std::string> values) {
  std::string out = opcodes([](PickleWriter& w) { w.op(Op::kEmptyDict), w.op(Op::kMark); });
  for (std::size_t i = 0; i < values.size(); i++) {
    out += opcodes([&](PickleWriter& w) { w.integer(static_cast<i64>(i)); });
    out += body(values[i]);
  }
  return whole(out + static_cast<char>(Op::kSetitems));
}

}  // namespace mckpt::impl

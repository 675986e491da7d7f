// Splits keys by the prefixes that Megatron writes; a key that follows no known form is all front, without a
// name.
#include "convert/keys/key_section.h"

#include <charconv>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kState = "optimizer.state.", kShard = "/shard_";

// In torch_dist, the state of an optimizer is named in front of the parameter
// ("optimizer.state.exp_avg.decoder..."), and '/' begins what is not a name ("/shard_0_4").
KeySection torch_dist_section(std::string_view key) {
  std::size_t tail = std::min(key.find('/'), key.size());
  std::string_view base = key.substr(0, tail);
  std::size_t begin = chain_bytes(base);
  bool optimizer = base.substr(begin).starts_with("optimizer.") || base == "optimizer";
  if (optimizer) {
    std::size_t dot =
        base.substr(begin).starts_with(kState) ? base.find('.', begin + kState.size()) : base.npos;
    begin = dot == base.npos ? tail : dot + 1;
  }
  return {key.substr(0, begin), key.substr(begin, tail - begin), key.substr(tail), optimizer};
}

// Takes "0.1.2" from the front of the text. False if the text does not begin with a number.
bool take_numbers(std::string_view& text, std::vector<i64>& out) {
  while (true) {
    i64 number = -1;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return false;
    out.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('.')) return true;
    text.remove_prefix(1);
  }
}

}  // namespace

KeySection key_section(DcpDialect dialect, std::string_view key) {
  if (dialect == DcpDialect::kTorchDist) return torch_dist_section(key);
  DcpKey parts = split_key(dialect, key);
  bool optimizer = key.starts_with("optimizer.");
  if (parts.parameter.empty()) return {key, {}, {}, optimizer};
  std::size_t begin = static_cast<std::size_t>(parts.parameter.data() - key.data());
  return {key.substr(0, begin), parts.parameter, key.substr(begin + parts.parameter.size()), optimizer};
}

std::optional<ObjectShard> object_shard(std::string_view tail) {
  ObjectShard out;
  if (!tail.starts_with(kShard)) return std::nullopt;
  tail.remove_prefix(kShard.size());
  if (!take_numbers(tail, out.offset) || !tail.starts_with('_')) return std::nullopt;
  tail.remove_prefix(1);
  if (!take_numbers(tail, out.shape) || !tail.empty() || out.offset.size() != out.shape.size())
    return std::nullopt;
  return out;
}

std::string to_string(const ObjectShard& shard) {
  auto joined = [](const std::vector<i64>& numbers) {
    std::string out;
    for (i64 n : numbers) out += cat(out.empty() ? "" : ".", n);
    return out;
  };
  return cat(kShard, joined(shard.offset), "_", joined(shard.shape));
}

std::vector<i32> nesting_dots(std::string_view key) {
  std::vector<i32> all;
  for (std::size_t at = key.find('.'); at != key.npos; at = key.find('.', at + 1))
    all.push_back(static_cast<i32>(at));
  if ((key.starts_with("optimizer.param_to_group_meta.") || key.starts_with(kState)) && all.size() > 2)
    return {all[0], all[1], all.back()};
  if (key.starts_with("opt_param_scheduler.") && !all.empty()) return {all[0]};
  if (key.starts_with("rng_state.")) return all;
  if (split_key(DcpDialect::kFsdpDtensor, key).section == DcpKey::Section::kModel) return {all[0]};
  return {};
}

}  // namespace mckpt::impl

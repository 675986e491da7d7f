// Numbers stand behind two underscores.
#include "io/store/names/dcp_names.h"

#include <charconv>
#include <system_error>

namespace mckpt::impl {
namespace {

constexpr std::string_view kFront = "__";

// The number behind the two underscores, if `after` comes next; `rest` gets the text behind `after`. -1:
// there is none.
i32 number_before(std::string_view name, std::string_view after, std::string_view& rest) {
  if (!name.starts_with(kFront)) return -1;
  name.remove_prefix(kFront.size());
  i32 rank = -1;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  if (error != std::errc() || rank < 0 || !name.starts_with(after)) return -1;
  rest = name.substr(after.size());
  return rank;
}

}  // namespace

i32 rank_of_dcp_data(std::string_view path) {
  std::string_view rest;
  return number_before(path.substr(path.rfind('/') + 1), "_", rest);
}

i32 rank_of_dcp_metadata(std::string_view name) {
  std::string_view rest;
  const i32 rank = number_before(name, kDcpMetadata, rest);
  return rest.empty() ? rank : -1;
}

bool is_dcp_name(std::string_view name) {
  return name == kDcpMetadata || rank_of_dcp_metadata(name) >= 0 || is_dcp_data(name);
}

}  // namespace mckpt::impl

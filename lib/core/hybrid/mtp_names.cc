// Finds the module directly behind the number of an MTP depth.
#include "core/hybrid/mtp_names.h"

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

// Where the module of an MTP depth begins in the name: behind "mtp.layers.0.". Nothing if the depth has
// another module there, or there is no depth.
std::optional<std::size_t> module_at(std::string_view name, std::string_view module) {
  constexpr std::string_view kDepths = "mtp.layers.";
  const std::size_t depths = name.find(kDepths);
  if (depths == name.npos) return std::nullopt;
  const std::size_t dot = name.find('.', depths + kDepths.size());
  if (dot == name.npos) return std::nullopt;
  std::string_view rest = name.substr(dot + 1);
  bool found = rest.starts_with(module) && rest.size() > module.size() && rest[module.size()] == '.';
  return found ? std::optional(dot + 1) : std::nullopt;
}

}  // namespace

std::string with_usual_mtp(std::string name) {
  if (std::optional<std::size_t> at = module_at(name, kOldMtpModule))
    name.replace(*at, kOldMtpModule.size(), kMtpModule);
  return name;
}

std::vector<std::string> mtp_names(std::string_view name) {
  std::vector<std::string> out{std::string(name)};
  if (std::optional<std::size_t> at = module_at(name, kMtpModule))
    out.push_back(cat(name.substr(0, *at), kOldMtpModule, name.substr(*at + kMtpModule.size())));
  return out;
}

std::optional<std::string> old_mtp_name(std::string_view name) {
  std::vector<std::string> names = mtp_names(name);
  const std::optional<std::size_t> at = module_at(name, kMtpModule);
  if (!at || name.substr(*at + kMtpModule.size()).starts_with(".layers.")) return std::nullopt;
  return std::move(names.back());
}

}  // namespace mckpt::impl

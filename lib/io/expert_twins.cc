#include "io/expert_twins.h"

#include <algorithm>
#include <map>

#include "io/crc32.h"
#include "io/sha256.h"

namespace mckpt {
namespace {

constexpr std::string_view kWord = "experts.";

// Where the part behind "experts." begins; npos when the name has no such part.
std::size_t behind_experts(std::string_view name) {
  for (std::size_t at = name.find(kWord); at != std::string_view::npos; at = name.find(kWord, at + 1))
    if (at == 0 || name[at - 1] == '.' || name[at - 1] == '_') return at + kWord.size();
  return std::string_view::npos;
}

std::size_t digits_at(std::string_view name, std::size_t at) {
  std::size_t n = 0;
  while (at + n < name.size() && name[at + n] >= '0' && name[at + n] <= '9') n++;
  return n < 10 && at + n < name.size() && name[at + n] == '.' ? n : 0;
}

}  // namespace

ExpertTwins::ExpertTwins(const Store& store) : store_(store) {
  std::size_t count = static_cast<std::size_t>(store.tensor_count());
  experts_.resize(count);
  crcs_.resize(count);
  constants_.resize(count);
  for (std::size_t t = 0; t < count; t++) {
    std::string_view name = store.name(static_cast<i64>(t));
    std::size_t at = behind_experts(name);
    if (at == std::string_view::npos || dtype_info(store.dtype(static_cast<i64>(t))).bits % 8 != 0) continue;
    std::span<const i64> dims = store.dims(static_cast<i64>(t));
    bool fused = dims.size() == 3 && store.shape(static_cast<i64>(t)).items() > 0;
    experts_[t] = digits_at(name, at) > 0 ? 1 : fused ? dims[0] : 0;
  }
}

ExpertTwins::Sums::Sums(const ExpertTwins& twins, i64 tensor) : tensor_(tensor) {
  i64 experts = std::max<i64>(1, twins.experts_in(tensor));
  expert_bytes_ = left_ = TensorReader::tensor_bytes(twins.store_, tensor) / experts;
}

void ExpertTwins::Sums::take(std::span<const u8> bytes) {
  while (!bytes.empty()) {
    std::span<const u8> part = bytes.first(std::min(bytes.size(), static_cast<std::size_t>(left_)));
    if (left_ == expert_bytes_) {
      crcs_.push_back(0);
      first_byte_ = part[0];
      constant_ = true;
    }
    crcs_.back() = crc32(crcs_.back(), part);
    constant_ = constant_ && std::all_of(part.begin(), part.end(), [&](u8 b) { return b == first_byte_; });
    left_ -= static_cast<i64>(part.size());
    if (left_ == 0) {
      constants_.push_back(constant_);
      left_ = expert_bytes_;
    }
    bytes = bytes.subspan(part.size());
  }
}

void ExpertTwins::add(const Sums& sums) {
  crcs_[static_cast<std::size_t>(sums.tensor_)] = sums.crcs_;
  constants_[static_cast<std::size_t>(sums.tensor_)] = sums.constants_;
}

i64 ExpertTwins::compared() const {
  return std::count_if(crcs_.begin(), crcs_.end(), [](const std::vector<u32>& c) { return !c.empty(); });
}

std::string ExpertTwins::content_digest(TensorReader& reader, const Expert& e) const {
  i64 items = store_.shape(e.tensor).items() / experts_in(e.tensor);
  Sha256 sha;
  reader.read(e.tensor, e.slice * items, (e.slice + 1) * items,
              [&](std::span<const u8> bytes, i64) { sha.update(bytes); });
  return sha.hex_digest();
}

std::vector<Finding> ExpertTwins::findings(TensorReader& reader) const {
  // Experts are compared with those of the same layer and weight: under the name without the expert's number.
  std::map<std::pair<std::string, u32>, std::vector<Expert>> alike;
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    std::size_t index = static_cast<std::size_t>(t);
    std::string name(store_.name(t));
    std::size_t at = behind_experts(name), digits = at == std::string::npos ? 0 : digits_at(name, at);
    i64 number = digits ? std::stol(name.substr(at, digits)) : 0;
    if (digits) name = cat(name.substr(0, at), "*", name.substr(at + digits));
    for (std::size_t s = 0; s < constants_[index].size(); s++)
      if (!constants_[index][s])
        alike[{name, crcs_[index][s]}].push_back(
            {t, static_cast<i64>(s), digits ? number : static_cast<i64>(s)});
  }
  std::vector<Finding> out;
  for (const auto& [key, experts] : alike) {
    if (experts.size() < 2) continue;
    std::map<std::string, std::vector<std::string>> same;
    for (const Expert& e : experts) same[content_digest(reader, e)].push_back(std::to_string(e.number));
    for (const auto& [digest, numbers] : same) {
      if (numbers.size() < 2) continue;
      out.push_back({.code = Code::kEqualExperts,
                     .tensor = key.first,
                     .message = cat("experts ", listed(numbers, 8), " hold the same bytes"),
                     .warning = true});
    }
  }
  return out;
}

}  // namespace mckpt

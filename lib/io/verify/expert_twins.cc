// Finds experts with equal bytes. Which tensors contain experts, and which expert a tensor is, is read from
// the names that Megatron and Hugging Face use:
//
//   experts.3.gate_proj.weight                one expert, number 3
//   experts.local_experts.3.linear_fc1.weight one expert, number 3
//   experts.linear_fc1.weight3                one expert, number 3
//   experts.gate_up_proj [128, 2048, 1536]    128 experts, fused
//   layers.mlp.experts... [48, 128, ...]      48 layers of 128 experts, stacked
//
// Experts are compared if they have the same name without the number (and, stacked, are of the same layer).
// They are grouped by CRC-32, which 128 experts of a layer seldom share by chance; SHA-256 decides.
#include "io/verify/expert_twins.h"

#include <algorithm>
#include <map>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/file/crc32.h"
#include "io/store/names/scale_names.h"
#include "io/store/store.h"
#include "io/sums/sha256.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

// The facts that a name shows about experts. The number is in one of two places:
//
//   experts.3.gate_proj.weight          experts.local_experts.3.linear_fc1.weight
//   experts.linear_fc1.weight3          experts.linear_fc1.weight3_w.exp_avg
struct ExpertName {
  bool expert = false;             // the tensor belongs to one expert or several
  bool stacked = false;            // "layers.mlp", without a number: the first dimension is the layers
  std::size_t at = 0, digits = 0;  // of the number; 0 digits: there is none
};

std::size_t digits_at(std::string_view name, std::size_t at) {
  std::size_t n = 0;
  while (at + n < name.size() && name[at + n] >= '0' && name[at + n] <= '9') n++;
  return n < 10 ? n : 0;
}

// Whether the name, or one of its dotted parts, ends at `at`.
bool part_ends(std::string_view name, std::size_t at) { return at == name.size() || name[at] == '.'; }

// The digits of the number at `at`, behind the name of a weight. Behind the number, "_w" or "_v" may name one
// half of a gated weight. 0: there is no number.
std::size_t leaf_digits(std::string_view name, std::size_t at) {
  std::size_t digits = digits_at(name, at), end = at + digits;
  bool half = name.substr(end).starts_with("_w") || name.substr(end).starts_with("_v");
  return digits > 0 && part_ends(name, half ? end + 2 : end) ? digits : 0;
}

// Looks for "experts." as a part of the name or at the end of one ("local_experts."), then for a number
// directly behind it, else for a number behind the name of a weight. A name with "layers." before it but no
// number behind that is stacked.
ExpertName expert_name(std::string_view name) {
  constexpr std::string_view kExperts = "experts.", kLayers = "layers.";
  ExpertName out;
  std::size_t first = name.npos;
  for (std::size_t at = name.find(kExperts); at != name.npos; at = name.find(kExperts, at + 1)) {
    if (at > 0 && name[at - 1] != '.' && name[at - 1] != '_') continue;
    if (first == name.npos) first = at;
    out.at = at + kExperts.size();
    out.digits = digits_at(name, out.at);
    if (out.digits > 0 && out.at + out.digits < name.size() && name[out.at + out.digits] == '.') break;
    out.digits = 0;
  }
  out.expert = first != name.npos;
  if (!out.expert) return out;
  for (std::string_view leaf :
       {"linear_fc1.weight", "linear_fc2.weight", "linear_fc1.bias", "linear_fc2.bias"}) {
    std::size_t at = out.digits > 0 ? name.npos : name.find(leaf, first);
    if (at == name.npos) continue;
    out.at = at + leaf.size();
    out.digits = leaf_digits(name, out.at);
  }
  std::size_t layers = name.rfind(kLayers, first);
  out.stacked = out.digits == 0 && layers != name.npos && digits_at(name, layers + kLayers.size()) == 0;
  return out;
}

}  // namespace

ExpertTwins::ExpertTwins(const Store& store) : store_(store) {
  std::size_t count = static_cast<std::size_t>(store.tensor_count());
  experts_.resize(count);
  crcs_.resize(count);
  constants_.resize(count);
  for (std::size_t t = 0; t < count; t++) {
    i64 tensor = static_cast<i64>(t), items = store.shape(tensor).items();
    ExpertName name = expert_name(store.name(tensor));
    // Single numbers, such as the step of an optimizer, and scales of quantised weights, are equal without
    // being copies.
    if (!name.expert || items < 2 || is_beside_codes(store.name(tensor)) ||
        dtype_info(store.dtype(tensor)).bits % 8 != 0)
      continue;
    std::span<const i64> dims = store.dims(tensor);
    std::size_t layer_dims = name.stacked ? 1 : 0;
    if (name.digits > 0) {
      experts_[t] = 1;
    } else if (dims.size() >= layer_dims + 3) {
      experts_[t] = name.stacked ? dims[0] * dims[1] : dims[0];
    }
  }
}

ExpertTwins::Sums::Sums(const ExpertTwins& twins, i64 tensor) : tensor_(tensor) {
  i64 experts = std::max<i64>(1, twins.experts_in(tensor));
  expert_bytes_ = left_ = TensorReader::tensor_bytes(twins.store_, tensor) / experts;
}

// Cuts the stream of bytes where an expert ends; a sum of one expert may take many calls.
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
  crcs_[sums.tensor_] = sums.crcs_;
  constants_[sums.tensor_] = sums.constants_;
}

i64 ExpertTwins::compared() const {
  return std::count_if(crcs_.begin(), crcs_.end(), [](const std::vector<u32>& c) { return !c.empty(); });
}

// The SHA-256 of one expert's bytes, which are read again.
std::string ExpertTwins::content_digest(TensorReader& reader, const Expert& e) const {
  i64 items = store_.shape(e.tensor).items() / experts_in(e.tensor);
  Sha256 sha;
  reader.read(e.tensor, e.slice * items, (e.slice + 1) * items,
              [&](std::span<const u8> bytes, i64) { sha.update(bytes); });
  return sha.hex_digest();
}

std::vector<Finding> ExpertTwins::findings(TensorReader& reader) const {
  // Experts are compared with the experts of the same layer and weight: under the name without the expert's
  // number.
  std::map<std::pair<std::string, u32>, std::vector<Expert>> alike;
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    std::size_t index = static_cast<std::size_t>(t);
    if (constants_[index].empty()) continue;
    std::string name(store_.name(t));
    ExpertName parts = expert_name(name);
    i64 number = parts.digits ? std::stol(name.substr(parts.at, parts.digits)) : 0;
    if (parts.digits) name = cat(name.substr(0, parts.at), "*", name.substr(parts.at + parts.digits));
    i64 of_a_layer = parts.stacked ? store_.dims(t)[1] : experts_in(t);
    for (std::size_t s = 0; s < constants_[index].size(); s++) {
      if (constants_[index][s]) continue;
      i64 slice = static_cast<i64>(s);
      std::string key = parts.stacked ? cat(name, " (layer ", slice / of_a_layer, ")") : name;
      alike[{key, crcs_[index][s]}].push_back({t, slice, parts.digits ? number : slice % of_a_layer});
    }
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
                     .message = cat("experts ", listed(numbers, 8), " have the same bytes"),
                     .warning = true});
    }
  }
  return out;
}

}  // namespace mckpt::impl

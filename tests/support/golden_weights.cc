// A recipe is a permutation of bit patterns, shuffled by std::mt19937 from the CRC-32 of its seed.
#include "tests/support/golden_weights.h"

#include <cstdint>
#include <istream>
#include <numeric>
#include <random>
#include <sstream>

namespace mckpt::impl {
namespace {

using Bits = std::uint16_t;

std::uint32_t crc32(const std::string& text) {
  std::uint32_t crc = ~0u;
  for (unsigned char c : text) {
    crc ^= c;
    for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

// bf16 bit patterns of middling exponents, in ascending order.
const std::vector<Bits>& patterns() {
  static const std::vector<Bits> all = [] {
    std::vector<Bits> out;
    for (unsigned bits = 0; bits < 65536; bits++)
      if (unsigned exponent = bits >> 7 & 255; exponent >= 27 && exponent <= 226)
        out.push_back(static_cast<Bits>(bits));
    return out;
  }();
  return all;
}

// The items [first, first + count) of a permutation of `values`.
void permute(std::vector<Bits> values, const std::string& seed, std::size_t first, std::size_t count,
             std::vector<Bits>& out) {
  std::mt19937 random(crc32(seed));
  for (std::size_t i = 0; i < first + count; i++)
    std::swap(values[i], values[i + random() % (values.size() - i)]);
  out.insert(out.end(), values.begin() + static_cast<std::ptrdiff_t>(first),
             values.begin() + static_cast<std::ptrdiff_t>(first + count));
}

std::vector<Bits> norm_values() {
  std::vector<Bits> values(256);
  std::iota(values.begin(), values.end(), Bits{16128});
  return values;
}

struct Recipe {
  std::string kind, seed;
  std::size_t first = 0;
};

std::vector<std::size_t> dims_of(const std::string& shape) {
  std::vector<std::size_t> out;
  std::istringstream in(shape == "-" ? "" : shape);
  for (std::string size; std::getline(in, size, 'x');) out.push_back(std::stoull(size));
  return out;
}

std::vector<Bits> draw(const Recipe& t, const std::vector<std::size_t>& dims) {
  std::size_t items = 1;
  for (std::size_t d : dims) items *= d;
  std::vector<Bits> out;
  if (t.kind == "perm") permute(patterns(), t.seed, t.first, items, out);
  if (t.kind == "norm") permute(norm_values(), t.seed, 0, items, out);
  if (t.kind == "slices")
    for (std::size_t e = 0; e < dims[0]; e++)
      permute(patterns(), t.seed + "[" + std::to_string(e) + "]", 0, items / dims[0], out);
  if (t.kind == "rand") {
    std::mt19937 random(crc32(t.seed));
    for (std::size_t i = 0; i < items; i++) out.push_back(patterns()[random() % patterns().size()]);
  }
  return out;
}

std::string bytes_of(const Recipe& t, const std::vector<std::size_t>& dims) {
  std::string bytes;
  if (t.kind == "hex") {
    for (std::size_t i = 0; i < t.seed.size(); i += 2)
      bytes += static_cast<char>(std::stoul(t.seed.substr(i, 2), nullptr, 16));
    return bytes;
  }
  for (Bits b : draw(t, dims)) bytes += {static_cast<char>(b & 255), static_cast<char>(b >> 8)};
  return bytes;
}

}  // namespace

std::vector<GoldenTensor> draw_golden(std::istream& tensors) {
  std::vector<GoldenTensor> out;
  GoldenTensor t;
  std::string shape;
  Recipe recipe;
  while (tensors >> t.name >> t.dtype >> shape >> recipe.kind >> recipe.seed >> recipe.first) {
    if (recipe.seed == "=") recipe.seed = t.name;
    t.dims = dims_of(shape);
    t.bytes = bytes_of(recipe, t.dims);
    out.push_back(t);
  }
  if (!tensors.eof()) out.clear();
  return out;
}

}  // namespace mckpt::impl

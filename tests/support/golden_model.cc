// golden_model TENSORS.txt OUT.safetensors: the weights of a golden model, drawn again as the program drew
// them that made the golden data. Each line of the text is a tensor, its shape and its recipe:
//
//   NAME BF16 517x96 perm SEED FIRST      items FIRST, FIRST+1, ... of the permutation of the bit patterns
//   that SEED names NAME BF16 16x96x40 slices SEED 0      the same for every slice e of dimension 0, named
//   SEED[e] NAME BF16 256x256 rand SEED 0         patterns drawn with repetition NAME BF16 96 norm SEED 0 a
//   permutation of the values of [0.5, 2) NAME F32 16 hex BYTES 0               as they are
//
// SEED is a name, "=" for the tensor's own; its CRC-32 seeds a Mersenne twister, as torch.manual_seed does,
// and the permutation is torch.randperm's.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

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

struct Tensor {
  std::string name, dtype, shape, kind, seed;
  std::size_t first = 0;

  std::vector<std::size_t> dims() const {
    std::vector<std::size_t> out;
    std::istringstream in(shape);
    for (std::string size; std::getline(in, size, 'x');) out.push_back(std::stoull(size));
    return out;
  }
};

std::vector<Bits> draw(const Tensor& t) {
  std::vector<std::size_t> dims = t.dims();
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

std::string bytes_of(const Tensor& t) {
  std::string bytes;
  if (t.kind == "hex") {
    for (std::size_t i = 0; i < t.seed.size(); i += 2)
      bytes += static_cast<char>(std::stoul(t.seed.substr(i, 2), nullptr, 16));
    return bytes;
  }
  for (Bits b : draw(t)) bytes += {static_cast<char>(b & 255), static_cast<char>(b >> 8)};
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: golden_model TENSORS.txt OUT.safetensors\n", stderr), 2;
  std::ifstream in(argv[1]);
  std::string header = "{", data;
  Tensor t;
  while (in >> t.name >> t.dtype >> t.shape >> t.kind >> t.seed >> t.first) {
    if (t.seed == "=") t.seed = t.name;
    std::size_t begin = data.size();
    data += bytes_of(t);
    std::string shape = t.shape;
    for (char& c : shape)
      if (c == 'x') c = ',';
    if (header.size() > 1) header += ',';
    header += '"';
    header += t.name;
    header += "\":{\"dtype\":\"" + t.dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::uint64_t size = header.size();
  char length[8];
  std::memcpy(length, &size, 8);
  std::ofstream out(argv[2], std::ios::binary);
  out.write(length, 8) << header << data;
  return in.eof() && out ? 0 : 1;
}

// golden_model TENSORS.txt OUT.safetensors: writes the weights of a golden model (golden_weights.h).
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/support/golden_weights.h"

namespace {

std::string joined(const std::vector<std::size_t>& dims) {
  std::string out;
  for (std::size_t d : dims) out.append(out.empty() ? "" : ",").append(std::to_string(d));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: golden_model TENSORS.txt OUT.safetensors\n", stderr), 2;
  std::ifstream in(argv[1]);
  std::string header = "{", data;
  for (const mckpt::impl::GoldenTensor& t : mckpt::impl::draw_golden(in)) {
    std::size_t begin = data.size();
    data += t.bytes;
    if (header.size() > 1) header += ',';
    header.append("\"").append(t.name).append("\":{\"dtype\":\"").append(t.dtype);
    header.append("\",\"shape\":[").append(joined(t.dims)).append("],\"data_offsets\":[");
    header.append(std::to_string(begin)).append(",").append(std::to_string(data.size())).append("]}");
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::uint64_t size = header.size();
  char length[8];
  std::memcpy(length, &size, 8);
  std::ofstream out(argv[2], std::ios::binary);
  out.write(length, 8) << header << data;
  return !data.empty() && out ? 0 : 1;
}

#include "io/torch/layout.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/base/text.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/store/checksum.h"
#include "io/store/tensor_spec.h"
#include "io/torch/file.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

std::vector<u8> bytes_of(i64 count, u8 first) {
  std::vector<u8> out(static_cast<std::size_t>(count));
  for (u8& b : out) b = first++;
  return out;
}

struct Owned {
  std::string name;
  DType dtype;
  std::vector<i64> dims;
};

std::vector<TensorSpec> specs(const std::vector<Owned>& tensors) {
  std::vector<TensorSpec> out;
  for (const Owned& t : tensors) out.push_back({t.name, t.dtype, t.dims});
  return out;
}

// Every type that torch can save, and the shapes that are special.
std::vector<Owned> all_tensors() {
  std::vector<Owned> out;
  for (const DTypeInfo& d : all_dtypes())
    if (d.in_torch && d.kind != DTypeKind::kQuantized && !(d.dtype >= DType::kU1 && d.dtype <= DType::kI7))
      out.push_back({std::string(d.name), d.dtype, {3, 4}});
  out.push_back({"scalar", DType::kF32, {}});
  out.push_back({"empty", DType::kBF16, {0, 3}});
  out.push_back({"empty inside", DType::kBF16, {2, 0, 3}});
  out.push_back({"model.layers.0.weight \xc3\xa9", DType::kI64, {1, 1, 5, 1}});
  return out;
}

// The file with tensor i made of bytes that count up from i.
void write_all(const std::string& path, const std::vector<Owned>& tensors) {
  TorchLayout layout(torch_archive_folder(path), specs(tensors));
  std::ofstream out(path, std::ios::binary);
  auto put = [&](i64 offset, const std::vector<u8>& bytes) {
    out.seekp(offset);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  std::vector<u32> crcs;
  for (i64 t = 0; t < layout.tensor_count(); t++) {
    std::vector<u8> data = bytes_of(layout.data_bytes(t), static_cast<u8>(t));
    put(layout.data_offset(t), data);
    crcs.push_back(crc32(0, data));
  }
  for (const TorchLayout::Piece& p : layout.frame(crcs)) put(p.offset, p.bytes);
}

TEST(TorchLayout, WritesWhatTheReaderReads) {
  TempFolder folder;
  std::vector<Owned> tensors = all_tensors();
  write_all(folder.at("model.pt"), tensors);
  InputFile file(folder.at("model.pt"));
  TorchFile read = read_torch_file(file);
  for (const Finding& f : read.findings) ADD_FAILURE() << f.message;
  ASSERT_EQ(read.table.size(), static_cast<i64>(tensors.size()));
  for (i64 i = 0; i < read.table.size(); i++) {
    const Owned& t = tensors[static_cast<std::size_t>(i)];
    EXPECT_EQ(read.table.name(i), t.name);
    EXPECT_EQ(read.table.dtype(i), t.dtype) << t.name;
    EXPECT_EQ(std::vector<i64>(read.table.dims(i).begin(), read.table.dims(i).end()), t.dims) << t.name;
    EXPECT_TRUE(read.table.strides(i).empty()) << t.name;
    if (read.table.extent_bytes(i) == 0) continue;
    EXPECT_EQ(read.table.offset(i) % 64, 0) << t.name;
    EXPECT_EQ(file.read(read.table.offset(i), read.table.extent_bytes(i)),
              bytes_of(read.table.extent_bytes(i), static_cast<u8>(i)))
        << t.name;
  }
  for (const Checksum& c : read.checksums)
    EXPECT_EQ(crc32(0, file.read(c.offset, c.bytes)), c.crc32) << c.name;
}

TEST(TorchLayout, GivesTheSameBytesForTheSameTensors) {
  TempFolder a, b;
  write_all(a.at("model.pt"), all_tensors());
  write_all(b.at("model.pt"), all_tensors());
  InputFile fa(a.at("model.pt")), fb(b.at("model.pt"));
  EXPECT_EQ(fa.read(0, fa.size()), fb.read(0, fb.size()));
}

TEST(TorchLayout, RefusesWhatTorchCannotSave) {
  std::vector<Owned> quantized = {{"q", DType::kQI8, {2}}}, six = {{"s", DType::kF6E2M3, {4}}},
                     four = {{"u", DType::kU4, {4}}}, name = {{"\xff", DType::kF32, {1}}};
  EXPECT_NE(thrown_by([&] { TorchLayout("a", specs(quantized)); }).find("MC3005"), std::string::npos);
  EXPECT_NE(thrown_by([&] { TorchLayout("a", specs(six)); }).find("MC3005"), std::string::npos);
  EXPECT_NE(thrown_by([&] { TorchLayout("a", specs(four)); }).find("MC3005"), std::string::npos);
  EXPECT_NE(thrown_by([&] { TorchLayout("a", specs(name)); }).find("MC3005"), std::string::npos);
}

TEST(TorchLayout, NamesTheArchiveAsReadersTakeIt) {
  TempFolder folder;
  for (std::string name : {"a b.pt", ".pt", "..pt", "no_suffix", "x.y.pt", "back\\slash.pt"}) {
    write_all(folder.at(name), {{"w", DType::kF32, {2}}});
    EXPECT_EQ(thrown_by([&] { read_torch_file(InputFile(folder.at(name))); }), "nothing") << name;
  }
}

// The copy engine writes the mark behind each tensor; the frame has the same there.
TEST(TorchLayout, HasTheMarkOfTheNextRecordBehindEveryTensor) {
  TempFolder folder;
  std::vector<Owned> tensors = all_tensors();
  write_all(folder.at("model.pt"), tensors);
  TorchLayout layout("model", specs(tensors));
  InputFile file(folder.at("model.pt"));
  for (i64 t = 0; t < layout.tensor_count(); t++) {
    std::vector<u8> mark = file.read(layout.data_offset(t) + layout.data_bytes(t), 4);
    EXPECT_EQ(std::string(mark.begin(), mark.end()), TorchLayout::kRecordMark) << t;
  }
}

// A sparse file in which only the frame is written: the data are zeros.
std::string sparse_file(const TempFolder& folder, const std::vector<TensorSpec>& tensors, u32 crc_of_zeros) {
  std::string path = folder.at("sparse.pt");
  TorchLayout layout("sparse", tensors);
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  EXPECT_EQ(::ftruncate(fd, layout.file_bytes()), 0);
  for (const TorchLayout::Piece& p : layout.frame(std::vector<u32>(tensors.size(), crc_of_zeros)))
    EXPECT_EQ(::pwrite(fd, p.bytes.data(), p.bytes.size(), p.offset), static_cast<ssize_t>(p.bytes.size()));
  ::close(fd);
  return path;
}

TEST(TorchLayout, WritesTensorsAndFilesAboveFourGiB) {
  TempFolder folder;
  std::vector<i64> five{5, 1 << 30}, one{3, 4};
  std::vector<TensorSpec> tensors = {
      {"large", DType::kU8, five}, {"behind", DType::kF32, one}, {"again", DType::kU8, five}};
  InputFile file(sparse_file(folder, tensors, 1));
  TorchFile read = read_torch_file(file);
  ASSERT_EQ(read.table.size(), 3);
  EXPECT_EQ(read.table.extent_bytes(0), i64{5} << 30);
  EXPECT_GT(read.table.offset(1), i64{5} << 30);
  EXPECT_GT(file.size(), i64{10} << 30);
}

TEST(TorchLayout, WritesMoreRecordsThanAPlainZipCounts) {
  TempFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 70'000; i++) names.push_back(cat("layers.", i, ".weight"));
  std::vector<i64> dims{4};
  std::vector<TensorSpec> tensors;
  for (const std::string& n : names) tensors.push_back({n, DType::kF16, dims});
  TorchFile read = read_torch_file(InputFile(sparse_file(folder, tensors, crc32(0, std::vector<u8>(8)))));
  ASSERT_EQ(read.table.size(), 70'000);
  EXPECT_EQ(read.table.name(69'999), "layers.69999.weight");
}

}  // namespace
}  // namespace mckpt::impl

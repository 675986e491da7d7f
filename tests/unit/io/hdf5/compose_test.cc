#include "io/hdf5/compose.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "core/items/dtype.h"
#include "io/file/file.h"
#include "io/hdf5/answer.h"
#include "io/hdf5/helper.h"
#include "io/hdf5/layout.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl::compose_test {
namespace {

using hdf5_wire::Storage;

// mckpt-hdf5 is two folders above the program with the tests.
std::vector<std::string> helper_folders() {
  return {std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().parent_path().string() +
          "/"};
}

// The helper's view of a composed file, whose data are zeros.
Hdf5Answer seen(const ComposedHdf5& made, i64 superblock) {
  TempFolder folder;
  std::string bytes(static_cast<std::size_t>(made.bytes), '\0');
  for (const Hdf5Piece& p : made.pieces)
    bytes.replace(static_cast<std::size_t>(p.offset), p.bytes.size(), p.bytes);
  std::string path = cat(folder.path(), "/made.h5");
  std::ofstream(path, std::ios::binary) << bytes;
  InputFile file(path);
  return parse_hdf5_answer(ask_hdf5_helper(file, superblock, helper_folders()));
}

TEST(ComposedHdf5, HasEachTypeThatHdf5KnowsAtThePlaceThatItGave) {
  if (find_hdf5_helper(helper_folders()).empty()) GTEST_SKIP() << "mckpt-hdf5 is not built";
  Hdf5Request request(512);
  std::vector<DType> types;
  const std::array<i64, 2> dims = {3, 5};
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.bits < 8) continue;
    EXPECT_EQ(request.contiguous(cat("/", info.name), hdf5_type(info.dtype), dims), std::ssize(types));
    types.push_back(info.dtype);
  }
  request.contiguous("/scalar", hdf5_type(DType::kBF16), {});
  request.contiguous("/empty", hdf5_type(DType::kF32), std::array<i64, 2>{0, 4});
  ComposedHdf5 made = compose_hdf5(std::move(request), helper_folders());
  EXPECT_EQ(made.offsets.back(), -1);
  Hdf5Answer answer = seen(made, 512);
  EXPECT_TRUE(answer.faults.empty());
  ASSERT_EQ(answer.datasets.size(), types.size() + 2);
  for (std::size_t i = 0; i < types.size(); i++) {
    auto d = std::ranges::find(answer.datasets, dtype_name(types[i]), &Hdf5Dataset::name);
    ASSERT_NE(d, answer.datasets.end());
    EXPECT_EQ(d->storage, Storage::kContiguous);
    EXPECT_EQ(d->offset + 512, made.offsets[i]) << d->name;
    EXPECT_EQ(d->bytes, dtype_bytes(types[i], 15));
    EXPECT_EQ(d->dims, std::vector<i64>(dims.begin(), dims.end()));
    DType shown = hdf5_dtype(d->type);
    EXPECT_EQ(dtype_info(shown).bits, dtype_info(types[i]).bits);
    DTypeKind kind = dtype_info(shown).kind;
    bool numbers = kind == DTypeKind::kFloat || kind == DTypeKind::kComplex || kind == DTypeKind::kBool;
    EXPECT_EQ(numbers ? shown : types[i], types[i]);
  }
}

TEST(ComposedHdf5, HasVirtualDatasetsOverUnevenParts) {
  if (find_hdf5_helper(helper_folders()).empty()) GTEST_SKIP() << "mckpt-hdf5 is not built";
  Hdf5Request request(0);
  request.text("of the root", "text");
  request.group("/a");
  const std::array<i64, 2> dims = {5, 4};
  std::vector<Hdf5Mapping> parts = {{"one.h5", "/a/w", {0, 0}, {3, 4}}, {".", "/b%%", {3, 0}, {2, 4}}};
  request.virtual_dataset("/a/w", hdf5_type(DType::kBF16), dims, parts);
  request.numbers("offset", std::array<i64, 2>{7, -8});
  Hdf5Answer answer = seen(compose_hdf5(std::move(request), helper_folders()), 0);
  ASSERT_EQ(answer.datasets.size(), 1u);
  const Hdf5Dataset& d = answer.datasets[0];
  EXPECT_EQ(d.storage, Storage::kVirtual);
  ASSERT_EQ(d.mappings.size(), 2u);
  for (std::size_t i = 0; i < 2; i++) {
    EXPECT_EQ(d.mappings[i].file, parts[i].file);
    EXPECT_EQ(d.mappings[i].dataset, parts[i].dataset);
    EXPECT_EQ(d.mappings[i].offsets, parts[i].offsets);
    EXPECT_EQ(d.mappings[i].sizes, parts[i].sizes);
  }
  EXPECT_EQ(answer.attributes.size(), 2u);
}

TEST(ComposedHdf5, IsTheSameForTheSameRequest) {
  if (find_hdf5_helper(helper_folders()).empty()) GTEST_SKIP() << "mckpt-hdf5 is not built";
  auto make = [] {
    Hdf5Request request(512);
    request.group("/g");
    for (int i = 0; i < 300; i++)
      request.contiguous(cat("/g/", i), hdf5_type(DType::kF32), std::array<i64, 1>{i});
    return compose_hdf5(std::move(request), helper_folders());
  };
  ComposedHdf5 one = make(), two = make();
  EXPECT_EQ(one.offsets, two.offsets);
  EXPECT_EQ(one.bytes, two.bytes);
  EXPECT_TRUE(std::ranges::equal(one.pieces, two.pieces, [](const Hdf5Piece& a, const Hdf5Piece& b) {
    return a.offset == b.offset && a.bytes == b.bytes;
  }));
}

TEST(ComposedHdf5, RefusesWhatHdf5CannotHave) {
  if (find_hdf5_helper(helper_folders()).empty()) GTEST_SKIP() << "mckpt-hdf5 is not built";
  auto refused = [](auto&& describe) {
    Hdf5Request request(0);
    describe(request);
    return thrown_by([&] { compose_hdf5(std::move(request), helper_folders()); });
  };
  const Hdf5Type type = hdf5_type(DType::kU8);
  std::vector<i64> many(40, 1), one = {1};
  EXPECT_TRUE(refused([&](Hdf5Request& r) { r.contiguous("/w", type, many); }).starts_with("MC3005"));
  EXPECT_TRUE(refused([&](Hdf5Request& r) { r.contiguous("/none/w", type, one); }).starts_with("MC3005"));
  EXPECT_TRUE(refused([&](Hdf5Request& r) {
                r.contiguous("/w", type, one);
                r.contiguous("/w", type, one);
              }).starts_with("MC3005"));
}

}  // namespace
}  // namespace mckpt::impl::compose_test

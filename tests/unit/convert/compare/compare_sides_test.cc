// Two sides that are made in memory, compared in both orders.
#include "convert/compare/compare_sides.h"
#include "convert/compare/comparing.h"

#include <gtest/gtest.h>

#include <cstring>

#include "convert/compare/compare.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/sides/kinds.h"
#include "convert/compare/sides/sides.h"
#include "convert/keys/key_table.h"
#include "convert/open/checkpoint.h"
#include "convert/open/open.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "core/items/item_cast.h"
#include "hf/model.h"
#include "io/dcp/keys/key.h"
#include "io/file/file.h"
#include "mappings/model/expand.h"
#include "mappings/model/run_setup.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace compare_sides_test {

struct Made {
  std::string name;
  std::vector<i64> dims;
  std::vector<float> values;
  DType type = DType::kF32;
  i64 cut = -1;  // a row at which a second chunk begins
};

// Items that are computed when they are read, so that they are in no file.
class OwnedBytes final : public ByteSource {
 public:
  explicit OwnedBytes(std::vector<u8> bytes) : ByteSource(std::ssize(bytes)), bytes_(std::move(bytes)) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
  }
  std::vector<u8> bytes_;
};

std::vector<u8> bytes_of(const Made& m, i64 first, i64 items) {
  std::vector<u8> bytes(static_cast<std::size_t>(dtype_bytes(m.type, items)));
  const u8* from = reinterpret_cast<const u8*>(m.values.data() + first);
  if (m.type == DType::kF32)
    std::memcpy(bytes.data(), from, bytes.size());
  else
    cast_items({DType::kF32, DType::kF32, m.type, 0, 0}, from, bytes.data(), items);
  return bytes;
}

// `folder`: where the items are in a file; null: in memory alone.
std::unique_ptr<TableStore> store_of(const std::vector<Made>& tensors, Format format = Format::kTorchFiles,
                                     TempFolder* folder = nullptr) {
  auto out = std::make_unique<TableStore>(folder ? folder->path() : ".");
  out->set_format(format);
  std::string file;
  for (const Made& m : tensors) {
    TableStore::Tensor t{m.name, m.type, m.dims, {}};
    const i64 rows = m.dims[0], row = Shape(m.dims).items() / rows;
    for (auto [begin, end] :
         {std::pair(i64{0}, m.cut < 0 ? rows : m.cut), std::pair(m.cut < 0 ? rows : m.cut, rows)}) {
      if (begin == end) continue;
      std::vector<i64> offsets(m.dims.size()), sizes = m.dims;
      offsets[0] = begin, sizes[0] = end - begin;
      ChunkData data{.file = 0, .dtype = m.type};
      std::vector<u8> bytes = bytes_of(m, begin * row, (end - begin) * row);
      if (folder) {
        data.offset = std::ssize(file);
        file.append(bytes.begin(), bytes.end());
      } else {
        data.unpacked = std::make_shared<OwnedBytes>(std::move(bytes));
      }
      t.pieces.push_back({offsets, sizes, data});
    }
    out->tensors.push_back(std::move(t));
  }
  out->add_file("made", folder ? std::ssize(file) : 1 << 20);
  if (folder) folder->put("made", file);
  return out;
}

// "equal" or what is not, a line each.
std::string compared(const Sides& sides, const CompareOptions& options = {}) {
  Observer observer;
  VerifyReport report;
  std::vector<Oddities> oddities;
  Comparison comparison(sides.tested_store(), sides.source_store(), 2, options.counting, options.choice,
                        observer);
  const bool equal = compare_sides(sides, {options, comparison, observer, report}, oddities);
  std::string out = equal ? "equal" : "";
  for (const UnlikeTensor& u : report.unlike)
    if (u.kind != UnlikeTensor::Kind::kCast)
      out += cat(u.kind == UnlikeTensor::Kind::kOnlyTested   ? "tested "
                 : u.kind == UnlikeTensor::Kind::kOnlySource ? "source "
                 : u.kind == UnlikeTensor::Kind::kHeader     ? "header "
                                                             : "values ",
                 u.tensor, ";");
  for (const Check& c : report.checks)
    if (c.name == "casts" || (c.name == "objects" && !c.note.empty())) out += cat(" ", c.name, ": ", c.note);
  return out;
}

Sides plain(const std::vector<Made>& tested, const std::vector<Made>& source) {
  Sides out = plain_sides(store_of(tested), store_of(source));
  out.objects_apart = "";
  return out;
}

const Made kW{"w", {3, 2}, {1, 2, 3, 4, 5, 6}}, kV{"v", {2}, {7, 8}};

TEST(CompareSides, ByNamesIsTheSameInBothOrders) {
  EXPECT_EQ(compared(plain({kW, kV}, {kV, kW})), "equal");
  Made cut = kW;
  cut.cut = 1;
  EXPECT_EQ(compared(plain({cut, kV}, {kW, kV})), "equal");
  EXPECT_EQ(compared(plain({kW, kV}, {cut, kV})), "equal");
  Made other = kW;
  other.values[3] = 9;
  EXPECT_EQ(compared(plain({other, kV}, {kW, kV})), "values w;");
  EXPECT_EQ(compared(plain({kW, kV}, {other, kV})), "values w;");
  EXPECT_EQ(compared(plain({kW, kV}, {kV})), "tested w;");
  EXPECT_EQ(compared(plain({kV}, {kW, kV})), "source w;");
  Made shape{"w", {2, 3}, kW.values};
  EXPECT_EQ(compared(plain({shape}, {kW})), "header w;");
  EXPECT_EQ(compared(plain({kW}, {shape})), "header w;");
}

TEST(CompareSides, OfTwoTypesAreComparedInTheWiderOne) {
  Made narrow = kW, lost = kW;
  narrow.type = DType::kBF16, lost.values[0] = 1.001F;  // which bfloat16 has as 1
  CompareOptions every;
  every.any_type = every.counting.all = true;
  EXPECT_EQ(compared(plain({narrow}, {kW}), every), "equal");
  EXPECT_EQ(compared(plain({kW}, {narrow}), every), "equal");
  EXPECT_EQ(compared(plain({narrow}, {lost}), every), "values w;");
  EXPECT_EQ(compared(plain({lost}, {narrow}), every), "values w;");
  // A conversion casts to the type of its result, and what it loses is a warning.
  CompareOptions any;
  any.any_type = true;
  EXPECT_EQ(compared(plain({narrow}, {lost}), any).substr(0, 5), "equal");
  EXPECT_EQ(compared(plain({narrow}, {lost})), "header w;");
}

TEST(CompareSides, WhatAConversionChangesIsNoDifference) {
  Sides left = plain({kV}, {kW, kV}), cast = plain({kW}, {kW});
  left.changes.left_out = [](std::string_view name) { return name == "w" ? "weights only" : ""; };
  EXPECT_EQ(compared(left), "equalsource w;");
  Made narrow = kW;
  narrow.type = DType::kBF16;
  cast = plain({narrow}, {kW});
  cast.changes = casts_to(cast.tested_store(), cast.source_store());
  EXPECT_EQ(compared(cast).substr(0, 5), "equal");
}

// A store that counts how often it is asked for a name.
class CountedNames final : public TableStore {
 public:
  CountedNames(i64 count, DType type, i64 items) : TableStore(".") {
    for (i64 t = 0; t < count; t++) tensors.push_back({cat("l.", t, ".w"), type, {items}, {}});
  }
  std::string_view name(i64 t) const override {
    asked++;
    return TableStore::name(t);
  }
  mutable i64 asked = 0;
};

// Looks that go through all names for each tensor would ask for two million.
TEST(CompareSides, NamesAreLookedUpInTimeThatGrowsWithTheirNumber) {
  static constexpr i64 kTensors = 2000, kMost = 100 * kTensors;
  auto asked = [](DType of_tested, DType of_source, i64 items) {
    auto tested = std::make_unique<CountedNames>(kTensors, of_tested, items),
         source = std::make_unique<CountedNames>(kTensors, of_source, items);
    const CountedNames &a = *tested, &b = *source;
    Sides sides = plain_sides(std::move(tested), std::move(source));
    sides.objects_apart = "";
    sides.changes = casts_to(sides.tested_store(), sides.source_store());
    CompareOptions every;
    every.counting.all = true;
    EXPECT_EQ(compared(sides, every).substr(0, 5), "equal");
    return a.asked + b.asked;
  };
  EXPECT_LT(asked(DType::kF32, DType::kF32, 0), kMost);
  EXPECT_LT(asked(DType::kBF16, DType::kF32, 0), kMost);
}

TEST(CompareSides, TheTypesThatWereAskedForAreACheck) {
  Made narrow = kW;
  narrow.type = DType::kBF16;
  CompareOptions asked;
  asked.types.kind = TypeClaim::kGiven, asked.types.given = DType::kBF16;
  Sides as_asked = plain({narrow}, {kW}), not_asked = plain({kW}, {kW});
  as_asked.any_type = not_asked.any_type = true;
  EXPECT_EQ(compared(as_asked, asked).substr(0, 5), "equal");
  EXPECT_NE(compared(not_asked, asked).substr(0, 5), "equal");
  not_asked.checks_types = false;
  EXPECT_EQ(compared(not_asked, asked), "equal");
}

TEST(CompareSides, SaysWhyObjectsAreNotCompared) {
  Sides sides = plain({kW}, {kW});
  sides.objects_apart = "there is a reason";
  EXPECT_EQ(compared(sides), "equal objects: not compared: there is a reason");
}

// A model that no family knows, of the tensors of a store, and a checkpoint under the keys that it has.
// The chunks of either are in its files.
Opened table_of(const std::vector<Made>& tensors, TempFolder& folder) {
  Opened out;
  std::unique_ptr<Store> store = store_of(tensors, Format::kSafetensorsFolder, &folder);
  HfModel model = plain_model(*store, [&](i64 t) { return std::optional(std::string(store->name(t))); });
  model.store = std::move(store);
  out.table = std::make_shared<HfModel>(std::move(model));
  return out;
}

Opened sharded_of(std::vector<Made> tensors, const Opened& model, TempFolder& folder) {
  for (Made& m : tensors) m.name = cat(kModelFront, m.name);
  return open_sharded(store_of(tensors, Format::kDcp, &folder), model.table, {.source = folder.path()},
                      {0, std::nullopt});
}

Sides sides_of(Opened tested, Opened source) {
  Sides out{.tested = std::move(tested), .source = std::move(source)};
  out.objects_apart = "";
  return out;
}

TEST(CompareSides, OverTheItemsOfAModelIsTheSameInBothOrders) {
  Made cut = kW, other = kW;
  cut.cut = 2, other.values[5] = 0;
  auto imported = [](const std::vector<Made>& tested, const std::vector<Made>& source) {
    TempFolder folder, weights;
    Opened model = table_of(source, weights);
    Opened checkpoint = sharded_of(tested, model, folder);
    return compared(sides_of(std::move(checkpoint), std::move(model)));
  };
  auto exported = [](const std::vector<Made>& tested, const std::vector<Made>& source) {
    TempFolder folder, weights;
    Opened model = table_of(tested, weights);
    Opened checkpoint = sharded_of(source, model, folder);
    return compared(sides_of(std::move(model), std::move(checkpoint)));
  };
  EXPECT_EQ(imported({cut, kV}, {kW, kV}), "equal");
  EXPECT_EQ(exported({kW, kV}, {cut, kV}), "equal");
  EXPECT_EQ(imported({other, kV}, {kW, kV}), cat("values ", kModelFront, "w;"));
  EXPECT_EQ(exported({kW, kV}, {other, kV}), "values w;");
}

TEST(CompareSides, KnowsWhatTwoSidesMeetAt) {
  EXPECT_FALSE(plain({kW}, {kW}).of_items());
  TempFolder folder, other, weights;
  Opened model = table_of({kW}, weights);
  Opened checkpoint = sharded_of({kW}, model, folder);
  EXPECT_TRUE(sides_of(std::move(checkpoint), std::move(model)).of_items());
  Opened one = table_of({kW}, weights);
  Opened a = sharded_of({kW}, one, folder), b = sharded_of({kW}, one, other);
  Sides both = sides_of(std::move(a), std::move(b));
  both.one_model = true;
  EXPECT_FALSE(both.of_items());
  EXPECT_EQ(compared(both), "equal");
}

}  // namespace compare_sides_test
}  // namespace mckpt::impl

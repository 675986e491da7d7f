#include "io/listing/manifest.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/copy/part_sums.h"
#include "io/copy/written_sums.h"
#include "io/file/crc32.h"

namespace mckpt::impl {
namespace {

Manifest example() {
  return {"0.1.0",
          {{{"__0_0.distcp", 4096, ""}, 0x0a1b2c3d, {{64, 512, 0xdeadbeef}, {1024, 0, 0}, {1024, 8, 1}}},
           {{"hf_assets/\"config\".json", 10, std::string(64, 'a')}}}};
}

Code refusal(std::string_view text) {
  try {
    parse_manifest(text);
  } catch (const Error& e) {
    return e.code();
  }
  return Code::kInternal;
}

TEST(Manifest, IsReadAsItWasWritten) {
  Manifest read = parse_manifest(example().text());
  EXPECT_EQ(read.text(), example().text());
  ASSERT_NE(read.find("__0_0.distcp"), nullptr);
  EXPECT_EQ(read.find("__0_0.distcp")->sums[0].crc32, 0xdeadbeef);
  EXPECT_EQ(read.find("hf_assets/\"config\".json")->bytes, 10);
  EXPECT_EQ(read.find("config.json"), nullptr);
}

TEST(Manifest, IsRefusedWithAnyBitFlipped) {
  std::string text = example().text();
  for (std::size_t i = 0; i < text.size() * 8; i++) {
    std::string damaged = text;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ 1 << i % 8);
    EXPECT_EQ(refusal(damaged), Code::kBadManifest) << "bit " << i;
  }
  for (std::size_t n = 0; n < text.size(); n++) EXPECT_EQ(refusal(text.substr(0, n)), Code::kBadManifest);
}

TEST(Manifest, RefusesWhatIsSealedAndMakesNoSense) {
  Manifest outside = example(), overlap = example(), twice = example(), unsorted = example();
  outside.files[0].sums[0].bytes = 5000;
  overlap.files[0].sums[1] = {100, 8, 0};
  twice.files[1].name = twice.files[0].name;
  std::swap(unsorted.files[0], unsorted.files[1]);
  for (const Manifest& m : {outside, overlap, twice, unsorted}) EXPECT_EQ(refusal(m.text()), Code::kBadJson);
  Manifest leaving = example();
  leaving.files[1].name = "../config.json";
  EXPECT_EQ(refusal(leaving.text()), Code::kBadPath);
}

TEST(PartSums, AreThoseOfTheWholeTensorsHoweverTheyAreCut) {
  std::vector<u8> file(100);
  for (std::size_t i = 0; i < file.size(); i++) file[i] = static_cast<u8>(i * i);
  PartSums parts({{0, 50, 30}, {0, 10, 40}, {0, 80, 0}});
  for (std::size_t cut : {std::size_t{93}, std::size_t{55}, std::size_t{20}, std::size_t{5}}) {
    parts.add(0, static_cast<i64>(cut), std::span(file).subspan(cut));
    file.resize(cut);
  }
  file.resize(100);
  for (std::size_t i = 0; i < file.size(); i++) file[i] = static_cast<u8>(i * i);
  WrittenSums sums;
  parts.join_into(sums);
  ASSERT_EQ(sums.data().size(), 2u);
  for (auto [i, offset, bytes] : {std::tuple{0u, 10, 40}, {1u, 50, 30}}) {
    EXPECT_EQ(sums.data()[i].offset, offset);
    EXPECT_EQ(sums.data()[i].bytes, bytes);
    EXPECT_EQ(sums.data()[i].crc32, crc32(0, std::span(file).subspan(static_cast<std::size_t>(offset),
                                                                     static_cast<std::size_t>(bytes))));
  }
}

}  // namespace
}  // namespace mckpt::impl

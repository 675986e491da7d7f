// Archives: any bytes, or bytes that choose what a builder falsifies in an archive that fits together
// otherwise.
#include "io/zip/zip.h"

#include <fuzzer/FuzzedDataProvider.h>

#include "core/base/error.h"
#include "io/file/file.h"
#include "tests/fuzz/mutate/mixed.h"
#include "tests/support/zip_builder.h"

namespace {

using namespace mckpt::impl;

void falsify(FuzzedDataProvider& choice, ZipHeader& h) {
  switch (choice.ConsumeIntegralInRange(0, 9)) {
    case 0:
      h.flags = choice.ConsumeIntegral<u16>();
      break;
    case 1:
      h.method = choice.ConsumeBool() ? 8 : choice.ConsumeIntegral<u16>();
      break;
    case 2:
      h.crc = choice.ConsumeIntegral<u32>();
      break;
    case 3:
      h.stored = choice.ConsumeIntegral<u32>();
      break;
    case 4:
      h.bytes = choice.ConsumeIntegral<u32>();
      break;
    case 5:
      h.name = choice.ConsumeRandomLengthString(20);
      break;
    case 6:
      h.extra = choice.ConsumeRandomLengthString(40);
      break;
    case 7:
      h.offset = choice.ConsumeIntegral<u32>();
      break;
    case 8:
      h.attributes = choice.ConsumeIntegral<u32>();
      break;
    default:
      break;
  }
}

std::vector<u8> built(FuzzedDataProvider& choice) {
  ZipBuilder b;
  for (int records = choice.ConsumeIntegralInRange(0, 6); records > 0; records--) {
    std::string name = choice.ConsumeBool() ? "archive/data.pkl" : choice.ConsumeRandomLengthString(10);
    b.add(name, choice.ConsumeRandomLengthString(64), [&](ZipHeader& local, ZipHeader& central) {
      if (choice.ConsumeBool()) falsify(choice, local);
      if (choice.ConsumeBool()) falsify(choice, central);
    });
  }
  return b.finish([&](ZipBuilder::End& end) {
    end.zip64 = choice.ConsumeBool();
    if (choice.ConsumeBool()) end.entries = choice.ConsumeIntegral<u64>();
    if (choice.ConsumeBool()) end.directory_bytes += choice.ConsumeIntegral<u64>();
    if (choice.ConsumeBool()) end.directory_offset += choice.ConsumeIntegral<u64>();
    end.comment = choice.ConsumeRandomLengthString(30);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider choice(data, size);
  bool raw = choice.ConsumeBool();
  i64 trailing = choice.ConsumeIntegralInRange(0, 8);
  std::vector<u8> bytes = raw ? choice.ConsumeRemainingBytes<u8>() : built(choice);
  MemorySource source(bytes);
  try {
    ZipArchive zip(source, trailing);
    for (const ZipEntry& e : zip.entries()) {
      if (e.data_offset < 0 || e.data_offset + e.stored_bytes > source.size()) __builtin_trap();
      if (zip.find(e.name) != &e) __builtin_trap();
      try {
        if (static_cast<i64>(zip.read(e, 1 << 20).size()) != e.bytes) __builtin_trap();
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
  return 0;
}

namespace {

// The last two bytes say how the ones before them are taken: those stay.
bool raw_archive(std::string& input, const std::string* other, mutate::Choice& choice) {
  if (input.size() < 2 || !(input.back() & 1)) return false;
  std::string archive = input.substr(0, input.size() - 2), tail = input.substr(input.size() - 2);
  std::string there = other ? other->substr(0, other->size() - std::min<std::size_t>(2, other->size())) : "";
  if (!mutate::zip(archive, other ? &there : nullptr, choice)) return false;
  input = archive + tail;
  return true;
}

}  // namespace

MCKPT_MUTATED_AS(raw_archive)

// Checks the records byteorder, version and the like, each exactly as strictly as torch's own code reads
// it.
#include "io/torch/records.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/json/json.h"
#include "io/zip/zip.h"

namespace mckpt::impl {
namespace {

// Bytes of a record that has a word or a number, and the versions that torch reads.
constexpr i64 kMostSmallBytes = 4096;  // of records that hold a word
constexpr i64 kLeastVersion = 1, kMostVersion = 10;

// Records that torch looks for by name, without regard to the case of letters.
constexpr std::string_view kKnownRecords[] = {
    "byteorder",       "data.pkl",          "version", ".data/version", ".data/serialization_id",
    ".format_version", ".storage_alignment"};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string text_of(const ZipArchive& zip, const ZipEntry& entry) {
  std::vector<u8> bytes = zip.read(entry, kMostSmallBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The small records, as far as an archive has them.
struct SmallRecords {
  const ZipEntry *version = nullptr, *data_version = nullptr, *alignment = nullptr, *id = nullptr;
};

// The small records, found in one pass: an archive may have hundreds of thousands of entries.
SmallRecords small_records(const ZipArchive& zip, std::string_view top) {
  SmallRecords found;
  for (const ZipEntry& e : zip.entries()) {
    if (!e.name.starts_with(top)) continue;
    std::string_view name = e.name.substr(top.size());
    if (!name.starts_with('v') && !name.starts_with('.')) continue;
    for (auto [record, known] : {std::pair{&found.version, "version"},
                                 {&found.data_version, ".data/version"},
                                 {&found.alignment, ".storage_alignment"},
                                 {&found.id, ".data/serialization_id"}})
      if (name == known) *record = &e;
  }
  return found;
}

// The number at the front of a text, as C's strtoull reads it; what follows it does not matter. -1: there is
// none, or it is out of range.
i64 number_at_front(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  i64 number = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number >= 0 ? number : -1;
}

// As Python's int() takes bytes: "64", " -1_000\n".
bool is_python_int(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.back())) return false;
  for (std::size_t i = 0; i < text.size(); i++) {
    bool joins_digits = text[i] == '_' && i > 0 && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!is_digit(text[i]) && !joins_digits) return false;
  }
  return true;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c; }

bool differs_by_case_alone(std::string_view name, std::string_view known) {
  return name.size() == known.size() && name != known &&
         std::ranges::equal(name, known, [](char a, char b) { return lower(a) == b; });
}

}  // namespace

bool is_big_endian_archive(const ZipArchive& zip, std::string_view top) {
  const ZipEntry* e = zip.find(cat(top, "byteorder"));
  if (e == nullptr) return false;
  const std::string word = text_of(zip, *e);
  if (word != "little" && word != "big")
    throw Error(Code::kBadTorchFile, "the record byteorder is neither little nor big")
        .found(escaped(word, 40));
  return word == "big";
}

void check_torch_records(const ZipArchive& zip, std::string_view top) {
  for (const ZipEntry& e : zip.entries()) {
    if (top.empty() || !e.name.starts_with(top))
      throw Error(Code::kBadTorchFile, "a record is not in the folder of the archive: torch refuses the file")
          .expected(top.empty() ? "a folder around all records" : cat(escaped(top), "..."))
          .found(escaped(e.name, 80));
    for (std::string_view known : kKnownRecords)
      if (differs_by_case_alone(e.name.substr(top.size()), known))
        throw Error(Code::kBadTorchFile, cat("the name of the record ", known,
                                             " has letters of another case, which torch passes over"))
            .expected(cat(escaped(top), known))
            .found(escaped(e.name, 80));
    if (!is_utf8(e.name))
      throw Error(Code::kBadTorchFile, "the name of a record is not UTF-8: torch refuses the file")
          .found(escaped(e.name, 80));
  }
  SmallRecords records = small_records(zip, top);
  const ZipEntry* version = records.data_version ? records.data_version : records.version;
  if (version == nullptr)
    throw Error(Code::kBadTorchFile, "the record version is missing: torch refuses the file")
        .expected(cat(escaped(top), "version"));
  std::string text = text_of(zip, *version);
  i64 number = number_at_front(text);
  if (number < kLeastVersion || number > kMostVersion)
    throw Error(Code::kBadTorchFile, "the record version has no version that torch reads")
        .expected(cat(kLeastVersion, " to ", kMostVersion))
        .found(cat("'", escaped(text, 40), "'"));
  if (records.alignment && !is_python_int(text = text_of(zip, *records.alignment)))
    throw Error(Code::kBadTorchFile,
                "the record .storage_alignment is not an integer: torch refuses the file")
        .found(cat("'", escaped(text, 40), "'"));
  if (records.id && !is_utf8(text = text_of(zip, *records.id)))
    throw Error(Code::kBadTorchFile, "the record .data/serialization_id is not UTF-8: torch refuses the file")
        .found(escaped(text, 40));
}

}  // namespace mckpt::impl

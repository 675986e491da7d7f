#include "io/torch_records.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/text.h"

namespace mckpt {
namespace {

constexpr i64 kMostSmallBytes = 4096;  // of records that hold a word
constexpr i64 kLeastVersion = 1, kMostVersion = 10;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::string> text_of(const ZipArchive& zip, std::string_view top, std::string_view name) {
  const ZipEntry* e = zip.find(cat(top, name));
  if (e == nullptr) return std::nullopt;
  std::vector<u8> bytes = zip.read(*e, kMostSmallBytes);
  return std::string(bytes.begin(), bytes.end());
}

// As C's strtoull reads a text: the number at its front, whatever follows. -1: there is none that is in
// range.
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

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t bytes = utf8_sequence(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace

bool is_big_endian_archive(const ZipArchive& zip, std::string_view top) {
  std::optional<std::string> word = text_of(zip, top, "byteorder");
  if (!word) return false;
  if (*word != "little" && *word != "big")
    throw Error(Code::kBadTorchFile, "the record byteorder is neither little nor big")
        .found(escaped(*word, 40));
  return *word == "big";
}

void check_torch_records(const ZipArchive& zip, std::string_view top) {
  std::optional<std::string> version = text_of(zip, top, ".data/version");
  if (!version) version = text_of(zip, top, "version");
  if (!version)
    throw Error(Code::kBadTorchFile, "the record version is missing: torch refuses the file")
        .expected(cat(escaped(top), "version"));
  i64 number = number_at_front(*version);
  if (number < kLeastVersion || number > kMostVersion)
    throw Error(Code::kBadTorchFile, "the record version has no version that torch reads")
        .expected(cat(kLeastVersion, " to ", kMostVersion))
        .found(cat("'", escaped(*version, 40), "'"));
  std::optional<std::string> alignment = text_of(zip, top, ".storage_alignment");
  if (alignment && !is_python_int(*alignment))
    throw Error(Code::kBadTorchFile,
                "the record .storage_alignment is not an integer: torch refuses the file")
        .found(cat("'", escaped(*alignment, 40), "'"));
  std::optional<std::string> id = text_of(zip, top, ".data/serialization_id");
  if (id && !is_utf8(*id))
    throw Error(Code::kBadTorchFile, "the record .data/serialization_id is not UTF-8: torch refuses the file")
        .found(escaped(*id, 40));
}

}  // namespace mckpt

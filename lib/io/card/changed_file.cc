// The parts of a file that the card lists are summed again; those that changed are named. The bytes there
// instead are often known to the card: of another tensor, written twice or swapped; or the part's own, some
// bytes further on, because something was put in or taken out before them.
#include "io/card/changed_file.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/listing/stretches.h"
#include "io/sums/sha256.h"

namespace mckpt::impl {
namespace {

constexpr const char* kHelp = "copy the file again from where the card was made";

std::string range_text(i64 offset, i64 bytes) {
  return bytes == 1 ? cat("byte ", offset) : cat("bytes ", offset, "..", offset + bytes - 1);
}

// The SHA-256 of a stretch, and whether all its bytes are 0.
std::pair<std::string, bool> sum_stretch(const ByteSource& file, i64 offset, i64 bytes) {
  constexpr i64 kWindow = 1 << 20;
  Sha256 sum;
  bool zero = true;
  for (i64 done = 0; done < bytes; done += kWindow) {
    std::vector<u8> window = file.read(offset + done, std::min(kWindow, bytes - done));
    sum.update(window);
    zero = zero && std::ranges::all_of(window, [](u8 b) { return b == 0; });
  }
  return {sum.hex_digest(), zero};
}

}  // namespace

// Bytes of the file, and the tensors that have them: several if they share their memory.
struct ChangedFile::Part {
  FilePart where;
  std::string sha256;
  std::vector<const CardTensor*> tensors;
};

ChangedFile::ChangedFile(const Card& card) : card_(card), by_file_(card.files.size()) {
  for (const CardTensor& t : card.tensors)
    for (const CardChunk& c : t.chunks) {
      by_file_[c.file].push_back({&t, &c});
      by_digest_.emplace(c.sha256, Place{&t, &c});
    }
}

std::vector<ChangedFile::Part> ChangedFile::parts_of(i32 file) const {
  std::vector<Place> places = by_file_[file];
  std::ranges::stable_sort(places, {}, [](const Place& p) {
    return FilePart{p.chunk->offset, p.chunk->bytes};
  });
  std::vector<Part> parts;
  for (const Place& p : places) {
    FilePart where{p.chunk->offset, p.chunk->bytes};
    if (parts.empty() || parts.back().where != where) parts.push_back({where, p.chunk->sha256, {}});
    parts.back().tensors.push_back(p.tensor);
  }
  return parts;
}

std::vector<Finding> ChangedFile::find(const ByteSource& file, i32 number,
                                       const std::function<void(i64 bytes)>& progress) const {
  const CardFile& listed = card_.files[number];
  const std::vector<Part> all = parts_of(number);
  std::vector<Finding> findings;
  std::vector<FilePart> inside;
  auto is_inside = [&](i64 offset, i64 bytes) {
    return offset <= file.size() && bytes <= file.size() - offset;
  };
  for (const Part& p : all)
    if (is_inside(p.where.offset, p.where.bytes)) inside.push_back(p.where);
  FileSums sums = sum_file(file, inside, progress);
  for (const Part& p : all) {
    auto at = std::ranges::lower_bound(inside, p.where);
    bool has = at != inside.end() && *at == p.where;
    const std::string* digest = has ? &sums.parts[at - inside.begin()] : nullptr;
    if (!digest || *digest != p.sha256)
      findings.push_back(of_part(file, p, digest, file.size() - listed.bytes));
  }
  for (const SummedStretch& s : listed.others)
    if (!is_inside(s.offset, s.bytes) || sum_bytes(0, file, s.offset, s.offset + s.bytes) != s.crc32)
      findings.push_back(of_stretch(number, s, all));
  if (file.size() > listed.bytes)
    findings.push_back({.message = cat(range_text(listed.bytes, file.size() - listed.bytes),
                                       " are behind the end that the file has on the card"),
                        .offset = listed.bytes});
  if (findings.empty())
    findings.push_back(
        {.message = "the SHA-256 is not that of the card, but those of all parts are: the card was edited"});
  std::ranges::stable_sort(findings, {}, &Finding::offset);
  for (Finding& f : findings) f.code = Code::kNotAsCard, f.file = listed.name, f.help = kHelp;
  return findings;
}

// `digest`: of the bytes that are there; null if the file ends before them. `grown`: by so many bytes the
// file is longer than on the card.
Finding ChangedFile::of_part(const ByteSource& file, const Part& part, const std::string* digest,
                             i64 grown) const {
  Finding f{.tensor = part.tensors[0]->name, .offset = part.where.offset};
  if (!part.tensors[0]->checkpoint.empty()) f.tensor = cat(part.tensors[0]->checkpoint, ": ", f.tensor);
  f.message = range_text(part.where.offset, part.where.bytes);
  if (!digest) {
    f.message += " are not all there: the file ends before";
  } else {
    f.message += cat(" are not those of the card", what_it_is(file, part, *digest, grown));
  }
  if (part.tensors.size() > 1)
    f.message += cat("; ", counted(std::ssize(part.tensors) - 1, "other tensor"), " shared them");
  return f;
}

std::string ChangedFile::what_it_is(const ByteSource& file, const Part& part, const std::string& digest,
                                    i64 grown) const {
  auto [found, zero] = sum_stretch(file, part.where.offset, part.where.bytes);
  if (zero) return ": they are all zero";
  if (auto known = by_digest_.find(digest); known != by_digest_.end())
    return cat(": they are those of tensor '", escaped(known->second.tensor->name), "' (",
               escaped(card_.files[known->second.chunk->file].name), ", from byte ",
               known->second.chunk->offset, ")");
  i64 moved = part.where.offset + grown;
  if (grown != 0 && moved >= 0 && moved <= file.size() - part.where.bytes &&
      sum_stretch(file, moved, part.where.bytes).first == part.sha256)
    return cat(": they were moved by ", grown, " bytes");
  return "";
}

Finding ChangedFile::of_stretch(i32 file, const SummedStretch& stretch,
                                const std::vector<Part>& parts) const {
  Finding f{.message = range_text(stretch.offset, stretch.bytes), .offset = stretch.offset};
  const CardTensor *before = nullptr, *after = nullptr;
  for (const Part& p : parts) {
    if (p.where.offset < stretch.offset) before = p.tensors[0];
    if (p.where.offset > stretch.offset && !after) after = p.tensors[0];
  }
  auto name = [](const CardTensor& t) { return cat("'", escaped(t.name), "'"); };
  if (before && after) f.message += cat(", between tensors ", name(*before), " and ", name(*after), ",");
  if (before && !after) f.message += cat(", behind the last tensor, ", name(*before), ",");
  if (!before && after) f.message += cat(", before the first tensor, ", name(*after), ",");
  bool whole = stretch.bytes == card_.files[file].bytes;
  f.message += whole ? ", the whole file, are not those of the card" : " are not those of the card";
  return f;
}

}  // namespace mckpt::impl

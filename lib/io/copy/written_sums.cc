// Puts the sums of a result's files together. For each file one walk from front to back over data and
// stretches, both sorted: the frames of a stretch have a sum already, everything else between the data is
// read. Most of a file is data or frame, so little is read: headers, objects and what an earlier run wrote.
#include "io/copy/written_sums.h"

#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/listing/manifest.h"
#include "io/listing/stretches.h"
#include "io/output/output_files.h"
#include "io/output/staging_marks.h"
#include "io/values/digest.h"

namespace mckpt::impl {
namespace {

// The sums of one file, made from front to back.
class FileSums {
 public:
  FileSums(const std::string& path, i64 bytes) : file_(path) {
    sums_.bytes = bytes;
    if (file_.size() != bytes) file_.throw_changed();
  }

  // pre: all data are added before the first stretch; each in the order of the file.
  void add(const WrittenSums::Data& d) { sums_.sums.push_back({d.offset, d.bytes, d.crc32}); }
  void add(const WrittenSums::Stretch& s) {
    read_rest(s.begin);
    sums_.rest_crc32 = crc32_join(sums_.rest_crc32, s.rest_crc32, s.rest_bytes);
    at_ = s.end;
  }
  ManifestFile finish(std::string name) {
    read_rest(sums_.bytes);
    sums_.name = std::move(name);
    return std::move(sums_);
  }

 private:
  // Adds the bytes before `end` that are not data to the sum.
  void read_rest(i64 end) {
    for (; next_ < sums_.sums.size() && sums_.sums[next_].offset < end; next_++) {
      const SummedStretch& data = sums_.sums[next_];
      if (at_ < data.offset) sums_.rest_crc32 = sum_bytes(sums_.rest_crc32, file_, at_, data.offset);
      at_ = std::max(at_, data.offset + data.bytes);
    }
    if (at_ < end) sums_.rest_crc32 = sum_bytes(sums_.rest_crc32, file_, at_, end);
    at_ = std::max(at_, end);
  }

  InputFile file_;
  ManifestFile sums_;
  i64 at_ = 0;            // the rest is summed up to here
  std::size_t next_ = 0;  // the first data that do not end before at_
};

}  // namespace

void WrittenSums::add(const Data& data) {
  std::lock_guard lock(mutex_);
  data_.push_back(data);
}

void WrittenSums::add(const Stretch& stretch) {
  std::lock_guard lock(mutex_);
  stretches_.push_back(stretch);
}

std::vector<ManifestFile> WrittenSums::finish(const std::string& folder,
                                              const std::vector<OutputFile>& files) {
  std::ranges::sort(data_, {}, [](const Data& d) { return std::tuple(d.file, d.offset); });
  std::ranges::sort(stretches_, {}, [](const Stretch& s) { return std::tuple(s.file, s.begin); });
  std::vector<ManifestFile> out;
  auto stretch = stretches_.begin();
  for (auto data = data_.begin(); data != data_.end();) {
    i32 f = data->file;
    const OutputFile& file = files[f];
    FileSums sums(cat(folder, "/", file.name), file.bytes);
    for (; data != data_.end() && data->file == f; data++) sums.add(*data);
    for (; stretch != stretches_.end() && stretch->file <= f; stretch++)
      if (stretch->file == f) sums.add(*stretch);
    out.push_back(sums.finish(file.name));
  }
  return out;
}

WrittenSums::ByPlace WrittenSums::by_place() const { return ByPlace(data_); }

WrittenSums::ByPlace::ByPlace(std::span<const Data> data) {
  for (const Data& d : data) sorted_.push_back(&d);
  std::ranges::sort(sorted_, {}, [](const Data* d) { return std::tuple(d->file, d->offset); });
}

u32 WrittenSums::ByPlace::crc32(i32 file, i64 offset) const {
  auto place = [](const Data* d) { return std::tuple(d->file, d->offset); };
  auto at = std::ranges::lower_bound(sorted_, std::tuple(file, offset), {}, place);
  if (at == sorted_.end() || place(*at) != std::tuple(file, offset))
    throw Error(Code::kInternal, "the data of a tensor have no sum")
        .found(cat("file ", file, " at ", offset));
  return (*at)->crc32;
}

Manifest make_manifest(const std::string& folder, std::vector<ManifestFile> summed, std::string version) {
  Manifest manifest{std::move(version), std::move(summed)};
  std::ranges::sort(manifest.files, {}, &ManifestFile::name);
  std::vector<ManifestFile> others;
  Folder from(folder, {.containers = nullptr});  // the files that were written, not those in an archive
  for (const std::string& name : files_of(from, nullptr)) {
    if (is_staging_mark(name) || manifest.find(name) || name == kManifestName) continue;
    InputFile file = from.open_file(name);
    others.push_back({{name, file.size(), sha256_of(file)}});
  }
  std::ranges::move(others, std::back_inserter(manifest.files));
  std::ranges::sort(manifest.files, {}, &ManifestFile::name);
  return manifest;
}

}  // namespace mckpt::impl
